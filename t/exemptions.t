# Whom a limit does not apply to: if=, empty keys, "off".

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $nginx = start_nginx(<<'END',
    add_header X-Status $sliding_limit_status always;
    add_header X-Zone $sliding_limit_zone always;

    location /if {
        sliding_limit zone=if max=1 window=60s key=$arg_k fallback=none if=$arg_if;
        empty_gif;
    }
    location /either {
        sliding_limit zone=either max=1 window=60s key=$arg_k fallback=none if=$arg_small;
        sliding_limit zone=either max=3 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /beside {
        sliding_limit zone=always max=5 window=60s key=$arg_k fallback=none;
        sliding_limit zone=sometimes max=1 window=60s key=$arg_k fallback=none if=$arg_if;
        empty_gif;
    }
    location /geo {
        sliding_limit zone=geo max=0 window=60s key=$limited_addr;
        empty_gif;
    }
END
    http => 'geo $trusted { default 0; 127.0.0.0/8 1; }'
        . 'map $trusted $limited_addr { 1 ""; default $remote_addr; }'
        . 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

for my $value ('', '0') {
    subtest "if= with \"$value\": the limit does not apply" => sub {
        is_deeply [$nginx->try("/if?k=off&if=$value", qw(X-Status X-RateLimit-Limit))], [200, 'EXEMPT', '']
            for 1 .. 3;
        is $redis->cli('ZCARD', 'rate_limit:if:off'), 0, 'nothing is counted';
    };
}

for my $value ('1', 'yes', '00', '0.0', 'no') {
    subtest "if= with \"$value\": the limit applies" => sub {
        is_deeply [$nginx->try("/if?k=on$value&if=$value", 'X-Status')], [200, 'PASSED'];
        is_deeply [$nginx->try("/if?k=on$value&if=$value", 'X-Status')], [429, 'REJECTED'];
    };
}

subtest 'of two limits of one zone the first that applies decides' => sub {
    is_deeply [$nginx->try('/either?k=a', 'X-RateLimit-Limit')], [200, 3];
    is_deeply [$nginx->try('/either?k=a&small=1', 'X-RateLimit-Limit')], [429, 1], 'they share the count';
    is_deeply [$nginx->try('/either?k=a', 'X-RateLimit-Remaining')], [200, 1];
};

subtest 'a limit that does not apply leaves the others alone' => sub {
    is_deeply [$nginx->try('/beside?k=a', qw(X-Zone X-RateLimit-Remaining))], [200, 'always', 4];
    is_deeply [$nginx->try('/beside?k=a&if=1', qw(X-Zone X-RateLimit-Remaining))], [200, 'sometimes', 0];
    is_deeply [$nginx->try('/beside?k=a&if=1', 'X-Zone')], [429, 'sometimes'];
    is_deeply [$nginx->try('/beside?k=a', qw(X-Zone X-RateLimit-Remaining))], [200, 'always', 2];
};

subtest 'a network is exempt by an empty key' => sub {
    is_deeply [$nginx->try('/geo', 'X-Status')], [200, 'EXEMPT'];
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
