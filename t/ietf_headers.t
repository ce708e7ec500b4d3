# sliding_limit_headers: which headers are sent, and the IETF draft's as text.
# (t/header_parsers.t has others read them.)

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(free_port get start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $dead = free_port();
my $limits = <<'END';
        sliding_limit zone=minute max=2 window=60s key=$arg_k fallback=none;
        sliding_limit zone=hour max=100 window=1h key=$arg_k fallback=none;
        empty_gif;
END
my $nginx = start_nginx(<<"END",
    location /default { $limits }
    location /x { sliding_limit_headers x; $limits }
    location /ietf { sliding_limit_headers ietf; $limits }
    location /both { sliding_limit_headers x ietf; $limits }
    location /off { sliding_limit_headers off; $limits }
    location /inherits {
        sliding_limit_headers ietf;
        location /inherits/too { $limits }
        location /inherits/not { sliding_limit_headers x; $limits }
    }
    location /short {
        sliding_limit_headers ietf;
        sliding_limit zone=short max=5 window=1500ms key=\$arg_k fallback=none;
        empty_gif;
    }
    location /units {
        sliding_limit_headers ietf;
        sliding_limit zone=tokens max=200000 window=60s key=\$arg_k fallback=none cost=150000 unit=tokens
            algorithm=buckets;
        sliding_limit zone=bytes max=1000000000000000 window=1h key=\$arg_k fallback=none unit=content-bytes;
        sliding_limit zone=plain max=900000000000000 window=1h key=\$arg_k fallback=none unit=requests;
        empty_gif;
    }
    location /longest {
        sliding_limit_headers ietf;
        sliding_limit zone=${\ ('z' x 64)} max=1000000000000000 window=31d key=\$arg_k fallback=none unit=${\ ('u' x 64)};
        sliding_limit zone=${\ ('y' x 64)} max=1000000000000000 window=31d key=\$arg_k fallback=none unit=${\ ('w' x 64)};
        empty_gif;
    }
    location /exempt {
        sliding_limit_headers ietf;
        sliding_limit zone=exempt max=5 window=60s key=\$arg_nobody;
        empty_gif;
    }
    location /zero {
        sliding_limit_headers ietf;
        sliding_limit zone=zero max=0 window=60s key=\$arg_k fallback=none;
        empty_gif;
    }
    location /look {
        sliding_limit_headers ietf;
        sliding_limit zone=look max=5 window=60s key=\$arg_k fallback=none cost=0;
        empty_gif;
    }
    location /down {
        sliding_limit_headers ietf;
        sliding_limit zone=down max=5 window=60s key=\$arg_k fallback=none store=dead;
        empty_gif;
    }
    location /down_beside {
        sliding_limit_headers ietf;
        sliding_limit zone=down max=5 window=60s key=\$arg_k fallback=none store=dead;
        sliding_limit zone=up max=5 window=60s key=\$arg_k fallback=none;
        empty_gif;
    }
    location /app {
        sliding_limit_headers ietf;
        $limits
        location /app/proxied {
            proxy_pass http://127.0.0.1:\$server_port/application;
        }
    }
    location /application {
        sliding_limit off;
        add_header RateLimit '"app";r=1;t=2';
        add_header RateLimit-Policy '"app";q=1';
        add_header X-RateLimit-Limit 17;
        return 200 hello;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;'
        . "sliding_limit_redis redis://127.0.0.1:$dead name=dead;");

my @x = qw(X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset);
my @ietf = qw(RateLimit-Policy RateLimit);
my $policies = '"minute";q=2;w=60, "hour";q=100;w=3600';

sub is_sent {
    my ($path, $x, $ietf) = @_;
    my ($status, @values) = $nginx->try($path, @x, @ietf);
    is $status, 200, $path;
    is !!$values[0], !!$x, $x ? 'has X-RateLimit headers' : 'has no X-RateLimit headers';
    is scalar(grep { $_ ne '' } @values[0 .. 2]), $x ? 3 : 0, 'all of them';
    is $values[3], $ietf ? $policies : '', $ietf ? 'has the policies' : 'has no policies';
    like $values[4], $ietf ? qr/^"minute";r=1;t=(5\d|60), "hour";r=99;t=3\d{3}$/ : qr/^$/;
}

subtest 'which headers are sent' => sub {
    is_sent('/default?k=default', 1, 0);
    is_sent('/x?k=x', 1, 0);
    is_sent('/ietf?k=ietf', 0, 1);
    is_sent('/both?k=both', 1, 1);
    is_sent('/off?k=off', 0, 0);
    is_sent('/inherits/too?k=too', 0, 1);
    is_sent('/inherits/not?k=not', 1, 0);
};

subtest 'what a limit counts is said unless it is requests' => sub {
    for my $expected (200, 429) {
        my ($status, $policy) = $nginx->try('/units?k=units', 'RateLimit-Policy');
        is $status, $expected;
        is $policy, '"tokens";q=200000;qu="tokens";w=60, "bytes";q=999999999999999;qu="content-bytes";w=3600, '
            . '"plain";q=900000000000000;w=3600';
    }
};

subtest 'the longest names and units' => sub {
    my ($status, $policy) = $nginx->try('/longest?k=longest', 'RateLimit-Policy');
    is $status, 200;
    is $policy, join ', ', map { '"' . $_->[0] x 64 . '";q=999999999999999;qu="' . $_->[1] x 64 . '";w=2678400' } ['z', 'u'], ['y', 'w'];
};

subtest 'a refusal: the limit that refuses stands first, and its t is Retry-After' => sub {
    $nginx->try('/ietf?k=refused') for 1 .. 2;
    my ($status, $policy, $service, $retry) = $nginx->try('/ietf?k=refused', @ietf, 'Retry-After');
    is $status, 429;
    is $policy, $policies;
    like $service, qr/^"minute";r=0;t=$retry, "hour";r=98;t=\d+$/;
};

subtest 'the limit with the least remaining stands first' => sub {
    $redis->cli('EVAL', <<'END', 1, 'rate_limit:hour:first');
        local time = redis.call('TIME')
        for i = 1, 99 do redis.call('ZADD', KEYS[1], time[1] * 1000000 + time[2], i) end
END
    my (undef, $policy, $service) = $nginx->try('/ietf?k=first', @ietf);
    is $policy, '"hour";q=100;w=3600, "minute";q=2;w=60';
    like $service, qr/^"hour";r=0;t=\d+, "minute";r=1;t=\d+$/;
};

subtest 'off hides the limits, not how long a refused client should wait' => sub {
    $nginx->try('/off?k=wait') for 1 .. 2;
    my ($status, $retry, @others) = $nginx->try('/off?k=wait', 'Retry-After', @x, @ietf);
    is $status, 429;
    like $retry, qr/^(5\d|60)$/;
    is join('', @others), '';
};

subtest 'windows are whole seconds, rounded up' => sub {
    is_deeply [$nginx->try('/short?k=a', @ietf)], [200, '"short";q=5;w=2', '"short";r=4;t=2'];
};

subtest 'nothing is invented' => sub {
    is_deeply [$nginx->try('/exempt', @ietf)], [200, '', ''], 'exempt: no limit, no header';
    is_deeply [$nginx->try('/zero', @ietf)], [429, '"zero";q=0;w=60', '"zero";r=0'], 'no moment to wait for';
    is_deeply [$nginx->try('/look', @ietf)], [200, '"look";q=5;w=60', '"look";r=5'], 'nothing that could leave';
    is_deeply [$nginx->try('/down', @ietf)], [200, '"down";q=5;w=60', ''], 'no answer: only the policy';
    my ($status, $policy, $service) = $nginx->try('/down_beside', @ietf);
    is $policy, '"up";q=5;w=60, "down";q=5;w=60', 'of two stores one is down: both policies';
    like $service, qr/^"up";r=4;t=\d+$/, 'and what is known of the other';
};

subtest "the application's own headers are replaced where ours are sent" => sub {
    my ($status, $headers) = get($nginx->port, '/app/proxied?k=app');
    is $status, 200;
    is $headers->{'ratelimit-policy'}, $policies;
    unlike $headers->{ratelimit}, qr/app/;
    is $headers->{'x-ratelimit-limit'}, 17, 'and left alone where they are not';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
