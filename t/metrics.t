# sliding_limit_metrics: what it says agrees with what was sent, in every format,
# from all workers together, across reloads and kills; and no client can use it to
# learn of others, or make it say anything but text.

use strict;
use warnings;
use lib 't/lib';

use Digest::SHA qw(sha256_base64);
use JSON::PP qw(decode_json);
use List::Util qw(sum);
use SlidingLimit::Cluster qw(start_cluster);
use SlidingLimit::FakeRedis qw(start_fake_redis);
use SlidingLimit::Load qw(start_load);
use SlidingLimit::Servers qw(begin_request free_port get request start_nginx start_redis wait_until);
use Sys::Hostname qw(hostname);
use Test::More;
use Time::HiRes qw(sleep time);

my $METRICS = 'location = /limits { sliding_limit_metrics; if ($arg_if) { set $a 1; } }
    location = /plain { sliding_limit_metrics keys=plain; }
    location = /off { sliding_limit_metrics keys=off; }';

sub json {
    my ($nginx) = @_;
    my ($status, $headers, $body) = get($nginx->port, '/plain?format=json');
    die "status $status" unless $status == 200;
    return decode_json($body);
}

sub zone { my ($nginx, $name) = @_; return (grep { $_->{name} eq $name } @{ json($nginx)->{zones} })[0] }

sub store { my ($nginx, $name) = @_; return (grep { $_->{name} eq $name } @{ json($nginx)->{stores} })[0] }

# After a reload: until no old worker answers any more.
sub wait_for_zone {
    my ($nginx, $name) = @_;
    my $in_a_row = 0;
    wait_until { $in_a_row = zone($nginx, $name) ? $in_a_row + 1 : 0; $in_a_row >= 20 } 20, "zone $name";
}

# Results or errors that are not 0, as "name=number name=number".
sub nonzero {
    my ($of) = @_;
    return join ' ', map { $of->{$_} ? "$_=$of->{$_}" : () } sort keys %$of;
}

# The samples of the text for Prometheus.
sub samples {
    my ($nginx) = @_;
    my ($status, $headers, $body) = get($nginx->port, '/limits');
    return { map { /^nginx_sliding_limit_(\S+) (\S+)$/ ? ($1 => $2) : () } split /\n/, $body };
}

sub redis_line {
    my ($redis, $more) = @_;
    return 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . " $more connect_timeout=10s;";
}

# ---- known numbers ----

{
    my $redis = start_redis();
    my $nginx = start_nginx(<<"END", workers => 2, http => redis_line($redis, 'timeout=10s'));
    $METRICS
    keepalive_requests 10;
    add_header X-Store \$sliding_limit_store always;
    add_header X-Key \$arg_k always;
    location /redis { sliding_limit zone=redis max=10 window=600s key=\$arg_k; empty_gif; }
    location /memory { sliding_limit zone=memory max=10 window=600s key=\$arg_k store=memory; empty_gif; }
END

    # client N of 30 sends N requests
    my @requests = map { ("k$_") x $_ } 1 .. 30;
    my $began = time;

    for my $name ('redis', 'memory') {
        my $load = start_load(clients => 8, requests => int(@requests / 8 + 1), ports => [$nginx->port],
            path => sub {
                my ($process, $n) = @_;
                my $key = $requests[$n * 8 + $process - 1];
                return defined $key ? "/$name?k=$key" : '/limits';
            });
        my @answers = grep { $_->{key} =~ /^k/ } $load->finish;
        is scalar @answers, @requests, "$name: all are answered";

        my $passed = grep { $_->{status} == 200 } @answers;
        my $rejected = grep { $_->{status} == 429 } @answers;
        my $cached = grep { $_->{store} eq 'deny_cache' } @answers;
        my $zone = zone($nginx, $name);

        is $passed, sum(map { $_ < 10 ? $_ : 10 } 1 .. 30), 'as many pass as should';
        is nonzero($zone->{requests}), "passed=$passed rejected=$rejected", 'results';
        is $zone->{deny_cache_hits}, $cached, 'deny cache hits';
        is $zone->{near_limit}, sum(map { $_ < 8 ? 0 : $_ < 10 ? $_ - 7 : 3 } 1 .. 30),
            'near the limit: the eighth to the tenth of each client';
        is_deeply $zone->{found_used}, [map({ 30 - $_ } 0 .. 9), $rejected],
            'found used: nothing by the first of each client, nine tenths by the tenth; and refused';

        my $checks = store($nginx, $name eq 'redis' ? 'default' : 'memory')->{duration};
        my $spent = sum(map { $_->{took} } grep { $_->{store} ne 'deny_cache' } @answers);
        my @counts = map { $_->[1] } @{ $checks->{buckets} };
        is $checks->{count}, @answers - $cached, 'checks that were timed';
        cmp_ok $checks->{sum}, '<=', $spent, 'they took less than their clients waited';
        cmp_ok $checks->{sum}, '>', $name eq 'redis' ? 1e-5 * $checks->{count} : 0, 'but something';
        is $counts[-1], $checks->{count}, 'none took longer than a second';
        is "@counts", join(' ', sort { $a <=> $b } @counts), 'buckets are cumulative';

        # a minute or an hour may have ended meanwhile
        for my $rows ($zone->{minutes}, $zone->{hours}) {
            is sum(map { $_->[1] } @$rows), $passed, 'history: passed';
            is sum(map { $_->[2] } @$rows), $rejected, 'history: rejected';
            is sum(map { $_->[3] + $_->[4] } @$rows), 0, 'history: nothing else';
            cmp_ok $rows->[0][0], '<=', $began, 'history: begins in time';
            cmp_ok $rows->[-1][0], '<=', time, 'history: nothing is in the future';
            next if @$rows > 1;
            cmp_ok abs($rows->[0][5] - 30), '<=', 3, 'history: 30 clients, or nearly';
            cmp_ok abs($rows->[0][6] - 20), '<=', 2, 'history: 20 of them refused, or nearly';
        }

        is join(' ', map { "$_->{key}=$_->{count}" } @{ $zone->{top_clients} }),
            join(' ', map { "k$_=$_" } reverse 11 .. 30), 'the top clients';
        is join(' ', map { "$_->{key}=" . ($_->{count} + 10) } @{ $zone->{top_rejected} }),
            join(' ', map { "k$_=$_" } reverse 11 .. 30), 'and those who were refused most';
        is sum(map { $_->{missed_at_most} } @{ $zone->{top_clients} }), 0, 'none was missed';
        ok !(grep { $_->{first} < $began - 1 || $_->{last} > time || $_->{first} > $_->{last} }
            @{ $zone->{top_clients} }), 'seen first and last when they were';

        is samples($nginx)->{qq(zone_requests_total{zone="$name",result="passed"})}, $passed,
            'Prometheus is told the same';
        is join(' ', map { samples($nginx)->{qq(zone_found_used_total{zone="$name",share="$_"})} }
            map({ $_ * 10 . '-' . ($_ + 1) * 10 } 0 .. 9), 'refused'), "@{ $zone->{found_used} }",
            'also what requests found used';
    }

    my $samples = samples($nginx);
    chomp(my $version = `scripts/version`);
    like $version, qr/^\d+\.\d+\.\d+$/, 'this is a release, as scripts/version says';
    is json($nginx)->{version}, $version, 'the module says the same';
    is scalar(grep { /^build_info\{version="\Q$version\E",/ } keys %$samples), 1, 'Prometheus is told it, too';
    is $samples->{checks_in_flight}, 0, 'nothing is in flight';
    is $samples->{'store_breakers_open{store="default"}'}, 0, 'no breaker is open';
    is $samples->{'store_connects_total{store="default"}'}, 2, 'a connection for each worker';
    is $samples->{memory_clients}, 30 + 20, 'clients in memory, and remembered refusals';
    cmp_ok $samples->{'memory_bytes{state="used"}'}, '>=', 64 * (30 + 20), 'memory in use';
    cmp_ok $samples->{'memory_bytes{state="free"}'}, '>', 14e6, 'and free';
    cmp_ok abs($samples->{start_time_seconds} - $began), '<', 60, 'since when it counts';
    is $nginx->bad_lines, '', 'nothing bad in the log';

    # ---- a reload ----

    my $before = zone($nginx, 'redis');
    $nginx->configure(<<"END", workers => 2, http => redis_line($redis, 'timeout=10s'));
    $METRICS
    location /redis { sliding_limit zone=redis max=10 window=600s key=\$arg_k; empty_gif; }
    location /new { sliding_limit zone=new max=10 window=600s key=\$arg_k; empty_gif; }
END
    $nginx->reload;
    wait_for_zone($nginx, 'new');
    is_deeply zone($nginx, 'redis'), $before, 'a reload changes nothing of what was counted';
    is zone($nginx, 'memory'), undef, 'a zone that is gone is not shown';
    $nginx->try('/new?k=1');
    is nonzero(zone($nginx, 'new')->{requests}), 'passed=1', 'a new one is';
    is json($nginx)->{checks_in_flight}, 0, 'workers that left have nothing in flight';
}

# ---- many clients ----

{
    my $nginx = start_nginx(<<"END", workers => 2);
    $METRICS
    location / { sliding_limit zone=many max=10 window=600s key=\$arg_k; empty_gif; }
END
    start_load(clients => 4, requests => 2500, ports => [$nginx->port],
        path => sub { "/?k=$_[0]-$_[1]" })->finish;

    my $rows = zone($nginx, 'many')->{hours};
    is sum(map { $_->[1] } @$rows), 10000, 'ten thousand requests';
    cmp_ok abs(sum(map { $_->[5] } @$rows) - 10000), '<', 10000 * 5 * 0.023,
        'of ten thousand clients, within five of the standard errors that are stated';

    my @missed = map { $_->{missed_at_most} } @{ zone($nginx, 'many')->{top_clients} };
    is scalar(grep { $_ == 0 } @missed), 0, 'of a crowd it is said that some were missed';
    is $nginx->bad_lines, '', 'nothing bad in the log';
}

# ---- what may come of a request ----

{
    my $redis = start_redis();
    my $dead = free_port();
    my $nginx = start_nginx(<<"END",
    $METRICS
    location /dry { sliding_limit zone=dry max=1 window=600s key=\$arg_k dry_run; empty_gif; }
    location /if { sliding_limit zone=if max=1 window=600s key=\$arg_k if=\$arg_on; empty_gif; }
    location /tier {
        sliding_limit zone=tier max=1 window=600s key=\$arg_k if=\$arg_small;
        sliding_limit zone=tier max=9 window=600s key=\$arg_k;
        empty_gif;
    }
    location /two {
        sliding_limit zone=wide max=100 window=600s key=\$arg_k;
        sliding_limit zone=narrow max=1 window=600s key=\$arg_k;
        empty_gif;
    }
    location /stores {
        sliding_limit zone=first max=100 window=600s key=\$arg_k store=memory;
        sliding_limit zone=second max=1 window=600s key=\$arg_k;
        empty_gif;
    }
    location /later {
        sliding_limit zone=now max=1 window=600s key=\$arg_k;
        sliding_limit zone=later max=1 window=600s key=\$arg_k phase=precontent;
        empty_gif;
    }
    location /open { sliding_limit zone=open max=1 window=600s key=\$arg_k store=dead; empty_gif; }
    location /closed {
        sliding_limit zone=closed max=1 window=600s key=\$arg_k store=dead;
        sliding_limit_on_error deny;
        empty_gif;
    }
    location /local {
        sliding_limit zone=local max=1 window=600s key=\$arg_k store=dead;
        sliding_limit_on_error local;
        empty_gif;
    }
    location /zero { sliding_limit zone=zero max=0 window=600s key=\$arg_k; empty_gif; }
    location /page {
        sliding_limit zone=page max=1 window=600s key=\$arg_k;
        error_page 429 /sorry;
        try_files /nothing /there;
    }
    location /there { sliding_limit zone=page max=1 window=600s key=\$arg_k; empty_gif; }
    location /sorry { return 200 sorry; }
    location /slow { sliding_limit zone=slow max=9 window=600s key=\$arg_k; empty_gif; }
    location /failed {
        sliding_limit zone=failed max=1 window=600s key=\$arg_k store=dead;
        sliding_limit zone=refuses max=1 window=600s key=\$arg_k store=memory;
        empty_gif;
    }
    location /left {
        sliding_limit zone=left max=1 window=600s key=\$arg_k if=\$arg_on;
        try_files /nothing \@elsewhere;
    }
    location \@elsewhere { empty_gif; }
    location /met {
        sliding_limit zone=met max=9 window=600s key=\$arg_k if=\$arg_on;
        try_files /nothing \@there_after_all;
    }
    location \@there_after_all { sliding_limit zone=met max=9 window=600s key=\$arg_k; empty_gif; }
    location /beside {
        sliding_limit zone=beside max=9 window=600s key=\$arg_k if=\$arg_on;
        sliding_limit zone=zero max=0 window=600s key=\$arg_k;
        empty_gif;
    }
    location /twice {
        sliding_limit zone=twice max=5 window=600s key=\$arg_none if=\$arg_on;
        sliding_limit zone=twice max=9 window=600s key=\$arg_none;
        empty_gif;
    }
    location /action { post_action /after; sliding_limit zone=before max=9 window=600s key=\$arg_k; empty_gif; }
    location /after { sliding_limit zone=after max=9 window=600s key=all; empty_gif; }
    location /cost { sliding_limit zone=cost max=10 window=600s key=\$arg_k cost=\$arg_cost; empty_gif; }
    location /failures { sliding_limit zone=failures max=10 window=600s key=\$arg_k count_status=5xx; empty_gif; }
END
        http => redis_line($redis, 'timeout=60s') . "sliding_limit_redis redis://127.0.0.1:$dead name=dead;");

    my @cases = (
        [dry => ['/dry?k=1'] , 2, 'passed=1 rejected_dry_run=1'],
        [if => ['/if?k=1', '/if?k=1&on=1'], 1, 'exempt=1 passed=1'],
        [tier => ['/tier?k=1', '/tier?k=2&small=1'], 1, 'passed=2'],
        [wide => ['/two?k=1'], 3, 'passed=1 rejected_elsewhere=2'],
        [first => ['/stores?k=1'], 3, 'passed=1 rejected_elsewhere=2'],
        [now => ['/later?k=1'], 2, 'passed=1 rejected=1'],
        [open => ['/open?k=1'], 3, 'failed_open=3'],
        [closed => ['/closed?k=1'], 3, 'failed_closed=3'],
        [local => ['/local?k=1'], 3, 'passed=1 rejected=2'],
        [zero => ['/zero?k=1'], 3, 'rejected=3'],
        [page => ['/page?k=1'], 2, 'passed=1 rejected=1'],
        [failed => ['/failed?k=1'], 3, 'failed_open=1 rejected_elsewhere=2'],
        [left => ['/left?k=1'], 3, 'exempt=3'],
        [met => ['/met?k=1'], 3, 'passed=3'],
        [beside => ['/beside?k=1'], 3, 'exempt=3'],
        [twice => ['/twice'], 3, 'exempt=3'],
        [before => ['/action?k=1'], 3, 'passed=3'],
    );

    for (@cases) {
        my ($name, $paths, $times, $results) = @$_;
        for my $path (@$paths) { $nginx->try($path) for 1 .. $times }
        is nonzero(zone($nginx, $name)->{requests}), $results, "$name: $results";
    }

    $nginx->try("/cost?k=1&cost=$_") for 3, 3, 0, 4, 0, 1;
    is_deeply zone($nginx, 'cost')->{found_used}, [1, 0, 0, 1, 0, 0, 2, 0, 0, 1, 1],
        'found used: what others have used, whatever the request costs';
    $nginx->try('/failures?k=1') for 1 .. 3;
    is_deeply zone($nginx, 'failures')->{found_used}, [3, (0) x 10], 'found used: what does not count is not used';

    for my $zone (@{ json($nginx)->{zones} }) {
        my @found = @{ $zone->{found_used} };
        is pop @found, sum(@{ $zone->{requests} }{qw(rejected banned rejected_dry_run)}),
            "$zone->{name}: as many found it refused as were";
        is sum(@found), $zone->{requests}{passed}, 'and as many found room as passed';
    }

    is nonzero(zone($nginx, 'narrow')->{requests}), 'passed=1 rejected=2', 'narrow refuses';
    is nonzero(zone($nginx, 'second')->{requests}), 'passed=1 rejected=2', 'second refuses';
    is nonzero(zone($nginx, 'later')->{requests}), 'passed=1',
        'later does not meet what is refused before';
    wait_until { zone($nginx, 'after')->{requests}{passed} == 3 } 10, 'a limit of a post_action';
    is zone($nginx, 'local')->{local_decisions}, 3, 'local decisions';
    is_deeply [@{ zone($nginx, 'dry')->{hours}[-1] }[1 .. 4]], [2, 0, 1, 0],
        'history: refused by a dry run, and passed all the same';
    is zone($nginx, 'if')->{hours}[-1][1], 1, 'history: exempt requests are not in it';
    is store($nginx, 'dead')->{breakers_open}, 1, 'the breaker of what is not there is open';
    is store($nginx, 'dead')->{connects}, 0, 'it was never connected';
    cmp_ok store($nginx, 'dead')->{connect_failures}, '>=', 1, 'but that was tried';
    is sum(values %{ store($nginx, 'dead')->{errors} }), 12, 'twelve checks got no answer';

    # ---- in flight, and gone ----

    my $begin = sub { begin_request($nginx->port, "GET /slow?k=$_[0] HTTP/1.1\r\nHost: x\r\n\r\n") };
    my $in_flight = sub { json($nginx)->{checks_in_flight} };

    $redis->pause;
    my @waiting = map { $begin->($_) } 1 .. 3;
    wait_until { $in_flight->() == 3 } 10, 'three checks in flight';
    close shift @waiting;
    wait_until { $in_flight->() == 2 } 10, 'one to be gone with its client';
    $redis->resume;
    wait_until { $in_flight->() == 0 } 10, 'the others to be answered';
    sysread $_, my $answer, 1000 for @waiting;
    is nonzero(zone($nginx, 'slow')->{requests}), 'aborted=1 passed=2',
        'who did not wait for the answer is counted as such';

    $redis->pause;
    @waiting = map { $begin->($_) } 1 .. 2;
    wait_until { $in_flight->() == 2 } 10, 'two checks in flight';
    kill 'KILL', $nginx->workers;
    $redis->resume;
    wait_until { eval { json($nginx) } } 10, 'a new worker';
    is $in_flight->(), 0, 'a killed worker has nothing in flight';
}

# ---- errors, by their reason ----

{
    my %server = (
        slow => start_redis(),
        full => start_redis(),
        locked => start_redis(),
        fake => start_fake_redis(sub { my ($socket) = @_; print $socket ":42\r\n"; 1 }),
        picky => start_fake_redis(sub { my ($socket) = @_; print $socket "-ERR not now\r\n"; 1 }),
        rude => start_fake_redis(sub { 0 }),
    );
    my %reason = (slow => 'timeout', full => 'unavailable', locked => 'forbidden',
        fake => 'nonsense', picky => 'script', rude => 'connection');

    my $nginx = start_nginx(join("\n", $METRICS, map {
            "location /$_ { sliding_limit zone=$_ max=9 window=600s key=\$arg_k store=$_; empty_gif; }"
        } sort keys %server),
        http => join "\n", map {
            my $timeout = $_ eq 'slow' ? '1s' : '5s';
            'sliding_limit_redis redis://127.0.0.1:' . $server{$_}->port . " name=$_ timeout=$timeout connect_timeout=5s;"
        } sort keys %server);

    for my $name (qw(slow full locked)) {
        $nginx->try("/$name?k=1");
        is zone($nginx, $name)->{requests}{passed}, 1, "$name: passes";
    }

    $server{slow}->pause;
    $server{full}->cli('CONFIG', 'SET', 'maxmemory', 1);
    $server{locked}->cli('ACL', 'SETUSER', 'default', '-evalsha');

    for my $name (sort keys %reason) {
        $nginx->try("/$name?k=1");
        is nonzero(store($nginx, $name)->{errors}), "$reason{$name}=1", "$name: $reason{$name}";
    }

    $nginx->try('/full?k=1');
    is store($nginx, 'full')->{errors}{down}, 1, 'a store that is known to be down is not asked';
    is store($nginx, 'full')->{duration}{count}, 2, 'and what was not asked is not timed';
    is store($nginx, 'full')->{breakers_open}, 1, 'its breaker is open';
    $server{full}->cli('CONFIG', 'SET', 'maxmemory', 0);
    wait_until { store($nginx, 'full')->{breakers_open} == 0 } 10, 'the breaker to close';

    my $connects = store($nginx, 'full')->{connects};
    cmp_ok $connects, '>=', 2, 'which took a new connection';
    $server{full}->cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    wait_until { store($nginx, 'full')->{connects} > $connects } 10, 'a reconnect to be counted';
    $server{slow}->resume;
    is $nginx->bad_lines, '', 'nothing bad in the log';
}

# ---- where and what: the host, limits, addresses ----

{
    my $user = 'redis://nginx:S3cret%2F1@127.0.0.1:1/3';
    my %address = (
        default => 'redis://127.0.0.1:1',
        user => 'redis://nginx:***@127.0.0.1:1/3',
        sentinels => 'sentinel://nginx:***@127.0.0.1:1,127.0.0.1:2/mymaster',
        cluster => 'cluster://:***@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3',
        socket => 'unix:/nonexistent/redis.sock',
    );
    my $nginx = start_nginx(<<"END",
    $METRICS
    location /fixed {
        sliding_limit zone=fixed max=10 window=60s key=\$arg_k store=memory;
        location /fixed/below { sliding_limit zone=fixed max=10 window=60s key=\$arg_a store=memory; }
    }
    location /large { sliding_limit zone=large max=1000000000000000 window=60s key=\$arg_k store=memory; }
    location /none { sliding_limit zone=none max=0 window=60s key=\$arg_k store=memory unit=tokens; }
    location /several {
        sliding_limit zone=several max=10 window=60s key=\$arg_k store=memory if=\$arg_small;
        sliding_limit zone=several max=20 window=60s key=\$arg_k store=memory;
        location /several/again { sliding_limit zone=several max=20 window=60s key=\$arg_k store=memory; }
    }
    location /tier { sliding_limit zone=tier max=\$tier window=60s key=\$arg_k store=memory; }
    location /mixed {
        sliding_limit zone=mixed max=10 window=60s key=\$arg_k store=memory if=\$arg_small;
        sliding_limit zone=mixed max=\$tier window=60s key=\$arg_k store=memory;
    }
END
        http => <<"END");
    map \$arg_t \$tier { default 5; big 50; }
    sliding_limit_redis $address{default} password=S3cret-2;
    sliding_limit_redis $user name=user;
    sliding_limit_redis sentinel://nginx:S3cret-3\@127.0.0.1:1,127.0.0.1:2/mymaster name=sentinels
        sentinel_password=S3cret-4;
    sliding_limit_redis cluster://:S3cret-5\@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 name=cluster;
    sliding_limit_redis $address{socket} name=socket;
END
    my $all = json($nginx);
    is $all->{host}, lc hostname(), 'the host that it is';

    my %max = map { $_->{name} => $_->{max} } @{ $all->{zones} };
    is_deeply \%max, {
        fixed => 10, large => 1000000000000000, none => 0, several => 'varies', tier => 'varies', mixed => 'varies',
    }, 'what zones allow, or that it varies';
    my %unit = map { $_->{name} => $_->{unit} } @{ $all->{zones} };
    is_deeply \%unit, { (map { $_ => 'requests' } keys %max), none => 'tokens' }, 'and what they count';
    my $samples = samples($nginx);
    is join(' ', map { /^(zone_max\S+)/ ? "$1=$samples->{$_}" : () } sort keys %$samples),
        'zone_max{zone="fixed"}=10 zone_max{zone="large"}=1000000000000000 zone_max{zone="none"}=0',
        'Prometheus is told where it is one number';

    my %shown = map { $_->{name} => $_->{address} } @{ $all->{stores} };
    is_deeply \%shown, { %address, memory => '' }, 'where stores are';
    unlike +(get($nginx->port, "/plain?format=$_"))[2], qr/S3cret/, "$_: no password" for qw(json html prometheus);
}

# ---- since when and why a store is down ----

# What the log says about it, of the store at this address.
sub reason_in_log {
    my ($nginx, $address) = @_;
    return ($nginx->error_log =~ /redis "\Q$address\E" is down: (.*)/g)[-1];
}

{
    my $redis = start_redis();
    my $talkative = start_fake_redis(sub { 0 }, on_connect => sub {
        my ($socket) = @_;
        sysread $socket, my $command, 1000;
        print $socket "-ERR <b>unknown</b> command 'AUTH' \xff\x07 'S3cret', 'other' " . 'x' x 5000 . "\r\n";
        sleep 1;
    });
    my %address = (default => 'redis://127.0.0.1:' . $redis->port, talkative => 'redis://127.0.0.1:' . $talkative->port,
        sentinels => 'sentinel://127.0.0.1:' . free_port() . ',127.0.0.1:' . free_port() . '/mymaster');
    my $nginx = start_nginx(<<"END", workers => 2, http => <<"END_HTTP");
    $METRICS
    location / { sliding_limit zone=z max=9 window=600s key=\$arg_k; empty_gif; }
END
    sliding_limit_redis $address{default} timeout=5s connect_timeout=5s;
    sliding_limit_redis $address{talkative} name=talkative password=S3cret connect_timeout=5s;
    sliding_limit_redis $address{sentinels} name=sentinels;
END_HTTP
    my $down = sub { my ($name) = @_; return store($nginx, $name)->{down} };

    is_deeply $down->($_), [], "$_ is up" for qw(default memory);
    is samples($nginx)->{'store_down_since_seconds{store="default"}'}, 0, 'for Prometheus, too';

    my $before = time;
    $redis->stop;
    $nginx->try('/?k=1');
    wait_until { @{ $down->('default') } } 10, 'the outage';
    my ($outage) = @{ $down->('default') };
    my $after = time;
    is $outage->{server}, $address{default}, 'it says which server is down';
    cmp_ok $outage->{since}, '>', $before - 1, 'since when';
    cmp_ok $outage->{since}, '<', $after + 1, 'and not later';
    ok $outage->{reason}, "and why: $outage->{reason}";
    is $outage->{reason}, reason_in_log($nginx, $address{default}), 'as the log does';
    cmp_ok abs(samples($nginx)->{'store_down_since_seconds{store="default"}'} - $outage->{since}), '<', 2,
        'Prometheus is told since when';

    sleep 2;
    cmp_ok abs($down->('default')[0]{since} - $outage->{since}), '<', 0.5, 'that stays, however long it lasts';

    $redis->start;
    wait_until { !@{ $down->('default') } } 20, 'its return';
    is samples($nginx)->{'store_down_since_seconds{store="default"}'}, 0, 'back: Prometheus is told';
    $redis->cli('CONFIG', 'SET', 'maxmemory', 1);
    # a worker that has no connection yet does not ask
    wait_until { $nginx->try('/?k=1'); @{ $down->('default') } } 10, 'another outage';
    cmp_ok $down->('default')[0]{since}, '>', $after, 'which began later';
    like $down->('default')[0]{reason}, qr/OOM /, 'and has another reason';

    wait_until { @{ $down->('sentinels') } } 10, 'the Sentinels to be missed';
    is $down->('sentinels')[0]{server}, $address{sentinels}, 'Sentinels that are not there';
    is $down->('sentinels')[0]{reason}, reason_in_log($nginx, $address{sentinels}), 'and why';

    wait_until { @{ $down->('talkative') } } 10, 'the talkative one to be down';
    my $reason = $down->('talkative')[0]{reason};
    like $reason, qr{<b>unknown</b> command 'AUTH' \x{fffd}\? '\*\*\*', 'other' x}, 'what a server says is text, without the password';
    cmp_ok length $reason, '<=', 256, 'and bounded';
    unlike +(get($nginx->port, "/plain?format=$_"))[2], qr/S3cret|<b>/, "$_: no password, no markup" for qw(json html prometheus);
    unlike $nginx->error_log, qr/S3cret/, 'nor is the password in the log';
    is $nginx->bad_lines, '', 'nothing bad in the log';
}

{
    my $cluster = start_cluster(primaries => 3);
    my ($part) = grep { $cluster->owner('rate_limit::probe') != $_ } $cluster->nodes;
    my $address = 'redis://127.0.0.1:' . $part->port;
    my $nginx = start_nginx(<<"END", workers => 2,
    $METRICS
    location / { sliding_limit zone=z max=9 window=600s key=\$arg_k; empty_gif; }
END
        http => 'sliding_limit_redis ' . $cluster->url . ' timeout=1s connect_timeout=5s;'
            . "sliding_limit_redis $address name=part connect_timeout=5s;");
    $nginx->try("/?k=$_") for 1 .. 20;
    wait_until { !@{ store($nginx, 'default')->{down} } } 20, 'all servers of the cluster';

    wait_until { @{ store($nginx, 'part')->{down} } } 20, 'the one that has only a part of the keys';
    my $reason = store($nginx, 'part')->{down}[0]{reason};
    like $reason, qr{^MOVED \d+ .* use cluster:// instead$}, 'what to do about a server of a cluster';
    is $reason, reason_in_log($nginx, $address), 'as the log does';

    my @gone = ($cluster->nodes)[0, 1];
    $_->stop for @gone;
    wait_until { $nginx->try("/?k=$_") for 1 .. 20; @{ store($nginx, 'default')->{down} } == 2 } 20, 'two outages';
    is join(' ', sort map { $_->{server} } @{ store($nginx, 'default')->{down} }),
        join(' ', sort map { '127.0.0.1:' . $_->port } @gone), 'of a cluster it says which servers are down';
    is scalar(grep { !$_->{reason} } @{ store($nginx, 'default')->{down} }), 0, 'and why';
}

# ---- rows without any of the columns ----

{
    my $nginx = start_nginx(<<"END");
    $METRICS
    location / {
        sliding_limit zone=willing max=9 window=600s key=\$arg_k;
        sliding_limit zone=never max=0 window=600s key=all;
        empty_gif;
    }
END
    # one, whose number is exact: of more it is an estimate
    $nginx->try('/?k=1') for 1 .. 5;
    is_deeply [map { $_->[5] } @{ zone($nginx, 'willing')->{minutes} }[-1]], [1],
        'a client of a zone whose requests others refuse';
}

# ---- memory ----

{
    my $nginx = start_nginx(<<"END", http => 'sliding_limit_memory 512k;');
    $METRICS
    location / { sliding_limit zone=many max=10 window=600s key=\$arg_k; empty_gif; }
END
    start_load(clients => 2, requests => 4000, ports => [$nginx->port],
        path => sub { "/?k=$_[0]-$_[1]" })->finish;
    my $memory = json($nginx)->{memory};

    cmp_ok $memory->{evictions}, '>', 0, 'clients were forgotten early';
    is $memory->{evictions} + $memory->{clients}, 8000, 'those and the others are all';
    cmp_ok $memory->{free}, '<', $memory->{used} / 100, 'it is full';
    is samples($nginx)->{memory_evictions_total}, $memory->{evictions}, 'Prometheus is told';
}

# ---- room for it ----

sub size_of_memory { my ($zones) = @_; return sub { my ($size, @more) = @_; (join("\n", @more,
    map { "location /$_ { sliding_limit zone=z$_ max=9 window=600s key=\$arg_k; empty_gif; }" } @$zones),
    http => "sliding_limit_memory $size;") } }

{
    # no more than the least that it asks for
    my ($config, @http) = size_of_memory([1, 2])->('646k', $METRICS);
    my $nginx = start_nginx($config, @http);
    $nginx->try('/1?k=1');
    is nonzero(zone($nginx, 'z1')->{requests}), 'passed=1', 'in the least memory that will do';

    # none at the start: a reload cannot make any
    $nginx->stop;
    $nginx = start_nginx(size_of_memory([1 .. 4])->('646k'));
    $nginx->configure(size_of_memory([1])->('646k', $METRICS));
    kill 'HUP', $nginx->{pid};
    wait_until { $nginx->error_log =~ /\[emerg\].*sliding_limit_metrics has no room in the memory that is in use; restart nginx, or change sliding_limit_memory from 646k to more/ }
        10, 'the reload to be refused';
    is +($nginx->try('/4?k=1'))[0], 200, 'and all goes on as it was';
    is $nginx->bad_lines =~ s/^.*has no room.*\n?//mgr, '', 'nothing else bad in the log';
}

{
    # more zones by reloads than there are places to spare
    my $nginx = start_nginx(size_of_memory([map { "a$_" } 1 .. 20])->('16m', $METRICS));
    $nginx->configure(size_of_memory([map { "b$_" } 1 .. 20])->('16m', $METRICS));
    $nginx->reload;
    wait_for_zone($nginx, 'zb1');
    $nginx->try("/b$_?k=1") for 1 .. 20;
    my %passed = map { $_->{name} => $_->{requests}{passed} } @{ json($nginx)->{zones} };
    is join(' ', map { "$_=$passed{$_}" } sort keys %passed), join(' ', map { "$_=1" } sort map { "zb$_" } 1 .. 16),
        'those that have room are shown';
    is scalar(() = $nginx->error_log =~ /\[warn\].*no room for the metrics of zone "zb\d+", which a reload has added; a restart makes room/g),
        4, 'and the log says which have not';
}

{
    # and more stores
    my $stores = sub { my ($letter) = @_; return ($METRICS, http => join "\n",
        map { "sliding_limit_redis redis://127.0.0.1:1 name=$letter$_;" } 1 .. 10) };
    my $nginx = start_nginx($stores->('a'));
    my ($old) = $nginx->workers;
    $nginx->configure($stores->('b'));
    $nginx->reload;
    wait_until { join(' ', $nginx->workers) =~ /^\d+$/ && !grep { $_ == $old } $nginx->workers } 30, 'the new worker alone';
    is join(' ', sort map { $_->{name} } @{ json($nginx)->{stores} }), join(' ', (map { "b$_" } 1 .. 8), 'memory'),
        'those that have room are shown';
    is join(' ', $nginx->error_log =~ /\[warn\].*no room for the metrics of store "(b\d+)", which a reload has added/g),
        'b9 b10', 'and the log says which have not';
}

# ---- formats, methods, headers ----

{
    my $nginx = start_nginx(<<"END");
    $METRICS
    location / { sliding_limit zone=z max=2 window=600s key=\$arg_k; empty_gif; }
    location /ssi/ { ssi on; default_type text/html; }
END
    my $ask = sub {
        my ($path, $accept, $method) = @_;
        return request($nginx->port, ($method || 'GET') . " $path HTTP/1.1\r\nHost: x\r\n"
            . (defined $accept ? "Accept: $accept\r\n" : '') . "Connection: close\r\n\r\n");
    };
    my %type = (
        prometheus => 'text/plain; version=0.0.4; charset=utf-8',
        json => 'application/json',
        html => 'text/html; charset=utf-8',
    );

    for (
        [undef, 'prometheus', 'no Accept'],
        ['*/*', 'prometheus', 'curl'],
        ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', 'html', 'a browser'],
        ['application/json', 'json', 'a program'],
        ['application/json, text/plain, */*', 'prometheus', 'who likes both'],
        ['application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,'
            . 'text/plain;version=0.0.4;q=0.5,*/*;q=0.1', 'prometheus', 'Prometheus'],
        ['image/png', 'prometheus', 'who likes neither'],
        ['text/plain;q=0.1, application/json;q=0.2', 'json', 'who likes one more'],
        ["text/html\r\nAccept: text/plain;q=0.5", 'html', 'who says it in two headers'],
    ) {
        my ($accept, $format, $who) = @$_;
        my ($status, $headers) = $ask->('/limits', $accept);
        is "$status $headers->{'content-type'}", "200 $type{$format}", "$format for $who";
    }

    for my $format (sort keys %type) {
        my ($status, $headers, $body) = $ask->("/limits?format=$format", 'image/png');
        is "$status $headers->{'content-type'}", "200 $type{$format}", "?format=$format";
        is $headers->{'cache-control'}, 'no-store', 'is not kept';
        is $headers->{'x-content-type-options'}, 'nosniff', 'nor guessed at';
        is $headers->{vary}, 'Accept', 'and depends on what was asked for';
        is $headers->{'content-length'}, length $body, 'is all there';

        my ($head_status, $head, $nothing) = $ask->("/limits?format=$format", undef, 'HEAD');
        is "$head_status $head->{'content-type'}", "200 $type{$format}", 'HEAD says the same';
        is $nothing, '', 'without a body';
    }

    my ($status, $headers, $body) = $ask->('/limits?format=%3Cscript%3E');
    is $status, 400, 'an unknown format is refused';
    is $body, "unknown format, must be html, json or prometheus\n", 'saying what there is';

    for my $method (qw(POST PUT DELETE OPTIONS)) {
        my ($status, $headers) = $ask->('/limits', undef, $method);
        is "$status $headers->{allow}", '405 GET, HEAD', "$method is not allowed";
    }

    my (undef, $page_headers, $page) = $ask->('/limits?format=html');
    my $policy = $page_headers->{'content-security-policy'};
    my %policy = map { /^(\S+) (.*)$/ } split /; /, $policy;
    is $policy{'default-src'}, q('none'), 'the page may do nothing';
    is $policy{'frame-ancestors'}, q('none'), 'nor be framed';
    unlike $policy, qr/unsafe/, 'with no exceptions';
    for my $tag (qw(script style)) {
        my @found = $page =~ m{<$tag>(.*?)</$tag>}gs;
        is scalar @found, 1, "one $tag";
        is $policy{"$tag-src"}, sprintf(q('sha256-%s='), sha256_base64($found[0])),
            'and that is the one that may run';
    }
    unlike $page =~ s{<(script|style)>.*?</\1>}{}gsr, qr/<[^>]+\s(?:on\w+|style)\s*=/i,
        'no handlers and no styles in its markup';
    is_deeply [grep { !/^data:|^\?/ } $page =~ /\s(?:src|href)\s*=\s*"([^"]*)"/g], [],
        'nothing from elsewhere';

    mkdir $nginx->dir . '/html/ssi';
    open my $around, '>', $nginx->dir . '/html/ssi/page' or die $!;
    print $around 'before <!--# include virtual="/off?format=json" --> after';
    close $around;
    like +($ask->('/ssi/page'))[2], qr/before .*"zones":\[.*"memory":.* after/s, 'also inside another page';
    is $nginx->bad_lines, '', 'nothing bad in the log';
}

# ---- keys ----

{
    my $redis = start_redis();
    my $nginx = start_nginx(<<"END", http => redis_line($redis, 'timeout=5s'));
    $METRICS
    location / { sliding_limit zone=z max=1 window=600s key=\$http_x_key; empty_gif; }
END
    my @hostile = ('<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "\xff\xfe\xc3(",
        '</script>', "a\tb", '\\"', "\xe2\x80\xaegnp.exe", '{"zone":"x"}', 'secret-session-0123456789',
        'x' x 4000, 'x' x 4001, '&amp;', q('; DROP TABLE));
    for my $key (@hostile) {
        request($nginx->port, "GET / HTTP/1.1\r\nHost: x\r\nX-Key: $key\r\nConnection: close\r\n\r\n")
            for 1 .. 2;
    }

    my %body = map { $_ => (get($nginx->port, "/$_?format=json"))[2] } qw(limits plain off);
    unlike $body{$_}, qr/[<>&]/, "$_: no markup" for sort keys %body;

    my ($plain) = @{ decode_json($body{plain})->{zones} };
    my %seen = map { $_->{key} => $_->{count} } @{ $plain->{top_rejected} };
    is scalar keys %seen, @hostile, 'plain: every key is itself, also long ones that begin alike';
    is $seen{'<script>alert(1)</script>'}, 1, 'plain: it is text';
    is $seen{"a\tb"}, 1, 'plain: also with a tab';
    is $seen{"\x{fffd}\x{fffd}\x{fffd}("}, 1, 'plain: also what is no UTF-8';
    is scalar(grep { /^x{59}\.\.\.#[0-9a-f]{8}$/ } keys %seen), 2, 'plain: long ones are cut';

    my ($masked) = @{ decode_json($body{limits})->{zones} };
    unlike $body{limits}, qr/session|DROP|alert/, 'masked: nothing but their beginning';
    is scalar(grep { $_->{key} =~ /^.{0,4}\.\.\.#[0-9a-f]{8}$/s } @{ $masked->{top_rejected} }),
        scalar @hostile, 'masked: four characters, and what tells them apart';
    my ($secret) = grep { $_->{key} =~ /^secr/ } @{ $masked->{top_clients} };
    is $secret->{count}, 2, 'masked: with their counts';

    is +(get($nginx->port, '/limits?format=json&if=1'))[2] =~ s/"now":[^,]*//r, $body{limits} =~ s/"now":[^,]*//r,
        'masked: also with an "if"';

    my ($off) = @{ decode_json($body{off})->{zones} };
    is_deeply [$off->{top_rejected}, $off->{top_clients}], [[], []], 'off: none';
    is $off->{requests}{rejected}, scalar @hostile, 'off: but all else';

    unlike +(get($nginx->port, '/plain'))[2], qr/script>|secret|DROP|xxxx/, 'no key is ever a label';
    is $nginx->bad_lines, '', 'nothing bad in the log';
}

# ---- who stays over the limit ----

{
    my $nginx = start_nginx(<<"END");
    $METRICS
    location / {
        sliding_limit zone=stubborn max=1 window=500ms key=\$arg_k;
        sliding_limit_log_level error;
        empty_gif;
    }
END
    my $lines = sub { grep { /windows in a row/ } split /\n/, $nginx->error_log };
    my $end = time + 20;
    while (!$lines->() && time < $end) {
        $nginx->try('/?k=stubborn-client-0123456789') for 1 .. 3;
        sleep 0.1;
    }
    like +($lines->())[0], qr/\[error\].*sliding_limit: client "stub\.\.\.#[0-9a-f]{8}" has been over its limit in zone "stubborn" for 3 windows in a row, refused \d+ times/,
        'the log is told of a client that stays over its limit';

    for (1 .. 20) {
        $nginx->try('/?k=stubborn-client-0123456789') for 1 .. 3;
        sleep 0.1;
    }
    is scalar $lines->(), 1, 'but not all the time';
}

# ---- nothing to show ----

{
    my $nginx = start_nginx($METRICS);
    is_deeply json($nginx)->{zones}, [], 'without any limit there are no zones';
    is samples($nginx)->{checks_in_flight}, 0, 'and all is quiet';
    is $nginx->bad_lines, '', 'nothing bad in the log';
}

done_testing;
