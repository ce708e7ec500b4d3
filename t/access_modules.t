use lib 't/lib';
use SlidingLimit::Suite;
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

# user:secret
our $Users = ">>> users\nuser:{PLAIN}secret\n";
our $Password = "Authorization: Basic dXNlcjpzZWNyZXQ=";

# Applications that say yes and no to auth_request.
our $Auth = <<'END';
    location /yes { internal; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app_yes; }
    location /no { internal; proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app_no; }
    location /app_yes { return 204; }
    location /app_no { return 403; }
END

run_tests();

__DATA__

=== satisfy all: a limit that passes does not let in whom "deny" keeps out
--- config
    location /t {
        sliding_limit zone=access_all_deny max=9 window=60s key=$TEST_NGINX_RUN;
        deny all;
        empty_gif;
    }
--- request
GET /t
--- error_code: 403
--- response_headers_like
X-RateLimit-Limit: 9
X-RateLimit-Remaining: 8
Retry-After:
--- error_log
access forbidden by rule
--- no_error_log
[alert]



=== satisfy any: a limit that passes does not let in whom "deny" keeps out
--- config
    location /t {
        satisfy any;
        sliding_limit zone=access_any_deny max=9 window=60s key=$TEST_NGINX_RUN;
        deny all;
        empty_gif;
    }
--- request
GET /t
--- error_code: 403
--- response_headers_like
X-RateLimit-Limit: 9
X-RateLimit-Remaining: 8
Retry-After:
--- error_log
access forbidden by rule
--- no_error_log
[alert]



=== satisfy any: an exempt request is not let in either
--- config
    location /t {
        satisfy any;
        sliding_limit zone=access_any_exempt max=9 window=60s key=$arg_key;
        deny all;
        empty_gif;
    }
--- request
GET /t
--- error_code: 403
--- response_headers_like
X-RateLimit-Limit:
--- no_error_log
[alert]



=== satisfy any: a request that fails open is not let in either
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        satisfy any;
        sliding_limit zone=access_any_open max=9 window=60s key=$TEST_NGINX_RUN;
        deny all;
        empty_gif;
    }
--- request
GET /t
--- error_code: 403
--- response_headers_like
X-RateLimit-Limit: 9
X-RateLimit-Remaining:
--- no_error_log
[alert]



=== satisfy all: "allow" lets in until the limit refuses
--- config
    location /t {
        sliding_limit zone=access_all_allow max=1 window=60s key=$TEST_NGINX_RUN;
        allow all;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["Retry-After:", "Retry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== satisfy any: the limit refuses although "allow" would let in
--- config
    location /t {
        satisfy any;
        sliding_limit zone=access_any_allow max=1 window=60s key=$TEST_NGINX_RUN;
        allow all;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["Retry-After:", "Retry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== satisfy any: "deny" of the store's failure (503) stands although "allow" would let in
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        satisfy any;
        sliding_limit_on_error deny;
        sliding_limit zone=access_any_closed max=9 window=60s key=$TEST_NGINX_RUN;
        allow all;
        empty_gif;
    }
--- request
GET /t
--- error_code: 503
--- response_body_like: ^\{"status":503
--- no_error_log
[alert]



=== auth_basic: without a password 401, with it 200, beyond the limit 429
--- config
    location /t {
        sliding_limit zone=access_basic max=2 window=60s key=$TEST_NGINX_RUN;
        auth_basic "test";
        auth_basic_user_file ../html/users;
        empty_gif;
    }
--- user_files eval: $::Users
--- request eval
["GET /t", "GET /t", "GET /t"]
--- more_headers eval
["", $::Password, $::Password]
--- error_code eval
[401, 200, 429]
--- response_headers_like eval
["WWW-Authenticate: Basic.*\nX-RateLimit-Remaining: 1",
 "WWW-Authenticate:\nX-RateLimit-Remaining: 0",
 "WWW-Authenticate:\nX-RateLimit-Remaining: 0\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== auth_basic: a limit slows down the guessing of passwords
--- config
    location /t {
        sliding_limit zone=access_guess max=2 window=60s key=$TEST_NGINX_RUN;
        auth_basic "test";
        auth_basic_user_file ../html/users;
        empty_gif;
    }
--- user_files eval: $::Users
--- request eval
["GET /t", "GET /t", "GET /t"]
--- more_headers eval
["Authorization: Basic dXNlcjpmb28=", "Authorization: Basic dXNlcjpiYXI=", $::Password]
--- error_code eval
[401, 401, 429]
--- no_error_log
[alert]



=== satisfy any with auth_basic: neither limit nor address lets in without a password
--- config
    location /t {
        satisfy any;
        sliding_limit zone=access_any_basic max=2 window=60s key=$TEST_NGINX_RUN;
        deny all;
        auth_basic "test";
        auth_basic_user_file ../html/users;
        empty_gif;
    }
--- user_files eval: $::Users
--- request eval
["GET /t", "GET /t", "GET /t"]
--- more_headers eval
["", $::Password, $::Password]
--- error_code eval
[401, 200, 429]
--- response_headers_like eval
["WWW-Authenticate: Basic.*\nX-RateLimit-Remaining: 1",
 "WWW-Authenticate:\nX-RateLimit-Remaining: 0",
 "WWW-Authenticate:\nX-RateLimit-Remaining: 0\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]



=== satisfy any with auth_basic: an allowed address needs no password, but the limit holds
--- config
    location /t {
        satisfy any;
        sliding_limit zone=access_any_basic_allow max=1 window=60s key=$TEST_NGINX_RUN;
        allow 127.0.0.1;
        deny all;
        auth_basic "test";
        auth_basic_user_file ../html/users;
        empty_gif;
    }
--- user_files eval: $::Users
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["WWW-Authenticate:", "WWW-Authenticate:\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== auth_request: its yes lets in, the limit refuses the next
--- config eval
$::Auth . <<'END'
    location /t {
        sliding_limit zone=access_request_yes max=1 window=60s key=$TEST_NGINX_RUN;
        auth_request /yes;
        empty_gif;
    }
END
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
["X-RateLimit-Remaining: 0\nRetry-After:", "X-RateLimit-Remaining: 0\nRetry-After: (5[0-9]|60)"]
--- no_error_log
[alert]
[error]



=== auth_request: its no keeps out whom the limit passes
--- config eval
$::Auth . <<'END'
    location /t {
        sliding_limit zone=access_request_no max=9 window=60s key=$TEST_NGINX_RUN;
        auth_request /no;
        empty_gif;
    }
END
--- request
GET /t
--- error_code: 403
--- response_headers_like
X-RateLimit-Remaining: 8
--- no_error_log
[alert]



=== auth_request: a refused request is not asked about
--- config eval
$::Auth . <<'END'
    location /t {
        sliding_limit zone=access_request_spared max=0 window=60s key=$TEST_NGINX_RUN;
        auth_request /yes;
        empty_gif;
    }
END
--- request
GET /t
--- error_code: 429
--- no_error_log
[alert]
[error]
--- no_access_log
/app_yes



=== satisfy any with auth_request: its no keeps out whom the limit passes
--- config eval
$::Auth . <<'END'
    location /t {
        satisfy any;
        sliding_limit zone=access_any_request_no max=9 window=60s key=$TEST_NGINX_RUN;
        deny all;
        auth_request /no;
        empty_gif;
    }
END
--- request
GET /t
--- error_code: 403
--- response_headers_like
X-RateLimit-Remaining: 8
--- no_error_log
[alert]



=== satisfy any with auth_request: its yes lets in past "deny", until the limit refuses
--- config eval
$::Auth . <<'END'
    location /t {
        satisfy any;
        sliding_limit zone=access_any_request_yes max=1 window=60s key=$TEST_NGINX_RUN;
        deny all;
        auth_request /yes;
        empty_gif;
    }
END
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- no_error_log
[alert]



=== limit_req beside a limit keeps its say
--- http_config
    limit_req_zone $server_name zone=req:1m rate=1r/m;
--- config
    location /t {
        sliding_limit zone=access_limit_req max=9 window=60s key=$TEST_NGINX_RUN;
        limit_req zone=req;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 503]
--- response_headers_like eval
["X-RateLimit-Remaining: 8", "X-RateLimit-Remaining:"]
--- no_error_log
[alert]



=== a location that only internal requests may enter stays closed
--- config
    location /t {
        internal;
        sliding_limit zone=access_internal max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- error_code: 404
--- response_headers_like
X-RateLimit-Limit:
--- no_error_log
[alert]
[error]
