# What one client is refused with is not handed to another by a cache.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(begin_request free_port start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $dead = free_port();
my $app = free_port();

# Every client named "guilty" is over its limit, or has no store; others are not.
my $nginx = start_nginx(<<"END",
    sliding_limit zone=site max=\$max window=60s key=\$http_client;

    location /plain { empty_gif; }
    location /teapot { sliding_limit_status 418; empty_gif; }
    location /problem { sliding_limit_body problem; empty_gif; }
    location /template { sliding_limit_body text/plain 'no, \$sliding_limit_zone'; empty_gif; }

    location /down {
        sliding_limit zone=down max=9 window=60s key=\$http_client if=\$is_guilty store=dead;
        sliding_limit_on_error deny;
        empty_gif;
    }
    location /down_page {
        sliding_limit zone=down max=9 window=60s key=\$http_client if=\$is_guilty store=dead;
        sliding_limit_on_error deny;
        error_page 503 /page.html;
        empty_gif;
    }

    location /expires { expires 1h; empty_gif; }
    location /add_header { add_header Cache-Control public always; empty_gif; }
    location /accel_expires { add_header X-Accel-Expires 3600 always; empty_gif; }
    location /of_cdns {
        add_header CDN-Cache-Control max-age=3600 always;
        add_header Surrogate-Control max-age=3600 always;
        empty_gif;
    }
    location /page { error_page 429 /page.html; empty_gif; }
    location /page_as_200 { error_page 429 =200 /page.html; empty_gif; }
    location /file_as_200 { error_page 429 =200 /file.html; empty_gif; }
    location /named { error_page 429 \@app; empty_gif; }
    location /named_as_200 { error_page 429 = \@app; empty_gif; }

    location = /page.html {
        expires 1h;
        add_header Cache-Control public always;
        add_header Cache-Control max-age=7200 always;
    }
    location = /file.html { expires 1h; }
    location \@app { proxy_pass http://127.0.0.1:$app; }

    location /dry_run {
        sliding_limit zone=dry max=0 window=60s key=\$http_client dry_run;
        expires 1h;
        empty_gif;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;' . <<"END");
    sliding_limit_redis redis://127.0.0.1:$dead name=dead;
    map \$http_client \$is_guilty { guilty 1; }
    map \$http_client \$max { guilty 0; default 1000; }

    server {
        listen 127.0.0.1:$app;
        location / {
            add_header Cache-Control "public, max-age=3600" always;
            add_header Expires "Thu, 31 Dec 2037 23:55:55 GMT" always;
            return 200 'the application is busy';
        }
    }
END

for my $name (qw(page file)) {
    open my $file, '>', $nginx->dir . "/html/$name.html" or die $!;
    print $file 'busy';
}

# It keeps whatever it may, and does not ask who a response was for.
my $cache = start_nginx(<<"END", http => 'proxy_cache_path cache keys_zone=all:1m;');
    location / {
        proxy_pass http://127.0.0.1:@{[ $nginx->port ]};
        proxy_cache all;
        proxy_cache_key \$request_uri;
        proxy_cache_valid any 1m;
        add_header X-Cache \$upstream_cache_status always;
    }
END

# (status, values of these headers, as often as they are there)
sub ask {
    my ($port, $method, $path, $client, @names) = @_;

    my $socket = begin_request($port, "$method $path HTTP/1.1\r\nHost: a\r\nClient: $client\r\nConnection: close\r\n\r\n");
    my $answer = do { local $/; <$socket> } // '';
    my ($head) = split /\r\n\r\n/, $answer;
    my ($status) = $head =~ m{^HTTP/1\.1 (\d+)};

    return ($status, map { my $name = $_; join ' and ', $head =~ /^\Q$name\E: (.*?)\r?$/mgi } @names);
}

my @refusals = (
    [429, '/plain', 'our own answer'],
    [418, '/teapot', 'another status'],
    [429, '/problem', 'another body'],
    [429, '/template', "a body of the user's"],
    [503, '/down', 'on_error deny'],
    [503, '/down_page', 'on_error deny with an error_page'],
    [429, '/expires', 'a location that expires'],
    [429, '/add_header', 'a location that adds a header of its own'],
    [429, '/accel_expires', 'a location that tells an nginx in front to cache'],
    [429, '/of_cdns', 'a location that tells CDNs to cache'],
    [429, '/page', 'an error_page that may be cached, by expires and by add_header'],
    [200, '/page_as_200', 'the same, that pretends to be no error'],
    [200, '/file_as_200', 'an error_page that expires and pretends to be no error'],
    [429, '/named', "an application's error_page that may be cached"],
    [200, '/named_as_200', 'the same, that pretends to be no error'],
);

# what caches obey, some of them before Cache-Control
my @of_caches = qw(Cache-Control Expires X-Accel-Expires CDN-Cache-Control Surrogate-Control);

for (@refusals) {
    my ($status, $path, $name) = @$_;

    subtest "refused: $name" => sub {
        is_deeply [ask($nginx->port, $_, $path, 'guilty', @of_caches)], [$status, 'no-store', '', '', '', ''], $_
            for qw(GET HEAD);

        is_deeply [ask($cache->port, 'GET', $path, 'guilty', 'X-Cache')], [$status, 'MISS'], 'through a cache';
        is_deeply [ask($cache->port, 'GET', $path, 'innocent', 'X-Cache', 'Content-Type')],
            [200, 'MISS', 'image/gif'], 'which has nothing of that for the next client';
    };
}

subtest 'what passes may be cached as ever' => sub {
    is_deeply [ask($nginx->port, 'GET', '/plain', 'innocent', 'Cache-Control')], [200, ''];
    is_deeply [ask($nginx->port, 'GET', '/expires', 'innocent', 'Cache-Control')], [200, 'max-age=3600'];
    is_deeply [ask($nginx->port, 'GET', '/add_header', 'innocent', 'Cache-Control')], [200, 'public'];
    is_deeply [ask($nginx->port, 'GET', '/accel_expires', 'innocent', 'X-Accel-Expires')], [200, 3600];
    is_deeply [ask($nginx->port, 'GET', '/of_cdns', 'innocent', qw(CDN-Cache-Control Surrogate-Control))],
        [200, 'max-age=3600', 'max-age=3600'];
    is_deeply [ask($cache->port, 'GET', '/plain?again', 'innocent', 'X-Cache')], [200, $_] for qw(MISS HIT);
};

subtest 'and so may what only a dry run refuses' => sub {
    is_deeply [ask($nginx->port, 'GET', '/dry_run', 'anybody', qw(Cache-Control X-RateLimit-Limit))],
        [200, 'max-age=3600', 0];
};

is $_->bad_lines, '', 'nothing alarming in the log' for $nginx, $cache;

done_testing;
