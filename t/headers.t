use lib 't/lib';
use SlidingLimit::Suite;
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

# In response_headers_like a name without a value says that the header is not
# there, and one that stands twice matches nothing.
our $Passed = <<'END';
X-RateLimit-Limit: 3
X-RateLimit-Remaining: 2
X-RateLimit-Reset: (5[0-9]|60)
Retry-After:
END

our $None = <<'END';
X-RateLimit-Limit:
X-RateLimit-Remaining:
X-RateLimit-Reset:
Retry-After:
END

# An application that has its own idea of the headers, in its own spelling.
our $App = <<'END';
    location /app {
        add_header X-RateLimit-Limit 999 always;
        add_header x-ratelimit-remaining 998 always;
        add_header X-RATELIMIT-RESET 997 always;
        add_header X-Ratelimit-Reset 996 always;
        add_header X-App here always;

        location /app/ok { return 200 "app\n"; }
        location /app/cacheable { add_header X-RateLimit-Remaining 995; expires 1h; return 200 "app\n"; }
        location /app/missing { return 404 "no\n"; }
        location /app/retry { add_header Retry-After 5; return 200 "app\n"; }
        location /app/busy { add_header Retry-After 7 always; return 503 "busy\n"; }
    }
END

run_tests();

__DATA__

=== a passed request shows limit, remaining and reset
--- config
    location /t {
        sliding_limit zone=headers_pass max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== the request over the limit gets 429, Retry-After equal to Reset, and the body
--- config
    location /t {
        sliding_limit zone=headers_refuse max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- raw_response_headers_like eval
[qr/^X-RateLimit-Remaining: 0\r$/m,
 qr/X-RateLimit-Reset: (5[0-9]|60)\r\nRetry-After: \1\r\n/]
--- response_headers_like eval
["Retry-After:", "X-RateLimit-Remaining: 0
X-RateLimit-Limit: 1
X-RateLimit-Reset: (5[0-9]|60)
Retry-After: (5[0-9]|60)
Content-Type: application/json"]
--- response_body_like eval
[qr/GIF/, qr/^\{"status":429,"code":"rate_limit:exceeded"\}$/]
--- no_error_log
[alert]
[error]



=== remaining counts down to zero and stays there
--- config
    location /t {
        sliding_limit zone=headers_down max=2 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t", "GET /t", "GET /t"]
--- error_code eval
[200, 200, 429, 429]
--- response_headers_like eval
[map { "X-RateLimit-Limit: 2\nX-RateLimit-Remaining: $_\nX-RateLimit-Reset: (5[0-9]|60)" } 1, 0, 0, 0]
--- no_error_log
[alert]
[error]



=== a static file carries the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_static max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
GET /file.txt
--- response_headers_like eval
$::Passed
--- response_body
content
--- no_error_log
[alert]
[error]



=== HEAD carries the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_head max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
HEAD /file.txt
--- response_headers_like eval
$::Passed . "Content-Length: 8"
--- response_body
--- no_error_log
[alert]
[error]



=== 304 carries the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_304 max=3 window=60s key=$TEST_NGINX_RUN;
        if_modified_since before;
    }
--- user_files
>>> file.txt
content
--- request
GET /file.txt
--- more_headers
If-Modified-Since: Thu, 31 Dec 2037 23:59:59 GMT
--- error_code: 304
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== 412, decided in a header filter, carries the headers once
--- config
    location /file.txt {
        sliding_limit zone=headers_412 max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
GET /file.txt
--- more_headers
If-Match: "another"
--- error_code: 412
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== 412 with an error_page carries the headers once
--- config
    location /file.txt {
        sliding_limit zone=headers_412_page max=3 window=60s key=$TEST_NGINX_RUN;
        error_page 412 /page.txt;
    }
--- user_files
>>> file.txt
content
>>> page.txt
page
--- request
GET /file.txt
--- more_headers
If-Match: "another"
--- error_code: 412
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== a range (206) carries the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_206 max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
GET /file.txt
--- more_headers
Range: bytes=0-2
--- error_code: 206
--- response_headers_like eval
$::Passed . "Content-Range: bytes 0-2/8"
--- response_body: con
--- no_error_log
[alert]
[error]



=== several ranges (206, multipart) carry the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_multi max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
GET /file.txt
--- more_headers
Range: bytes=0-1,3-4
--- error_code: 206
--- response_headers_like eval
$::Passed . "Content-Type: multipart/byteranges; .*"
--- no_error_log
[alert]
[error]



=== a range that cannot be satisfied (416) carries the headers once
--- config
    location /file.txt {
        sliding_limit zone=headers_416 max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
GET /file.txt
--- more_headers
Range: bytes=100-200
--- error_code: 416
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== 404 carries the headers
--- config
    location /missing {
        sliding_limit zone=headers_404 max=3 window=60s key=$TEST_NGINX_RUN;
        log_not_found off;
    }
--- request
GET /missing
--- error_code: 404
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== 405 carries the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_405 max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> file.txt
content
--- request
POST /file.txt
body
--- error_code: 405
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== the redirect to a directory (301) carries the headers
--- config
    location /dir {
        sliding_limit zone=headers_301 max=3 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> dir/file.txt
content
--- request
GET /dir
--- error_code: 301
--- response_headers_like eval
$::Passed . "Location: .*/dir/"
--- no_error_log
[alert]
[error]



=== a compressed answer carries the headers
--- config
    location /file.txt {
        sliding_limit zone=headers_gzip max=3 window=60s key=$TEST_NGINX_RUN;
        gzip on;
        gzip_types text/plain;
        gzip_min_length 1;
    }
--- user_files
>>> file.txt
content content content content content
--- request
GET /file.txt
--- more_headers
Accept-Encoding: gzip
--- response_headers_like eval
$::Passed . "Content-Encoding: gzip"
--- no_error_log
[alert]
[error]



=== an HTTP/1.0 client gets the headers
--- config
    location /t {
        sliding_limit zone=headers_10 max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t HTTP/1.0
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== the headers of a proxied application are replaced, however they are spelled
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_proxy max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/ok;
    }
END
--- request
GET /t
--- response_headers_like eval
$::Passed . "X-App: here"
--- raw_response_headers_unlike: 99\d
--- response_body
app
--- no_error_log
[alert]
[error]



=== without limits the headers of a proxied application are its own matter
--- config eval
$::App . <<'END'
    location /t {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/retry;
    }
    location /app/retry {
        add_header X-RateLimit-Limit 999;
        add_header Retry-After 5;
        return 200 "app\n";
    }
END
--- request
GET /t
--- response_headers_like
X-RateLimit-Limit: 999
X-RateLimit-Remaining:
Retry-After: 5
--- no_error_log
[alert]
[error]



=== an error answer of the application carries the headers, replaced
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_proxy404 max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/missing;
    }
END
--- request
GET /t
--- error_code: 404
--- response_headers_like eval
$::Passed . "X-App: here"
--- response_body
no
--- no_error_log
[alert]
[error]



=== an intercepted error answer of the application carries the headers
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_intercept max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/missing;
        proxy_intercept_errors on;
        error_page 404 /page.txt;
    }
END
--- user_files
>>> page.txt
page
--- request
GET /t
--- error_code: 404
--- response_headers_like eval
$::Passed
--- response_body
page
--- no_error_log
[alert]
[error]



=== an application that is not there (502) leaves the headers
--- config
    location /t {
        sliding_limit zone=headers_502 max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_DEAD_PORT;
    }
--- request
GET /t
--- error_code: 502
--- response_headers_like eval
$::Passed
--- error_log
Connection refused
--- no_error_log
[alert]



=== a cached answer carries the numbers of this request, not of the one that filled the cache
--- http_config
    proxy_cache_path html/cache keys_zone=cache:1m;
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_cache max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/cacheable;
        proxy_cache cache;
        add_header X-Cache $upstream_cache_status;
    }
END
--- request eval
["GET /t", "GET /t", "GET /t"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
my @cache = qw(MISS HIT HIT);
[map { "X-Cache: $cache[$_]\nX-RateLimit-Limit: 3\nX-RateLimit-Reset: (5[0-9]|60)\nX-RateLimit-Remaining: " . (2 - $_) } 0 .. 2]
--- no_error_log
[alert]
[error]



=== a request refused before a cached answer gets the refusal
--- http_config
    proxy_cache_path html/cache keys_zone=cache:1m;
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_cache_refuse max=1 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/cacheable;
        proxy_cache cache;
    }
END
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["X-RateLimit-Remaining: 0", "X-RateLimit-Remaining: 0\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== the application's Retry-After on a passed request is left alone
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_retry max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/retry;
    }
END
--- request
GET /t
--- response_headers_like
X-RateLimit-Limit: 3
X-RateLimit-Remaining: 2
Retry-After: 5
--- no_error_log
[alert]
[error]



=== the application's Retry-After on its own 503 is left alone
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_busy max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/busy;
    }
END
--- request
GET /t
--- error_code: 503
--- response_headers_like
X-RateLimit-Limit: 3
X-RateLimit-Remaining: 2
Retry-After: 7
--- response_body
busy
--- no_error_log
[alert]
[error]



=== a Retry-After of the page that stands for a refusal is replaced by the real one
--- config eval
$::App . <<'END'
    location /u {
        sliding_limit zone=headers_retry_page max=1 window=60s key=$TEST_NGINX_RUN;
        error_page 429 /proxied;
        empty_gif;
    }
    location /proxied {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/retry;
    }
END
--- request eval
["GET /u", "GET /u"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["Retry-After:", "Retry-After: (5[0-9]|60)\nX-RateLimit-Remaining: 0"]
--- no_error_log
[alert]
[error]



=== a location without limits has no headers, beside one that has
--- config
    location /limited {
        sliding_limit zone=headers_beside max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /free {
        empty_gif;
    }
--- request eval
["GET /limited", "GET /free", "GET /limited"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
["X-RateLimit-Remaining: 2", $::None, "X-RateLimit-Remaining: 1"]
--- no_error_log
[alert]
[error]



=== sliding_limit_reset epoch gives the time of day; Retry-After stays in seconds
--- config
    sliding_limit_reset epoch;
    location /t {
        sliding_limit zone=headers_epoch max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
my $times = CORE::join '|', map { time + $_ } 59 .. 900;
["X-RateLimit-Reset: ($times)\nRetry-After:", "X-RateLimit-Reset: ($times)\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== sliding_limit_reset delta in a location undoes the epoch of its server
--- config
    sliding_limit_reset epoch;
    location /t {
        sliding_limit zone=headers_delta max=3 window=60s key=$TEST_NGINX_RUN;
        sliding_limit_reset delta;
        empty_gif;
    }
--- request
GET /t
--- response_headers_like eval
$::Passed
--- no_error_log
[alert]
[error]



=== a window below a second resets in one second, never in none
--- config
    location /t {
        sliding_limit zone=headers_short max=3 window=100ms key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- response_headers_like
X-RateLimit-Limit: 3
X-RateLimit-Remaining: 2
X-RateLimit-Reset: 1
--- no_error_log
[alert]
[error]



=== failed open: only the limit itself is known, and shown
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        sliding_limit zone=headers_open max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
[("X-RateLimit-Limit: 3
X-RateLimit-Remaining:
X-RateLimit-Reset:
Retry-After:") x 2]
--- no_error_log
[alert]



=== failed open: the application's remaining and reset do not pass for the limit's
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config eval
$::App . <<'END'
    location /t {
        sliding_limit zone=headers_open_app max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/ok;
    }
END
--- request
GET /t
--- response_headers_like
X-RateLimit-Limit: 3
X-RateLimit-Remaining:
X-RateLimit-Reset:
Retry-After:
--- no_error_log
[alert]



=== failed closed: 503 with only the limit
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        sliding_limit zone=headers_closed max=3 window=60s key=$TEST_NGINX_RUN;
        sliding_limit_on_error deny;
        empty_gif;
    }
--- request
GET /t
--- error_code: 503
--- response_headers_like
X-RateLimit-Limit: 3
X-RateLimit-Remaining:
X-RateLimit-Reset:
Retry-After:
--- no_error_log
[alert]



=== max=0 refuses everything, with nothing remaining and no time to wait for
--- config
    location /t {
        sliding_limit zone=headers_zero max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[429, 429]
--- response_headers_like eval
[("X-RateLimit-Limit: 0
X-RateLimit-Remaining: 0
X-RateLimit-Reset:
Retry-After:") x 2]
--- no_error_log
[alert]
[error]



=== max=0 refuses although Redis is not there
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        sliding_limit zone=headers_zero_dead max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 429
--- response_headers_like
X-RateLimit-Limit: 0
X-RateLimit-Remaining: 0
X-RateLimit-Reset:
Retry-After:
--- no_error_log
[alert]
