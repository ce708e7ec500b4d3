# The window slides: each slot comes back when its own request is a window old.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(start_redis start_nginx get);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=2s;');
    location / { sliding_limit zone=slides max=3 window=2s key=$arg_k; empty_gif; }
END

subtest 'three pass with remaining 2, 1, 0; the fourth is told when to come back' => sub {
    my @answers = map { [ get($nginx->port, '/?k=four') ] } 1 .. 4;
    is join(' ', map { $_->[0] } @answers), '200 200 200 429';
    is join(' ', map { $_->[1]{'x-ratelimit-remaining'} } @answers), '2 1 0 0';
    like $answers[3][1]{'retry-after'}, qr/^[12]$/, 'Retry-After';
    is $answers[3][1]{'x-ratelimit-reset'}, $answers[3][1]{'retry-after'}, 'Reset is the same';
    is $answers[3][2], '{"status":429,"code":"rate_limit:exceeded"}';
};

subtest 'slots taken half a second apart come back one at a time' => sub {
    my (@before, @after);
    my $pass = sub {
        my $start = time;
        my ($status) = get($nginx->port, '/?k=slide');
        return unless $status == 200;
        push @before, $start;
        push @after, time;
    };

    for (1 .. 3) {
        $pass->();
        sleep 0.5;
    }
    is @before, 3, 'three passed';

    my $end = time + 10;
    while (@before < 9 && time < $end) {
        $pass->();
        sleep 0.02;
    }
    is @before, 9, 'six more, by asking all the time';

    for my $n (3 .. $#before) {
        # Redis's time of a request lies between before and after
        cmp_ok $after[$n] - $before[ $n - 3 ], '>=', 2, "pass $n not before slot " . ($n - 3) . ' is free';
        cmp_ok $before[$n] - $after[ $n - 3 ], '<', 3, 'and soon after';
    }
};

subtest 'after Retry-After a request passes' => sub {
    get($nginx->port, '/?k=retry') for 1 .. 3;
    my ($status, $headers) = get($nginx->port, '/?k=retry');
    is $status, 429;
    sleep $headers->{'retry-after'};
    is +(get($nginx->port, '/?k=retry'))[0], 200;
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
