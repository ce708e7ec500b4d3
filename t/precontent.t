# phase=precontent: after all of access, so that keys and tiers can come from
# auth_request_set.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(request start_nginx start_redis wait_until);
use Test::More;

my $redis = start_redis();
my $nginx = start_nginx(<<'END',
    add_header X-Status $sliding_limit_status always;
    add_header X-Zone $sliding_limit_zone always;
    error_page 404 = /error;
    log_not_found off;

    location = /auth {
        internal;
        proxy_pass http://127.0.0.1:$server_port/authority;
        proxy_set_header X-Token $http_x_token;
        proxy_pass_request_body off;
    }
    # knows one user and one admin
    location = /authority {
        sliding_limit off;
        if ($http_x_token = "") { return 401; }
        add_header X-User $http_x_token;
        add_header X-Role $role;
        return 204;
    }

    location /tiers {
        auth_request /auth;
        auth_request_set $user $upstream_http_x_user;
        auth_request_set $user_role $upstream_http_x_role;
        sliding_limit zone=tiers max=$tier window=60s key=$user phase=precontent;
        empty_gif;
    }
    # the same without phase=: the variables are not there yet
    location /too_early {
        auth_request /auth;
        auth_request_set $user $upstream_http_x_user;
        sliding_limit zone=too_early max=1 window=60s key=$user;
        empty_gif;
    }
    location /forbidden {
        sliding_limit zone=forbidden max=9 window=60s key=all phase=precontent;
        deny all;
    }
    location /any {
        satisfy any;
        allow all;
        deny all;
        auth_request /auth;
        sliding_limit zone=any max=1 window=60s key=$arg_k fallback=none phase=precontent;
        empty_gif;
    }
    location /static {
        sliding_limit zone=static max=1 window=60s key=$arg_k fallback=none phase=precontent;
    }
    location /try {
        sliding_limit zone=try max=9 window=60s key=$arg_k fallback=none phase=precontent;
        try_files $uri /try_target;
    }
    location /try_target {
        sliding_limit zone=try max=9 window=60s key=$arg_k fallback=none phase=precontent;
        empty_gif;
    }
    location /with_subrequests {
        sliding_limit zone=main_only max=9 window=60s key=$arg_k fallback=none phase=precontent;
        mirror /mirrored;
        empty_gif;
    }
    location = /mirrored {
        internal;
        sliding_limit zone=mirrored max=9 window=60s key=all phase=precontent;
        empty_gif;
    }
    location /body {
        sliding_limit zone=body max=1 window=60s key=$arg_k fallback=none phase=precontent;
        proxy_pass http://127.0.0.1:$server_port/authority;
    }
END
    http => 'map $http_x_token $role { root admin; default standard; }'
        . 'map $user_role $tier { admin 4; standard 2; default 0; }'
        . 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

sub as {
    my ($token, $path, @names) = @_;
    my ($status, $headers) = request($nginx->port,
        "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" . ($token ? "X-Token: $token\r\n" : '') . "\r\n");
    return ($status, map { $headers->{ lc $_ } // '' } @names);
}

sub count { my ($zone, $key) = @_; return $redis->cli('ZCARD', "rate_limit:$zone:$key") }

subtest 'key and tier from auth_request_set' => sub {
    is_deeply [as('alice', '/tiers', qw(X-Status X-RateLimit-Limit X-RateLimit-Remaining))], [200, 'PASSED', 2, 1];
    is_deeply [as('alice', '/tiers')], [200];
    is_deeply [as('alice', '/tiers', qw(X-Status X-RateLimit-Limit))], [429, 'REJECTED', 2];
    is_deeply [as('bob', '/tiers', 'X-RateLimit-Remaining')], [200, 1], 'each user has a count of its own';
    is_deeply [as('root', '/tiers', qw(X-RateLimit-Limit X-RateLimit-Remaining))], [200, 4, 3 - $_] for 0 .. 3;
    is_deeply [as('root', '/tiers')], [429], 'an admin has more, and an end of it';
    is count('tiers', 'alice'), 2, 'counted under the name that the authority gave';
};

subtest 'who is not let in is not counted' => sub {
    is_deeply [as('', '/tiers', qw(X-Status X-RateLimit-Limit))], [401, '', ''];
    is_deeply [$nginx->try('/forbidden', 'X-RateLimit-Limit')], [403, ''];
    is count('forbidden', 'all'), 0;
};

subtest 'in the access phase these variables are still empty' => sub {
    is_deeply [as('alice', '/too_early', 'X-Status')], [200, 'EXEMPT'] for 1 .. 3;
};

subtest 'a limit in this phase holds under "satisfy any"' => sub {
    is_deeply [$nginx->try('/any?k=a')], [200];
    is_deeply [$nginx->try('/any?k=a', 'X-Status')], [429, 'REJECTED'];
};

subtest 'static files' => sub {
    open my $file, '>', $nginx->dir . '/html/static' or die $!;
    print $file 'hello';
    close $file;
    is_deeply [$nginx->try('/static?k=a')], [200];
    is_deeply [$nginx->try('/static?k=a')], [429];
};

subtest 'try_files: a request is counted once, before it is sent on' => sub {
    is_deeply [$nginx->try('/try?k=a', 'X-RateLimit-Remaining')], [200, 8];
    is_deeply [$nginx->try('/try?k=a', 'X-RateLimit-Remaining')], [200, 7];
};

subtest 'subrequests are not counted' => sub {
    is_deeply [$nginx->try('/with_subrequests?k=a', 'X-RateLimit-Remaining')], [200, 8];
    is count('mirrored', 'all'), 0;
};

subtest 'a refused request body is discarded, and keep-alive survives' => sub {
    my $post = "POST /body?k=a HTTP/1.1\r\nHost: test\r\nX-Token: t\r\nContent-Length: 5\r\n%s\r\nhello";
    my ($status, undef, $body) = request($nginx->port,
        sprintf($post, '') . sprintf($post, '') . sprintf($post, "Connection: close\r\n"));
    is $status, 204;
    my @more = "$body" =~ m{HTTP/1\.1 (\d+)}g;
    is_deeply \@more, [429, 429];
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
