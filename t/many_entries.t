# A check costs Redis little, however many requests are counted under its key: an
# admin's hour holds 10,000.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(get start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $nginx = start_nginx(<<'END',
    sliding_limit_deny_cache off;
    location /passes { sliding_limit zone=hour max=1000000 window=1h key=$arg_k fallback=none; empty_gif; }
    location /full { sliding_limit zone=hour max=$arg_k window=1h key=$arg_k fallback=none; empty_gif; }
    location /costly { sliding_limit zone=costly max=1000000 window=1h key=$arg_k fallback=none cost=2; empty_gif; }
    location /costly_full { sliding_limit zone=costly max=$arg_max window=1h key=$arg_k fallback=none cost=2; empty_gif; }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;',
    main => 'worker_rlimit_nofile 4096;');

# Fills the set with so many units, over the last half hour.
sub fill {
    my ($key, $count) = @_;
    $redis->cli('EVAL', <<'END', 1, $key, $count);
        redis.call('DEL', KEYS[1])
        local time = redis.call('TIME')
        for i = 1, ARGV[1] do
            local member = string.format('0190a5e0-0000-7000-8000-%012d', i)
            redis.call('ZADD', KEYS[1], (time[1] - 1800) * 1000000 + i * 1000, member)
        end
        redis.call('PEXPIRE', KEYS[1], 3600000)
END
    return;
}

# Microseconds of CPU that Redis has used so far: those do not depend on what else is running.
sub cpu_time {
    my %used = $redis->cli('INFO', 'cpu') =~ /^used_cpu_(user|sys):([\d.]+)/mg;
    return 1e6 * ($used{user} + $used{sys});
}

# Microseconds that Redis spends on a check while many are made: the best of two.
sub redis_time {
    my ($path, $status, $fill) = @_;
    my $best;

    for (1 .. 2) {
        $fill->();
        is +(get($nginx->port, $path))[0], $status, "$path: $status";
        my $before = cpu_time();
        my $checks = 0;
        for (my $end = time + 60; $checks <= 200 && time < $end;) {
            my $said = `wrk -t1 -c16 -d1s 'http://127.0.0.1:${\ $nginx->port}$path' 2>&1`;
            $checks += $said =~ /(\d+) requests in/ ? $1 : die $said;
        }
        my $us = cpu_time() - $before;
        cmp_ok $checks, '>', 200, "$checks checks";
        my $each = $us / $checks;
        $best = $each if !defined $best || $each < $best;
    }

    return sprintf '%.1f', $best;
}

for my $case (['passing', 'passes', 200], ['refused', 'full', 429]) {
    my ($what, $path, $status) = @$case;

    my ($few, $many) = map {
        my $entries = $_;
        redis_time("/$path?k=$entries", $status, sub { fill("rate_limit:hour:$entries", $entries) });
    } 10, 10_000;

    cmp_ok $many, '<', 50, "$what: with 10,000 entries a check takes Redis $many us";
    cmp_ok $many, '<', 3 * $few, "with 10 it takes $few us";
}

for my $case (['passing', 'costly?k=a', 200], ['refused', 'costly_full?k=a&max=10000', 429]) {
    my ($what, $path, $status) = @$case;
    my $us = redis_time("/$path", $status, sub { fill('rate_limit:costly:a', 10_000) });
    cmp_ok $us, '<', 100, "$what, of a cost of 2, with 10,000 entries: $us us";
}

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
