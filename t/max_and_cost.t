# max= and cost= as numbers and from variables, whatever these hold.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(get request start_nginx start_redis);
use Test::More;

my $MOST = '1000000000000000';

# Limits of as much as can be, counted in all ways that sum up, for clients that say what they cost.
my %ALGORITHMS = (buckets => 'algorithm=buckets', denied => 'algorithm=buckets count=denied',
    given_back => 'algorithm=buckets count_status=403');
my %STORES = (redis => '', memory => 'store=memory');
my @BOUND = map { my $store = $_; map { "${store}_$_" } qw(log packed buckets) } sort keys %STORES;
my @LARGE = map { my $store = $_; map { [$store, $_] } sort keys %ALGORITHMS } sort keys %STORES;

my $redis = start_redis();
my $nginx = start_nginx(join('', map({
    my ($store, $algorithm) = @$_;
    "location /large/$store/$algorithm {
        sliding_limit zone=large_${store}_$algorithm max=$MOST window=600s key=\$arg_k fallback=none cost=\$arg_cost
            $STORES{$store} $ALGORITHMS{$algorithm};
        sliding_limit_headers x ietf;
        sliding_limit_deny_cache off;
        add_header X-Limit \$sliding_limit_limit always;
        add_header X-Left \$sliding_limit_remaining always;
        sliding_limit_body application/json '{\"left\":\$sliding_limit_remaining,\"of\":\$sliding_limit_limit}';
        proxy_pass http://127.0.0.1:\$server_port/as/\$arg_as;
    }
    "
} @LARGE),
    map({
        my ($store, $algorithm) = split /_/;
        my $limit = "window=60s key=\$arg_k fallback=none algorithm=$algorithm $STORES{$store}";
        "location /bound/cost/$_ { sliding_limit zone=cost_$_ max=10000 cost=\$arg_cost $limit; empty_gif; }
        location /bound/max/$_ { sliding_limit zone=max_$_ max=\$arg_max $limit; empty_gif; }
        "
    } @BOUND), <<'END'),
    location = /as/403 { return 403; }
    location /as/ { empty_gif; }
    location = /status { sliding_limit_metrics keys=plain; }
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;

    location /max {
        sliding_limit zone=max max=$arg_max window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /map {
        sliding_limit zone=map max=$from_map window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /joined {
        sliding_limit zone=joined max=1${arg_max} window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /cost {
        sliding_limit zone=cost max=10 window=60s key=$arg_k fallback=none cost=$arg_cost;
        empty_gif;
    }
    location /three {
        sliding_limit zone=cost max=10 window=60s key=$arg_k fallback=none cost=3;
        empty_gif;
    }
    location /look {
        sliding_limit zone=cost max=10 window=60s key=$arg_k fallback=none cost=0;
        empty_gif;
    }
    location /body {
        sliding_limit zone=bytes max=1000 window=60s key=$arg_k fallback=none cost=$content_length;
        client_max_body_size 1m;
        proxy_pass http://127.0.0.1:$server_port/sink;
    }
    location /sink { return 204; }
    location /tokens {
        sliding_limit zone=tokens max=1000000 window=60s key=$arg_k fallback=none cost=$arg_cost algorithm=buckets;
        empty_gif;
    }
    location /two {
        sliding_limit zone=cost max=10 window=60s key=$arg_k fallback=none cost=$arg_cost;
        sliding_limit zone=beside max=5 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
END
    http => 'map $uri $from_map { default "5"; "~(?s)^/map/(?<decoded>.*)$" $decoded; }'
        . 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

sub count { my ($zone, $key) = @_; return $redis->cli('ZCARD', "rate_limit:$zone:$key") }

# What the log has gained since this was last called.
my $seen = 0;
sub new_lines {
    my $log = $nginx->error_log;
    my $new = substr $log, $seen;
    $seen = length $log;
    return $new;
}

subtest 'max from a variable: tiers' => sub {
    is_deeply [$nginx->try('/max?k=tier&max=2', qw(X-Status X-RateLimit-Limit X-RateLimit-Remaining))],
        [200, 'PASSED', 2, 1];
    is_deeply [$nginx->try('/max?k=tier&max=2')], [200];
    is_deeply [$nginx->try('/max?k=tier&max=2', 'X-RateLimit-Limit')], [429, 2], 'used up';
    is_deeply [$nginx->try('/max?k=tier&max=5', qw(X-RateLimit-Limit X-RateLimit-Remaining))], [200, 5, 2],
        'the same client with more';
};

for my $max ('', 'unlimited') {
    subtest "max from a variable that holds \"$max\": exempt" => sub {
        is_deeply [$nginx->try("/max?k=exempt&max=$max", qw(X-Status X-Store X-RateLimit-Limit))],
            [200, 'EXEMPT', 'none', ''] for 1 .. 3;
        is count('max', 'exempt'), 0, 'nothing is counted';
    };
}

new_lines();

for my $max (qw(-1 1.5 9999999999999999 1000000000000001 18446744073709551617 abc 0x10 1e3 Unlimited unlimited1 +5), '%20', '5%20', '10,') {
    subtest "max from a variable that holds \"$max\": refused and logged" => sub {
        is_deeply [$nginx->try("/max?k=bad&max=$max", qw(X-Status X-RateLimit-Limit X-RateLimit-Remaining Retry-After))],
            [429, 'REJECTED', 0, 0, ''];
        like new_lines(), qr/\[error\] .*sliding_limit: max of zone "max" is "\Q$max\E", must be a whole number from 0 to 1000000000000000, "unlimited" or empty/;
        is count('max', 'bad'), 0, 'nothing is counted';
    };
}

subtest 'a hostile max cannot write log lines of its own' => sub {
    is_deeply [$nginx->try('/map/1%0a2026%20[loud]%20%22lost%22%7f' . 'x' x 200 . '?k=bad')], [429];
    my $log = new_lines();
    like $log, qr/is "1\\x0a2026 \[loud\] \\x22lost\\x22\\x7fx+\.\.\.", must be/;
    unlike $log, qr/^2026 /m;
};

subtest 'max made of text and variables' => sub {
    is_deeply [$nginx->try('/joined?k=a&max=0', 'X-RateLimit-Limit')], [200, 10];
};

subtest 'max 0 from a variable refuses' => sub {
    is_deeply [$nginx->try('/max?k=zero&max=0', qw(X-Status X-RateLimit-Limit X-RateLimit-Remaining Retry-After))],
        [429, 'REJECTED', 0, 0, ''];
};

subtest 'a request takes what it costs' => sub {
    is_deeply [$nginx->try('/three?k=a', 'X-RateLimit-Remaining')], [200, 7];
    is_deeply [$nginx->try('/cost?k=a&cost=5', 'X-RateLimit-Remaining')], [200, 2];
    is_deeply [$nginx->try('/three?k=a', qw(X-Status X-RateLimit-Remaining))], [429, 'REJECTED', 2],
        'too much for what is left: refused, and nothing charged';
    is_deeply [$nginx->try('/cost?k=a&cost=2', 'X-RateLimit-Remaining')], [200, 0], 'the rest';
    is_deeply [$nginx->try('/cost?k=a&cost=1')], [429];
    is count('cost', 'a'), 10, 'Redis has an entry for each unit';
};

subtest 'a refusal waits until as much has left as this request costs' => sub {
    $nginx->try('/cost?k=wait&cost=1');
    sleep 2;
    $nginx->try('/cost?k=wait&cost=9');
    my (undef, $small) = $nginx->try('/cost?k=wait&cost=1', 'Retry-After');
    my (undef, $large) = $nginx->try('/cost?k=wait&cost=5', 'Retry-After');
    cmp_ok $small, '<', $large, "one more in $small s, five more in $large s";
};

subtest 'cost 0 only looks' => sub {
    is_deeply [$nginx->try('/look?k=look', qw(X-Status X-RateLimit-Remaining X-RateLimit-Reset))],
        [200, 'PASSED', 10, ''], 'at nothing: there is no moment to name';
    $nginx->try('/cost?k=look&cost=10');
    my ($status, $left, $reset) = $nginx->try('/look?k=look', qw(X-RateLimit-Remaining X-RateLimit-Reset));
    is_deeply [$status, $left], [200, 0], 'it passes where there is no room';
    cmp_ok $reset, '>', 50;
    is count('cost', 'look'), 10, 'and counts nothing';
    is_deeply [$nginx->try('/cost?k=look&cost=0')], [200], 'from a variable, too';
};

subtest 'a cost beyond max is refused outright, and nothing is charged' => sub {
    my $calls = $redis->calls('evalsha');
    is_deeply [$nginx->try('/cost?k=over&cost=11', qw(X-Status X-Store X-RateLimit-Limit X-RateLimit-Remaining Retry-After))],
        [429, 'REJECTED', 'none', 10, '', ''], 'no waiting helps, and nobody knows what is left';
    is $redis->calls('evalsha'), $calls, 'Redis is not asked';
    is_deeply [$nginx->try('/two?k=over&cost=11')], [429];
    is count('beside', 'over'), 0, 'the limit beside it is not charged either';
    is_deeply [$nginx->try('/cost?k=over&cost=10')], [200], 'as much as max passes';
};

new_lines();

for my $cost (qw(-1 1.5 9999999999999999 1000000000000001 abc 1e1)) {
    subtest "cost from a variable that holds \"$cost\": refused and logged" => sub {
        is_deeply [$nginx->try("/cost?k=bad&cost=$cost", 'X-Status')], [429, 'REJECTED'];
        like new_lines(), qr/\[error\] .*sliding_limit: cost of zone "cost" is "\Q$cost\E", must be a whole number from 0 to 1000, or more with algorithm=buckets, or empty for 1; no request passes with it/;
        is count('cost', 'bad'), 0;

        is_deeply [$nginx->try("/tokens?k=bad&cost=$cost", 'X-Status')], [429, 'REJECTED'];
        like new_lines(), qr/\[error\] .*sliding_limit: cost of zone "tokens" is "\Q$cost\E", must be a whole number from 0 to 1000000000000000, or empty for 1; no request passes with it/;
        is $redis->cli('EXISTS', 'rate_limit:tokens:bad'), 0;
    };
}

for my $way (@BOUND) {
    my $is_log = $way !~ /buckets/;
    my @names = qw(X-Status X-RateLimit-Limit X-RateLimit-Remaining);

    subtest "$way: a log takes costs up to 1000" => sub {
        is_deeply [$nginx->try("/bound/cost/$way?k=a&cost=1000", @names)], [200, 'PASSED', 10000, 9000];
        unlike new_lines(), qr/ of zone /, 'which is nothing to complain of';

        is_deeply [$nginx->try("/bound/cost/$way?k=a&cost=1001", 'X-Status')], [$is_log ? (429, 'REJECTED') : (200, 'PASSED')];
        my $line = qr/\[error\] .*sliding_limit: cost of zone "cost_$way" is "1001", must be a whole number from 0 to 1000, or more with algorithm=buckets, or empty for 1; no request passes with it/;
        $is_log ? like new_lines(), $line : unlike new_lines(), qr/ of zone /;

        is_deeply [$nginx->try("/bound/cost/$way?k=a&cost=0", @names)], [200, 'PASSED', 10000, $is_log ? 9000 : 7999], 'nothing else is charged';
    };

    subtest "$way: a packed log takes a max up to 10000" => sub {
        my $is_packed = $way =~ /packed/;

        is_deeply [$nginx->try("/bound/max/$way?k=a&max=10000", @names)], [200, 'PASSED', 10000, 9999];
        is_deeply [$nginx->try("/bound/max/$way?k=a&max=unlimited", 'X-Status')], [200, 'EXEMPT'];
        unlike new_lines(), qr/ of zone /, 'which is nothing to complain of';

        is_deeply [$nginx->try("/bound/max/$way?k=a&max=10001", @names)], [$is_packed ? (429, 'REJECTED', 0, 0) : (200, 'PASSED', 10001, 9999)];
        my $line = qr/\[error\] .*sliding_limit: max of zone "max_$way" is "10001", must be a whole number from 0 to 10000 with algorithm=packed, "unlimited" or empty; no request passes with it/;
        $is_packed ? like new_lines(), $line : unlike new_lines(), qr/ of zone /;

        is_deeply [$nginx->try("/bound/max/$way?k=a&max=10000", @names)], [200, 'PASSED', 10000, $is_packed ? 9998 : 9997];
    };
}

subtest 'an empty cost is 1' => sub {
    is_deeply [$nginx->try('/cost?k=empty', 'X-RateLimit-Remaining')], [200, 9];
};

subtest 'bytes as the cost' => sub {
    my $post = sub {
        my ($size) = @_;
        my ($status, $headers) = request($nginx->port, "POST /body?k=b HTTP/1.1\r\nHost: test\r\n"
            . "Connection: close\r\nContent-Length: $size\r\n\r\n" . 'x' x $size);
        return [$status, $headers->{'x-ratelimit-remaining'}];
    };
    is_deeply $post->(400), [204, 600];
    is_deeply $post->(601), [429, 600];
    is_deeply $post->(600), [204, 0];
};

# Status, and what a client, a log and a body are told to be left of how much.
sub spend {
    my ($where, $cost, $key, $more) = @_;
    my ($status, $headers, $body) = get($nginx->port, "/large/$where->[0]/$where->[1]?k=$key&cost=$cost" . ($more // ''));

    return join ' ', $status, map({ $headers->{$_} // '-' } qw(x-ratelimit-limit x-ratelimit-remaining x-limit x-left)),
        $headers->{'ratelimit-policy'} =~ s/.*;q=(\d+);w=600$/$1/r, $headers->{ratelimit} =~ s/.*;r=(\d+)(;t=\d+)?$/$1/r,
        $status == 429 ? $body : ();
}

# The same if all is exact. Structured fields have no more than 15 digits.
sub told {
    my ($status, $left) = @_;
    my $r = $left > 999999999999999 ? 999999999999999 : $left;

    return "$status $MOST $left $MOST $left 999999999999999 $r" . ($status == 429 ? qq( {"left":$left,"of":$MOST}) : '');
}

for my $where (@LARGE) {
    my $is_kept = $where->[1] !~ /given_back/;
    my $as = $is_kept ? '' : '&as=403';
    my $passed = $is_kept ? 200 : 403;

    subtest "@$where: what no 32 bits hold is counted exactly" => sub {
        is spend($where, 0, 'bytes', $as), told($passed, $MOST), 'nothing is used yet';
        is spend($where, 5368709120, 'bytes', $as), told($passed, 999994631290880), '5 GB';
        is spend($where, 5368709120, 'bytes', $as), told($passed, 999989262581760), 'again';
        is spend($where, 5368709120, 'bytes', $as), told($passed, 999983893872640), 'and again';
        is spend($where, 1, 'bytes', $as), told($passed, 999983893872639), 'a single one beside it';
    };

    subtest "@$where: all of the largest max can be spent, to the last one" => sub {
        is spend($where, 999999999999999, 'all', $as), told($passed, 1);
        is spend($where, 1, 'all', $as), told($passed, 0);
        is spend($where, 1, 'all', $as), told(429, 0);
        is spend($where, $MOST, 'at_once', $as), told($passed, 0), 'and all of it at once';
    };

    if (!$is_kept) {
        subtest "@$where: what is given back is exactly what was taken" => sub {
            spend($where, 1, 'back', $as);
            spend($where, 999999999999998, 'back');
            is spend($where, 0, 'back', $as), told($passed, 999999999999999);
            spend($where, $MOST - 1, 'back');
            is spend($where, $MOST - 1, 'back', $as), told($passed, 0), 'there is room for as much again';
        };
    }
}

for my $where (grep { $_->[1] =~ /denied/ } @LARGE) {
    subtest "@$where: refused ones that cost as much do not make sums inexact" => sub {
        is spend($where, 999999999999997, 'hammer'), told(200, 3);
        is spend($where, $_, 'hammer'), told(429, 0) for ($MOST, 999999999999999, 7) x 12;
    };
}

subtest 'who looks at a client is told it exactly' => sub {
    for my $where (@LARGE) {
        my (undef, undef, $json) = get($nginx->port, "/status?zone=large_$where->[0]_$where->[1]&key=bytes");
        like $json, qr/"max":$MOST,"unit":"requests","used":16106127361,"remaining":999983893872639,/, "@$where";
    }
};

subtest 'the metrics name the largest max' => sub {
    like +(get($nginx->port, '/status?format=json'))[2], qr/"name":"large_redis_buckets","max":$MOST,/;
    like +(get($nginx->port, '/status?format=prometheus'))[2], qr/_zone_max\{zone="large_redis_buckets"\} $MOST\n/;
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
