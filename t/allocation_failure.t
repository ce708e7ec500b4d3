# No memory: each allocation on the way of each kind of request fails once, and now and
# then all that follow it, too. Every request gets its answer, or what sliding_limit_on_error
# says; what nginx itself cannot do without memory is its own affair. Afterwards all is
# as it was.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET ();
use List::Util qw(max);
use SlidingLimit::Allocations qw(watch_allocations);
use SlidingLimit::FakeRedis qw(start_fake_cluster);
use SlidingLimit::Servers qw(free_port get request start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $allocations = watch_allocations() or plan skip_all => '"make sanitize" builds the nginx for it';

# A request must not wait for longer than a store's timeout.
my $TIMEOUT = 1;
my $PATIENCE = 2 * $TIMEOUT;

# ---- who is there

my $redis = start_redis(args => ['--requirepass', 'secret'], cli_args => ['-a', 'secret', '--no-auth-warning']);
my $dead = free_port();

my ($node, $other_node) = start_fake_cluster();

# ---- kinds of requests
#
# limits    in the location of that name
# also      what else is there
# before    so many requests of the same client come first
# answer    the status of an ordinary answer (200)
# without   the status if on_error decides; the same as the ordinary one unless named
# counts    for each zone, what may have been counted in it afterwards: so many at least, and at most
# ask       how it is asked, instead of by one GET; returns statuses
# extra     locations of their own

my $WINDOW = 'window=600s key=$arg_k';
my @kinds;

sub kind {
    my ($name, %with) = @_;
    push @kinds, { name => $name, before => 0, answer => 200, also => 'empty_gif;', counts => {}, extra => '',
        ask => sub { http($_[0]) }, outcome => ($with{answer} // 200) == 429 ? 'REJECTED' : 'PASSED', %with };
    return;
}

for my $store (['redis', ''], ['memory', 'store=memory']) {
    my ($name, $where) = @$store;

    kind "$name-admitted", limits => "sliding_limit zone=$name-admitted max=5 $WINDOW $where;", counts => { "$name-admitted" => [0, 1] };
    kind "$name-refused", limits => "sliding_limit zone=$name-refused max=1 $WINDOW $where; sliding_limit_deny_cache off;",
        before => 1, answer => 429, without => 200, counts => { "$name-refused" => [1, 1] };
    kind "$name-closed", limits => "sliding_limit zone=$name-closed max=5 $WINDOW $where; sliding_limit_on_error deny;",
        without => 503, counts => { "$name-closed" => [0, 1] };
    kind "$name-taken-back",
        limits => "sliding_limit zone=$name-taken-back max=5 $WINDOW $where count_status=404;",
        counts => { "$name-taken-back" => [0, 1] };
    kind "$name-two-limits", before => 1, answer => 429, without => 200,
        limits => "sliding_limit zone=$name-roomy max=5 $WINDOW $where; sliding_limit zone=$name-tight max=1 $WINDOW $where;",
        counts => { "$name-roomy" => [1, 2], "$name-tight" => [1, 1] };
    kind "$name-buckets", limits => "sliding_limit zone=$name-buckets max=5 $WINDOW $where algorithm=buckets;",
        counts => { "$name-buckets" => [0, 1] };
    kind "$name-dry-run", limits => "sliding_limit zone=$name-dry-run max=1 $WINDOW $where dry_run;",
        before => 1, outcome => 'REJECTED_DRY_RUN', counts => { "$name-dry-run" => [1, 1] };
}

kind 'deny-cache', limits => "sliding_limit zone=deny-cache max=1 $WINDOW;", before => 2, answer => 429, without => 200,
    counts => { 'deny-cache' => [1, 1] };

kind 'two-stores', before => 1, answer => 429, without => 200,
    limits => "sliding_limit zone=first max=5 $WINDOW store=memory; sliding_limit zone=second max=1 $WINDOW;",
    counts => { first => [1, 2], second => [1, 1] };
kind 'two-stores-taken-back', before => 1, answer => 429, without => 200,
    limits => "sliding_limit zone=third max=5 $WINDOW; sliding_limit zone=fourth max=1 $WINDOW store=memory;",
    counts => { third => [1, 2], fourth => [1, 1] };
kind 'many-limits',
    limits => join(' ', map { "sliding_limit zone=many$_ max=5 $WINDOW;" } 1 .. 5),
    counts => { map { ("many$_" => [0, 1]) } 1 .. 5 };
kind 'variables',
    limits => 'sliding_limit zone=variables max=$arg_max cost=$arg_cost window=600s key=$http_x_none fallback=$arg_k$arg_none if=$arg_k;',
    ask => sub { http("$_[0]&max=5&cost=1") }, counts => { variables => [0, 1] };
kind 'address', limits => 'sliding_limit zone=address max=1000000 window=1s key=$sliding_limit_addr;';
kind 'exempt', outcome => 'EXEMPT', limits => 'sliding_limit zone=exempt max=5 window=600s key=$arg_none; sliding_limit zone=exempt2 max=5 window=600s key=$arg_none;';
kind 'precontent', limits => "sliding_limit zone=precontent max=1 $WINDOW phase=precontent;", before => 1, answer => 429, without => 200,
    counts => { precontent => [1, 1] };

for my $on_error (['pass', 200], ['deny', 503], ['local', 200]) {
    kind "down-$on_error->[0]", outcome => { pass => 'FAILED_OPEN', deny => 'FAILED_CLOSED', local => 'PASSED' }->{ $on_error->[0] }, limits => "sliding_limit zone=down-$on_error->[0] max=5 $WINDOW store=dead; sliding_limit_on_error $on_error->[0];",
        answer => $on_error->[1], without => $on_error->[1] == 503 ? 503 : 200;
}
kind 'down-local-refused', limits => "sliding_limit zone=down-local-refused max=1 $WINDOW store=dead; sliding_limit_on_error local;",
    before => 1, answer => 429, without => 200;

for my $body ('json', 'problem', 'text', 'grpc', 'application/json \'{"zone":"$sliding_limit_zone","of":$sliding_limit_limit,"who":"$arg_k"}\'') {
    my ($name) = $body =~ /^(\w+)( |$)/ ? $1 : 'template';
    kind "body-$name", limits => "sliding_limit zone=body max=0 window=60s key=\$arg_k; sliding_limit_body $body;",
        answer => $name eq 'grpc' ? 200 : 429, without => $name eq 'grpc' ? 429 : 200, outcome => 'REJECTED';
}
for my $headers ('x', 'ietf', 'x ietf') {
    my $name = $headers =~ s/ /-/r;
    kind "headers-$name", limits => "sliding_limit zone=headers-$name max=5 $WINDOW; sliding_limit_headers $headers;",
        counts => { "headers-$name" => [0, 1] };
}
kind 'headers-refused', limits => "sliding_limit zone=body max=0 window=60s key=\$arg_k; sliding_limit_headers x ietf;",
    answer => 429, without => 200;

kind 'logged', limits => "sliding_limit zone=logged max=5 $WINDOW; access_log logs/access.log all;", counts => { logged => [0, 1] };
kind 'redirected', limits => "sliding_limit zone=before max=5 $WINDOW;", also => 'try_files /nothing /redirected-to?k=$arg_k;',
    extra => "location = /redirected-to { sliding_limit zone=after max=5 $WINDOW store=memory; empty_gif; }",
    counts => { before => [0, 1], after => [0, 1] };
kind 'error-page', limits => "sliding_limit zone=body max=0 window=60s key=\$arg_k; error_page 429 /refused;", answer => 429, without => 200,
    extra => 'location = /refused { return 200 "no\n"; }';
kind 'http2', limits => "sliding_limit zone=http2 max=1 $WINDOW; sliding_limit_deny_cache off;", before => 1, ask => sub { http2($_[0]) }, answer => 429, without => 200, outcome => '',
    counts => { http2 => [1, 1] };
kind 'batch', limits => "sliding_limit zone=batch max=5 $WINDOW;", ask => sub { at_once(map { "$_[0]$_" } '', '-second', '-third') },
    counts => { batch => [0, 1] };
kind 'no-script', limits => "sliding_limit zone=no-script max=5 $WINDOW;", counts => { 'no-script' => [0, 1] },
    ask => sub { $redis->cli('SCRIPT', 'FLUSH'); http($_[0]) };
kind 'moved', limits => 'sliding_limit zone=moved max=5 window=600s key=MOVED$arg_k store=cluster;';
kind 'asked', limits => 'sliding_limit zone=asked max=5 window=600s key=ASK$arg_k store=cluster;';

for my $format (qw(html json prometheus)) {
    kind "metrics-$format", limits => '', also => 'sliding_limit_metrics keys=plain;', ask => sub { http("$_[0]&format=$format") }, without => 500, outcome => '';
}

# what operators look at, and what they change: done, or not, or not known
for my $store (qw(memory logged)) {
    my $zone = $store eq 'memory' ? 'after' : 'logged';
    kind "client-$store", limits => '', also => 'sliding_limit_metrics admin;', ask => sub { http("$_[0]&zone=$zone&key=a") }, without => [500, 503], outcome => '';
    kind "overrides-$store", limits => '', also => 'sliding_limit_metrics;', ask => sub { http("$_[0]&zone=$zone&overrides") }, without => [500, 503], outcome => '';
    kind "ban-$store", limits => '', also => 'sliding_limit_metrics admin;', without => [500, 503], outcome => '',
        ask => sub { told(request(port(), "PUT $_[0]&zone=$zone&key=banned HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n" . '{"ban":"15m"}', $PATIENCE)) };
}

# ---- asking

# Status and outcome of an answer that is whole; 0: there is none, or a part.
sub http { my ($path) = @_; return told(get(port(), $path, $PATIENCE)) }

sub told {
    my ($status, $headers, $body) = @_;
    my $size = $headers->{'content-length'};

    return defined $size && $size != length $body ? 0 : join ' ', $status, $headers->{'x-status'} // ();
}

my ($nginx, $worker);
my $http2_port = free_port();
sub port { $nginx->port }

# Without indexes but those of nginx's own first answer.
sub http2 {
    my ($path) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$http2_port") or return 0;
    my $header = "\x82\x86\x04" . chr(length $path) . "$path\x01\x01x";
    my $answer = '';
    my $status = 0;

    $socket->autoflush(1);
    print $socket "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\0\0\0\x04\0\0\0\0\0",
        substr(pack('N', length $header), 1), pack('CCN', 1, 5, 1), $header;

    eval {
        local $SIG{ALRM} = sub { die "timeout\n" };
        Time::HiRes::alarm($TIMEOUT / 2);
        while (sysread $socket, $answer, 65536, length $answer) {
            while (length $answer >= 9) {
                my $size = unpack 'N', "\0" . substr $answer, 0, 3;
                last if length $answer < 9 + $size;
                my ($type, $flags) = unpack 'CC', substr $answer, 3, 2;
                my $frame = substr $answer, 9, $size;
                $answer = substr $answer, 9 + $size;
                $frame =~ s/^[\x20-\x3f]+// if $type == 1;
                $status = ord $frame == 0x88 ? 200 : ord $frame == 0x8e ? 500 : substr $frame, 2, 3 if $type == 1;
                die "end\n" if $type <= 1 && $flags & 1;
            }
        }
    };
    Time::HiRes::alarm(0);

    return $@ eq "end\n" ? $status : 0;
}

# Requests that are there when the worker looks; its connections are open already.
sub at_once {
    my (@paths) = @_;
    my @sockets = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . port()) } @paths;

    kill 'STOP', $worker;
    syswrite $sockets[$_], "GET $paths[$_] HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" for 0 .. $#paths;
    kill 'CONT', $worker;

    return map {
        my $answer = '';
        1 while sysread $_, $answer, 65536, length $answer;
        join ' ', $answer =~ m{^HTTP/1.1 (\d+)} ? "$1" : 0, $answer =~ /^X-Status: (\w+)/m;
    } @sockets;
}

# ---- nginx

my @zones = map { keys %{ $_->{counts} } } @kinds;
my %store_of = map { /zone=(\S+) .*?store=(\w+)/ ? ($1, $2) : () } map { split /;/, $_->{limits} . $_->{extra} } @kinds;
my $looks = join '', map {
    my $with = join ' ', $store_of{$_} ? "store=$store_of{$_}" : '', /buckets$/ ? 'algorithm=buckets' : '';
    "location = /look/$_ { sliding_limit zone=$_ max=100 $WINDOW cost=0 $with; sliding_limit_deny_cache off; empty_gif; }\n";
} @zones;
my $locations = join '', map { "location = /$_->{name} { $_->{limits} $_->{also} } $_->{extra}\n" } @kinds;
my $http = <<"END";
    add_header X-Status \$sliding_limit_status always;
    sliding_limit_redis redis://:secret\@127.0.0.1:@{[ $redis->port ]}/1 connections=2 timeout=${TIMEOUT}s connect_timeout=${TIMEOUT}s;
    sliding_limit_redis redis://127.0.0.1:$dead name=dead timeout=${TIMEOUT}s connect_timeout=${TIMEOUT}s;
    sliding_limit_redis cluster://127.0.0.1:@{[ $node->port ]} name=cluster connections=2 timeout=${TIMEOUT}s connect_timeout=${TIMEOUT}s;
    log_format all '\$sliding_limit_status \$sliding_limit_zone \$sliding_limit_key \$sliding_limit_limit \$sliding_limit_remaining '
        '\$sliding_limit_reset \$sliding_limit_retry_after \$sliding_limit_window \$sliding_limit_store \$sliding_limit_time '
        '\$sliding_limit_id \$sliding_limit_addr';
    server {
        listen 127.0.0.1:$http2_port http2;
        $locations
    }
END

my $quiet = 'location = /quiet { add_header X-Pid $pid; empty_gif; }';

$nginx = start_nginx("$locations $looks $quiet", http => $http);

sub watch_worker {
    wait_until { $worker = (get(port(), '/quiet'))[1]{'x-pid'} } 10, 'a worker';
    $allocations->of($worker);
    return;
}

watch_worker();

# So many were counted; waits until the store can tell.
sub count {
    my ($zone, $key) = @_;
    my $left;

    wait_until {
        my (undef, $headers) = get(port(), "/look/$zone?k=$key", $PATIENCE);
        defined($left = $headers->{'x-ratelimit-remaining'});
    } 3, "the count of $zone";

    return 100 - $left;
}

# ---- failing

my $walked = 0;
my $keys = 0;

# A client of its own, who has been there as often as the kind wants it.
sub prepare {
    my ($kind) = @_;
    my $key = 'k' . ++$keys;

    get(port(), "/$kind->{name}?k=$key") for 1 .. $kind->{before};

    return ($key, "/$kind->{name}?k=$key");
}

# What such a request is answered if nothing fails; it may take a moment until a
# connection is there again.
sub is_ordinary {
    my ($kind) = @_;
    my $expected = join ' ', $kind->{answer}, $kind->{outcome} || ();
    my @answers;

    eval { wait_until { @answers = $kind->{ask}->((prepare($kind))[1]); !grep { $_ ne $expected } @answers } 5 };

    return $@ ? "still answers @answers" : '';
}

# Some requests meet what others have left for them.
sub count_allocations {
    my ($kind) = @_;

    return max map {
        my (undef, $path) = prepare($kind);
        $allocations->fail(0);
        $kind->{ask}->($path);
        sleep 0.01;
        $allocations->stop->{asked};
    } 1 .. 3;
}

# What is wrong after this failure.
sub step {
    my ($kind, $n, $last) = @_;
    my ($key, $path) = prepare($kind);
    my @problems;

    $allocations->fail($n, $last);
    my $start = time;
    my @answers = $kind->{ask}->($path);
    my $took = time - $start;
    # what follows the answer, as taking back, is a part of it
    sleep 0.003;
    my $seen = $allocations->stop;
    return if $seen->{refused} == 0;

    my $without = $kind->{without} // $kind->{answer};
    my %allowed = map { $_ => 1 } $kind->{answer}, ref $without ? @$without : $without, $seen->{whose} eq 'ours' && $n == $last ? () : (0, 500);

    $walked++;
    push @problems, 'answers ' . join ' and ', @answers if grep { !$allowed{ (split)[0] } } @answers;
    push @problems, "took $took s" if $seen->{whose} ne 'nginx' && $n == $last && $took > 1.5 * $TIMEOUT;
    my (undef, $headers) = get(port(), '/quiet');
    if (($headers->{'x-pid'} // '') ne $worker) {
        push @problems, 'the worker has ended';
        watch_worker();
    }
    push @problems, is_ordinary($kind) || ();
    for my $zone (sort keys %{ $kind->{counts} }) {
        my $count = eval { count($zone, $key) } // 'unknown';
        my ($least, $most) = @{ $kind->{counts}{$zone} };
        push @problems, "counted $count in $zone" if $count eq 'unknown' || $count < $least || $count > $most;
    }

    return map { "$_ (allocation $n: " . join(' < ', @{ $seen->{callers} }[0 .. 9]) . ')' } @problems;
}

# What a connection needs is live only while there is one: two of each server.
sub wait_for_connections {
    my %is_store = map { sprintf('%04X', $_->port) => 2 } $redis, $node, $other_node;

    wait_until {
        my %inodes = map { (readlink) // '' => 1 } glob "/proc/$worker/fd/*";
        my %wanted = %is_store;
        open my $sockets, '<', '/proc/net/tcp' or die "/proc/net/tcp: $!";
        while (<$sockets>) {
            my (undef, undef, $peer, $state, $inode) = (split)[0 .. 3, 9];
            $wanted{ $peer =~ s/.*://r }-- if $state eq '01' && $inodes{"socket:[$inode]"};
        }
        !grep { $wanted{$_} != 0 } keys %is_store;
    } 10, 'two connections to each server';

    return;
}

# A store that is down may be tried meanwhile.
sub settled_live {
    my ($wanted) = @_;
    my $live;

    wait_for_connections();
    eval { wait_until { $live = $allocations->live; $live <= $wanted } 3 };

    return $live;
}

for my $kind (@kinds) {
    is is_ordinary($kind), '', "$kind->{name} is what it says";
    wait_for_connections();
    sleep 0.02;
    my $before = $allocations->live;
    my $count = count_allocations($kind);
    my @problems;

    for my $n (1 .. $count) {
        push @problems, step($kind, $n, $n);
        push @problems, map { "$_, as all that follow" } step($kind, $n, 1e9) if $n % 8 == 0;
        last if @problems > 5;
    }

    is join("\n", @problems), '', "$kind->{name}: each of $count allocations may fail";
    cmp_ok settled_live($before), '<=', $before, 'and nothing is kept';
}

is join("\n", grep { !/\[emerg\].*(?:alloc|memalign)/ } split /\n/, $nginx->bad_lines), '', 'nothing bad in the log';
is $nginx->quit, 0, 'nginx ends well';

note "$walked allocations were refused";

done_testing;
