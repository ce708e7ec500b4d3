# count=denied: whoever keeps hammering stays locked out.

use strict;
use warnings;
use lib 't/lib';

use JSON::PP qw(decode_json);
use SlidingLimit::Servers qw(get start_nginx start_redis);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $nginx = start_nginx(<<'END',
    location /denied {
        sliding_limit zone=denied max=2 window=4s key=$arg_k fallback=none count=denied;
        empty_gif;
    }
    location /plain {
        sliding_limit zone=plain max=2 window=4s key=$arg_k fallback=none;
        empty_gif;
    }
    location /both {
        sliding_limit zone=hammered max=2 window=60s key=$arg_k fallback=none count=denied;
        sliding_limit zone=other max=5 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /other_refuses {
        sliding_limit zone=hammered max=2 window=60s key=$arg_k fallback=none count=denied;
        sliding_limit zone=full max=0 window=60s key=$arg_k fallback=none;
        sliding_limit zone=other max=5 window=60s key=$arg_k fallback=none;
        empty_gif;
    }
    location /look { sliding_limit_metrics; sliding_limit off; }
    location /buckets {
        sliding_limit zone=buckets max=2 window=60s key=$arg_k fallback=none count=denied algorithm=buckets;
        empty_gif;
    }
    location /memory {
        sliding_limit zone=memory max=10 window=60s key=$arg_k fallback=none cost=$arg_cost count=denied store=memory;
        empty_gif;
    }
    location /tiers {
        sliding_limit zone=tiers max=$arg_max window=60s key=$arg_k fallback=none count=denied algorithm=buckets;
        empty_gif;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

sub count { my ($zone, $key) = @_; return $redis->cli('ZCARD', "rate_limit:$zone:$key") }

# When the entry of this rank was counted.
sub time_of { my ($zone, $key, $n) = @_; return (split /\n/, $redis->cli('ZRANGE', "rate_limit:$zone:$key", $n, $n, 'WITHSCORES'))[1] }

subtest 'hammering keeps the door shut, patience opens it' => sub {
    my %passed;
    my $end = time + 6;
    while (time < $end) {
        for my $zone (qw(denied plain)) {
            $passed{$zone}++ if (get($nginx->port, "/$zone?k=hammer"))[0] == 200;
        }
        sleep 0.1;
    }
    cmp_ok $passed{plain}, '>', 2, 'without count=denied the hammering gets through again';
    is $passed{denied}, 2, 'with it, only the first two did';
    is_deeply [$nginx->try('/denied?k=hammer')], [429];
    sleep 4.2;
    is_deeply [$nginx->try('/denied?k=hammer')], [200], 'one window of silence is enough';
};

subtest 'Retry-After tells what silence is needed' => sub {
    $nginx->try('/both?k=wait') for 1 .. 2;
    sleep 2;
    my (undef, $first) = $nginx->try('/both?k=wait', 'Retry-After');
    my (undef, $second) = $nginx->try('/both?k=wait', 'Retry-After');
    cmp_ok $second, '>=', 59, "$first s, then $second s: the refusals count";
};

subtest 'what one limit refuses is charged to that limit only' => sub {
    $nginx->try('/both?k=a') for 1 .. 6;
    my $oldest = time_of('hammered', 'a', 0);
    my $newest = time_of('other', 'a', -1);
    cmp_ok $oldest, '>', $newest, 'it counts what it refuses, and has forgotten what it let pass';
    is count('other', 'a'), 2, 'the other does not';
};

subtest 'what another limit refuses is not charged' => sub {
    is_deeply [$nginx->try('/other_refuses?k=b')], [429] for 1 .. 3;
    is_deeply [count('hammered', 'b'), count('other', 'b')], [0, 0];
};

subtest 'hammering does not fill Redis' => sub {
    get($nginx->port, '/both?k=flood') for 1 .. 600;
    is count('hammered', 'flood'), 2, 'there are as many entries as max';
    cmp_ok $redis->cli('TTL', 'rate_limit:hammered:flood'), '>', 50, 'and they expire';
};

subtest 'buckets count refused requests, too' => sub {
    $nginx->try('/buckets?k=a') for 1 .. 7;
    like +(get($nginx->port, '/look?zone=buckets&key=a'))[2], qr/"used":7,/;
};

subtest 'in memory the newest max units decide' => sub {
    my $look = sub { return decode_json((get($nginx->port, '/look?zone=memory&key=a'))[2]) };
    is_deeply [map { ($nginx->try("/memory?k=a&cost=$_"))[0] } 5, 5, 3], [200, 200, 429];
    my $told = $look->();
    is "$told->{used} $told->{remaining} $told->{counted}", '10 0 10', 'no more than max is used';
    is join(' ', map { $_->{cost} } @{ $told->{requests} }), '3 5 2', 'of the oldest a part is left';
    for (1 .. 30) {
        is_deeply [$nginx->try('/memory?k=a&cost=1', 'X-RateLimit-Remaining')], [429, 0];
        is $look->()->{used}, 10;
    }
    is scalar @{ $look->()->{requests} }, 10;
};

subtest 'in buckets a max may vary' => sub {
    is_deeply [map { ($nginx->try("/tiers?k=a&max=$_"))[0] } 2, 2, 2, 2, 4, 6], [200, 200, 429, 429, 429, 200],
        'refused requests count for every max';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
