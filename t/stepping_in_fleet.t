# What operators rule on one server holds on all of them: with one Redis, behind Sentinels,
# on a cluster, and while clients come as fast as they can. It outlives what the store's data
# outlives: a restart with persistence, a failover, slots that move.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP qw(decode_json);
use List::Util qw(max uniq);
use SlidingLimit::Cluster qw(start_cluster);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Sentinels qw(start_sentinels);
use SlidingLimit::Servers qw(get request start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $CONFIG = <<'END';
    sliding_limit_deny_cache 200ms;
    sliding_limit_log_level info;
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;
    location /api { sliding_limit zone=api max=3 window=600s key=$arg_k; empty_gif; }
    location /busy { sliding_limit zone=busy max=20 window=1s key=$arg_k; empty_gif; }
    location /limits { sliding_limit_metrics keys=plain admin; }
END

sub servers_of {
    my ($url, $count) = @_;
    return map {
        start_nginx($CONFIG, workers => 2, http => "sliding_limit_redis $url timeout=5s connect_timeout=5s;")
    } 1 .. $count;
}

# change($nginx, METHOD, zone, key, body): what is said about the client then.
sub change {
    my ($nginx, $method, $zone, $key, $body) = @_;
    $body //= '';
    my ($status, undef, $text) = request($nginx->port, "$method /limits?zone=$zone&key=$key HTTP/1.1\r\nHost: test\r\n"
        . "Connection: close\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body", 30);
    die "$method $zone $key $body: $status $text" unless $status == 200;
    return decode_json($text);
}

sub look { my ($nginx, $zone, $key) = @_; return change($nginx, 'GET', $zone, $key) }

sub status_of { my ($nginx, $path) = @_; return +(get($nginx->port, $path, 30))[1]{'x-status'} // 'none' }

# Others remember refusals for as long as sliding_limit_deny_cache says.
sub passes_soon {
    my ($nginx, $path, $what) = @_;
    ok eval { wait_until { status_of($nginx, $path) eq 'PASSED' } 10, $what; 1 }, $what;
}

# Workers find Redis again one after the other, and let clients through until then; but none
# may take the client for one that is not banned.
sub stays_banned {
    my ($nginx, $path, $what) = @_;
    my %seen;
    ok eval { wait_until { $seen{ status_of($nginx, $path) }++; $seen{BANNED} } 10, $what; 1 }, $what;
    ok !$seen{PASSED}, 'nobody has forgotten it';
}

# All clients of the zone about whom something was ruled, as each of the servers lists them.
sub listed {
    my ($nginx, $zone) = @_;
    my (@keys, $cursor);
    do {
        my ($status, undef, $text) = get($nginx->port, "/limits?zone=$zone&overrides" . (defined $cursor ? "&cursor=$cursor" : ''), 30);
        die "$status $text" unless $status == 200;
        my $told = decode_json($text);
        push @keys, map { $_->{key} } @{ $told->{clients} };
        $cursor = $told->{cursor};
    } while defined $cursor;
    return join ' ', sort(uniq(@keys));
}

sub all_of_it {
    my ($one, $other, @keys) = @_;

    for my $key (@keys) {
        is join(' ', map { status_of($_, "/api?k=$key") } $one, $other, $one, $other), 'PASSED PASSED PASSED REJECTED', "$key: up to max";
        my $told = change($one, 'PUT', 'api', $key, '{"ban":"15m"}');
        ok $told->{ban}, 'banned on one server';
        is "$told->{used} $told->{counted}", '3 3', 'which is told where it stands';
        sleep 0.3;
        is status_of($other, "/api?k=$key"), 'BANNED', 'it is on the other';
        is status_of($one, "/api?k=$key"), 'BANNED', 'and on the same';

        change($other, 'DELETE', 'api', $key);
        is status_of($other, "/api?k=$key"), 'PASSED', 'the other lets it go, and does so at once';
        passes_soon($one, "/api?k=$key", 'and so does the first');

        change($one, 'PUT', 'api', $key, '{"max":5,"for":"1h"}');
        is join(' ', map { status_of($_, "/api?k=$key") } $one, $other, $one, $other), 'PASSED PASSED PASSED REJECTED', 'five, with an override';
        change($one, 'DELETE', 'api', $key);
        change($one, 'PUT', 'api', $key, '{"max":1,"for":"1h"}');
        sleep 0.3;
        is join(' ', map { status_of($_, "/api?k=$key") } $other, $one), 'PASSED REJECTED', 'or one';
        is look($other, 'api', $key)->{override}{max}, 1, 'which the other server knows';
    }

    is listed($one, 'api'), join(' ', sort @keys), 'one server lists them';
    is listed($other, 'api'), join(' ', sort @keys), 'and so does the other';
    change($other, 'PUT', 'api', $_, '{"max":null}') for @keys;
    is listed($one, 'api'), '', 'until there is nothing to list';
}

# While clients come to all servers: from the answer to a change on, nobody meets what was before.
sub under_load {
    my ($one, $other) = @_;
    my @ports = map { $_->port } $one, $other;
    my $load = start_load(clients => 6, seconds => 60, ports => \@ports, path => '/busy?k=loaded');
    my @spans;    # [from, to, statuses that no request within may have]

    sleep 1;
    for (1 .. 3) {
        change($one, 'PUT', 'busy', 'loaded', '{"ban":"1h"}');
        my $from = time;
        sleep 1.2;
        push @spans, [$from, time, 200, 'passed while it was banned'];
        change($other, 'PUT', 'busy', 'loaded', '{"ban":null}');
        sleep 1.2;
    }
    my @answers = $load->stop->finish;

    like summary(@answers), qr/^200:\d+ 429:\d+$/, 'only 200 and 429: ' . summary(@answers);
    for my $span (@spans) {
        my ($from, $to, $status, $what) = @$span;
        my @within = grep { $_->{at} > $from && $_->{at} + $_->{took} < $to } @answers;
        cmp_ok scalar @within, '>', 0, scalar(@within) . ' requests';
        is scalar(grep { $_->{status} == $status } @within), 0, "none $what";
    }

    change($one, 'PUT', 'busy', 'loaded', '{"max":5,"for":"1h"}');
    sleep 1.5;
    @answers = start_load(clients => 6, seconds => 4, ports => \@ports, path => '/busy?k=loaded')->finish;
    my @passed = sort { $a->{at} <=> $b->{at} } grep { $_->{status} == 200 } @answers;

    # what certainly passed within a window: sent after its beginning, answered before its end
    my $most = max map {
        my $from = $_->{at};
        scalar grep { $_->{at} >= $from && $_->{at} + $_->{took} < $from + 1 } @passed;
    } @passed;
    cmp_ok $most, '<=', 5, 'with an override never more than that in a window';
    cmp_ok scalar @passed, '>=', 10, scalar(@passed) . ' passed';
    change($one, 'PUT', 'busy', 'loaded', '{"max":null}');
}

subtest 'one Redis' => sub {
    my $redis = start_redis(args => ['--appendonly', 'yes', '--appendfsync', 'always']);
    my @servers = servers_of('redis://127.0.0.1:' . $redis->port, 2);
    all_of_it(@servers, qw(ann bob));
    under_load(@servers);

    change($servers[0], 'PUT', 'api', 'kept', '{"ban":"1h"}');
    $redis->stop->start;
    passes_soon($servers[$_], "/api?k=somebody$_", 'after a restart') for 0, 1;
    stays_banned($servers[1], '/api?k=kept', 'what Redis keeps is kept');
    $redis->cli('FLUSHALL');
    passes_soon($servers[1], '/api?k=kept', 'FLUSHALL drops it');
    ok eval { wait_until { (eval { listed($servers[0], 'api') } // 'no answer') eq '' } 10, 'the list'; 1 }, 'from the list, too';
    is join('', map { $_->bad_lines } @servers), '', 'nothing alarming in the logs';
};

subtest 'Sentinels' => sub {
    my $set = start_sentinels(name => 'mymaster');
    my @servers = servers_of($set->url, 2);
    passes_soon($servers[0], '/api?k=first', 'the primary is found');
    passes_soon($servers[1], '/api?k=second', 'by both');
    all_of_it(@servers, qw(ann));

    change($servers[0], 'PUT', 'api', 'kept', '{"ban":"1h"}');
    $set->primary->wait_for_replicas(2);
    $set->fail_over;
    passes_soon($servers[$_], "/api?k=somebody$_", 'after a failover') for 0, 1;
    ok eval { wait_until { eval { look($servers[1], 'api', 'kept')->{ban} } } 30, 'a ban'; 1 }, 'a ban outlives it';
    stays_banned($servers[0], '/api?k=kept', 'on both servers');
};

subtest 'a cluster' => sub {
    my $cluster = start_cluster(primaries => 3, replicas => 0);
    my @servers = servers_of($cluster->url, 2);
    my @keys = map { $cluster->keys_of($_, 2, 'client') } $cluster->primaries;
    is scalar @keys, 6, 'two clients of each node';
    all_of_it(@servers, @keys);
    under_load(@servers);

    my ($from, $to) = $cluster->primaries;
    my ($key) = $cluster->keys_of($from, 1, 'moves', 50);
    change($servers[0], 'PUT', 'api', $key, '{"max":2,"for":"1h"}');
    $cluster->reshard(50, $from, $to);
    is +$cluster->owner("{$key}")->port, $to->port, 'its slot has moved';
    is look($servers[1], 'api', $key)->{override}{max}, 2, 'what was ruled has moved with it';
    is join(' ', map { status_of($_, "/api?k=$key") } @servers, $servers[0]), 'PASSED PASSED REJECTED', 'and holds';
    is listed($servers[0], 'api'), $key, 'and is listed';
    change($servers[0], 'DELETE', 'api', $key);
    is look($servers[1], 'api', $key)->{used}, 0, 'it can be reset there';

    my ($half) = $cluster->keys_of($to, 1, 'half', 1);
    status_of($servers[0], "/api?k=$half");
    my $move = $cluster->begin_move(SlidingLimit::Cluster::slot($half), $to, $from);
    is eval { look($servers[0], 'api', $half)->{used} } // $@, 1, 'a client can be looked at while its slot moves';
    $cluster->move_key($move, SlidingLimit::Cluster::set_of('api', $half));
    is eval { look($servers[0], 'api', $half)->{used} } // $@, 1, 'and once it has moved itself';
    $cluster->end_move($move);
    ok change($servers[0], 'PUT', 'api', $half, '{"ban":"15m"}')->{ban}, 'and be banned after that';
};

# A worker that is sent elsewhere for one slot asks who has the others, though not twice within
# half a second. Here that tells it, while it waits for the first server, that the second has
# slots below those of the first: neither must be left out for that.
subtest 'a list while it turns out who has what' => sub {
    my $cluster = start_cluster(primaries => 3, replicas => 0);
    my $nginx = start_nginx($CONFIG, http => 'sliding_limit_redis ' . $cluster->url . ' timeout=5s connect_timeout=5s;');
    my ($from, $to, $third) = $cluster->primaries;
    my %key_of = map { SlidingLimit::Cluster::slot($_) => $_ } $cluster->keys_of($from, 20, 'moves', 100);
    my ($first, $second) = grep { $_ > 0 } sort { $a <=> $b } keys %key_of;
    my $move = sub {
        for my $slot (@_) {
            $cluster->end_move($cluster->begin_move($slot, $from, $to));
            $third->cli('CLUSTER', 'SETSLOT', $slot, 'NODE', SlidingLimit::Cluster::id($to));
        }
    };

    change($nginx, 'PUT', 'api', $key_of{$second}, '{"max":2,"for":"1h"}');
    is listed($nginx, 'api'), $key_of{$second}, 'one client';

    # there and back: now and then somebody is asked who has not heard of it, and nothing turns out
    for (1 .. 6) {
        $move->($first);
        sleep 0.6;
        look($nginx, 'api', $key_of{$first});    # now it asks
        sleep 0.05;

        $move->(0, $second);
        look($nginx, 'api', $key_of{$second});
        $from->cli('CLIENT', 'PAUSE', 700);
        is listed($nginx, 'api'), $key_of{$second}, 'is found';
        ($from, $to) = ($to, $from);
    }
};

done_testing;
