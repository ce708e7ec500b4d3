# sliding_limit_body: what a refused client reads.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP;
use SlidingLimit::Servers qw(free_port get request start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $dead = free_port();
my $refuses = 'sliding_limit zone=full max=0 window=60s key=all; empty_gif;';
my $waits = 'sliding_limit zone=login max=1 window=60s key=$arg_k fallback=none; empty_gif;';
my $broken = 'sliding_limit zone=dead max=1 window=60s key=all store=dead; sliding_limit_on_error deny; empty_gif;';

my $nginx = start_nginx(<<"END",
    location /default { $waits }
    location /json { sliding_limit_body json; $waits }
    location /problem { sliding_limit_body problem; $waits }
    location /problems {
        sliding_limit_body problem;
        sliding_limit_status 403;
        sliding_limit zone=login max=1 window=60s key=\$arg_k fallback=none;
        sliding_limit zone=day max=1 window=1d key=\$arg_k fallback=none;
        sliding_limit zone=roomy max=100 window=1d key=\$arg_k fallback=none;
        empty_gif;
    }
    location /text { sliding_limit_body text; $waits }
    location /text_full { sliding_limit_body text; $refuses }
    location /json_down { $broken }
    location /problem_down { sliding_limit_body problem; $broken }
    location /text_down { sliding_limit_body text; $broken }
    location /template_down { sliding_limit_body application/json '{"status":"\$sliding_limit_status"}'; $broken }

    location /seed {
        sliding_limit_body application/json '{"error":{"type":"RateLimitExceeded","message":"Try again in \$sliding_limit_retry_after seconds.","retry_after":\$sliding_limit_retry_after,"limit":\$sliding_limit_limit,"window":\$sliding_limit_window}}';
        $waits
    }
    location /echo/json {
        sliding_limit_body "application/json; charset=utf-8" '{"quoted":"<\${arg_v}>","bare":\$arg_v,"again":"\$decoded"}';
        $refuses
    }
    location /echo/vendor { sliding_limit_body application/vnd.api+json '["\$arg_v",\$decoded]'; $refuses }
    location /echo/long {
        sliding_limit_body application/vnd.a-company-with-a-very-long-name.and-a-product-of-its-own.error.v1+json '["\$decoded"]';
        $refuses
    }
    location /absent { sliding_limit_body text/plain 'nothing: <\$http_x_absent>'; $refuses }
    location /absent_json { sliding_limit_body Application/JSON '["\$http_x_absent",\$http_x_absent]'; $refuses }
    location /echo/html { sliding_limit_body text/html '<p title="\$decoded">\$decoded</p>'; $refuses }
    location /echo/text { sliding_limit_body text/plain '\$decoded'; $refuses }
    location /constant { sliding_limit_body text/css 'p { color: red }'; $refuses }
    location /empty { sliding_limit_body text/plain ''; $refuses }
    location /inherits {
        sliding_limit_body text;
        location /inherits/too { $refuses }
        location /inherits/not { sliding_limit_body json; $refuses }
    }
    location /page {
        sliding_limit_body text;
        error_page 429 /own_page;
        $refuses
    }
    location = /own_page { internal; sliding_limit off; return 429 "my own page"; }
END
    http => 'map $uri $decoded { "~(?s)^/echo/[a-z]+/(?<rest>.*)$" $rest; }'
        . 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;'
        . "sliding_limit_redis redis://127.0.0.1:$dead name=dead;");

# (status, type, body) of a GET
sub answer {
    my ($path) = @_;
    my ($status, $headers, $body) = get($nginx->port, $path);
    is length $body, $headers->{'content-length'}, "$path: as long as announced";
    return ($status, $headers->{'content-type'}, $body);
}

# Uses the limit up first.
sub refused {
    my ($path) = @_;
    get($nginx->port, $path);
    return answer($path);
}

my $json = '{"status":429,"code":"rate_limit:exceeded"}';

subtest 'json, the default' => sub {
    is_deeply [refused("/$_?k=$_")], [429, 'application/json', $json] for qw(default json);
    is_deeply [answer('/json_down')], [503, 'application/json', '{"status":503,"code":"rate_limit:unavailable"}'];
};

subtest 'problem: RFC 9457' => sub {
    my ($status, $type, $body) = refused('/problem?k=problem');
    is_deeply [$status, $type], [429, 'application/problem+json'];
    is_deeply decode_json($body), {
        type => 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title => 'Quota Exceeded',
        status => 429,
        'violated-policies' => ['login'],
    };

    ($status, $type, $body) = refused('/problems?k=problems');
    is_deeply [$status, decode_json($body)->{status}], [403, 403];
    is_deeply decode_json($body)->{'violated-policies'}, ['login', 'day'], 'all that refuse, and no others';

    ($status, $type, $body) = answer('/problem_down');
    is_deeply [$status, $type], [503, 'application/problem+json'];
    is_deeply decode_json($body), {
        type => 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title => 'Temporary Reduced Capacity',
        status => 503,
    };
};

subtest 'text' => sub {
    my ($status, $type, $body) = refused('/text?k=text');
    is_deeply [$status, $type], [429, 'text/plain'];
    like $body, qr/^Too many requests, try again in (5\d|60) seconds\.\n$/;
    is_deeply [answer('/text_full')], [429, 'text/plain', "Too many requests.\n"];
    is_deeply [answer('/text_down')], [503, 'text/plain', "Service unavailable, try again later.\n"];
};

subtest 'a template with variables' => sub {
    my ($status, $type, $body) = refused('/seed?k=seed');
    is_deeply [$status, $type], [429, 'application/json'];
    my $wait = decode_json($body)->{error}{retry_after};
    like $wait, qr/^(5\d|60)$/;
    is $body, qq({"error":{"type":"RateLimitExceeded","message":"Try again in $wait seconds.",)
        . qq("retry_after":$wait,"limit":1,"window":60}});
    is_deeply [answer('/template_down')], [503, 'application/json', '{"status":"FAILED_CLOSED"}'];
    is_deeply [answer('/constant')], [429, 'text/css', 'p { color: red }'];
};

subtest 'an empty template is an empty body' => sub {
    my ($status, $headers, $body) = get($nginx->port, '/empty');
    is_deeply [$status, $body], [429, ''];
};

# Whatever a client sends, the answer stays JSON and says what was sent: what, as
# the client means it, as it sends it, and where no quotes stand around it (if it
# can be sent as an argument, which nginx does not decode).
my $utf8 = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
for my $case (
    ['a number', '42', '42', 42],
    ['a negative fraction', '-1.5', '-1.5', -1.5],
    ['nothing', '', '', undef],
    ['true', 'true', 'true', JSON::PP::true],
    ['a word', 'abc', 'abc', 'abc'],
    ['a number with a leading zero', '007', '007', '007'],
    ['an exponent', '1e999', '1e999', '1e999'],
    ['more JSON', '1,"admin":true', '1,%22admin%22:true'],
    ['quotes and backslashes', '"\\"', '%22%5c%22'],
    ['control characters', join('', map { chr } 1 .. 31, 127), join('', map { sprintf '%%%02x', $_ } 1 .. 31, 127)],
    ['characters beyond ASCII', $utf8, join('', map { sprintf '%%%02x', ord } split //, $utf8)],
    ['bytes that are not UTF-8', "a\xff\xc3(\xed\xa0\x80\xc0\xaf", 'a%ff%c3(%ed%a0%80%c0%af'],
    ['a script', '</script><script>alert(1)</script>', '%3c%2fscript%3e%3cscript%3ealert(1)%3c%2fscript%3e'],
) {
    my ($what, $text, $encoded, $bare) = @$case;

    subtest "in JSON: $what" => sub {
        my ($status, $headers, $body) = get($nginx->port, "/echo/json/$encoded?v=" . ($encoded eq $text ? $text : 'x'));
        is $status, 429;
        my $got = eval { decode_json($body) };
        is $@, '', 'it is JSON' or diag $body;
        my $shown = $text;
        utf8::decode($shown) or $shown = "a\x{fffd}\x{fffd}(\x{fffd}\x{fffd}\x{fffd}\x{fffd}\x{fffd}";
        is $got->{again}, $shown, 'that says what was sent';
        is_deeply [sort keys %$got], [qw(again bare quoted)], 'and nothing more';
        is_deeply $got->{bare}, $bare, 'as a value of its own kind' if $encoded eq $text;
    };
}

subtest 'in JSON where no quotes stand around it' => sub {
    my (undef, undef, $body) = get($nginx->port, '/echo/vendor/1,%22admin%22:true?v=x');
    is_deeply decode_json($body), ['x', '1,"admin":true'], 'it cannot become structure';
};

subtest 'in a type of JSON with a long name, or in capital letters' => sub {
    my (undef, undef, $body) = get($nginx->port, '/echo/long/%22,%22inj%22');
    is_deeply decode_json($body), ['","inj"'];
    is_deeply [answer('/absent_json')], [429, 'Application/JSON', '["",null]'];
};

subtest 'a variable that does not exist' => sub {
    is_deeply [answer('/absent')], [429, 'text/plain', 'nothing: <>'];
};

subtest 'in HTML: markup stays text' => sub {
    my (undef, undef, $body) = get($nginx->port, '/echo/html/%3cb%20onclick=%22x%22%3e&%27');
    is $body, '<p title="&lt;b onclick=&quot;x&quot;&gt;&amp;&#39;">&lt;b onclick=&quot;x&quot;&gt;&amp;&#39;</p>';
};

subtest 'in plain text: as it is' => sub {
    my (undef, undef, $body) = get($nginx->port, '/echo/text/%3cb%3e%22');
    is $body, '<b>"';
};

subtest 'very long values' => sub {
    my $long = '%01' x 2000;
    my ($status, $headers, $body) = request($nginx->port,
        "GET /echo/json/$long?v=x HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    is length decode_json($body)->{again}, 2000;
};

subtest 'inherited, and not' => sub {
    is_deeply [answer('/inherits/too')], [429, 'text/plain', "Too many requests.\n"];
    is_deeply [answer('/inherits/not')], [429, 'application/json', $json];
};

subtest 'an error_page wins over the body' => sub {
    is_deeply [(get($nginx->port, '/page'))[0, 2]], [429, 'my own page'];
};

subtest 'HEAD gets no body' => sub {
    my ($status, $headers, $body) = request($nginx->port,
        "HEAD /echo/json/x?v=1 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    is_deeply [$status, $headers->{'content-type'}, $body], [429, 'application/json; charset=utf-8', ''];
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
