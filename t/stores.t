# Several Redis servers by name, and $sliding_limit_store.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(free_port start_nginx start_redis wait_until);
use Test::More;

my $default = start_redis();
my $named = start_redis();
my $dead = free_port();
my $nginx = start_nginx(<<'END',
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;

    location /default { sliding_limit zone=default max=9 window=60s key=a; empty_gif; }
    location /by_name { sliding_limit zone=by_name max=9 window=60s key=a store=default; empty_gif; }
    location /named { sliding_limit zone=named max=9 window=60s key=a store=second; empty_gif; }
    location /dead { sliding_limit zone=dead max=9 window=60s key=a store=dead; empty_gif; }
    location /exempt { sliding_limit zone=exempt max=9 window=60s key=$arg_nobody; empty_gif; }
    location /zero { sliding_limit zone=zero max=0 window=60s key=a; empty_gif; }
    location /none { empty_gif; }
    location /one_is_dead {
        sliding_limit zone=alive max=9 window=60s key=a;
        sliding_limit zone=dead max=9 window=60s key=a store=dead;
        empty_gif;
    }
    location /one_is_dead_and_denies {
        sliding_limit_on_error deny;
        sliding_limit zone=alive max=9 window=60s key=b;
        sliding_limit zone=dead max=9 window=60s key=b store=dead;
        empty_gif;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $named->port . ' name=second timeout=10s connect_timeout=5s;'
        . 'sliding_limit_redis redis://127.0.0.1:' . $default->port . ' timeout=10s connect_timeout=5s;'
        . "sliding_limit_redis redis://127.0.0.1:$dead name=dead;");

is_deeply [$nginx->try('/default', qw(X-Status X-Store))], [200, 'PASSED', 'redis'], 'the one without a name';
is_deeply [$nginx->try('/by_name', 'X-Store')], [200, 'redis'], 'which can be called default';
is_deeply [$nginx->try('/named', 'X-Store')], [200, 'redis'], 'another one by its name';
is_deeply [$nginx->try('/dead', qw(X-Status X-Store))], [200, 'FAILED_OPEN', 'none'], 'one that does not answer';
is_deeply [$nginx->try('/exempt', qw(X-Status X-Store))], [200, 'EXEMPT', 'none'], 'nobody to ask about';
is_deeply [$nginx->try('/zero', qw(X-Status X-Store))], [429, 'REJECTED', 'none'], 'nothing to ask';
is_deeply [$nginx->try('/none', qw(X-Status X-Store))], [200, '', ''], 'no limit';

is_deeply [map { $default->cli('ZCARD', "rate_limit:$_:a") } qw(default by_name named)], [1, 1, 0],
    'what the first has counted';
is_deeply [map { $named->cli('ZCARD', "rate_limit:$_:a") } qw(default by_name named)], [0, 0, 1],
    'what the second has counted';

is_deeply [$nginx->try('/one_is_dead', qw(X-Status X-RateLimit-Remaining))], [200, 'FAILED_OPEN', 8],
    'where one of two is down, what is known is shown';
is_deeply [$nginx->try('/one_is_dead_and_denies', 'X-Status')], [503, 'FAILED_CLOSED'];
wait_until { $default->cli('EXISTS', 'rate_limit:alive:b') eq '0' } 5, 'the count to be taken back';
pass 'a request that is refused for want of an answer is charged to none';

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
