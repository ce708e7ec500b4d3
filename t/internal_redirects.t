use lib 't/lib';
use SlidingLimit::Suite;
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

# What two requests, one after the other, show if each is counted once.
our $CountedOnce = [map { "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: $_" } 8, 7];

run_tests();

__DATA__

=== error_page: a request is counted once
--- config
    log_not_found off;
    sliding_limit zone=redirect_error_page max=9 window=60s key=$TEST_NGINX_RUN;
    error_page 404 /page.txt;
--- user_files
>>> page.txt
page
--- request eval
["GET /missing", "GET /missing"]
--- error_code eval
[404, 404]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["page\n", "page\n"]
--- no_error_log
[alert]
[error]



=== error_page to a named location: a request is counted once
--- config
    log_not_found off;
    sliding_limit zone=redirect_named max=9 window=60s key=$TEST_NGINX_RUN;
    error_page 404 = @page;
    location @page {
        rewrite ^ /page.txt break;
    }
--- user_files
>>> page.txt
page
--- request eval
["GET /missing", "GET /missing"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["page\n", "page\n"]
--- no_error_log
[alert]
[error]



=== try_files with a file: a request is counted once
--- config
    location /t {
        sliding_limit zone=redirect_try_file max=9 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere.txt /file.txt =404;
    }
--- user_files
>>> file.txt
file
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["file\n", "file\n"]
--- no_error_log
[alert]
[error]



=== try_files with a URI: a request is counted once
--- config
    sliding_limit zone=redirect_try_uri max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        try_files $uri /other;
    }
    location /other {
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- no_error_log
[alert]
[error]



=== try_files with a named location: a request is counted once
--- config
    sliding_limit zone=redirect_try_named max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        try_files $uri @app;
    }
    location @app {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT;
        proxy_set_header Host app;
    }
--- http_config
    server {
        listen $TEST_NGINX_SERVER_PORT;
        server_name app;
        location / { return 200 "app\n"; }
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["app\n", "app\n"]
--- no_error_log
[alert]
[error]



=== index: a request is counted once
--- config
    location /dir/ {
        sliding_limit zone=redirect_index max=9 window=60s key=$TEST_NGINX_RUN;
        index nowhere.html index.txt;
    }
--- user_files
>>> dir/index.txt
index
--- request eval
["GET /dir/", "GET /dir/"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["index\n", "index\n"]
--- no_error_log
[alert]
[error]



=== X-Accel-Redirect: a request is counted once
--- config
    sliding_limit zone=redirect_accel max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app;
    }
    location /app {
        sliding_limit off;
        add_header X-Accel-Redirect /internal/file.txt;
        return 200 "app\n";
    }
    location /internal/ {
        internal;
    }
--- user_files
>>> internal/file.txt
file
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["file\n", "file\n"]
--- no_error_log
[alert]
[error]



=== X-Accel-Redirect to a named location: a request is counted once
--- config
    sliding_limit zone=redirect_accel_named max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app;
    }
    location /app {
        sliding_limit off;
        add_header X-Accel-Redirect @named;
        return 200 "app\n";
    }
    location @named {
        rewrite ^ /file.txt break;
    }
--- user_files
>>> file.txt
file
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["file\n", "file\n"]
--- no_error_log
[alert]
[error]



=== rewrite ... last: a request is counted once, where it arrives
--- config
    location /t {
        sliding_limit zone=redirect_rewrite_from max=5 window=60s key=$TEST_NGINX_RUN;
        rewrite ^ /other last;
    }
    location /other {
        sliding_limit zone=redirect_rewrite_to max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- no_error_log
[alert]
[error]



=== several redirects one after the other: a request is counted once
--- config
    log_not_found off;
    sliding_limit zone=redirect_chain max=9 window=60s key=$TEST_NGINX_RUN;
    recursive_error_pages on;
    location /t {
        try_files $uri @first;
    }
    location @first {
        error_page 404 /second/;
    }
    location /second/ {
        index index.txt;
        error_page 404 = /third.txt;
    }
--- user_files
>>> second/index.txt
end of the chain
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[404, 404]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
["end of the chain\n", "end of the chain\n"]
--- no_error_log
[alert]
[error]



=== a redirect into a location with another zone counts there too
--- config
    location /t {
        sliding_limit zone=redirect_two_a max=9 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere /b;
    }
    location /a {
        sliding_limit zone=redirect_two_a max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /b {
        sliding_limit zone=redirect_two_b max=4 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /a", "GET /b"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
["X-RateLimit-Limit: 4\nX-RateLimit-Remaining: 3",
 "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 7",
 "X-RateLimit-Limit: 4\nX-RateLimit-Remaining: 2"]
--- no_error_log
[alert]
[error]



=== after a redirect into another zone the limit with the least remaining is shown
--- config
    location /t {
        sliding_limit zone=redirect_least_a max=4 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere /b;
    }
    location /b {
        sliding_limit zone=redirect_least_b max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /b"]
--- error_code eval
[200, 200]
--- response_headers_like eval
["X-RateLimit-Limit: 4\nX-RateLimit-Remaining: 3",
 "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 7"]
--- no_error_log
[alert]
[error]



=== a redirect that shares one of two zones counts the other only
--- config
    location /t {
        sliding_limit zone=redirect_share_a max=9 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere /b;
    }
    location /b {
        sliding_limit zone=redirect_share_a max=9 window=60s key=$TEST_NGINX_RUN;
        sliding_limit zone=redirect_share_b max=20 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /a {
        sliding_limit zone=redirect_share_a max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /only_b {
        sliding_limit zone=redirect_share_b max=20 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /a", "GET /only_b"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
["X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 8",
 "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 7",
 "X-RateLimit-Limit: 20\nX-RateLimit-Remaining: 18"]
--- no_error_log
[alert]
[error]



=== the zone a redirect leads to can refuse
--- config
    location /t {
        sliding_limit zone=redirect_refuse_a max=9 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere /b;
    }
    location /b {
        sliding_limit zone=redirect_refuse_b max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["X-RateLimit-Limit: 1\nX-RateLimit-Remaining: 0\nRetry-After:",
 "X-RateLimit-Limit: 1\nX-RateLimit-Remaining: 0\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== a redirect from a location without limits counts where it leads
--- config
    location /t {
        try_files /nowhere /b;
    }
    location /b {
        sliding_limit zone=redirect_into max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- no_error_log
[alert]
[error]



=== a redirect into a location without limits keeps the headers
--- config
    location /t {
        sliding_limit zone=redirect_out max=9 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere /b;
    }
    location /b {
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- no_error_log
[alert]
[error]



=== a refusal's error_page in another zone charges that zone nothing
--- config
    location /t {
        sliding_limit zone=redirect_own_page_a max=0 window=60s key=$TEST_NGINX_RUN;
        error_page 429 /b;
        empty_gif;
    }
    location /b {
        sliding_limit zone=redirect_own_page_b max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /b"]
--- error_code eval
[429, 200]
--- response_headers_like eval
["X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0",
 "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 8"]
--- no_error_log
[alert]
[error]



=== the subrequests of addition are not counted
--- config
    sliding_limit zone=redirect_addition max=9 window=60s key=$TEST_NGINX_RUN;
    location /t.txt {
        addition_types text/plain;
        add_before_body /before.txt;
        add_after_body /after.txt;
    }
--- user_files
>>> t.txt
text
>>> before.txt
before
>>> after.txt
after
--- request eval
["GET /t.txt", "GET /t.txt"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
[("before\ntext\nafter\n") x 2]
--- no_error_log
[alert]
[error]



=== subrequests are not counted in a zone of their own location either
--- config
    location /t.txt {
        sliding_limit zone=redirect_sub_main max=9 window=60s key=$TEST_NGINX_RUN;
        addition_types text/plain;
        add_after_body /after.txt;
    }
    location /after.txt {
        sliding_limit zone=redirect_sub_own max=1 window=60s key=$TEST_NGINX_RUN;
    }
--- user_files
>>> t.txt
text
>>> after.txt
after
--- request eval
["GET /t.txt", "GET /t.txt", "GET /after.txt"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
[@$::CountedOnce, "X-RateLimit-Limit: 1\nX-RateLimit-Remaining: 0"]
--- response_body eval
["text\nafter\n", "text\nafter\n", "after\n"]
--- no_error_log
[alert]
[error]



=== the subrequests of SSI are not counted
--- config
    sliding_limit zone=redirect_ssi max=9 window=60s key=$TEST_NGINX_RUN;
    location /t.html {
        default_type text/html;
        ssi on;
    }
--- user_files
>>> t.html
<!--#include virtual="/one.txt" --><!--#include virtual="/one.txt?2" wait="yes" -->end
>>> one.txt
one
--- request eval
["GET /t.html", "GET /t.html"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
[("one\none\nend\n") x 2]
--- no_error_log
[alert]
[error]



=== the subrequest of auth_request is not counted
--- config
    sliding_limit zone=redirect_auth max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        auth_request /auth;
        empty_gif;
    }
    location /auth {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app;
    }
    location /app {
        return 204;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- no_error_log
[alert]
[error]



=== a request whose subrequest is redirected is counted once
--- config
    log_not_found off;
    sliding_limit zone=redirect_sub_page max=9 window=60s key=$TEST_NGINX_RUN;
    location /t.txt {
        addition_types text/plain;
        add_after_body /missing;
    }
    location /missing {
        error_page 404 = /after.txt;
    }
--- user_files
>>> t.txt
text
>>> after.txt
after
--- request eval
["GET /t.txt", "GET /t.txt"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
[("text\nafter\n") x 2]
--- no_error_log
[alert]
[error]



=== a body filter's slices (range subrequests) are not counted
--- config
    sliding_limit zone=redirect_slice max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        slice 4;
        proxy_set_header Range $slice_range;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app/file.txt;
    }
    location /app/ {
        sliding_limit off;
    }
--- user_files
>>> app/file.txt
0123456789
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- response_body eval
[("0123456789\n") x 2]
--- no_error_log
[alert]
[error]



=== mirrored requests are not counted
--- config
    sliding_limit zone=redirect_mirror max=9 window=60s key=$TEST_NGINX_RUN;
    location /t {
        mirror /mirror;
        empty_gif;
    }
    location /mirror {
        internal;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app;
    }
    location /app {
        return 204;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
$::CountedOnce
--- no_error_log
[alert]
[error]
