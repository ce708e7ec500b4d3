# sliding_limit_body grpc, with a real gRPC client and application: what the
# client makes of a refusal, and what stands in it.

use strict;
use warnings;
use lib 't/lib';

use IPC::Open2 qw(open2);
use JSON::PP qw(decode_json encode_json);
use SlidingLimit::Servers qw(free_port get nginx_binary request start_nginx start_redis);
use Test::More;

plan skip_all => 'needs nghttp' if system 'command -v nghttp > /dev/null';

# "make test" installs it and says where: there it must be
my $packages = $ENV{SLIDING_LIMIT_NPM_DIR} // 'build/npm';

if (!-e "$packages/node_modules/\@grpc/grpc-js/package.json") {
    die "\@grpc/grpc-js is not installed in $packages\n" if defined $ENV{SLIDING_LIMIT_NPM_DIR};
    plan skip_all => "\@grpc/grpc-js is not installed in $packages";
}

chomp($packages = `cd '$packages' && pwd`);

my @services = qw(test.Limited test.Down test.Status test.Silent test.Page test.Dry test.Counted test.Lost);
my $node = open2(my $answers, my $calls, 'node', 't/js/grpc.mjs', $packages, @services);
$calls->autoflush;
chomp(my $application = <$answers> // die 'node failed');

my ($minor, $patch) = `@{[ nginx_binary() ]} -v 2>&1` =~ m{nginx/1\.(\d+)\.(\d+)};
my $has_directive = $minor > 25 || $minor == 25 && $patch >= 1;

my $redis = start_redis();
my ($port, $dead) = (free_port(), free_port());
my $listen = $has_directive ? "listen 127.0.0.1:$port; http2 on;" : "listen 127.0.0.1:$port http2;";

my $locations = <<"END";
    sliding_limit_body grpc;

    location /test.Limited/ {
        sliding_limit zone=limited max=2 window=60s key=\$http_client;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location /test.Down/ {
        sliding_limit zone=down max=2 window=60s key=\$http_client store=dead;
        sliding_limit_on_error deny;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location /test.Status/ {
        sliding_limit zone=status max=0 window=60s key=\$http_client;
        sliding_limit_status 503;
        expires 1h;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location /test.Silent/ {
        sliding_limit zone=silent max=0 window=60s key=\$http_client;
        sliding_limit_status 444;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location /test.Page/ {
        sliding_limit zone=page max=0 window=60s key=\$http_client;
        error_page 429 \@unauthenticated;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location \@unauthenticated {
        default_type application/grpc;
        add_header grpc-status 16 always;
        add_header grpc-message 'log in first' always;
        return 200;
    }
    location /test.Dry/ {
        sliding_limit zone=dry max=0 window=60s key=\$http_client dry_run;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location /test.Counted/ {
        sliding_limit zone=counted max=2 window=60s key=\$http_client count_status=200;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location /test.Lost/ {
        error_page 404 /limited_page;
        return 404;
    }
    location /limited_page {
        sliding_limit zone=lost max=0 window=60s key=\$http_client;
        empty_gif;
    }
    location /test.Trailer/ {
        sliding_limit zone=trailer max=0 window=60s key=\$http_client;
        add_trailer X-T hello always;
        grpc_pass grpc://127.0.0.1:$application;
    }
    location = /limits { sliding_limit_metrics; }
END

my $nginx = start_nginx($locations,
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . " timeout=10s connect_timeout=10s;\n" . <<"END");
    sliding_limit_redis redis://127.0.0.1:$dead name=dead;
    log_format short '\$uri \$status \$sliding_limit_status';
    grpc_connect_timeout 30s;
    grpc_read_timeout 30s;

    server {
        $listen
        access_log logs/access.log short;
        $locations
    }
END

sub call {
    my ($service, $kind, $client) = @_;
    print $calls encode_json({ port => $port, service => "test.$service", kind => $kind, client => $client }), "\n";
    return decode_json(<$answers> // die 'node failed');
}

subtest "$_ calls pass until the limit is used up, then the client gets RESOURCE_EXHAUSTED" => sub {
    my $kind = $_;

    for my $left (1, 0) {
        my $passed = call('Limited', $kind, $kind);
        is "$passed->{code} @{ $passed->{messages} }", 'OK hello';
        is $passed->{metadata}{'x-ratelimit-remaining'}, $left;
        is $passed->{metadata}{'retry-after'}, undef;
    }

    my $refused = call('Limited', $kind, $kind);
    my $wait = $refused->{metadata}{'retry-after'} // 0;
    is $refused->{code}, 'RESOURCE_EXHAUSTED';
    is $refused->{details}, "Too many requests, try again in $wait seconds.";
    like $wait, qr/^(5[0-9]|60)$/;
    is_deeply $refused->{messages}, [];
    is $refused->{metadata}{'x-ratelimit-limit'}, 2;
    is $refused->{metadata}{'x-ratelimit-remaining'}, 0;
    is $refused->{metadata}{'cache-control'}, 'no-store';
} for qw(unary upload download both);

subtest 'a call that is refused for want of an answer gets UNAVAILABLE' => sub {
    my $refused = call('Down', 'unary', 'a');
    is $refused->{code}, 'UNAVAILABLE';
    is $refused->{details}, 'Service unavailable, try again later.';
    is $refused->{metadata}{'retry-after'}, undef;
};

subtest 'sliding_limit_status changes nothing, and the location may expire' => sub {
    my $refused = call('Status', 'unary', 'a');
    is $refused->{code}, 'RESOURCE_EXHAUSTED';
    is $refused->{details}, 'Too many requests.', 'where no waiting helps no time is named';
    is $refused->{metadata}{'cache-control'}, 'no-store';
};

subtest 'but 444 ends the stream without an answer' => sub {
    isnt call('Silent', 'unary', 'a')->{code}, 'RESOURCE_EXHAUSTED';
    unlike `nghttp -v -H 'client: a' http://127.0.0.1:$port/test.Silent/unary 2>&1`, qr/:status/;
};

subtest 'an error_page wins' => sub {
    my $refused = call('Page', 'unary', 'a');
    is $refused->{code}, 'UNAUTHENTICATED';
    is $refused->{details}, 'log in first';
};

subtest 'a dry run refuses no call' => sub {
    is call('Dry', 'both', 'a')->{code}, 'OK';
};

subtest 'a refused call is not counted, though its status is' => sub {
    is join(' ', map { call('Counted', 'unary', 'a')->{code} } 1 .. 4), 'OK OK RESOURCE_EXHAUSTED RESOURCE_EXHAUSTED';
    is $redis->cli('ZCARD', 'rate_limit:counted:a'), 2;
};

# The frames of the answer, as "HEADERS +END_STREAM".
sub frames {
    my ($said) = @_;
    return [map { /recv (HEADERS|DATA) frame <.*?flags=0x(\w+)/ ? $1 . (hex($2) & 1 ? ' +END_STREAM' : '') : () }
        split /\n/, $said];
}

subtest 'an answer is nothing but headers, with END_STREAM on them' => sub {
    for my $method (qw(POST GET HEAD)) {
        my $said = `nghttp -v -H ':method: $method' -H 'client: a' http://127.0.0.1:$port/test.Status/unary 2>&1`;
        is_deeply frames($said), ['HEADERS +END_STREAM'], $method;
        like $said, qr/ :status: 200$/m;
        like $said, qr/ content-type: application\/grpc$/m;
        like $said, qr/ grpc-status: 8$/m;
        like $said, qr/ grpc-message: Too many requests\.$/m;
        like $said, qr/ cache-control: no-store$/m;
        unlike $said, qr/ (?:cache-control: max-age|expires:)/m;
    }
};

subtest 'conditions of the request do not make another status of it' => sub {
    for my $condition ('if-match: "a"', 'if-unmodified-since: Thu, 01 Jan 1970 00:00:00 GMT', 'if-none-match: *') {
        my $said = `nghttp -v -H '$condition' -H 'client: a' http://127.0.0.1:$port/test.Status/unary 2>&1`;
        like $said, qr/ :status: 200$/m, $condition;
        like $said, qr/ grpc-status: 8$/m;
    }
};

subtest 'inside an error page, too, the status is 200' => sub {
    my $said = `nghttp -v -H 'client: a' http://127.0.0.1:$port/test.Lost/unary 2>&1`;
    like $said, qr/ :status: 200$/m;
    like $said, qr/ grpc-status: 8$/m;
};

subtest 'a client of HTTP/1.1 gets the same, and may go on' => sub {
    my $text = "POST /test.Status/unary HTTP/1.1\r\nHost: a\r\nClient: a\r\nContent-Length: 5\r\n";
    my ($status, $headers, $body) = request($nginx->port, "$text\r\nhello${text}Connection: close\r\n\r\nhello");
    is $status, 200;
    is $headers->{'grpc-status'}, 8;
    is $headers->{'content-type'}, 'application/grpc';
    is $headers->{'content-length'}, 0;
    like $body, qr{^HTTP/1\.1 200 .*grpc-status: 8\r\n.*\r\n\r\n$}s, 'twice on one connection';
};

subtest 'also where other modules add something to the end of the answer' => sub {
    my $text = "POST /test.Trailer/unary HTTP/1.1\r\nHost: a\r\nClient: a\r\nContent-Length: 5\r\n";
    my ($status, $headers, $body) = request($nginx->port, "$text\r\nhello${text}Connection: close\r\n\r\nhello");
    is $status, 200;
    is $headers->{'grpc-status'}, 8;
    is $headers->{'transfer-encoding'}, 'chunked';
    like $body, qr{^0\r\nX-T: hello\r\n\r\nHTTP/1\.1 200 .*\r\n\r\n0\r\nX-T: hello\r\n\r\n$}s, 'twice on one connection';

    my $said = `nghttp -v -H 'client: a' http://127.0.0.1:$port/test.Trailer/unary 2>&1`;
    is_deeply frames($said), ['HEADERS +END_STREAM'], 'and with HTTP/2 it is nothing but headers';
};

subtest 'the log shows a 200 that was refused, and the metrics count it as such' => sub {
    open my $log, '<', $nginx->dir . '/logs/access.log' or die $!;
    my @lines = <$log>;
    is scalar(grep { $_ eq "/test.Limited/unary 200 REJECTED\n" } @lines), 1;
    is scalar(grep { $_ eq "/test.Limited/unary 200 PASSED\n" } @lines), 2;
    is scalar(grep { $_ eq "/test.Down/unary 200 FAILED_CLOSED\n" } @lines), 1;

    my (undef, undef, $metrics) = get($nginx->port, '/limits?format=prometheus');
    like $metrics, qr/zone_requests_total\{zone="limited",result="$_->[0]"\} $_->[1]$/m
        for [passed => 8], [rejected => 4];
    like $metrics, qr/zone_requests_total\{zone="down",result="failed_closed"\} 1$/m;
};

close $calls;
waitpid $node, 0;
is $?, 0, 'client and application end as they should';
is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
