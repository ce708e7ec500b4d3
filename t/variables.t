use lib 't/lib';
use SlidingLimit::Suite;
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

# All of them in one line of the access log.
our $Format = <<'END';
    log_format limit "status=[$sliding_limit_status] zone=[$sliding_limit_zone] limit=[$sliding_limit_limit] "
                     "remaining=[$sliding_limit_remaining] reset=[$sliding_limit_reset] "
                     "retry_after=[$sliding_limit_retry_after] window=[$sliding_limit_window] "
                     "time=[$sliding_limit_time] id=[$sliding_limit_id]";
END

our $Log = "    access_log logs/access.log limit;\n";

our $Id = qr/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;
our $Seconds = qr/\d+\.\d{3,6}/;

# A pattern for such a line: of what is not named nothing is there, as nginx logs it.
sub ::logged {
    my (%expected) = (id => $Id, map { ($_ => '-') } qw(status zone limit remaining reset retry_after window time));
    my (%given) = @_;
    $expected{$_} = $given{$_} for keys %given;
    my $line = CORE::join ' ', map { "$_=\\[$expected{$_}\\]" }
        qw(status zone limit remaining reset retry_after window time id);

    return qr/^$line$/;
}

# Each of them in a header.
our $Headers = <<'END';
    add_header V-Status "[$sliding_limit_status]" always;
    add_header V-Zone "[$sliding_limit_zone]" always;
    add_header V-Limit "[$sliding_limit_limit]" always;
    add_header V-Remaining "[$sliding_limit_remaining]" always;
    add_header V-Reset "[$sliding_limit_reset]" always;
    add_header V-Retry-After "[$sliding_limit_retry_after]" always;
    add_header V-Window "[$sliding_limit_window]" always;
END

run_tests();

__DATA__

=== PASSED: everything but retry_after, in the access log
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_passed max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request
GET /t
--- access_log eval
::logged(status => 'PASSED', zone => 'variables_passed', limit => 3, remaining => 2, reset => '(5[0-9]|60)',
    window => 60, time => $::Seconds)
--- no_error_log
[alert]
[error]



=== PASSED, then REJECTED, in headers
--- config eval
$::Headers . <<'END'
    location /t {
        sliding_limit zone=variables_headers max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
my $both = <<'END';
V-Zone: \[variables_headers\]
V-Limit: \[1\]
V-Remaining: \[0\]
V-Reset: \[(5[0-9]|60)\]
V-Window: \[60\]
END
["V-Status: \\[PASSED\\]\nV-Retry-After: \\[\\]\n$both",
 "V-Status: \\[REJECTED\\]\nV-Retry-After: \\[(5[0-9]|60)\\]\n$both"]
--- no_error_log
[alert]
[error]



=== REJECTED in the access log (1: a request uses the limit up)
--- config
    location /t {
        sliding_limit zone=variables_rejected max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request
GET /t
--- response_headers
X-RateLimit-Remaining: 0
--- no_error_log
[alert]
[error]



=== REJECTED in the access log (2: the next one has everything, retry_after too)
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_rejected max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request
GET /t
--- error_code: 429
--- access_log eval
::logged(status => 'REJECTED', zone => 'variables_rejected', limit => 1, remaining => 0, reset => '(5[0-9]|60)',
    retry_after => '(5[0-9]|60)', window => 60, time => $::Seconds)
--- no_error_log
[alert]
[error]



=== REJECTED by max=0: there is no time to wait for
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_zero max=0 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request
GET /t
--- error_code: 429
--- access_log eval
::logged(status => 'REJECTED', zone => 'variables_zero', limit => 0, remaining => 0, window => 60,
    time => "(?:$::Seconds|-)")
--- no_error_log
[alert]
[error]



=== REJECTED with an error_page: the page's request still knows
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_page max=0 window=60s key=$TEST_NGINX_RUN;
        error_page 429 =200 /page.txt;
        empty_gif;
    }
END
--- user_files
>>> page.txt
page
--- request
GET /t
--- access_log eval
::logged(status => 'REJECTED', zone => 'variables_page', limit => 0, remaining => 0, window => 60,
    time => "(?:$::Seconds|-)")
--- no_error_log
[alert]
[error]



=== EXEMPT: nothing but the status
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_exempt max=3 window=60s key=$arg_k;
        empty_gif;
    }
END
--- request
GET /t
--- access_log eval
::logged(status => 'EXEMPT')
--- no_error_log
[alert]
[error]



=== FAILED_OPEN: the limit, but none of the numbers nobody knows
--- http_config eval
$::Format . 'sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;'
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_open max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request
GET /t
--- access_log eval
::logged(status => 'FAILED_OPEN', zone => 'variables_open', limit => 3, window => 60, time => $::Seconds)
--- no_error_log
[alert]



=== FAILED_CLOSED: the same
--- http_config eval
$::Format . 'sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;'
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit_on_error deny;
        sliding_limit zone=variables_closed max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request
GET /t
--- error_code: 503
--- access_log eval
::logged(status => 'FAILED_CLOSED', zone => 'variables_closed', limit => 3, window => 60, time => $::Seconds)
--- no_error_log
[alert]



=== no limit: nothing but the id
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        empty_gif;
    }
END
--- request
GET /t
--- access_log eval
::logged()
--- no_error_log
[alert]
[error]



=== a request that ends before its limit is asked (return): nothing but the id
--- http_config eval: $::Format
--- config eval
$::Log . <<'END'
    location /t {
        sliding_limit zone=variables_return max=3 window=60s key=$TEST_NGINX_RUN;
        return 204;
    }
END
--- request
GET /t
--- error_code: 204
--- access_log eval
::logged()
--- no_error_log
[alert]
[error]



=== before the check nothing is known but the id, and asking changes nothing
--- config
    location /t {
        set $before "[$sliding_limit_status$sliding_limit_zone$sliding_limit_limit$sliding_limit_remaining]";
        set $id $sliding_limit_id;
        sliding_limit zone=variables_before max=3 window=60s key=$TEST_NGINX_RUN;
        add_header X-Before $before;
        add_header X-After "[$sliding_limit_status]";
        add_header X-Ids "$id $sliding_limit_id $sliding_limit_id";
        empty_gif;
    }
--- request
GET /t
--- response_headers_like eval
"X-Before: \\[\\]
X-After: \\[PASSED\\]
X-Ids: ($::Id) \\1 \\1
X-RateLimit-Remaining: 2"
--- no_error_log
[alert]
[error]



=== an internal redirect keeps the variables and the id
--- config
    set $id $sliding_limit_id;
    location /t {
        sliding_limit zone=variables_redirect max=3 window=60s key=$TEST_NGINX_RUN;
        try_files /nowhere /other;
    }
    location /other {
        add_header X-Zone $sliding_limit_zone;
        add_header X-Ids "$id $sliding_limit_id";
        empty_gif;
    }
--- request
GET /t
--- response_headers_like eval
"X-Zone: variables_redirect\nX-Ids: ($::Id) \\1"
--- no_error_log
[alert]
[error]



=== the application can be told
--- config
    location /t {
        sliding_limit zone=variables_app max=3 window=60s key=$TEST_NGINX_RUN;
        proxy_set_header X-Limit "$sliding_limit_status $sliding_limit_zone $sliding_limit_remaining";
        proxy_set_header X-Id $sliding_limit_id;
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app;
    }
    location /app {
        return 200 "$http_x_limit $http_x_id\n";
    }
--- request
GET /t
--- response_body_like eval
"^PASSED variables_app 2 $::Id\n\$"
--- no_error_log
[alert]
[error]



=== a subrequest sees the variables of its request
--- config
    location /t.txt {
        sliding_limit zone=variables_sub max=3 window=60s key=$TEST_NGINX_RUN;
        addition_types text/plain;
        add_after_body /after;
    }
    location /after {
        proxy_set_header X-Limit "$sliding_limit_status $sliding_limit_zone $sliding_limit_remaining";
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/app;
    }
    location /app {
        return 200 "$http_x_limit\n";
    }
--- user_files
>>> t.txt
text
--- request
GET /t.txt
--- response_body
text
PASSED variables_sub 2
--- no_error_log
[alert]
[error]



=== windows that are not whole seconds are shown with three decimals
--- config
    add_header X-Window $sliding_limit_window;
    location /a { sliding_limit zone=variables_500ms max=3 window=500ms key=$TEST_NGINX_RUN; empty_gif; }
    location /b { sliding_limit zone=variables_1050ms max=3 window=1s50ms key=$TEST_NGINX_RUN; empty_gif; }
    location /c { sliding_limit zone=variables_1s max=3 window=1s key=$TEST_NGINX_RUN; empty_gif; }
    location /d { sliding_limit zone=variables_31d max=3 window=31d key=$TEST_NGINX_RUN; empty_gif; }
    location /e { sliding_limit zone=variables_90s max=3 window=1m30s key=$TEST_NGINX_RUN; empty_gif; }
--- request eval
["GET /a", "GET /b", "GET /c", "GET /d", "GET /e"]
--- error_code eval
[200, 200, 200, 200, 200]
--- response_headers eval
["X-Window: 0.500", "X-Window: 1.050", "X-Window: 1", "X-Window: 2678400", "X-Window: 90"]
--- no_error_log
[alert]
[error]



=== sliding_limit_reset epoch holds for the variable, not for retry_after
--- config eval
$::Headers . <<'END'
    sliding_limit_reset epoch;
    location /t {
        sliding_limit zone=variables_epoch max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
my $times = CORE::join '|', map { time + $_ } 59 .. 900;
["V-Reset: \\[($times)\\]\nV-Retry-After: \\[\\]", "V-Reset: \\[($times)\\]\nV-Retry-After: \\[(5[0-9]|60)\\]"]
--- no_error_log
[alert]
[error]



=== of several limits the variables show the one the headers show
--- config eval
$::Headers . <<'END'
    location /t {
        sliding_limit zone=variables_several_1 max=5 window=30s key=$TEST_NGINX_RUN;
        sliding_limit zone=variables_several_2 max=1 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
END
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 429]
--- response_headers_like eval
[("V-Zone: \\[variables_several_2\\]\nV-Limit: \\[1\\]\nV-Window: \\[60\\]\nX-RateLimit-Limit: 1") x 2]
--- no_error_log
[alert]
[error]



=== $sliding_limit_key is what was counted, with text and variables in it, when it is refused, too
--- config
    location /t {
        sliding_limit zone=variables_key max=1 window=60s key=$TEST_NGINX_RUN:$arg_k;
        add_header V-Key "[$sliding_limit_key]" always;
        empty_gif;
    }
--- request eval
["GET /t?k=a%20b", "GET /t?k=a%20b", "GET /t?k=c"]
--- error_code eval
[200, 429, 200]
--- response_headers eval
["V-Key: [$ENV{TEST_NGINX_RUN}:a%20b]", "V-Key: [$ENV{TEST_NGINX_RUN}:a%20b]", "V-Key: [$ENV{TEST_NGINX_RUN}:c]"]
--- no_error_log
[alert]
[error]



=== $sliding_limit_key is the fallback where the key is empty
--- config
    location /t {
        sliding_limit zone=variables_fallback max=9 window=60s key=$cookie_id fallback=$TEST_NGINX_RUN-$remote_addr;
        add_header V-Key "[$sliding_limit_key]" always;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- more_headers eval
["", "Cookie: id=mine"]
--- response_headers eval
["V-Key: [$ENV{TEST_NGINX_RUN}-127.0.0.1]", "V-Key: [mine]"]
--- no_error_log
[alert]
[error]



=== $sliding_limit_key of several limits is that of the one shown
--- config
    location /t {
        sliding_limit zone=variables_key_wide max=9 window=60s key=wide-$TEST_NGINX_RUN;
        sliding_limit zone=variables_key_narrow max=2 window=60s key=narrow-$TEST_NGINX_RUN;
        add_header V-Zone $sliding_limit_zone always;
        add_header V-Key "[$sliding_limit_key]" always;
        empty_gif;
    }
--- request
GET /t
--- response_headers eval
"V-Zone: variables_key_narrow\nV-Key: [narrow-$ENV{TEST_NGINX_RUN}]"
--- no_error_log
[alert]
[error]



=== $sliding_limit_key is known where the store is not: the limit is shown
--- http_config
    sliding_limit_redis redis://127.0.0.1:$TEST_NGINX_DEAD_PORT;
--- config
    location /t {
        sliding_limit zone=variables_key_down max=9 window=60s key=$TEST_NGINX_RUN;
        add_header V-Status $sliding_limit_status always;
        add_header V-Key "[$sliding_limit_key]" always;
        empty_gif;
    }
--- request
GET /t
--- response_headers eval
"V-Status: FAILED_OPEN\nV-Key: [$ENV{TEST_NGINX_RUN}]"
--- no_error_log
[alert]



=== $sliding_limit_key is empty where no limit is shown
--- config
    add_header V-Key "[$sliding_limit_key]" always;
    location /exempt {
        sliding_limit zone=variables_key_exempt max=9 window=60s key=$arg_nobody;
        empty_gif;
    }
    location /none {
        empty_gif;
    }
--- request eval
["GET /exempt", "GET /none"]
--- response_headers eval
["V-Key: []", "V-Key: []"]
--- no_error_log
[alert]
[error]



=== a binary $sliding_limit_key is whole in the log, escaped as nginx does
--- http_config
    log_format key "key=[$sliding_limit_key]";
--- config
    access_log logs/access.log key;
    location ~ ^/t/(?<rest>.*)$ {
        sliding_limit zone=variables_key_odd max=9 window=60s key=$TEST_NGINX_RUN$rest;
        empty_gif;
    }
--- request
GET /t/%01%22%7fend
--- access_log eval
qr/^key=\[run[-0-9a-f]+\\x01\\x22\\x7Fend\]$/
--- no_error_log
[alert]
[error]
