# The same over HTTP/2, with many streams of one connection at once.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(free_port start_redis start_nginx nginx_binary);
use Test::More;

for my $tool (qw(curl nghttp h2load)) {
    plan skip_all => "needs $tool" if system "command -v $tool > /dev/null";
}

my ($minor, $patch) = `@{[ nginx_binary() ]} -v 2>&1` =~ m{nginx/1\.(\d+)\.(\d+)};
my $has_directive = $minor > 25 || $minor == 25 && $patch >= 1;

my $redis = start_redis();
my ($port, $plain) = (free_port(), free_port());
my $listen = $has_directive ? "listen 127.0.0.1:$port; http2 on;" : "listen 127.0.0.1:$port http2;";

my $http = 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . " timeout=10s connect_timeout=10s;\n" . <<"END";
    http2_max_concurrent_streams 256;
    keepalive_requests 100000;
    sliding_limit_log_level info;

    server {
        $listen

        location /limited { sliding_limit zone=h2 max=2 window=60s key=\$arg_k; empty_gif; }
        location /many {
            sliding_limit zone=h2_many max=20 window=60s key=\$arg_k;
            sliding_limit zone=h2_more max=30 window=60s key=\$arg_k;
            empty_gif;
        }
        location /page {
            sliding_limit zone=h2_page max=0 window=60s key=\$arg_k;
            error_page 429 =429 /cacheable;
            empty_gif;
        }
        location /silent {
            sliding_limit zone=h2_silent max=0 window=60s key=\$arg_k;
            sliding_limit_status 444;
            empty_gif;
        }
        location /free { empty_gif; }
        location /cacheable { add_header Cache-Control public always; empty_gif; }
        location /proxied {
            sliding_limit zone=h2_proxied max=2 window=60s key=\$arg_k;
            proxy_pass http://127.0.0.1:$plain;
        }
    }
END

my $nginx = start_nginx('location / { return 200 app; }', port => $plain, http => $http);

# (status, headers, body)
sub h2 {
    my ($path, @options) = @_;

    open my $out, '-|', 'curl', '-sS', '-i', '--max-time', '30', '--http2-prior-knowledge', @options,
        "http://127.0.0.1:$port$path" or die $!;
    my $answer = do { local $/; <$out> } // '';
    close $out;

    my ($head, $body) = split /\r\n\r\n/, $answer, 2;
    return (0, {}, '') unless defined $head && $head =~ m{^HTTP/2 (\d+)};
    my $status = $1;

    my %headers;
    for (split /\r\n/, $head) {
        next unless /^([^:]+):\s*(.*)$/;
        $headers{$1} = defined $headers{$1} ? "$headers{$1}, $2" : $2;
    }

    return ($status, \%headers, $body);
}

# h2load's tally: how many were answered 2xx and 4xx.
sub load {
    my ($path, @options) = @_;

    my $out = `h2load @options 'http://127.0.0.1:$port$path' 2>&1`;
    my ($ok, $refused, $broken) = $out =~ /status codes: (\d+) 2xx, \d+ 3xx, (\d+) 4xx, (\d+) 5xx/
        or diag $out;
    is $broken, 0, 'no 5xx';
    like $out, qr/ 0 errored, 0 timeout/, 'all answered';

    return ($ok, $refused);
}

subtest 'a passed stream has the headers, in lower case and once' => sub {
    my ($status, $headers, $body) = h2('/limited?k=a');
    is $status, 200;
    is $headers->{'x-ratelimit-limit'}, 2;
    is $headers->{'x-ratelimit-remaining'}, 1;
    like $headers->{'x-ratelimit-reset'}, qr/^(5[0-9]|60)$/;
    is $headers->{'retry-after'}, undef;
    like $body, qr/^GIF/;
};

subtest 'a refused stream has the headers and the body' => sub {
    h2('/limited?k=a');
    my ($status, $headers, $body) = h2('/limited?k=a');
    is $status, 429;
    is $headers->{'x-ratelimit-limit'}, 2;
    is $headers->{'x-ratelimit-remaining'}, 0;
    like $headers->{'x-ratelimit-reset'}, qr/^(5[0-9]|60)$/;
    is $headers->{'retry-after'}, $headers->{'x-ratelimit-reset'};
    is $headers->{'content-type'}, 'application/json';
    is $headers->{'cache-control'}, 'no-store';
    is $body, '{"status":429,"code":"rate_limit:exceeded"}';
};

subtest 'a refused HEAD has the headers and no body' => sub {
    my ($status, $headers, $body) = h2('/limited?k=a', '--head');
    is $status, 429;
    is $headers->{'x-ratelimit-remaining'}, 0;
    is $headers->{'cache-control'}, 'no-store';
    is $body, '';
};

subtest 'a proxied answer has the headers' => sub {
    my ($status, $headers, $body) = h2('/proxied?k=a');
    is $status, 200;
    is $headers->{'x-ratelimit-remaining'}, 1;
    is $body, 'app';
};

subtest 'an error_page stands for the refusal' => sub {
    my ($status, $headers, $body) = h2('/page?k=a');
    is $status, 429;
    is $headers->{'x-ratelimit-limit'}, 0;
    is $headers->{'cache-control'}, 'no-store', 'in the place of its own';
    like $body, qr/^GIF/;
};

subtest 'the body of a refused upload is discarded' => sub {
    my $upload = $nginx->dir . '/upload';
    open my $file, '>', $upload or die $!;
    print $file 'x' x 900_000;
    close $file;

    h2('/limited?k=upload') for 1 .. 2;

    # not curl: it takes nginx's early end of an upload for an error
    my $out = `nghttp -v -d $upload 'http://127.0.0.1:$port/limited?k=upload' 2>&1`;
    like $out, qr/:status: 429$/m;
    like $out, qr/^\Q{"status":429,"code":"rate_limit:exceeded"}\E/m;
    is((h2('/free'))[0], 200, 'and others are served');
};

subtest 'status 444 ends the stream without an answer' => sub {
    my ($status) = h2('/silent?k=a', '--stderr', '/dev/null');
    is $status, 0;
    is((h2('/free'))[0], 200, 'and others are served');
};

subtest 'of 200 streams at once on one connection exactly max pass' => sub {
    my ($ok, $refused) = load('/many?k=one', qw(-n 200 -c 1 -m 100));
    is $ok, 20;
    is $refused, 180;
    is $redis->cli('ZCARD', 'rate_limit:h2_many:one'), 20, 'as many are counted';
    is $redis->cli('ZCARD', 'rate_limit:h2_more:one'), 20, 'in the other zone, too';
};

subtest 'of 2000 streams on 20 connections exactly max pass' => sub {
    my ($ok, $refused) = load('/many?k=twenty', qw(-n 2000 -c 20 -m 50));
    is $ok, 20;
    is $refused, 1980;
    is $redis->cli('ZCARD', 'rate_limit:h2_many:twenty'), 20, 'as many are counted';
};

is $nginx->bad_lines, '', 'no alerts in the log';

done_testing;
