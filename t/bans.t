# A client that an operator has banned, or given another max: what it is told by status,
# headers and bodies, and what variables, log and metrics say, whichever store counts.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP qw(decode_json encode_json);
use List::Util qw(sum);
use SlidingLimit::Servers qw(get request start_nginx start_redis wait_until);
use Test::More;

my $redis = start_redis();
my $REDIS = 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;';

# Every location has the same zone, and so the same bans.
sub nginx {
    my ($store, %with) = @_;
    my $more = $store eq 'memory' ? 'store=memory' : '';
    my $limit = "zone=login max=10 window=600s key=\$arg_k $more";

    return start_nginx(<<"END", workers => 2, http => $REDIS, %with);
    add_header X-Status \$sliding_limit_status always;
    add_header X-Zone \$sliding_limit_zone always;
    add_header X-Values "\$sliding_limit_limit \$sliding_limit_remaining" always;
    add_header X-Waits "\$sliding_limit_reset \$sliding_limit_retry_after" always;
    add_header X-Store \$sliding_limit_store always;

    location = /limits { sliding_limit_metrics keys=plain admin; sliding_limit off; }
    location /login { sliding_limit $limit; empty_gif; }
    location /remembers { sliding_limit $limit; sliding_limit_deny_cache 60s; empty_gif; }
    location /problem { sliding_limit $limit; sliding_limit_body problem; empty_gif; }
    location /text { sliding_limit $limit; sliding_limit_body text; empty_gif; }
    location /grpc { sliding_limit $limit; sliding_limit_body grpc; empty_gif; }
    location /template {
        sliding_limit $limit;
        sliding_limit_body application/json '{"status":"\$sliding_limit_status","wait":\$sliding_limit_retry_after}';
        empty_gif;
    }
    location /ietf { sliding_limit $limit; sliding_limit_headers ietf; empty_gif; }
    location /forbidden { sliding_limit $limit; sliding_limit_status 403; empty_gif; }
    location /page { sliding_limit $limit; error_page 429 /sorry; empty_gif; }
    location /sorry { return 200 sorry; }
    location /looks { sliding_limit $limit cost=0; empty_gif; }
    location /dry { sliding_limit $limit dry_run; empty_gif; }
    location /long {
        sliding_limit $limit;
        sliding_limit zone=day max=1 window=1d key=\$arg_k $more;
        sliding_limit_body problem;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /short {
        sliding_limit zone=second max=1 window=30s key=\$arg_k $more;
        sliding_limit $limit;
        sliding_limit_body problem;
        sliding_limit_deny_cache off;
        empty_gif;
    }
END
}

# Says something about a client, as an operator does.
sub rule {
    my ($nginx, $key, $ruling, $zone) = @_;
    my $body = encode_json($ruling);

    my ($status, undef, $answer) = request($nginx->port, join "\r\n",
        "PUT /limits?zone=@{[ $zone // 'login' ]}&key=$key HTTP/1.1", 'Host: test', 'Connection: close',
        'Content-Type: application/json', 'Content-Length: ' . length $body, '', $body);
    is $status, 200, "$key: $body" or diag $answer;
    return decode_json($answer);
}

sub zone {
    my ($nginx, $name) = @_;

    my ($zone) = grep { $_->{name} eq $name } @{ decode_json((get($nginx->port, '/limits?format=json'))[2])->{zones} };
    return $zone;
}

# Whether this is what is left of a wait, on a machine that may be slow.
sub is_about {
    my ($seconds, $expected, $name) = @_;

    ok $seconds =~ /^\d+$/ && $seconds <= $expected && $seconds > $expected - 120, $name // "about $expected s"
        or diag $seconds;
}

sub is_banned {
    my ($headers, $name) = @_;

    is $headers->{'x-status'}, 'BANNED', $name;
    is $headers->{'x-zone'}, 'login', 'in its zone';
    is $headers->{'x-values'}, '10 0', 'nothing remains, although hardly any is used';
    is_about($headers->{'retry-after'}, 900, 'Retry-After is the rest of the ban');
    is $headers->{'x-waits'}, "$headers->{'retry-after'} $headers->{'retry-after'}", 'in the variables, too';
    is $headers->{'cache-control'}, 'no-store', 'no cache keeps it';
}

for my $store (qw(redis memory)) {
    my $nginx = nginx($store);

    subtest "$store: a client is banned" => sub {
        is +($nginx->try('/login?k=alice', 'X-Status'))[1], 'PASSED', 'before';
        rule($nginx, 'alice', { ban => '15m' });

        my ($status, $headers, $body) = get($nginx->port, '/login?k=alice');
        is $status, 429, 'refused';
        is_banned($headers, 'because of the ban');
        is $headers->{'x-store'}, $store, "by $store";
        is $body, '{"status":429,"code":"rate_limit:banned"}', 'and told so';
        is "$headers->{'x-ratelimit-limit'} $headers->{'x-ratelimit-remaining'}", '10 0', 'headers';
        is $headers->{'x-ratelimit-reset'}, $headers->{'retry-after'}, 'Reset equals Retry-After';
        like $nginx->error_log,
            qr/\[error\] .*sliding_limit: banned in zone "login", max 10 in 600000 ms, retry after \d+ s, store: $store, client: /,
            'the log says it';
        unlike $nginx->error_log, qr/refused by/, 'and nothing else';
        is +($nginx->try('/login?k=bob', 'X-Status'))[1], 'PASSED', 'others are none of this';

        my ($again, $then) = get($nginx->port, '/remembers?k=alice');
        is_banned($then, 'the next request');
        is $then->{'x-store'}, $store eq 'redis' ? 'deny_cache' : 'memory', 'is refused from memory';
    };

    subtest "$store: in every kind of answer" => sub {
        my ($status, $headers, $body) = get($nginx->port, '/problem?k=alice');
        is $headers->{'content-type'}, 'application/problem+json';
        is_deeply decode_json($body), {
            type => 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
            title => 'Abnormal Usage Detected',
            status => 429, 'violated-policies' => ['login'],
        }, 'problem';

        ($status, $headers, $body) = get($nginx->port, '/text?k=alice');
        is $body, "You are banned, try again in $headers->{'retry-after'} seconds.\n", 'text';

        ($status, $headers, $body) = get($nginx->port, '/grpc?k=alice');
        is "$status $headers->{'grpc-status'}", '200 8', 'grpc';
        like $headers->{'grpc-message'}, qr/^You are banned, try again in \d+ seconds\.$/;

        ($status, $headers, $body) = get($nginx->port, '/template?k=alice');
        is $body, qq({"status":"BANNED","wait":$headers->{'retry-after'}}), 'a template';

        ($status, $headers) = get($nginx->port, '/ietf?k=alice');
        is $headers->{'ratelimit-policy'}, '"login";q=10;w=600', 'RateLimit-Policy';
        is $headers->{ratelimit}, qq("login";r=0;t=$headers->{'retry-after'}), 'RateLimit';

        ($status, $headers, $body) = get($nginx->port, '/forbidden?k=alice');
        is "$status $body", '403 {"status":403,"code":"rate_limit:banned"}', 'with the status that is wanted';

        ($status, $headers, $body) = get($nginx->port, '/page?k=alice');
        is $body, 'sorry', 'an error page takes the place of it';
        is_banned($headers, 'as ever');

        ($status, $headers, $body) =
            request($nginx->port, "HEAD /login?k=alice HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        is "$status $body", '429 ', 'HEAD: no body';
        is_banned($headers, 'but all the rest');

        is +($nginx->try('/looks?k=alice', 'X-Status'))[1], 'BANNED', 'even to look is not allowed';
    };

    subtest "$store: a dry run refuses nobody" => sub {
        my ($status, $headers) = get($nginx->port, '/dry?k=alice');
        is "$status $headers->{'x-status'}", '200 REJECTED_DRY_RUN';
        is $headers->{'retry-after'}, undef, 'nobody has to wait';
        like $nginx->error_log, qr/would be refused by zone "login", max 10 in 600000 ms, but for its dry run/;
    };

    subtest "$store: of several limits the longest wait is shown" => sub {
        get($nginx->port, '/long?k=carla');
        get($nginx->port, '/short?k=carla');
        rule($nginx, 'carla', { ban => '15m' });

        my ($status, $headers, $body) = get($nginx->port, '/short?k=carla');
        is_banned($headers, 'the ban is longer');
        like $body, qr/#abnormal-usage-detected"/, 'and is what the body tells';
        like $body, qr/"violated-policies":\["second","login"\]/, 'with all that refuse';

        ($status, $headers, $body) = get($nginx->port, '/long?k=carla');
        is "$headers->{'x-status'} $headers->{'x-zone'}", 'REJECTED day', 'the limit is longer';
        like $body, qr/#quota-exceeded".*"violated-policies":\["login","day"\]/, 'both refuse';
        is_about($headers->{'retry-after'}, 86400);
        like $nginx->error_log, qr/refused by zone "day"/;
    };

    subtest "$store: metrics" => sub {
        my $zone = zone($nginx, 'login');
        my %results = %{ $zone->{requests} };

        cmp_ok $results{banned}, '>=', 13, 'bans are counted';
        is $results{rejected}, 0, 'and are no rejections';
        is $results{rejected_dry_run}, 1, 'but in a dry run';
        is $zone->{found_used}[10], $results{banned} + 1, 'they found it refused';
        is sum(map { $_->[2] } @{ $zone->{hours} }), $results{banned}, 'history has them as refused';
        is_deeply [sort map { $_->{key} } @{ $zone->{top_rejected} }], ['alice', 'carla'], 'and so has the list of clients';
        cmp_ok zone($nginx, 'day')->{requests}{rejected}, '==', 1, 'the limit beside it has rejected';
        is zone($nginx, 'second')->{requests}{banned}, 0, 'no other zone has banned';
        like +(get($nginx->port, '/limits?format=prometheus'))[2],
            qr/^nginx_sliding_limit_zone_requests_total\{zone="login",result="banned"\} $results{banned}$/m, 'Prometheus';
        unlike $nginx->error_log, qr/has been over its limit/, 'who is banned is not over its limit';
    };

    subtest "$store: a ban is lifted" => sub {
        rule($nginx, 'alice', { ban => undef });
        wait_until { ($nginx->try('/login?k=alice', 'X-Status'))[1] eq 'PASSED' } 10, 'it to be noticed';
        is +($nginx->try('/login?k=alice', 'X-Values'))[1], '10 7', 'what was refused did not count';
    };

    subtest "$store: another max" => sub {
        $nginx->try('/login?k=dora') for 1 .. 3;
        rule($nginx, 'dora', { max => 20, for => '1d' });
        my ($status, $headers) = get($nginx->port, '/login?k=dora');
        is "$headers->{'x-ratelimit-limit'} $headers->{'x-ratelimit-remaining'} $headers->{'x-values'}", '20 16 20 16',
            'more: headers and variables';
        is +(get($nginx->port, '/ietf?k=dora'))[1]{'ratelimit-policy'}, '"login";q=20;w=600', 'RateLimit-Policy';

        my $before = zone($nginx, 'login')->{near_limit};
        $nginx->try('/login?k=dora') for 1 .. 10;
        is zone($nginx, 'login')->{near_limit}, $before, 'near the limit is what is near this one';
        $nginx->try('/login?k=dora') for 1 .. 2;
        is zone($nginx, 'login')->{near_limit}, $before + 2, 'from the sixteenth on';

        rule($nginx, 'dora', { max => 2, for => '1d' });
        ($status, $headers) = get($nginx->port, '/login?k=dora');
        is "$status $headers->{'x-status'} $headers->{'x-values'}", '429 REJECTED 2 0', 'less: refused, but not banned';
        like $nginx->error_log, qr/refused by zone "login", max 2 in 600000 ms/, 'the log has it';
        my $first = $headers->{'retry-after'};
        ($status, $headers) = get($nginx->port, '/login?k=dora');
        is "$status $headers->{'x-status'} $headers->{'x-values'}", '429 REJECTED 2 0', 'and again';
        cmp_ok $headers->{'retry-after'}, '<=', $first, 'with the same wait';
    };

    is $nginx->bad_lines, '', "$store: nothing alarming in the log";
}

done_testing;
