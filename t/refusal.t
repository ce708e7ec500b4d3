use lib 't/lib';
use SlidingLimit::Suite;
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

our $Exceeded = '{"status":429,"code":"rate_limit:exceeded"}';

our $Refused = <<'END';
X-RateLimit-Limit: 1
X-RateLimit-Remaining: 0
X-RateLimit-Reset: (5[0-9]|60)
Retry-After: (5[0-9]|60)
Cache-Control: no-store
END

run_tests();

__DATA__

=== a refusal is 429 with a JSON body of the announced length
--- config
    location /t {
        sliding_limit zone=refusal_body max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["Content-Type: image/gif",
 $::Refused . "Content-Type: application/json\nContent-Length: " . length $::Exceeded]
--- response_body_like eval
["^GIF", "^\Q$::Exceeded\E\$"]
--- no_error_log
[alert]
[error]



=== a refused HEAD gets the headers and no body
--- config
    location /t {
        sliding_limit zone=refusal_head max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
HEAD /t
--- error_code: 429
--- response_headers_like eval
"X-RateLimit-Limit: 0\nContent-Type: application/json\nContent-Length: " . length $::Exceeded
--- response_body
--- no_error_log
[alert]
[error]



=== the log names the zone (1: a request uses the limit up)
--- config
    location /t {
        sliding_limit zone=refusal_log max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- no_error_log
[alert]
[error]
refused by zone



=== the log names the zone (2: the next one is refused), at a level that stock nginx shows
--- log_level: error
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_REDIS_PORT timeout=10s connect_timeout=10s;
--- config
    location /t {
        sliding_limit zone=refusal_log max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- error_log eval
qr/\[error\] .*refused by zone "refusal_log", max 1 in 60000 ms, retry after (5[0-9]|60) s/
--- no_error_log
[alert]
[crit]



=== where there is nothing to wait for, the log does not name a time either
--- config
    location /t {
        sliding_limit zone=refusal_log_zero max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- error_log
refused by zone "refusal_log_zero", max 0
--- no_error_log
[alert]
[error]
retry after



=== sliding_limit_log_level info
--- config
    sliding_limit_log_level info;
    location /t {
        sliding_limit zone=refusal_info max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- error_log eval
qr/\[info\] .*refused by zone "refusal_info"/
--- no_error_log
[alert]
[error]
[warn]



=== sliding_limit_log_level notice
--- config
    location /t {
        sliding_limit_log_level notice;
        sliding_limit zone=refusal_notice max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- error_log eval
qr/\[notice\] .*refused by zone "refusal_notice"/
--- no_error_log
[alert]
[error]
[warn]



=== sliding_limit_log_level error
--- config
    sliding_limit_log_level error;
    location /t {
        sliding_limit zone=refusal_error max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- error_log eval
qr/\[error\] .*refused by zone "refusal_error"/
--- no_error_log
[alert]
[warn]



=== sliding_limit_log_level warn
--- config
    sliding_limit_log_level warn;
    location /t {
        sliding_limit zone=refusal_warn max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- error_log eval
qr/\[warn\] .*refused by zone "refusal_warn"/
--- no_error_log
[alert]
[error]



=== sliding_limit_status 503
--- config
    sliding_limit_status 503;
    location /t {
        sliding_limit zone=refusal_503 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 503]
--- response_headers_like eval
["Retry-After:", $::Refused . "Content-Type: application/json"]
--- response_body_like eval
["^GIF", '^\{"status":503,"code":"rate_limit:exceeded"\}$']
--- no_error_log
[alert]
[error]



=== sliding_limit_status 403
--- config
    location /t {
        sliding_limit_status 403;
        sliding_limit zone=refusal_403 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 403]
--- response_headers_like eval
["Retry-After:", $::Refused]
--- response_body_like eval
["^GIF", '^\{"status":403,"code":"rate_limit:exceeded"\}$']
--- no_error_log
[alert]
[error]



=== sliding_limit_status 403 refuses under "satisfy any" too, though the address is allowed
--- config
    location /t {
        satisfy any;
        allow all;
        sliding_limit_status 403;
        sliding_limit zone=refusal_403_any max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 403]
--- response_headers_like eval
["Retry-After:", $::Refused]
--- response_body_like eval
["^GIF", '^\{"status":403']
--- no_error_log
[alert]
[error]



=== sliding_limit_status 401 asks for no password
--- config
    location /t {
        sliding_limit_status 401;
        sliding_limit zone=refusal_401 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 401]
--- response_headers_like eval
["Retry-After:", $::Refused . "WWW-Authenticate:"]
--- response_body_like eval
["^GIF", '^\{"status":401']
--- no_error_log
[alert]
[error]



=== sliding_limit_status 401 refuses under "satisfy any" too, though the address is allowed
--- config
    location /t {
        satisfy any;
        allow all;
        sliding_limit_status 401;
        sliding_limit zone=refusal_401_any max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 401]
--- response_headers_like eval
["Retry-After:", $::Refused . "WWW-Authenticate:"]
--- no_error_log
[alert]
[error]



=== sliding_limit_status 444 hangs up without a word
--- config
    location /t {
        sliding_limit_status 444;
        sliding_limit zone=refusal_444 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /free {
        empty_gif;
    }
--- request eval
["GET /t", "GET /t", "GET /free"]
--- error_code eval
[200, '', 200]
--- response_body_like eval
["^GIF", '^$', "^GIF"]
--- no_error_log
[alert]
[error]



=== sliding_limit_status 444 hangs up on a request with a body as well
--- config
    location /t {
        sliding_limit_status 444;
        sliding_limit zone=refusal_444_post max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
"POST /t\nhello"
--- error_code eval
''
--- response_body_like: ^$
--- no_error_log
[alert]
[error]



=== each location refuses with its own status
--- config
    sliding_limit zone=refusal_own max=0 window=60s key=$TEST_NGINX_RUN;
    location /a { empty_gif; }
    location /b { sliding_limit_status 503; empty_gif; }
    location /c { sliding_limit_status 599; empty_gif; }
    location /d { sliding_limit_status 400; empty_gif; }
--- request eval
["GET /a", "GET /b", "GET /c", "GET /d"]
--- error_code eval
[429, 503, 599, 400]
--- response_body_like eval
[map { "^\\{\"status\":$_,\"code\":\"rate_limit:exceeded\"\\}\$" } 429, 503, 599, 400]
--- no_error_log
[alert]
[error]



=== an error_page wins over the body, and the headers stand
--- config
    error_page 429 /page.txt;
    location /t {
        sliding_limit zone=refusal_page max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- user_files
>>> page.txt
slow down
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["Retry-After:", $::Refused . "Content-Type: text/plain"]
--- response_body eval
[qr/^GIF/, "slow down\n"]
--- no_error_log
[alert]
[error]



=== an error_page may answer from a named location
--- config
    location /t {
        error_page 429 @slow;
        sliding_limit zone=refusal_named max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location @slow {
        rewrite ^ /page.txt break;
    }
--- user_files
>>> page.txt
slow down
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["Retry-After:", $::Refused]
--- response_body eval
[qr/^GIF/, "slow down\n"]
--- no_error_log
[alert]
[error]



=== an error_page may change the status, and the headers stand
--- config
    location /t {
        error_page 429 =200 /page.txt;
        sliding_limit zone=refusal_to_200 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- user_files
>>> page.txt
slow down
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
["Retry-After:", $::Refused]
--- response_body eval
[qr/^GIF/, "slow down\n"]
--- no_error_log
[alert]
[error]



=== an error_page may send the client elsewhere, and the headers stand
--- config
    location /t {
        error_page 429 http://elsewhere.test/;
        sliding_limit zone=refusal_302 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 302]
--- response_headers_like eval
["Retry-After:", $::Refused . "Location: http://elsewhere.test/"]
--- no_error_log
[alert]
[error]



=== an error_page for another status leaves the body
--- config
    error_page 403 404 500 502 503 504 /page.txt;
    location /t {
        sliding_limit zone=refusal_other_page max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- user_files
>>> page.txt
slow down
--- request
GET /t
--- error_code: 429
--- response_body eval
$::Exceeded
--- no_error_log
[alert]
[error]



=== an error_page that is under the same limit is shown, not refused again
--- config
    error_page 429 /page.txt;
    sliding_limit zone=refusal_page_limited max=1 window=60s key=$TEST_NGINX_RUN;
    location /t {
        empty_gif;
    }
--- user_files
>>> page.txt
slow down
--- request eval
["GET /t", "GET /t", "GET /page.txt"]
--- error_code eval
[200, 429, 429]
--- response_body eval
[qr/^GIF/, "slow down\n", "slow down\n"]
--- no_error_log
[alert]
[error]



=== an error_page that is missing itself ends in its own 404, with the headers
--- config
    log_not_found off;
    error_page 429 /nowhere.txt;
    location /t {
        sliding_limit zone=refusal_no_page max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 404]
--- response_headers_like eval
["Retry-After:", $::Refused]
--- no_error_log
[alert]
[error]



=== an error_page answered by an application gets a POST's body out of the way
--- config
    location /t {
        error_page 429 @app;
        sliding_limit zone=refusal_page_post max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location @app {
        rewrite ^ /app break;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT;
    }
    location /app {
        return 200 "app\n";
    }
    location /free {
        empty_gif;
    }
--- pipelined_requests eval
["POST /t\nbody", "GET /free"]
--- error_code eval
[429, 200]
--- response_body eval
["app\n", qr/^GIF/]
--- no_error_log
[alert]
[error]



=== sliding_limit_status 403 is answered by the error_page for 403
--- config
    location /t {
        sliding_limit_status 403;
        error_page 403 /page.txt;
        satisfy any;
        allow all;
        sliding_limit zone=refusal_page_403 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- user_files
>>> page.txt
forbidden
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 403]
--- response_headers_like eval
["Retry-After:", $::Refused]
--- response_body eval
[qr/^GIF/, "forbidden\n"]
--- no_error_log
[alert]
[error]



=== without a store "deny" refuses with 503, whatever the status of a refusal
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        sliding_limit_on_error deny;
        sliding_limit_status 403;
        sliding_limit zone=refusal_closed max=5 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 503
--- response_headers
Content-Type: application/json
--- response_body_like: ^\{"status":503,"code":"[a-z_:]+"\}$
--- no_error_log
[alert]
refused by zone



=== without a store "deny" is answered by the error_page for 503
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        sliding_limit_on_error deny;
        error_page 503 /page.txt;
        error_page 429 /wrong.txt;
        sliding_limit zone=refusal_closed_page max=5 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- user_files
>>> page.txt
back soon
>>> wrong.txt
wrong
--- request
GET /t
--- error_code: 503
--- response_body
back soon
--- no_error_log
[alert]



=== a small body of a refused POST is discarded, and the connection goes on
--- config
    location /t {
        sliding_limit zone=refusal_post max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /free {
        empty_gif;
    }
--- pipelined_requests eval
["POST /t\nhello", "GET /free"]
--- error_code eval
[429, 200]
--- response_headers eval
["Connection: keep-alive", "Connection: close"]
--- response_body eval
[$::Exceeded, qr/^GIF/]
--- no_error_log
[alert]
[error]



=== a large body of a refused POST is discarded, and the connection goes on
--- config
    location /t {
        sliding_limit zone=refusal_large max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /free {
        empty_gif;
    }
--- pipelined_requests eval
my $body = "x" x 2_000_000;
["GET /t", "POST /t\n$body", "GET /free"]
--- error_code eval
[200, 429, 200]
--- response_body eval
[qr/^GIF/, $::Exceeded, qr/^GIF/]
--- no_error_log
[alert]
[error]



=== a chunked body of a refused POST is discarded, and the connection goes on
--- config
    location /t {
        sliding_limit zone=refusal_chunked max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /free {
        empty_gif;
    }
--- pipelined_requests eval
my $chunk = CORE::join '', map { "186a0\r\n" . ('x' x 100_000) . "\r\n" } 1 .. 3;
["GET /t", "POST /t\n5\r\nhello\r\n${chunk}0\r\n\r\n", "GET /free"]
--- more_headers eval
["", "Transfer-Encoding: chunked", ""]
--- error_code eval
[200, 429, 200]
--- response_body eval
[qr/^GIF/, $::Exceeded, qr/^GIF/]
--- no_error_log
[alert]
[error]



=== refusals can be pipelined
--- config
    location /t {
        sliding_limit zone=refusal_pipeline max=2 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- pipelined_requests eval
["GET /t", "GET /t", "GET /t", "GET /t", "GET /t"]
--- error_code eval
[200, 200, 429, 429, 429]
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 1, 0, 0, 0, 0]
--- no_error_log
[alert]
[error]



=== a refusal inside the page for another error has its own status
--- config
    error_page 404 /missing;
    location = /missing {
        sliding_limit zone=refusal_inside max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /not-there
--- error_code: 429
--- response_body eval
$::Exceeded
--- no_error_log
[alert]
