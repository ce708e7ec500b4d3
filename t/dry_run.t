# dry_run: counts, logs and sets variables, refuses nobody.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(free_port start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $nginx = start_nginx(<<'END',
    add_header X-Status $sliding_limit_status always;
    add_header X-Zone $sliding_limit_zone always;
    add_header X-Retry $sliding_limit_retry_after always;

    location /dry {
        sliding_limit zone=dry max=2 window=60s key=$arg_k fallback=none dry_run;
        empty_gif;
    }
    location /level {
        sliding_limit_dry_run on;
        sliding_limit zone=level max=1 window=60s key=$arg_k fallback=none;
        empty_gif;
        location /level/strict {
            sliding_limit_dry_run off;
            empty_gif;
        }
    }
    location /mixed {
        sliding_limit zone=mixed_dry max=1 window=60s key=$arg_k fallback=none dry_run;
        sliding_limit zone=mixed max=3 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /zero {
        sliding_limit zone=zero max=0 window=60s key=$arg_k fallback=none dry_run;
        sliding_limit zone=beside_zero max=1 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /down {
        sliding_limit_on_error deny;
        sliding_limit zone=down max=1 window=60s key=$arg_k fallback=none store=dead dry_run;
        empty_gif;
    }
    location /down_beside {
        sliding_limit_on_error deny;
        sliding_limit zone=down max=1 window=60s key=$arg_k fallback=none store=dead dry_run;
        sliding_limit zone=down_too max=1 window=60s key=$arg_k fallback=none store=dead;
        empty_gif;
    }
    location /only_zero {
        sliding_limit zone=zero max=$arg_max window=60s key=$arg_k fallback=none dry_run;
        empty_gif;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;'
        . 'sliding_limit_redis redis://127.0.0.1:' . free_port() . ' name=dead;');

sub count { my ($zone, $key) = @_; return $redis->cli('ZCARD', "rate_limit:$zone:$key") }

subtest 'a request that would be refused passes, and everything but the answer says so' => sub {
    is_deeply [$nginx->try('/dry?k=a', qw(X-Status X-RateLimit-Remaining))], [200, 'PASSED', 1];
    is_deeply [$nginx->try('/dry?k=a', qw(X-Status X-RateLimit-Remaining))], [200, 'PASSED', 0];
    is_deeply [$nginx->try('/dry?k=a', qw(X-Status X-Zone X-RateLimit-Remaining Retry-After X-Retry))],
        [200, 'REJECTED_DRY_RUN', 'dry', 0, '', ''], 'no Retry-After: there is nothing to retry';
    is count('dry', 'a'), 2, 'as much is counted as if it had been refused';
    like $nginx->error_log, qr/\[error\] .*sliding_limit: would be refused by zone "dry", max 2 in 60000 ms, but for its dry run/;
};

subtest 'sliding_limit_dry_run: all limits of the level' => sub {
    is_deeply [$nginx->try('/level?k=a', 'X-Status')], [200, 'PASSED'];
    is_deeply [$nginx->try('/level?k=a', 'X-Status')], [200, 'REJECTED_DRY_RUN'];
    is_deeply [$nginx->try('/level/strict?k=a', 'X-Status')], [429, 'REJECTED'], 'and off again further down';
};

subtest 'a dry run beside a limit in force' => sub {
    is_deeply [$nginx->try('/mixed?k=a', 'X-Status')], [200, 'PASSED'];
    is_deeply [$nginx->try('/mixed?k=a', qw(X-Status X-Zone))], [200, 'REJECTED_DRY_RUN', 'mixed_dry'] for 1 .. 2;
    is_deeply [count('mixed_dry', 'a'), count('mixed', 'a')], [1, 3], 'the request passed: the other limit counts it';
    is_deeply [$nginx->try('/mixed?k=a', qw(X-Status X-Zone))], [429, 'REJECTED', 'mixed'], 'that one refuses';
    is_deeply [count('mixed_dry', 'a'), count('mixed', 'a')], [1, 3], 'and nobody is charged';
};

subtest 'a dry run that admits nothing at all' => sub {
    is_deeply [$nginx->try('/zero?k=a', qw(X-Status X-Zone))], [200, 'REJECTED_DRY_RUN', 'zero'];
    is_deeply [$nginx->try('/zero?k=a', qw(X-Status X-Zone))], [429, 'REJECTED', 'beside_zero'],
        'the limit beside it was counted all the same';
    is_deeply [$nginx->try('/only_zero?k=a&max=0', 'X-Status')], [200, 'REJECTED_DRY_RUN'];
    is_deeply [$nginx->try('/only_zero?k=a&max=abc', 'X-Status')], [200, 'REJECTED_DRY_RUN'];
};

subtest 'a dry run whose store is down refuses nobody either, whatever on_error says' => sub {
    is_deeply [$nginx->try('/down?k=a', 'X-Status')], [200, 'FAILED_OPEN'];
    is_deeply [$nginx->try('/down_beside?k=a', 'X-Status')], [503, 'FAILED_CLOSED'], 'a limit in force beside it does';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
