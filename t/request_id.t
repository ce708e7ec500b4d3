# $sliding_limit_id: a UUID version 7 per request, and its member in Redis.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(start_redis start_nginx get);
use Test::More;
use Time::HiRes qw(time);

my $uuid = qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

my $redis = start_redis();
my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=10s;');
    add_header X-Id $sliding_limit_id always;

    location /one { sliding_limit zone=one max=3 window=60s key=$arg_k; empty_gif; }
    location /two {
        sliding_limit zone=two_a max=3 window=60s key=$arg_k;
        sliding_limit zone=two_b max=9 window=60s key=$arg_k;
        empty_gif;
    }
    location /free { empty_gif; }
END

sub id { my (undef, $headers) = get($nginx->port, @_); return $headers->{'x-id'} }
sub members { return [ split /\n/, $redis->cli('ZRANGE', $_[0], 0, -1) ] }

subtest 'the id of a counted request is its member in Redis' => sub {
    my @ids = map { id('/one?k=member') } 1 .. 4;
    like $_, $uuid for @ids;
    is_deeply members('rate_limit:one:member'), [ @ids[0 .. 2] ], 'three were counted, in their order';
};

subtest 'it is one and the same in every limit of the request' => sub {
    my $id = id('/two?k=same');
    is_deeply members("rate_limit:$_:same"), [$id], $_ for qw(two_a two_b);
};

subtest 'its score is the time it was counted, in microseconds' => sub {
    my $before = time;
    my $id = id('/one?k=score');
    my $after = time;
    my $score = $redis->cli('ZSCORE', 'rate_limit:one:score', $id) / 1e6;
    cmp_ok $score, '>=', $before - 0.001;
    cmp_ok $score, '<=', $after + 0.001;
};

subtest 'it begins with the time of day in milliseconds' => sub {
    my $before = time;
    my $id = id('/one?k=time');
    my $after = time;
    my $seconds = (hex(substr $id, 0, 8) * 65536 + hex(substr $id, 9, 4)) / 1000;

    # nginx's idea of the time may be a turn of its event loop old
    cmp_ok $seconds, '>=', $before - 1;
    cmp_ok $seconds, '<=', $after + 0.001;
};

subtest 'every request has one of its own, also where there is no limit' => sub {
    my %seen;
    $seen{ id('/free') }++ for 1 .. 200;
    is keys %seen, 200, 'all different';
    is scalar(grep { !/$uuid/ } keys %seen), 0, 'all of that form';
};

subtest 'a request without a limit leaves nothing in Redis' => sub {
    my $before = $redis->cli('DBSIZE');
    id('/free');
    id('/one?k=');
    is $redis->cli('DBSIZE'), $before;
};

is $nginx->bad_lines, '', 'no alerts in the log';

done_testing;
