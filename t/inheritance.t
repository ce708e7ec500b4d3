use lib 't/lib';
use SlidingLimit::Suite;
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

# shows(LIMIT => REMAINING, ...), one pair per answer; undef: no headers.
sub ::shows {
    my @expected;

    while (my ($limit, $remaining) = splice @_, 0, 2) {
        push @expected, defined $limit
            ? "X-RateLimit-Limit: $limit\nX-RateLimit-Remaining: $remaining"
            : "X-RateLimit-Limit:\nX-RateLimit-Remaining:\nX-RateLimit-Reset:";
    }

    return @expected > 1 ? \@expected : $expected[0];
}

run_tests();

__DATA__

=== a limit of the http level holds in every location
--- http_config
    sliding_limit zone=inherit_http max=9 window=60s key=$TEST_NGINX_RUN;
--- config
    location /a { empty_gif; }
    location /b { location /b/c { empty_gif; } }
--- request eval
["GET /a", "GET /b/c"]
--- error_code eval
[200, 200]
--- response_headers_like eval
::shows(9 => 8, 9 => 7)
--- no_error_log
[alert]
[error]



=== a limit of the server level replaces that of the http level
--- http_config
    sliding_limit zone=inherit_replaced max=3 window=60s key=$TEST_NGINX_RUN;
    server {
        listen $TEST_NGINX_SERVER_PORT;
        server_name other;
        location / { empty_gif; }
    }
--- config
    sliding_limit zone=inherit_server max=9 window=60s key=$TEST_NGINX_RUN;
    location /a { empty_gif; }
--- request eval
["GET /a", "GET /a", "GET /a"]
--- more_headers eval
["", "", "Host: other"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
::shows(9 => 8, 9 => 7, 3 => 2)
--- no_error_log
[alert]
[error]



=== a limit of a location replaces that of its server
--- config
    sliding_limit zone=inherit_outer max=3 window=60s key=$TEST_NGINX_RUN;
    location /a {
        sliding_limit zone=inherit_inner max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /b { empty_gif; }
--- request eval
["GET /a", "GET /a", "GET /b"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
::shows(9 => 8, 9 => 7, 3 => 2)
--- no_error_log
[alert]
[error]



=== a nested location inherits from the one around it
--- config
    sliding_limit zone=inherit_nest_outer max=3 window=60s key=$TEST_NGINX_RUN;
    location /a {
        sliding_limit zone=inherit_nest max=9 window=60s key=$TEST_NGINX_RUN;
        location /a/b { empty_gif; }
    }
--- request
GET /a/b
--- response_headers_like eval
::shows(9 => 8)
--- no_error_log
[alert]
[error]



=== "if" in a location inherits its limits
--- config
    location /a {
        sliding_limit zone=inherit_if max=9 window=60s key=$TEST_NGINX_RUN;
        if ($arg_x) {
            set $y 1;
        }
        empty_gif;
    }
--- request eval
["GET /a", "GET /a?x=1"]
--- error_code eval
[200, 200]
--- response_headers_like eval
::shows(9 => 8, 9 => 7)
--- no_error_log
[alert]
[error]



=== "off" drops what is inherited, down to nested locations
--- http_config
    sliding_limit zone=inherit_off max=9 window=60s key=$TEST_NGINX_RUN;
--- config
    location /a {
        sliding_limit off;
        empty_gif;
        location /a/b { empty_gif; }
        location /a/c {
            sliding_limit zone=inherit_on_again max=5 window=60s key=$TEST_NGINX_RUN;
            empty_gif;
        }
    }
    location /d { empty_gif; }
--- request eval
["GET /a", "GET /a/b", "GET /a/c", "GET /d"]
--- error_code eval
[200, 200, 200, 200]
--- response_headers_like eval
::shows(undef, undef, undef, undef, 5 => 4, 9 => 8)
--- no_error_log
[alert]
[error]



=== "off" for a server drops the limits of the http level
--- http_config
    sliding_limit zone=inherit_off_server max=0 window=60s key=$TEST_NGINX_RUN;
--- config
    sliding_limit off;
    location /a { empty_gif; }
--- request
GET /a
--- response_headers_like eval
::shows(undef, undef)
--- no_error_log
[alert]
[error]



=== "off" where there is nothing to drop is fine
--- config
    location /a {
        sliding_limit off;
        empty_gif;
    }
--- request
GET /a
--- response_headers_like eval
::shows(undef, undef)
--- no_error_log
[alert]
[error]



=== status and on_error are inherited apart from the limits
--- http_config
    sliding_limit_status 503;
--- config
    sliding_limit zone=inherit_status max=0 window=60s key=$TEST_NGINX_RUN;
    location /a { empty_gif; }
    location /b {
        sliding_limit_status 403;
        empty_gif;
        location /b/c { empty_gif; }
    }
--- request eval
["GET /a", "GET /b", "GET /b/c"]
--- error_code eval
[503, 403, 403]
--- no_error_log
[alert]
[error]



=== on_error is inherited and can be set anew
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
    sliding_limit_on_error deny;
    sliding_limit zone=inherit_on_error max=9 window=60s key=$TEST_NGINX_RUN;
--- config
    location /a { empty_gif; }
    location /b { sliding_limit_on_error pass; empty_gif; }
--- request eval
["GET /a", "GET /b"]
--- error_code eval
[503, 200]
--- no_error_log
[alert]



=== of several limits all must pass
--- config
    location /a {
        sliding_limit zone=inherit_all_1 max=9 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_all_2 max=2 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_all_3 max=5 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /a", "GET /a", "GET /a"]
--- error_code eval
[200, 200, 429]
--- response_headers_like eval
::shows(2 => 1, 2 => 0, 2 => 0)
--- no_error_log
[alert]
[error]



=== a request refused by one limit is charged to none
--- config
    location /both {
        sliding_limit zone=inherit_none_wide max=9 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_none_narrow max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /wide {
        sliding_limit zone=inherit_none_wide max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /both", "GET /both", "GET /both", "GET /wide"]
--- error_code eval
[200, 429, 429, 200]
--- response_headers_like eval
::shows(1 => 0, 1 => 0, 1 => 0, 9 => 7)
--- no_error_log
[alert]
[error]



=== ... whichever stands first
--- config
    location /both {
        sliding_limit zone=inherit_none2_narrow max=1 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_none2_wide max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /wide {
        sliding_limit zone=inherit_none2_wide max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /both", "GET /both", "GET /both", "GET /wide"]
--- error_code eval
[200, 429, 429, 200]
--- response_headers_like eval
::shows(1 => 0, 1 => 0, 1 => 0, 9 => 7)
--- no_error_log
[alert]
[error]



=== a request refused by max=0 is charged to none of the others
--- config
    location /both {
        sliding_limit zone=inherit_zero_wide max=9 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_zero max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /wide {
        sliding_limit zone=inherit_zero_wide max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /both", "GET /wide"]
--- error_code eval
[429, 200]
--- response_headers_like eval
::shows(0 => 0, 9 => 8)
--- no_error_log
[alert]
[error]



=== limits with keys of their own are charged together, too
--- config
    location /both {
        sliding_limit zone=inherit_keys_user max=1 window=60s key=$TEST_NGINX_RUN-$arg_user;
        sliding_limit zone=inherit_keys_all max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
[map { "GET /both?user=$_" } qw(a a b c d)]
--- error_code eval
[200, 429, 200, 200, 429]
--- response_headers_like eval
::shows(1 => 0, 1 => 0, 1 => 0, 1 => 0, 3 => 0)
--- no_error_log
[alert]
[error]



=== of several limits that pass the one with the least remaining is shown
--- config
    location /a {
        sliding_limit zone=inherit_least_1 max=9 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_least_2 max=7 window=600s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_least_3 max=8 window=6s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /b {
        sliding_limit zone=inherit_least_1 max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /a", "GET /b", "GET /b", "GET /b", "GET /a"]
--- error_code eval
[200, 200, 200, 200, 200]
--- response_headers_like eval
::shows(7 => 6, 9 => 7, 9 => 6, 9 => 5, 9 => 4)
--- no_error_log
[alert]
[error]



=== of several limits that refuse the one with the longest wait is shown
--- config
    location /a {
        sliding_limit zone=inherit_wait_1 max=1 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_wait_2 max=1 window=900s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_wait_3 max=1 window=300s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /a", "GET /a"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["X-RateLimit-Remaining: 0", "X-RateLimit-Reset: (8[5-9]\\d|900)\nRetry-After: (8[5-9]\\d|900)"]
--- no_error_log
[alert]
[error]



=== a limit that refuses is shown before one that has less time to go and passes
--- config
    location /a {
        sliding_limit zone=inherit_refuser_1 max=2 window=900s key=$TEST_NGINX_RUN;
        sliding_limit zone=inherit_refuser_2 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /a", "GET /a"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["X-RateLimit-Limit: 1", "X-RateLimit-Limit: 1\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== two locations may allow different maxima of one count
--- config
    location /few {
        sliding_limit zone=inherit_maxima max=2 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /many {
        sliding_limit zone=inherit_maxima max=4 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /many", "GET /few", "GET /few", "GET /many", "GET /few"]
--- error_code eval
[200, 200, 429, 200, 429]
--- response_headers_like eval
::shows(4 => 3, 2 => 0, 2 => 0, 4 => 1, 2 => 0)
--- no_error_log
[alert]
[error]
