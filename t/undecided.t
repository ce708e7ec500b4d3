# The script may have more to tidy up than it does in one call: then it has not decided,
# and is asked again. That is no failure of Redis, nobody passes for it, and whoever has
# caused it keeps Redis and other clients from nothing.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::FakeRedis qw(start_fake_redis);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(time);

# A busy machine must be able to answer in this time.
my $TIMEOUT = 2;

sub nginx_for {
    my ($port) = @_;
    return start_nginx(<<'END', http => "sliding_limit_redis redis://127.0.0.1:$port timeout=${TIMEOUT}s connect_timeout=5s;");
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;
    keepalive_requests 100000;
    location /costly {
        sliding_limit zone=costly max=300 window=60s key=$arg_k cost=3;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /remembered { sliding_limit zone=costly max=300 window=60s key=$arg_k cost=3; empty_gif; }
    location /cheap { sliding_limit zone=cheap max=100000 window=60s key=$arg_k; empty_gif; }
    location /plain {
        sliding_limit zone=plain max=100000 window=60s key=$arg_k;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /dry {
        sliding_limit zone=costly max=300 window=60s key=$arg_k cost=3;
        sliding_limit_deny_cache off;
        sliding_limit_dry_run on;
        empty_gif;
    }
END
}

# Neither a complaint nor an outage.
sub log_is_quiet {
    my ($nginx) = @_;
    unlike $nginx->error_log, qr/is down|check\(s\) failed/, 'Redis is blamed for nothing';
    is $nginx->bad_lines, '', 'nothing bad in the log';
    return;
}

subtest 'a log with costs of which very much has expired' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);

    # as 200,000 requests that have expired, and 100 that use up the limit
    $redis->cli('EVAL', <<'LUA', 1, 'rate_limit:costly:spender', 200_000, 100);
        local time = redis.call('TIME')
        local function add(i, seconds_ago)
            local member = string.format('0190a5e0-0000-7000-8000-%012d*3', i)
            redis.call('ZADD', KEYS[1], (time[1] - seconds_ago) * 1000000 + i, member)
        end
        for i = 1, ARGV[1] do add(i, 100) end
        for i = 1, ARGV[2] do add(ARGV[1] + i, 1) end
        redis.call('ZADD', KEYS[1], 0, string.format('+%d', 2 * (ARGV[1] + ARGV[2])))
        redis.call('PEXPIRE', KEYS[1], 120000)
LUA

    my $spender = start_load(clients => 50, requests => 12, ports => [$nginx->port], path => '/costly?k=spender');
    my $others = start_load(clients => 4, requests => 25, ports => [$nginx->port],
        path => sub { "/cheap?k=other$_[0]" });

    my @spender = $spender->finish;
    my @others = $others->finish;

    is summary(@spender), '429:600', 'none of its requests passes';
    is summary(@others), '200:100', 'those of others do';
    is join(' ', sort { $a <=> $b } map { $_->{remaining} } @others),
        join(' ', map { ($_) x 4 } 99_975 .. 99_999), 'and are counted, one by one';
    is join(' ', map { $redis->cli('ZCARD', "rate_limit:cheap:other$_") } 1 .. 4), '25 25 25 25', 'in Redis';

    my ($status, $headers);
    wait_until {
        ($status, $headers) = get($nginx->port, '/costly?k=spender');
        defined $headers->{'x-ratelimit-remaining'}
    } 20, 'it to be decided';
    is "$status $headers->{'x-status'} $headers->{'x-ratelimit-remaining'}", '429 REJECTED 0', 'then it is decided';
    log_is_quiet($nginx);
};

# Decides about all keys but those that begin with "stuck", also about several at once.
my $NEVER = sub {
    my ($socket, $n, undef, $keys, @words) = @_;
    my @admits = map { /:stuck/ ? -1 : 2 } @words[0 .. $keys - 1];
    print $socket '*' . (3 * $keys + 1) . "\r\n"
        . join('', map { ":$_\r\n" } map { $_ < 0 ? ($_, 0, 0) : ($_, 1, 60_000_000) } @admits)
        . ":1790000000000000\r\n";
};

subtest 'a server that never decides' => sub {
    my $fake = start_fake_redis($NEVER);
    my $nginx = nginx_for($fake->port);
    my $start = time;
    my ($status, $headers) = get($nginx->port, '/costly?k=stuck');

    is "$status $headers->{'x-status'} $headers->{'x-store'}", '429 REJECTED redis', 'refuses';
    cmp_ok time - $start, '>', $TIMEOUT / 2, 'after a while, in which it could have';
    is $headers->{'x-ratelimit-limit'}, 300, 'of what is known the headers tell';
    ok !exists $headers->{'x-ratelimit-remaining'}, 'and of what is not they do not';
    is $headers->{'retry-after'}, $TIMEOUT, 'when to come back';

    ($status, $headers) = get($nginx->port, '/dry?k=stuck');
    is "$status $headers->{'x-status'}", '200 REJECTED_DRY_RUN', 'a dry run says that it would have been refused';

    for my $zone ('costly', 'plain') {
        for my $of (['one client', sub { "/$zone?k=stuck" }], ['many clients', sub { "/$zone?k=stuck$_[0]" }]) {
            my @answers = start_load(clients => 40, requests => 3, ports => [$nginx->port], path => $of->[1])->finish;
            is summary(@answers), '429:120', "$zone: of many requests of $of->[0] none passes";
            is scalar(grep { $_->{remaining} ne '-' } @answers), 0, 'what remains is not known';
            cmp_ok +(sort { $a <=> $b } map { $_->{took} } @answers)[60], '<', $TIMEOUT / 2,
                'most need not wait, since others do already';
        }
    }

    ($status, $headers) = get($nginx->port, '/cheap?k=fine');
    is "$status $headers->{'x-status'}", '200 PASSED', 'other clients pass';
    log_is_quiet($nginx);
};

subtest 'such a refusal is not remembered for long' => sub {
    my $fake = start_fake_redis($NEVER);
    my $nginx = nginx_for($fake->port);
    my @answers = start_load(clients => 20, requests => 10, ports => [$nginx->port], path => '/remembered?k=stuck')->finish;

    is summary(@answers), '429:200', 'none passes';
    cmp_ok scalar(grep { $_->{store} eq 'deny_cache' } @answers), '>', 0, 'some by what is remembered';
    wait_until { (get($nginx->port, '/remembered?k=stuck'))[1]{'x-store'} eq 'redis' } 5, 'Redis to be asked again';
    log_is_quiet($nginx);
};

subtest 'a server that does not answer is a failure, whatever it has said to others' => sub {
    my $fake = start_fake_redis(sub {
        my ($socket, $n) = @_;
        $n > 3 ? 1 : $NEVER->(@_);
    });
    my $nginx = nginx_for($fake->port);

    is +(get($nginx->port, '/costly?k=stuck'))[0], 429, 'whose request was not decided is refused';
    is +(get($nginx->port, '/cheap?k=fine'))[1]{'x-status'}, 'FAILED_OPEN', 'another one passes';
    wait_until { $nginx->error_log =~ /it does not reply/ } 5, 'the connection to be given up';
    is $nginx->bad_lines, '', 'nothing bad in the log';
};

done_testing;
