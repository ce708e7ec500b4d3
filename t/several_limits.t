# Several limits on one request: all of them or none, wherever they are counted
# and whenever they are met.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(time);

my $redis = start_redis();
my $other = start_redis();
my $config = <<'END';
    add_header X-Status $sliding_limit_status always;
    add_header X-Zone $sliding_limit_zone always;

    location /both {
        sliding_limit zone=minute max=3 window=60s key=$arg_k fallback=none;
        sliding_limit zone=hour max=100 window=1h key=$arg_k fallback=none;
        empty_gif;
    }
    location /hour {
        sliding_limit zone=hour max=100 window=1h key=$arg_k fallback=none;
        empty_gif;
    }
    location /keys {
        sliding_limit zone=user max=2 window=60s key=$arg_user fallback=none;
        sliding_limit zone=site max=3 window=60s key=$arg_site fallback=none;
        empty_gif;
    }
    location /waits {
        sliding_limit zone=short max=1 window=60s key=$arg_k fallback=none;
        sliding_limit zone=long max=1 window=1h key=$arg_k fallback=none;
        empty_gif;
    }
    location /stores {
        sliding_limit zone=here max=5 window=60s key=$arg_k fallback=none;
        sliding_limit zone=there max=2 window=60s key=$arg_k fallback=none store=other;
        sliding_limit zone=here_too max=9 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /redirected {
        sliding_limit zone=first max=5 window=60s key=$arg_k fallback=none;
        try_files /nowhere /redirect_target?$args;
    }
    location /redirect_target {
        sliding_limit zone=second max=2 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /phases {
        sliding_limit zone=late max=2 window=60s key=$arg_k fallback=none phase=precontent;
        sliding_limit zone=early max=5 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
END
my @sixteen = map { "sliding_limit zone=of16_$_ max=" . ($_ == 9 ? 1 : 5) . " window=60s key=all;" } 1 .. 16;

my $nginx = start_nginx("$config location /sixteen { @sixteen empty_gif; }",
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;'
        . 'sliding_limit_redis redis://127.0.0.1:' . $other->port . ' name=other timeout=10s connect_timeout=5s;');

sub count { my ($zone, $key, $in) = @_; return ($in || $redis)->cli('ZCARD', "rate_limit:$zone:$key") }

subtest 'a client at its minute limit is refused, and its hour count has not moved' => sub {
    is +($nginx->try('/both?k=a'))[0], 200, 'passes' for 1 .. 3;
    is count('hour', 'a'), 3, 'three in the hour';
    is_deeply [$nginx->try('/both?k=a', 'X-Zone', 'X-RateLimit-Limit')], [429, 'minute', 3], 'refused'
        for 1 .. 5;
    is count('hour', 'a'), 3, 'still three in the hour';
    is count('minute', 'a'), 3, 'and three in the minute';
    is_deeply [$nginx->try('/hour?k=a', 'X-RateLimit-Remaining')], [200, 96], 'as the client sees it too';
};

subtest 'of limits that pass, the one with the least remaining is shown' => sub {
    get($nginx->port, '/hour?k=b') for 1 .. 98;
    is_deeply [$nginx->try('/both?k=b', qw(X-Zone X-RateLimit-Limit X-RateLimit-Remaining))],
        [200, 'hour', 100, 1], 'the hour is nearly used up';
};

subtest 'of limits that refuse, the one with the longest wait is shown' => sub {
    is +($nginx->try('/waits?k=a'))[0], 200;
    my (undef, $zone, $wait) = $nginx->try('/waits?k=a', 'X-Zone', 'Retry-After');
    is $zone, 'long';
    cmp_ok $wait, '>', 3500, 'an hour, not a minute';
};

subtest 'limits with different keys are decided in one call, too' => sub {
    is +($nginx->try('/keys?user=a&site=s'))[0], 200 for 1 .. 2;
    my $calls = $redis->calls('evalsha');
    is_deeply [$nginx->try('/keys?user=a&site=s', 'X-Zone')], [429, 'user'], 'the user is at its limit';
    is $redis->calls('evalsha') - $calls, 1, 'one script call';
    is count('site', 's'), 2, 'the site was not charged';
    is_deeply [$nginx->try('/keys?user=b&site=s')], [200], 'another user takes the last one';
    is_deeply [$nginx->try('/keys?user=c&site=s', 'X-Zone')], [429, 'site'], 'then the site is at its limit';
    is count('user', 'c'), 0, 'and the user was not charged';
};

subtest 'limits in two stores: a refusal by the second takes back what the first has counted' => sub {
    is_deeply [$nginx->try('/stores?k=a', 'X-Status', 'X-Zone')], [200, 'PASSED', 'there'] for 1 .. 2;
    is_deeply [map { count(@$_) } ['here', 'a'], ['here_too', 'a'], ['there', 'a', $other]], [2, 2, 2],
        'counted in both';
    is_deeply [$nginx->try('/stores?k=a', 'X-Zone')], [429, 'there'], 'refused' for 1 .. 3;
    wait_until { count('here', 'a') == 2 } 5, 'the count to be taken back';
    is_deeply [map { count(@$_) } ['here', 'a'], ['here_too', 'a'], ['there', 'a', $other]], [2, 2, 2],
        'as if nothing had been';
};

subtest 'what was counted before an internal redirect stays counted' => sub {
    # somebody may have worked for it there
    is_deeply [$nginx->try('/redirected?k=a')], [200] for 1 .. 2;
    is_deeply [$nginx->try('/redirected?k=a', 'X-Zone')], [429, 'second'], 'refused where it arrives' for 1 .. 3;
    is_deeply [$nginx->try('/redirected?k=a', 'X-Zone')], [429, 'first'], 'and at last where it comes from';
    is count('first', 'a'), 5;
    is count('second', 'a'), 2;
};

subtest 'limits of two phases: all or nothing' => sub {
    is_deeply [$nginx->try('/phases?k=a')], [200] for 1 .. 2;
    is_deeply [$nginx->try('/phases?k=a', 'X-Zone')], [429, 'late'], 'refused in the later phase' for 1 .. 3;
    wait_until { count('early', 'a') == 2 } 5, 'the count to be taken back';
    pass 'what the earlier phase had counted was taken back';
};

subtest 'sixteen limits at once' => sub {
    is_deeply [$nginx->try('/sixteen', 'X-Zone')], [200, 'of16_9'];
    is_deeply [$nginx->try('/sixteen', 'X-Zone')], [429, 'of16_9'];
    is_deeply [map { count("of16_$_", 'all') } 1 .. 16], [(1) x 16];
};

subtest 'a request waits for a store no longer than its timeout, however often it has to ask' => sub {
    my $slow = start_nginx(<<'END',
        add_header X-Status $sliding_limit_status always;
        location / {
            sliding_limit zone=early max=5 window=60s key=slow;
            sliding_limit zone=late max=2 window=60s key=slow phase=precontent;
            empty_gif;
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=2s connect_timeout=5s;');
    wait_until { ($slow->try('/', 'X-Status'))[1] eq 'PASSED' } 10, 'a connection';

    $redis->pause;
    my $start = time;
    is_deeply [$slow->try('/', 'X-Status')], [200, 'FAILED_OPEN'];
    my $took = time - $start;
    $redis->resume;
    cmp_ok $took, '<', 3.5, sprintf 'it took %.1f s', $took;
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
