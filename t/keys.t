use lib 't/lib';
use SlidingLimit::Suite;
use Digest::SHA ();
use Test::Nginx::Socket 'no_plan';
use SlidingLimit::Blocks;

no_long_string();

our $Run = $ENV{TEST_NGINX_RUN};

# A value in the header X-Key is the key.
our $ByHeader = <<'END';
    large_client_header_buffers 4 16k;
    sliding_limit zone=ZONE max=2 window=10m key=$http_x_key;
    location /t { empty_gif; }
END

sub ::by_header { my ($zone) = @_; return $::ByHeader =~ s/ZONE/$zone/r }
sub ::headers { return [map { "X-Key: $_" } @_] }
sub ::times { my ($n, $what) = @_; return [($what) x $n] }

# Every key of a list is asked for once, and then all of them again: if each has
# a count of its own, the answers show this.
sub ::separate {
    my ($n) = @_;
    return [map { "X-RateLimit-Limit: 2\nX-RateLimit-Remaining: $_" } (1) x $n, (0) x $n];
}

# Parts of a path; decoded, they are what the title of their test says.
our @Paths = map { "/t/$_" } (
    'a', 'A', 'aa', 'a%20', '%20a', 'a%20b', 'a%20%20b', 'ab',
    'a:b', 'a::b', 'a:b:', ':a:b', ':',
    '%7Ba%7D', '%7Ba', 'a%7D', '%7B%7Da', '%7B%7D', '%7Bb%7Da',
    'caf%C3%A9', 'cafe%CC%81', 'caf%E9', '%E2%82%AC', '%F0%9F%90%A2', '%FF%FE', '%80',
    'a%0Ab', 'a%0D%0Ab', 'a%0D', 'a%0A', 'a%0A%0A', '%0Aa', 'a%09b', 'a%01b', 'a%7Fb', 'a%1Bb',
    '%22a%22', '%27a%27', 'a%5Cb', 'a%5Cnb', 'a%5C0b', 'a*', 'a%3F', '%5Ba%5D', '$a', 'a%25b', 'a%2520b',
    '%23a', '%23', 'a%23',
);

# Lengths around that at which a key stops being readable, and far beyond.
our @Long = map { my $n = $_; map { "$Run-" . ('k' x $n) . $_ } 'a', 'b' }
    1, 60, 62, 63, 64, 65, 95, 100, 127, 128, 200, 255, 256, 257, 1000, 8192;

run_tests();

__DATA__

=== the key decides what is counted together
--- config
    location /t {
        sliding_limit zone=keys_plain max=2 window=60s key=$TEST_NGINX_RUN-$arg_k;
        empty_gif;
    }
--- request eval
["GET /t?k=a", "GET /t?k=b", "GET /t?k=a", "GET /t?k=b", "GET /t?k=a", "GET /t?k=c"]
--- error_code eval
[200, 200, 200, 200, 429, 200]
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 1, 1, 0, 0, 0, 1]
--- no_error_log
[alert]
[error]



=== the fallback is the key where the key is empty
--- config
    location /t {
        sliding_limit zone=keys_fallback max=2 window=60s key=$arg_k fallback=$TEST_NGINX_RUN-$arg_f;
        empty_gif;
    }
--- request eval
["GET /t?f=a", "GET /t?f=a&k=", "GET /t?f=b", "GET /t?f=a", "GET /t?f=a&k=$::Run-x", "GET /t?f=b&k=$::Run-x"]
--- error_code eval
[200, 200, 200, 429, 200, 200]
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 1, 0, 1, 0, 1, 0]
--- no_error_log
[alert]
[error]



=== an empty key without a fallback is exempt: not counted, not refused, no headers
--- config
    location /t {
        sliding_limit zone=keys_exempt max=1 window=60s key=$arg_k;
        add_header X-Status $sliding_limit_status always;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t?k=", "GET /t", "GET /t?k=$::Run", "GET /t", "GET /t?k=$::Run"]
--- error_code eval
[200, 200, 200, 200, 200, 429]
--- response_headers_like eval
my $exempt = "X-Status: EXEMPT\nX-RateLimit-Limit:\nX-RateLimit-Remaining:\nX-RateLimit-Reset:\nRetry-After:";
[$exempt, $exempt, $exempt, "X-Status: PASSED\nX-RateLimit-Remaining: 0", $exempt, "X-Status: REJECTED"]
--- no_error_log
[alert]
[error]



=== an empty fallback behind an empty key is exempt, too
--- config
    location /t {
        sliding_limit zone=keys_exempt_both max=1 window=60s key=$arg_k fallback=$arg_f;
        add_header X-Status $sliding_limit_status always;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t?f="]
--- error_code eval
[200, 200]
--- response_headers_like eval
::times(2, "X-Status: EXEMPT\nX-RateLimit-Limit:")
--- no_error_log
[alert]
[error]



=== an exempt request is not even refused by max=0
--- config
    location /t {
        sliding_limit zone=keys_exempt_zero max=0 window=60s key=$arg_k;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t?k=$::Run"]
--- error_code eval
[200, 429]
--- no_error_log
[alert]
[error]



=== of two limits, one exempt, the other is counted and shown
--- config
    location /t {
        sliding_limit zone=keys_exempt_one max=1 window=60s key=$arg_k;
        sliding_limit zone=keys_exempt_other max=9 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t"]
--- error_code eval
[200, 200]
--- response_headers_like eval
["X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 8", "X-RateLimit-Limit: 9\nX-RateLimit-Remaining: 7"]
--- no_error_log
[alert]
[error]



=== spaces, colons, braces, UTF-8, broken UTF-8, newlines, controls, quotes, '#': each key has its own count
--- config
    location /t/ {
        sliding_limit zone=keys_odd max=2 window=10m key=$TEST_NGINX_RUN$uri;
        empty_gif;
    }
--- request eval
[map { "GET $_" } @::Paths, @::Paths]
--- error_code eval
::times(2 * @::Paths, 200)
--- response_headers_like eval
::separate(scalar @::Paths)
--- no_error_log
[alert]
[error]



=== the same with nothing before them, as a client can send them in a header
--- config eval
::by_header('keys_odd_header')
--- request eval
::times(2 * 14, "GET /t")
--- more_headers eval
my @keys = map { s/RUN/$::Run/r }
    '{RUN}', '{RUN}{}', 'RUN', '{}RUN', '#RUN', '##RUN', ':RUN', ':RUN:', '}RUN{', "\xc3\xa9RUN", "\xe9RUN",
    '{RUN', 'rate_limit:keys_odd_header:RUN', '"RUN"';
::headers(@keys, @keys)
--- error_code eval
::times(2 * 14, 200)
--- response_headers_like eval
::separate(14)
--- no_error_log
[alert]
[error]



=== a key that spells the name of another key in Redis has its own count
--- config eval
::by_header('keys_hash')
--- request eval
::times(8, "GET /t")
--- more_headers eval
my $key = "{$::Run}";
my $hash = Digest::SHA::sha256_hex($key);
my @keys = ($key, "#$hash", $hash, '#' . uc $hash);
::headers(@keys, @keys)
--- error_code eval
::times(8, 200)
--- response_headers_like eval
::separate(4)
--- no_error_log
[alert]
[error]



=== keys up to 8 KB that differ in their last letter only have their own counts
--- config eval
::by_header('keys_long')
--- request eval
::times(2 * @::Long, "GET /t")
--- more_headers eval
::headers(@::Long, @::Long)
--- error_code eval
::times(2 * @::Long, 200)
--- response_headers_like eval
::separate(scalar @::Long)
--- no_error_log
[alert]
[error]



=== long keys are refused when their turn comes
--- config eval
::by_header('keys_long_refused')
--- request eval
::times(4, "GET /t")
--- more_headers eval
my $long = 'k' x 8000;
::headers(("$::Run-$long") x 3, "$::Run-${long}k")
--- error_code eval
[200, 200, 429, 200]
--- no_error_log
[alert]
[error]



=== keys with NUL bytes (binary addresses) have their own counts
--- config
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Real-IP;
    location /t {
        sliding_limit zone=keys_nul max=2 window=60s key=$TEST_NGINX_RUN$binary_remote_addr;
        empty_gif;
    }
    location /bare {
        sliding_limit zone=$TEST_NGINX_RUN max=2 window=60s key=$binary_remote_addr;
        empty_gif;
    }
--- request eval
[("GET /t") x 12, ("GET /bare") x 12]
--- more_headers eval
my @addresses = qw(10.0.0.0 10.0.0.1 10.0.1.0 10.1.0.0 0.0.0.10 0.0.0.0);
[map { "X-Real-IP: $_" } (@addresses) x 4]
--- error_code eval
::times(24, 200)
--- response_headers_like eval
[@{ ::separate(6) }, @{ ::separate(6) }]
--- no_error_log
[alert]
[error]



=== a key of text and several variables is what they make together
--- config
    location /t {
        sliding_limit zone=keys_mixed max=2 window=60s key=$TEST_NGINX_RUN:${arg_a}:x$arg_b;
        empty_gif;
    }
--- request eval
["GET /t?a=1&b=2", "GET /t?b=2&a=1", "GET /t?a=1&b=", "GET /t?a=&b=2", "GET /t?a=1:x2"]
--- error_code eval
::times(5, 200)
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 1, 0, 1, 1, 1]
--- no_error_log
[alert]
[error]



=== a key in quotes may have spaces in the configuration
--- config
    location /a {
        sliding_limit zone=keys_quoted max=2 window=60s "key=$TEST_NGINX_RUN a  b";
        empty_gif;
    }
    location /b {
        sliding_limit zone=keys_quoted max=2 window=60s 'key=$TEST_NGINX_RUN a b';
        empty_gif;
    }
--- request eval
["GET /a", "GET /b", "GET /a"]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 1, 1, 0]
--- no_error_log
[alert]
[error]



=== one key in two zones has two counts, and no zone looks like another with a key
--- config
    location /a {
        sliding_limit zone=keys_zone max=2 window=60s key=b:$TEST_NGINX_RUN;
        empty_gif;
    }
    location /b {
        sliding_limit zone=keys_zone.b max=2 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /c {
        sliding_limit zone=keys_zone max=2 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /d {
        sliding_limit zone=keys_zone-b max=2 window=60s key=b:$TEST_NGINX_RUN;
        empty_gif;
    }
    location /e {
        sliding_limit zone=keys_zone max=2 window=60s key=:$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
[map { "GET /$_" } qw(a b c d e), qw(a b c d e)]
--- error_code eval
::times(10, 200)
--- response_headers_like eval
::separate(5)
--- no_error_log
[alert]
[error]



=== zone names are told apart by the case of their letters
--- config
    location /a {
        sliding_limit zone=keys_case max=2 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /b {
        sliding_limit zone=keys_CASE max=2 window=600s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /a", "GET /b", "GET /a", "GET /b"]
--- error_code eval
::times(4, 200)
--- response_headers_like eval
::separate(2)
--- no_error_log
[alert]
[error]



=== two locations with one zone share the count
--- config
    location /a {
        sliding_limit zone=keys_shared max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
    location /b {
        sliding_limit zone=keys_shared max=3 window=1m key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /a", "GET /b", "GET /a", "GET /b", "GET /a"]
--- error_code eval
[200, 200, 200, 429, 429]
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 2, 1, 0, 0, 0]
--- no_error_log
[alert]
[error]



=== two servers with one zone share the count
--- http_config
    server {
        listen $TEST_NGINX_SERVER_PORT;
        server_name other;
        sliding_limit zone=keys_servers max=3 window=60s key=$TEST_NGINX_RUN;
        location / { empty_gif; }
    }
--- config
    location /t {
        sliding_limit zone=keys_servers max=3 window=60s key=$TEST_NGINX_RUN;
        empty_gif;
    }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- more_headers eval
["", "Host: other", ""]
--- error_code eval
[200, 200, 200]
--- response_headers_like eval
[map { "X-RateLimit-Remaining: $_" } 2, 1, 0]
--- no_error_log
[alert]
[error]
