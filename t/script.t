# The Lua scripts on their own, against a real Redis. Time is steered: the line that
# asks Redis for it is replaced, everything else runs as it is shipped. These are
# examples; t/model.t tries it on millions of random requests.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET;
use SlidingLimit::Servers qw(start_redis);
use Test::More;

my $script = do { local (@ARGV, $/) = 'lua/sliding_window.lua'; <> };

sub steer {
    my ($steered) = @_;
    $steered =~ s/^local time = redis\.call\('TIME'\)$/local time = { string.match(table.remove(ARGV), '(%d+):(%d+)') }/m
        or die 'the line that asks for the time is not where it was';
    return $steered;
}

my $steered = steer($script);

my $redis = start_redis();
my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $redis->port) or die $!;

sub read_reply {
    my $line = <$socket>;
    $line =~ s/\r\n//;
    my ($type, $rest) = $line =~ /^(.)(.*)/;
    return $rest if $type eq ':' || $type eq '+';
    return "error: $rest" if $type eq '-';
    return [ map { read_reply() } 1 .. $rest ] if $type eq '*';
    return undef if $rest < 0;
    read $socket, my $text, $rest + 2;
    return substr $text, 0, $rest;
}

sub redis {
    # in one piece: the rest of it would wait for an acknowledgement
    syswrite $socket, join '', '*' . @_ . "\r\n", map { '$' . length($_) . "\r\n$_\r\n" } @_;
    return read_reply();
}

# What the script is called with, from KEYS on. A limit is
# [key, window in us, max, options]; options are cost (1), buckets (0), rule ('').
sub script_args {
    my ($time, $id, @limits) = @_;
    return (
        scalar @limits, (map { $_->[0] } @limits), $time, $id,
        map {
            my (undef, $window, $max, %with) = @$_;
            ($window, $max, $with{cost} // 1, $with{buckets} // 0, $with{rule} // '')
        } @limits
    );
}

# Redis would have to read through all of it again for each call.
my $steered_sha = redis('SCRIPT', 'LOAD', $steered);

sub call_at {
    my ($now, @args) = @_;
    return redis('EVALSHA', $steered_sha, script_args(@args), sprintf '%d:%d', $now / 1000000, $now % 1000000);
}

# ask_as(id, now in us, limits...): three numbers for each limit. The time at the
# end of the answer is looked at here.
sub ask_as {
    my ($id, $now, @limits) = @_;
    my $answer = call_at($now, '', $id, @limits);
    return $answer unless ref $answer;
    return 'another time' if pop @$answer != $now;
    return $answer;
}

my $serial = 0;

sub ask { return ask_as('id' . ++$serial, @_) }

# take_back(id, when it was counted, limits...): how many were
sub take_back {
    my ($id, $then, @limits) = @_;
    return call_at($then + 1_000_000, $then, $id, @limits);
}

# What stands in a set: { entry => score }.
sub entries {
    my ($key) = @_;
    return { @{ redis('ZRANGE', $key, 0, -1, 'WITHSCORES') } };
}

# So many entries, one every microsecond from `from` on.
sub fill {
    my ($key, $from, $count, $suffix) = @_;
    for (my $first = 0; $first < $count; $first += 10_000) {
        my $last = ($first + 10_000 > $count ? $count : $first + 10_000) - 1;
        redis('ZADD', $key, map { ($from + $_, "$key$_$suffix") } $first .. $last);
    }
    redis('PEXPIRE', $key, 1000_000);
}

# Round numbers: T is the first moment of a bucket, whatever their width here.
my $T = 1_800_000_000_000_000;
my $S = 1_000_000;
my $W = 60 * $S;

subtest 'requests are admitted up to max, each with its own remaining' => sub {
    is_deeply ask($T, ['up', $W, 3]), [2, 1, 60 * $S], 'first';
    is_deeply ask($T + 5 * $S, ['up', $W, 3]), [2, 2, 55 * $S], 'second: the first leaves in 55 s';
    is_deeply ask($T + 10 * $S, ['up', $W, 3]), [2, 3, 50 * $S], 'third';
    is_deeply ask($T + 10 * $S, ['up', $W, 3]), [0, 3, 50 * $S], 'fourth: refused, not counted';
    is redis('ZCARD', 'up'), 3, 'three entries';
};

subtest 'a slot is free exactly when its request is one window old' => sub {
    ask($T, ['edge', $W, 1]);
    is_deeply ask($T + $W - 1, ['edge', $W, 1]), [0, 1, 1], 'a microsecond before: wait for one';
    is_deeply ask($T + $W, ['edge', $W, 1]), [2, 1, $W], 'then: admitted';
};

subtest 'requests of the same microsecond are separate entries' => sub {
    ask($T, ['same', $W, 10]) for 1 .. 10;
    is redis('ZCARD', 'same'), 10;
    is ask($T, ['same', $W, 10])->[0], 0, 'and the eleventh is refused';
};

subtest 'refused requests do not extend the wait' => sub {
    ask($T, ['hammer', $W, 1]);
    ask($T + $_ * 1000, ['hammer', $W, 1]) for 1 .. 500;
    is_deeply ask($T + $W, ['hammer', $W, 1]), [2, 1, $W];
};

subtest 'a lowered max waits for the right entry to leave' => sub {
    ask($T + $_ * $S, ['lower', $W, 5]) for 0 .. 4;
    is_deeply ask($T + 5 * $S, ['lower', $W, 2]), [0, 5, 58 * $S],
        'the fourth entry, of second 3, must leave';
    is_deeply ask($T + 5 * $S, ['lower', $W, 9]), [2, 6, 55 * $S], 'a raised one counts on';
};

subtest 'a request takes as much as it costs' => sub {
    is_deeply ask($T, ['cost', $W, 10, cost => 6]), [2, 6, $W], 'six of ten';
    is_deeply ask($T + $S, ['cost', $W, 10, cost => 5]), [0, 6, 59 * $S], 'five more do not fit';
    is_deeply ask($T + $S, ['cost', $W, 10, cost => 3]), [2, 9, 59 * $S], 'but three do';
    is_deeply ask($T + 2 * $S, ['cost', $W, 10]), [2, 10, 58 * $S], 'and one';

    is_deeply ask($T + 3 * $S, ['cost', $W, 10, cost => 7]), [0, 10, 58 * $S],
        'seven have to wait until six and three have left';
    is_deeply ask($T + 3 * $S, ['cost', $W, 10, cost => 10]), [0, 10, 59 * $S],
        'ten until all has';
    is_deeply ask($T + $W, ['cost', $W, 10, cost => 6]), [2, 10, $S],
        'six fit again when the six have left';
};

subtest 'any number of requests leave at once' => sub {
    for my $count (10, 250, 10_000) {
        redis('ZADD', "all $count", 0, "+$count", map { ($T, "id$_*2") } 1 .. $count);
        is_deeply ask($T + $W, ["all $count", $W, 2 * $count, cost => 2 * $count]), [2, 2 * $count, $W],
            "$count of them make room for one that needs it all";
    }
};

subtest 'a cost of 0 only looks' => sub {
    is_deeply ask($T, ['look', $W, 2, cost => 0]), [1, 0, 0], 'nothing is there';
    is redis('EXISTS', 'look'), 0, 'and nothing is left behind';
    ask($T, ['look', $W, 2]) for 1 .. 2;
    is_deeply ask($T + $S, ['look', $W, 2, cost => 0]), [1, 2, 59 * $S],
        'also a full window lets one look';
    is_deeply ask($T + $W, ['look', $W, 2, cost => 0]), [1, 0, 0], 'all has left';
};

subtest 'a log shows who was counted when, and what for' => sub {
    ask_as('a', $T, ['shown', $W, 10]);
    ask_as('b', $T + 1, ['shown', $W, 10, cost => 5]);
    is_deeply entries('shown'), { a => $T, 'b*5' => $T + 1, '+4' => 0 },
        'and how much more than 1 each costs, in sum';

    ask_as('c', $T + 2, ['shown', $W, 10, cost => 5, rule => 'd']);
    is_deeply entries('shown'), { a => $T, 'b*5' => $T + 1, 'c*5!' => $T + 2, '+8' => 0 },
        'a refused one that counts is marked';

    ask_as('d', $T + $W + 1, ['shown', $W, 10]);
    is_deeply entries('shown'), { 'c*5!' => $T + 2, d => $T + $W + 1, '+4' => 0 },
        'the sum goes down as requests leave';

    ask_as('e', $T + $W + 2, ['shown', $W, 10]);
    is_deeply entries('shown'), { d => $T + $W + 1, e => $T + $W + 2 }, 'and goes when it is 0';

    redis('ZADD', 'shown parts', 0, '+1!5', $T, 'a*2');
    ask_as('b', $T + 1, ['shown parts', $W, 2, rule => 'd']);
    is_deeply entries('shown parts'), { 'a*2' => $T, 'b!536870917' => $T + 1, '+1!536870917' => 0 },
        'what refused ones have taken of max is counted on';
};

subtest 'a request refused by one limit is charged to none' => sub {
    my @both = (['minute', 60 * $S, 2], ['hour', 3600 * $S, 100]);
    ask($T, @both) for 1 .. 2;
    is_deeply ask($T + $S, @both), [0, 2, 59 * $S, 1, 2, 3599 * $S], 'each says how it stands';
    is redis('ZCARD', 'hour'), 2, 'the hour has not moved';

    my @three = (['a', $W, 9, cost => 4], ['b', $W, 9, buckets => 6], ['c', $W, 1]);
    is_deeply ask($T, @three), [2, 4, $W, 2, 1, 70 * $S, 2, 1, $W], 'logs and buckets together';
    is_deeply ask($T, @three), [1, 4, $W, 1, 1, 70 * $S, 0, 1, $W], 'all or nothing';
    is_deeply [ map { redis('ZCARD', $_) } qw(a b c) ], [2, 1, 1];
};

subtest 'one that only looks does not keep the others from counting' => sub {
    my @both = (['watched', $W, 1, cost => 0], ['counted', $W, 5]);
    ask($T, ['watched', $W, 1]);
    is_deeply ask($T, @both), [1, 1, $W, 2, 1, $W];
};

subtest 'refused requests count by rule d' => sub {
    my @limit = ('denied', $W, 2, rule => 'd');
    ask($T, [@limit]) for 1 .. 2;
    is_deeply ask($T + 10 * $S, [@limit]), [0, 3, 50 * $S],
        'both of the others have to leave before there is room beside this one';
    is_deeply ask($T + $W, [@limit]), [2, 2, 10 * $S], 'the refused one still counts';
    is_deeply ask($T + $W, [@limit]), [0, 3, $W], 'who keeps on stays locked out';

    my @mixed = ('denied first', $W, 3, rule => 'd');
    ask($T + $_ * $S, [@mixed]) for 0 .. 2;
    is_deeply ask($T + 3 * $S, [@mixed, cost => 2]), [0, 5, $W], 'also the first one that costs more';

    my @both = (['has room', $W, 5, rule => 'd'], ['full', $W, 1]);
    ask($T, $both[1]);
    is_deeply ask($T, @both), [1, 0, 0, 0, 1, $W], 'but not those that another limit refuses';

    ask($T, ['denied buckets', $W, 2, buckets => 6, rule => 'd']) for 1 .. 5;
    is redis('ZSCORE', 'denied buckets', $T + 10 * $S), 5, 'in buckets as well';
};

subtest 'refused requests are forgotten where they make no difference' => sub {
    my @limit = ('crowd', $W, 4, rule => 'd');
    ask($T, [@limit]) for 1 .. 4;
    my $most = 0;
    for (1 .. 1000) {
        ask($T + $_ * 1000, [@limit]);
        my $size = redis('ZCARD', 'crowd');
        $most = $size if $size > $most;
    }
    cmp_ok $most, '<=', 3 * 4 + 256, "at most $most of 1004 entries";
    is_deeply ask($T + $W + 999_000, [@limit, cost => 0]), [1, 1, 1000],
        'none of them is there when it has left the window';

    my @one = ('crowd for one', $W, 1, rule => 'd');
    my @wrong = grep { ask($T + $_ * 400_001, [@one])->[2] != $W } 0 .. 500;
    is_deeply \@wrong, [], 'the wait is always until the last of them has left';

    # of 200 refused ones before it, when the time picks the last 32
    fill('last of a crowd', $T, 200, '!');
    my $then = $T + 200;
    $then++ until $then % (200 - 31) == 200 - 32;
    is_deeply ask($then, ['last of a crowd', $W, 1, rule => 'd']), [0, 201 - 32, $W], 'the newest that matter stay';

    fill('no crowd', $T, 205, '!');
    is_deeply ask($T + 300, ['no crowd', $W, 200, rule => 'd']), [0, 206, $W - 300 + 6], 'nor are there many yet';

    # 32 that do not matter any more, which the time picks, and as many others as max
    redis('ZADD', 'first to go', 0, '+32!2000000000', (map { ($T + $_, "o$_*2!1") } 0 .. 31),
        map { ($T + 1000 + $_, "n$_") } 0 .. 96);
    $then++ while $then < $T + 2000 || $then % (130 - 31);
    is_deeply ask($then, ['first to go', $W, 98, rule => 'd']), [0, 98, $T + 1000 + $W - $then],
        'the wait is that of the oldest which stays';

    ask($T, ['heavy crowd', $W, 4, cost => 3, rule => 'd']) for 1 .. 1000;
    cmp_ok redis('ZCARD', 'heavy crowd'), '<=', 3 * 4 + 256, 'also if they cost more';
    my $entries = entries('heavy crowd');
    my ($sum) = map { /^\+(\d+)/ } keys %$entries;
    is $sum, 2 * (keys(%$entries) - 1), 'and the sum is that of those which are left';
};

subtest 'only the newest refused ones that cost max together are kept, whatever that is' => sub {
    my $M = 10**9;
    for my $matter (1, 10, 200) {
        my @limit = ("$matter matter", $W, $M, cost => $M / $matter, rule => 'd');
        ask($T, [@limit]) for 1 .. $matter;
        my ($most, @wrong) = (0);
        for my $n (1 .. 1500) {
            my $answer = ask($T + 1000 * $n, [@limit]);
            # it has room when all but the newest that leave some have left
            my $then = $T + ($n > $matter ? 1000 * ($n - $matter + 1) : $n == $matter ? 1000 : 0);
            push @wrong, $n if $answer->[0] != 0 || $answer->[2] != $then + $W - ($T + 1000 * $n);
            my $size = redis('ZCARD', "$matter matter");
            $most = $size if $size > $most;
        }
        is_deeply \@wrong, [], 'every wait is as if all of them were there';
        cmp_ok $most, '<=', 2.2 * $matter + 160, "$matter matter, at most $most of 1500 are kept";
    }

    my @limit = ('largest', $W, 10**15, cost => 10**15, rule => 'd');
    ask($T + $_, [@limit]) for 0 .. 300;
    cmp_ok ask($T + 301, [@limit, cost => 0])->[1], '<', 2**53, 'their sum is never too large to be exact';
};

subtest 'also beside very many that another max has admitted' => sub {
    fill('beside', $T, 20_000, '');
    my @limit = ('beside', $W, 4, rule => 'd');
    my $most = 0;
    for (1 .. 4000) {
        my $answer = ask($T + 20_000 + $_ * 701, [@limit]);
        $most = $answer->[1] if $answer->[1] > $most;
    }
    cmp_ok $most, '<', 20_000 * 1.06, "at most $most entries";
    is redis('ZCOUNT', 'beside', $T, $T + 19_999), 20_000, 'none of the admitted ones is lost';
};

subtest 'a limit with rule n keeps nobody from passing' => sub {
    my @both = (['dry', $W, 1, rule => 'n'], ['real', $W, 9]);
    ask($T, @both);
    is_deeply ask($T + $S, @both), [0, 1, 59 * $S, 2, 2, 59 * $S], 'it says what it would have done';
    is redis('ZCARD', 'dry'), 1, 'and does not count what it would have refused';

    @both = (['dry', $W, 1, rule => 'dn'], ['real', $W, 9]);
    is_deeply ask($T + $S, @both), [0, 2, 60 * $S, 2, 3, 59 * $S], 'unless it counts refused ones';

    @both = (['roomy', $W, 5, rule => 'n'], ['full', $W, 1]);
    is_deeply ask($T, @both), [1, 0, 0, 0, 1, $W], 'what another limit refuses it does not count';
};

subtest 'taking back removes exactly that request from a log' => sub {
    my @limit = ('back', $W, 9);
    ask_as($_, $T, [@limit]) for qw(a b c);
    is take_back('b', $T, [@limit]), 1, 'it was there';
    is_deeply entries('back'), { a => $T, c => $T };
    is take_back('b', $T, [@limit]), 0, 'a second time there is nothing';
    is take_back('x', $T, [@limit]), 0, 'nor for one that never was';
    is_deeply entries('back'), { a => $T, c => $T };

    ask($T + $W, [@limit]);
    is take_back('a', $T, [@limit]), 0, 'nor when it has left the window';
    is redis('ZCARD', 'back'), 1;

    ask_as('r', $T, ['back refused', $W, 1, rule => 'd']) for 1 .. 2;
    is take_back('r', $T, ['back refused', $W, 1, rule => 'd']), 1;
    is_deeply entries('back refused'), { 'r!' => $T }, 'what was refused stays';
};

subtest 'taking back what cost more gives all of that back' => sub {
    my @limit = ('heavy', $W, 20);
    ask_as('a', $T, [@limit, cost => 5]);
    ask_as('b', $T, [@limit, cost => 3]);
    ask_as('c', $T, [@limit]);
    is take_back('a', $T, [@limit, cost => 5]), 1;
    is_deeply entries('heavy'), { 'b*3' => $T, c => $T, '+2' => 0 };
    is take_back('a', $T, [@limit, cost => 5]), 0, 'once';
    is_deeply ask($T, [@limit, cost => 0]), [1, 4, $W];
    is take_back('b', $T, [@limit, cost => 3]), 1;
    is_deeply entries('heavy'), { c => $T }, 'no sum is left when none costs more than 1';
    is take_back('c', $T, [@limit]), 1;
    is redis('EXISTS', 'heavy'), 0, 'no key when there is nothing in it';
};

subtest 'costs may be as large as max, and stay exact' => sub {
    my ($M, @limit) = (10**15, 'huge', $W, 10**15);
    is_deeply ask_as('a', $T, [@limit, cost => 4 * 10**14]), [2, 4 * 10**14, $W];
    is_deeply ask_as('b', $T + 1, [@limit, cost => 6 * 10**14 - 1]), [2, $M - 1, $W - 1];
    is_deeply ask_as('c', $T + 2, [@limit]), [2, $M, $W - 2], 'to the last unit';
    is_deeply entries('huge'), { 'a*400000000000000' => $T, 'b*599999999999999' => $T + 1, c => $T + 2, '+999999999999997' => 0 },
        'written out in full';
    is_deeply ask($T + 3, [@limit, cost => 4 * 10**14 + 1]), [0, $M, $W - 2], 'one more than the first has to wait for the second';
    is_deeply ask($T + 3, [@limit, cost => $M]), [0, $M, $W - 1], 'all of it for all of them';
    is take_back('b', $T + 1, [@limit, cost => 6 * 10**14 - 1]), 1, 'and can be taken back';
    is_deeply entries('huge'), { 'a*400000000000000' => $T, c => $T + 2, '+399999999999999' => 0 };

    @limit = ('huge buckets', $W, $M, buckets => 6);
    is_deeply ask($T, [@limit, cost => $M - 1]), [2, $M - 1, 70 * $S], 'in buckets as well';
    is_deeply ask($T, [@limit]), [2, $M, 70 * $S];
    is_deeply ask($T + 10 * $S, [@limit]), [0, $M, 60 * $S];
};

subtest 'taking back from a bucket takes it from where it was counted' => sub {
    my @limit = ('pail', $W, 20, buckets => 6);
    my ($first, $second) = ($T + 10 * $S, $T + 20 * $S);
    ask_as('a', $T, [@limit]);
    ask_as('b', $T + $S, [@limit, cost => 4]);
    ask_as('c', $T + 10 * $S, [@limit, cost => 2]);
    is take_back('b', $T + $S, [@limit, cost => 4]), 1;
    is_deeply entries('pail'), { $first => 1, $second => 2 }, 'a bucket is named after its end';
    is take_back('a', $T, [@limit]), 1;
    is_deeply entries('pail'), { $second => 2 }, 'an empty bucket goes';
    is take_back('a', $T, [@limit]), 0, 'and then there is nothing to take back';
    is take_back('c', $T + 10 * $S, [@limit, cost => 5]), 1;
    is redis('EXISTS', 'pail'), 0, 'never more than is there';
};

subtest 'several are taken back at once, as many as there are' => sub {
    my @limits = (['all a', $W, 5], ['all b', $W, 5, cost => 2], ['all c', $W, 5, buckets => 3]);
    ask_as('x', $T, @limits);
    is take_back('x', $T, @limits[0, 2]), 2, 'two of three';
    is take_back('x', $T, @limits), 1, 'the third';
    is redis('EXISTS', map { "all $_" } qw(a b c)), 0;
};

subtest 'a bucket leaves as a whole, never too early and less than a bucket late' => sub {
    my @limit = ('bucket', $W, 3, buckets => 6);
    my ($first, $second) = ($T + 10 * $S, $T + 20 * $S);
    is_deeply ask($T, [@limit]), [2, 1, 70 * $S], 'at the beginning of a bucket: all of it must be old';
    is_deeply ask($T + 10 * $S - 1, [@limit]), [2, 2, 60 * $S + 1], 'at its end: just over a window';
    is_deeply entries('bucket'), { $first => 2 }, 'both are in the same';
    is_deeply ask($T + 10 * $S, [@limit]), [2, 3, 60 * $S], 'the next one begins';
    is_deeply entries('bucket'), { $first => 2, $second => 1 };

    is_deeply ask($T + 70 * $S - 1, [@limit]), [0, 3, 1], 'a microsecond before: full';
    is_deeply ask($T + 70 * $S, [@limit]), [2, 2, 10 * $S], 'then: two are free';
    is_deeply entries('bucket'), { $second => 1, $T + 80 * $S => 1 };

    is_deeply ask($T, ['one bucket', $W, 3, buckets => 1]), [2, 1, 2 * $W], 'so it does if there is only one';
};

subtest 'buckets wait for the bucket that makes enough room' => sub {
    my @limit = ('wait for it', $W, 10, buckets => 6);
    ask($T, [@limit, cost => 5]);
    ask($T + 10 * $S, [@limit]);
    ask($T + 20 * $S, [@limit, cost => 4]);
    is_deeply ask($T + 30 * $S, [@limit, cost => 5]), [0, 10, 40 * $S], 'the first has enough';
    is_deeply ask($T + 30 * $S, [@limit, cost => 6]), [0, 10, 50 * $S], 'the second is needed, too';
    is_deeply ask($T + 30 * $S, [@limit, cost => 7]), [0, 10, 60 * $S], 'all of them';
};

subtest 'there are few buckets, however many requests' => sub {
    my $most = 0;
    for (1 .. 500) {
        ask($T + $_ * $S, ['few', $W, 1_000_000, buckets => 6]);
        my $size = redis('ZCARD', 'few');
        $most = $size if $size > $most;
    }
    is $most, 7, 'one more than a window has';
};

subtest 'a window that is no multiple of its buckets is not cut short' => sub {
    ask(10 * $T, ['odd', 100, 1, buckets => 7]);
    my $wait = ask(10 * $T, ['odd', 100, 1, buckets => 7])->[2];
    cmp_ok $wait, '>=', 100;
    cmp_ok $wait, '<=', 8 * 15;
};

subtest 'another window or number of buckets leaves no count behind for ever' => sub {
    ask($T, ['resized', $W, 9, buckets => 6]) for 1 .. 2;
    is_deeply ask($T, ['resized', 10 * $W, 9, buckets => 6]), [2, 3, 610 * $S], 'larger ones take over';
    is_deeply ask($T + 10 * $W + 10 * $S, ['resized', 10 * $W, 9, buckets => 6, cost => 0]), [1, 1, 90 * $S],
        'a window later only what was counted in the larger ones is there';

    ask($T, ['wider', $W, 10, buckets => 6, cost => 5]);
    is_deeply ask($T, ['wider', 90 * $S, 10, buckets => 6, cost => 7]), [0, 5, 90 * $S],
        'for a wait theirs is the last of the larger ones that has ended by then';

    ask($T, ['shrunk', 10 * $W, 9, buckets => 6]) for 1 .. 2;
    is ask($T + 1, ['shrunk', $W, 9, buckets => 6])->[1], 3, 'smaller ones, too';
    is ask($T + 10 * $W + 100 * $S, ['shrunk', $W, 9, buckets => 6, cost => 0])->[1], 0;
};

subtest 'another algorithm starts anew' => sub {
    ask($T, ['turn', $W, 5, cost => 2]) for 1 .. 2;
    is_deeply ask($T, ['turn', $W, 5, buckets => 6]), [2, 1, 70 * $S], 'from a log to buckets';
    is_deeply entries('turn'), { $T + 10 * $S => 1 };
    is_deeply ask($T, ['turn', $W, 5]), [2, 1, $W], 'from buckets to a log';
    is redis('ZCARD', 'turn'), 1;
    is_deeply ask($T, ['turn', $W, 5, cost => 2]), [2, 3, $W], 'which then goes on';
};

# ask_short(now in us, window, max, key => id, ...): one answer for each
sub ask_short {
    my ($now, $window, $max, @requests) = @_;
    my @keys = map { $requests[2 * $_] } 0 .. $#requests / 2;
    my @ids = map { $requests[2 * $_ + 1] } 0 .. $#requests / 2;
    my $answer = redis('EVALSHA', $steered_sha, scalar @keys, @keys, '/1', $window, $max, @ids,
        sprintf '%d:%d', $now / 1000000, $now % 1000000);
    return $answer if $answer =~ /^error/;
    my @numbers = ref $answer ? @$answer : unpack 'q<*', $answer;
    return 'another time' if pop @numbers != $now;
    return map { [ splice @numbers, 0, 3 ] } @keys;
}

subtest 'a clock that steps back admits nothing early' => sub {
    ask($T, ['stepped', 10 * $S, 2]) for 1 .. 2;
    is_deeply ask($T - 5 * $S, ['stepped', 10 * $S, 2]), [0, 2, 10 * $S], 'still full';
    is ask($T + 5 * $S - 1, ['stepped', 10 * $S, 2])->[0], 0, 'for a window';
    is_deeply ask($T + 5 * $S, ['stepped', 10 * $S, 2]), [2, 1, 10 * $S], 'and no longer';

    my @limit = ('stepped buckets', $W, 2, buckets => 6);
    ask($T, [@limit]) for 1 .. 2;
    is_deeply ask($T - 50 * $S, [@limit]), [0, 2, 70 * $S], 'nor do buckets';
    is_deeply entries('stepped buckets'), { $T - 40 * $S => 2, moved => -($T + 10 * $S) }, 'where they count as of now';
    is_deeply ask($T + 20 * $S, [@limit]), [2, 1, 70 * $S], 'and leave with the others of now';
};

my $H = 3600 * $S;

subtest 'who is refused after a step of the clock is refused for one window' => sub {
    for my $with ([], [cost => 2], [buckets => 6]) {
        my ($kind) = (@$with, 'log');
        my @limit = ("hour $kind", $W, 4, @$with);
        my $stays = $kind eq 'buckets' ? 70 * $S : $W;
        ask($T, [@limit]) for 1 .. 4;
        redis('PEXPIRE', "hour $kind", 1000);
        my $wait = ask($T - $H, [@limit])->[2];
        cmp_ok $wait, '<=', $stays, "$kind: a wait of $wait us";
        my $ttl = redis('PTTL', "hour $kind");
        cmp_ok $ttl, '>=', $wait / 1000, 'as long as the set lives';
        cmp_ok $ttl, '<=', 2 * $W / 1000 + 1000, 'which is not much longer';
        is ask($T - $H + $wait - 1, [@limit])->[0], 0, 'up to its end';
        is ask($T - $H + $wait, [@limit])->[0], 2, 'and not longer';
    }

    my @limit = ('partly', 10 * $S, 3);
    ask($T + $_ * $S, [@limit]) for -3, 0, -2;
    is_deeply ask($T - 1 * $S, [@limit]), [0, 3, 8 * $S], 'also where only the newest is from the future';
    is_deeply ask($T + 9 * $S - 1, [@limit, cost => 0]), [1, 1, 1], 'which leaves with the others of that time';

    is_deeply ask_short($T, 10 * $S, 1, "short $_" => 'a'), [2, 1, 10 * $S] for 1 .. 2;
    is_deeply [ ask_short($T - $H, 10 * $S, 1, 'short 1' => 'b', 'short 2' => 'b') ], [ ([-1, 0, 0]) x 2 ],
        'several at once are told to ask alone';
    is_deeply ask_short($T - $H, 10 * $S, 1, 'short 1' => 'b'), [0, 1, 10 * $S], 'one by one they are refused';
};

subtest 'nothing is taken back from buckets whose counts were moved' => sub {
    my @limit = ('whose', $W, 3, buckets => 6);
    ask_as('A', $T, [@limit]);
    is ask($T - 15 * $S, [@limit, cost => 0])->[1], 1, 'the clock steps back';
    ask_as($_, $T + 1, [@limit]) for qw(D E);
    is call_at($T + 2, $T, 'A', [@limit]), 0, 'then it is not known where the count went';
    is ask($T + 3, [@limit])->[0], 0, 'so it still counts';
    is_deeply ask($T + 55 * $S, [@limit]), [2, 3, 15 * $S], 'as long as what was counted when it was moved';
    is ask($T + 56 * $S, [@limit])->[0], 0, 'and there are never more than max';

    ask_as('H', $T + 62 * $S, [@limit, cost => 0]);
    is call_at($T + 62 * $S, $T + 1, 'D', [@limit]), 0, 'nor is what was counted in the same bucket later';
    is_deeply ask($T + 70 * $S, [@limit, cost => 0]), [1, 1, 50 * $S];
    is_deeply entries('whose'), { $T + 60 * $S => 1 }, 'until that has left the window';
    is call_at($T + 71 * $S, $T + 55 * $S, 'F', [@limit]), 1, 'what was counted after it can be taken back';
    is redis('EXISTS', 'whose'), 0;

    ask_as('A', $T, [@limit]);
    ask($T - 15 * $S, [@limit, cost => 0]);
    is_deeply ask($T, ['whose', $W, 3]), [2, 1, $W], 'a log that takes their place starts anew';
    is redis('ZCARD', 'whose'), 1;
    ask_as('A', $T, ['whose short', $W, 3, buckets => 6]);
    ask($T - 15 * $S, ['whose short', $W, 3, buckets => 6, cost => 0]);
    is_deeply ask_short($T, $W, 3, 'whose short' => 'x'), [2, 1, $W];
    is_deeply entries('whose short'), { x => $T };
};

subtest 'what is counted stays what it is when the clock steps back' => sub {
    my @limit = ('kept', $W, 9);
    ask_as('a', $T, [@limit, cost => 5]);
    ask_as('b', $T, [@limit, cost => 4]);
    ask_as('c', $T, [@limit, rule => 'd']);
    ask($T - $H, [@limit]);
    is_deeply entries('kept'), { 'a*5' => $T - $H, 'b*4' => $T - $H, 'c!' => $T - $H, '+7' => 0 };
    is call_at($T - $H, $T, 'a', [@limit, cost => 5]), 1, 'and can be taken back';

    ask($T, ['set right', $W, 1]);
    ask($T - $H, ['set right', $W, 1]);
    is ask($T + 1, ['set right', $W, 1])->[0], 2, 'a clock that is set right again is as if the time had passed';
};

# Calls until it is decided: how many it took, and the answer.
sub ask_until_decided {
    my ($now, @limits) = @_;
    my $calls = 0;
    while ($calls < 1000) {
        $calls++;
        my $answer = ask($now, @limits);
        return ($calls, $answer) if $answer->[0] != -1;
    }
    return ($calls);
}

subtest 'a call removes a part of very many that leave, and counts exactly' => sub {
    fill('many', $T, 5000, '');
    my @limit = ('many', $W, 5000);
    is_deeply ask($T + $W + 3999, [@limit]), [2, 1001, 1], 'a thousand are left';
    cmp_ok redis('ZCARD', 'many'), '>', 3000, 'though others are still there';
    is_deeply ask($T + $W + 3999, [@limit, cost => 0]), [1, 1001, 1], 'they do not count';
    is_deeply ask($T + $W + 4499, ['many', $W, 101]), [0, 501, 401], 'nor for a wait';
    is_deeply ask($T + $W + 4499, ['many', $W, 501, cost => 2]), [0, 501, 2], 'also with a cost';
    ask($T + $W + 4499, [@limit]) for 1 .. 5;
    is redis('ZCARD', 'many'), 506, 'later calls remove the rest';

    is_deeply [ ask_short($T + 3 * $W, $W, 9, many => 'x') ], [ [2, 1, $W] ], 'all of them leave at once';
    is_deeply entries('many'), { x => $T + 3 * $W };

    fill('but one', $T, 2000, '');
    is_deeply [ ask_short($T + $W + 1024, $W, 2000, 'but one' => 'x') ], [ [2, 976, 1] ],
        'nor does one count that could not be removed';
};

subtest 'of very many with costs, bounds decide while they are added up' => sub {
    my $fill = sub {
        my ($key) = @_;
        redis('DEL', $key);
        fill($key, $T, 5000, '*3');
        redis('ZADD', $key, 0, '+10000');
    };
    # 1000 are left, and cost 3000; of the others 128 are added up by a call
    my $now = $T + $W + 3999;
    my $at_most = 1000 + 10_000 - 2 * 128;

    $fill->('bounds');
    is_deeply ask($now, ['bounds', $W, $at_most + 3, cost => 3]), [2, $at_most + 3, 1],
        'admitted if all that is not added up could still be used, and that is what seems to be';
    $at_most -= 2 * 128;
    is_deeply ask($now, ['bounds', $W, 1, cost => 0]), [1, $at_most + 3, 1], 'another call finds less';

    $fill->('bounds');
    is_deeply ask($now, ['bounds', $W, 3, cost => 3]), [0, 1000 + 10_000 - 2 * 128, 96],
        'a wait is that of as many as can be read besides';

    $fill->('bounds');
    # each of the newest 32 is known to cost 3
    my $at_least = 1000 + 2 * 32;
    my $refused = ask($now, ['bounds', $W, $at_least + 2, cost => 3]);
    is_deeply [ @$refused[0, 2] ], [0, 1], 'refused if what is known leaves no room, until the first has left';
    $refused = ask($now, ['bounds', $W, $at_least + 1 - 30, cost => 3]);
    is_deeply [ @$refused[0, 2] ], [0, 11], 'or as many as have to, as far as is known';
    is_deeply ask($now, ['bounds', $W, $at_least + 3, cost => 3]), [-1, 0, 0], 'between the bounds it is not decided';
    is redis('ZCOUNT', 'bounds', $now, '+inf'), 0, 'nothing is counted then';

    my ($calls, $answer) = ask_until_decided($now, ['bounds', $W, 3003, cost => 3]);
    is_deeply $answer, [2, 3003, 1], 'in the end it is as exact as ever';
    cmp_ok $calls, '<', 5000 / 128, "after $calls calls, each of which removes some";
    is redis('ZCARD', 'bounds'), 1002;

    fill('one unsure', $T, 1000, '');
    redis('ZREM', 'one unsure', 'one unsure500');
    redis('ZADD', 'one unsure', $T + 500, 'x*2', $now, 'y', 0, '+1');
    is_deeply ask($now, ['one unsure', $W, 2]), [-1, 0, 0], 'be it between them by 1';
    ($calls, $answer) = ask_until_decided($now, ['one unsure', $W, 2]);
    is_deeply $answer, [2, 2, $W];

    fill('last one', $T, 1000, '*3');
    redis('ZADD', 'last one', $now, 'x*3', 0, '+2002');
    is ask($now, ['last one', $W, 5, cost => 3])->[0], 0, 'or be there a single one that is left';

    redis('ZADD', 'few expire', $T, 'a*3', (map { ($now + $_, "b$_*3") } 1 .. 100), 0, '+202');
    is_deeply ask($now + 100, ['few expire', $W, 300, cost => 30]), [0, 300, $W - 90],
        'after a few that leave nothing is unsure';

    fill('all costs', $T, 5000, '*3');
    redis('ZADD', 'all costs', 0, '+10000');
    is_deeply ask($T + $W + 4999, ['all costs', $W, 9]), [2, 1, $W], 'if all have left that takes one';
    is redis('ZCARD', 'all costs'), 1;
};

subtest 'past so many with costs a wait is too early' => sub {
    fill('far', $T, 1000, '*3');
    redis('ZADD', 'far', 0, '+2000');
    my $now = $T + 1000;
    is_deeply ask($now, ['far', $W, 3000, cost => 3 * 256]), [0, 3000, $W - 1000 + 255], 'which is exact up to there';
    is_deeply ask($now, ['far', $W, 3000, cost => 3 * 256 + 1]), [0, 3000, $W - 1000 + 255];
};

subtest 'a log that never held more than max is always decided at once' => sub {
    my $now = $T + $W + 15_000;
    for my $cost (1, 2, 5, 1000) {
        redis('DEL', 'full before');
        fill('full before', $T, 20_000, '*5');
        redis('ZADD', 'full before', 0, '+80000');
        is ask($now, ['full before', $W, 100_000, cost => $cost])->[0], 2, "a cost of $cost";
    }
};

subtest 'what one limit has to remove keeps no other from being decided' => sub {
    fill('removes', $T, 100_000, '');
    fill('removes costs', $T, 100_000, '*2');
    redis('ZADD', 'removes costs', 0, '+100000');
    my $now = $T + $W + 90_000;
    for my $other ('removes', 'removes costs') {
        redis('ZADD', 'one left', $T, 'a*3', $now, 'b*3', 0, '+4');
        my @limits = ([$other, $W, 300_000], ['one left', $W, 6, cost => 3]);
        is_deeply [ @{ ask($now, @limits) }[3 .. 5] ], [2, 6, $W], "beside $other";
        redis('DEL', 'one left');
        is_deeply [ @{ ask($now, reverse @limits) }[0 .. 2] ], [2, 3, $W], 'or before it';
        redis('DEL', 'one left');
    }

    redis('ZADD', 'one of many', $T, 'a', map { ($now, "b$_") } 1 .. 2000);
    is_deeply [ ask_short($now, $W, 9000, removes => 'x', 'one of many' => 'y') ], [[-1, 0, 0], [2, 2001, $W]],
        'also of several at once';
};

subtest 'every limit has its share of what a call does, and what others have left' => sub {
    my @keys = ('share a', 'share b');
    for my $key (@keys) {
        fill($key, $T, 2000, '*3');
        redis('ZADD', $key, 0, '+4000');
    }
    ask($T + $W + 999, map { [$_, $W, 9000, cost => 0] } @keys);
    is_deeply [ map { 2001 - redis('ZCARD', $_) } @keys ], [62, 93], 'of what is added up';

    redis('DEL', @keys);
    fill($_, $T, 2000, '') for @keys;
    is_deeply [ ask_short($T + $W + 999, $W, 2000, map { $_ => 'x' } @keys) ], [ ([-1, 0, 0]) x 2 ];
    is_deeply [ map { 2000 - redis('ZCARD', $_) } @keys ], [496, 496], 'of what only has to be removed';

    redis('DEL', @keys);
    fill($_, $T, 2000, '') for @keys;
    is_deeply ask($T + 999, map { [$_, $W, 2000] } @keys), [ (-1, 0, 0) x 2 ];
    is_deeply [ map { 1000 - redis('ZCOUNT', $_, '(' . ($T + 999), '+inf') } @keys ], [124, 124],
        'of what is from the future';

    redis('DEL', @keys);
    @keys = map { "share $_" } 1 .. 16;
    fill($_, $T, 500, '') for @keys;
    my @answers = ask_short($T + $W + 399, $W, 500, map { $_ => 'x' } @keys);
    is_deeply $answers[0], [2, 101, 1], 'the first removes all that has left';
    is $answers[$_][0], -1, 'others none that is still counted' for 1 .. 15;
    is_deeply [ ask_short($T + $W + 399, $W, 500, $_ => 'y') ], [[2, 101, 1]], 'as they get to know alone'
        for @keys[1 .. 15];
};

subtest 'so it is of very many from the future' => sub {
    fill('some ahead', $T, 2000, '');
    my ($calls, $answer) = ask_until_decided($T + 999, ['some ahead', $W, 2000]);
    is_deeply $answer, [0, 2000, $W - 999], 'each is given its time';
    is $calls, 4, 'a call does so with 256';
    is redis('ZCOUNT', 'some ahead', '(' . ($T + 999), '+inf'), 0;

    fill('all ahead', $T, 2000, '*3');
    redis('ZADD', 'all ahead', 0, '+4000');
    is_deeply ask($T - $H, ['all ahead', $W, 6000]), [0, 6000, $W], 'if all are, that takes one';
    is_deeply entries('all ahead'), { $T - $H . '*6000' => $T - $H, '+5999' => 0 }, 'they become one entry';
    is_deeply ask($T - $H + 1, ['all ahead', $W, 6000, cost => 2]), [0, 6000, $W - 1], 'for which others wait';
    is_deeply ask($T - $H + $W, ['all ahead', $W, 9]), [2, 1, $W], 'which leaves as all of them do';

    fill('all ones', $T, 2000, '');
    is_deeply ask($T - $H, ['all ones', $W, 2000, cost => 2]), [0, 2000, $W], 'also those that cost 1';

    fill('torn', $T, 1000, '*3');
    redis('ZADD', 'torn', 0, '+2600', map { ($T + 2 * $W + $_, "ahead$_*3") } 1 .. 300);
    is_deeply ask($T + $W + 999, ['torn', $W, 3]), [-1, 0, 0], 'but not before it is known what they cost';
    ($calls, $answer) = ask_until_decided($T + $W + 999, ['torn', $W, 3]);
    is_deeply $answer, [0, 900, $W];
};

subtest 'an ordinary request may be asked about in a shorter form' => sub {
    is_deeply ask_short($T, $W, 2, short => 'a'), [2, 1, $W], 'the first';
    is_deeply ask_short($T + 1, $W, 2, short => 'b'), [2, 2, $W - 1], 'another';
    is_deeply entries('short'), { a => $T, b => $T + 1 };
    cmp_ok redis('PTTL', 'short'), '>=', $W / 1000, 'with a time to live';
    is_deeply ask_short($T + 2, $W, 2, short => 'c'), [0, 2, $W - 2], 'one that is refused';
    is_deeply ask_short($T + 2, $W, 1, short => 'c'), [0, 2, $W - 1], 'and one that has to wait for more than the oldest';
    is_deeply ask_short($T + $W, $W, 2, short => 'c'), [2, 2, 1], 'when one has left there is room';
    is_deeply entries('short'), { b => $T + 1, c => $T + $W };

    ask_as('heavy', $T + $W, ['short', $W, 9, cost => 4]);
    is_deeply ask_short($T + $W, $W, 9, short => 'd'), [2, 7, 1], 'also after one that costs more than 1';
    is entries('short')->{d}, $T + $W, 'counted as itself';
    is_deeply ask_short($T + 2 * $W, $W, 9, short => 'e'), [2, 1, $W], 'until all has left';
};

subtest 'several ordinary requests at once are decided as one after the other' => sub {
    srand 1;
    my ($now, $id, $different) = ($T, 0, 0);
    for (1 .. 300) {
        $now += int rand $W / 20;
        my @requests = map { ('several' . int(rand 4), 'id' . ++$id) } 1 .. 2 + rand 6;
        my $max = 3 + int rand 8;
        my @one_by_one = map { ask_as($requests[$_ + 1], $now, ["alone$requests[$_]", $W, $max]) }
            grep { $_ % 2 == 0 } 0 .. $#requests;
        my @at_once = ask_short($now, $W, $max, @requests);
        $different++ unless "@{[ map { @$_ } @one_by_one ]}" eq "@{[ map { @$_ } @at_once ]}";
    }
    is $different, 0, "$id requests";
    is_deeply entries("several$_"), entries("aloneseveral$_"), 'the same is counted' for 0 .. 3;
    cmp_ok redis('PTTL', "several$_"), '>', $W / 1000 - 5000, 'and expires' for 0 .. 3;
};

subtest 'so are those that have several limits each' => sub {
    srand 1;
    my ($now, $id, $different) = ($T, 0, 0);
    for (1 .. 300) {
        $now += int rand $W / 20;
        my @maxes = map { 3 + int rand 8 } 1 .. 2;
        my @requests = map { ['id' . ++$id, 'narrow' . int(rand 3), 'wide' . int(rand 3)] } 1 .. 1 + rand 5;
        my @one_by_one = map {
            my ($id, $narrow, $wide) = @$_;
            @{ ask_as($id, $now, ["alone$narrow", $W / 2, $maxes[0]], ["alone$wide", $W, $maxes[1]]) }
        } @requests;
        my $answer = redis('EVALSHA', $steered_sha, 2 * @requests, (map { @$_[1, 2] } @requests),
            '/2', $W / 2, $maxes[0], $W, $maxes[1], (map { $_->[0] } @requests),
            sprintf '%d:%d', $now / 1000000, $now % 1000000);
        $different++ unless "@one_by_one $now" eq join ' ', unpack 'q<*', $answer;
    }
    is $different, 0, "$id requests";
    is_deeply entries($_), entries("alone$_"), 'the same is counted'
        for map { ("narrow$_", "wide$_") } 0 .. 2;
};

subtest 'those that are no ordinary ones keep the others from nothing' => sub {
    redis('SET', 'a string', 1);
    ask_as('heavy', $T, ['with costs', $W, 9, cost => 4]);
    is_deeply [ ask_short($T, $W, 9, before => 'a', 'a string' => 'b', 'with costs' => 'c', after => 'd') ],
        [[2, 1, $W], [-1, 0, 0], [-1, 0, 0], [2, 1, $W]];
    is_deeply entries('with costs'), { 'heavy*4' => $T, '+3' => 0 }, 'nothing is counted there';
    like ask_short($T, $W, 9, 'a string' => 'b'), qr/^error: WRONGTYPE/, 'alone it gets to know why';
};

subtest 'nor is anything counted where another limit has to be asked about in the longer form' => sub {
    ask_as('heavy', $T, ['heavy limit', $W, 9, cost => 4]);
    my $answer = redis('EVALSHA', $steered_sha, 6, 'first a', 'heavy limit', 'heavy limit', 'first b',
        'first c', 'second c', '/2', $W, 9, $W, 9, 'a', 'b', 'c', sprintf '%d:0', $T / 1000000);
    is_deeply [ unpack 'q<*', $answer ],
        [(-1, 0, 0) x 4, 2, 1, $W, 2, 1, $W, $T], 'whichever of them it is';
    is redis('EXISTS', 'first a', 'first b'), 0;
    is_deeply entries('second c'), { c => $T };
};

subtest 'ordinary requests take the short way, whatever else has happened' => sub {
    my $is_short = sub {
        my ($now, $id) = @_;
        my $answer = redis('EVALSHA', $steered_sha, 1, 'way', '/1', $W, 3, $id,
            sprintf '%d:%d', $now / 1000000, $now % 1000000);
        return length $answer == 4 * 8;
    };

    ok $is_short->($T, 'a'), 'the first';
    ok $is_short->($T, 'b'), 'another of the same microsecond';
    ok $is_short->($T + 1, 'c'), 'the last that is admitted';
    ok $is_short->($T + 1, 'd'), 'one that is refused';
    ok $is_short->($T + $W, 'e'), 'one that comes when others leave';
    ok $is_short->($T + $W - 1, 'f'), 'one that is admitted though the clock has stepped back';
    ok !$is_short->($T + $W - 1, 'g'), 'but not one that is refused then';
    is entries('way')->{e}, $T + $W - 1, 'as what is from the future has to be moved';
    ok $is_short->($T + $W - 1, 'h'), 'which is done once';
    ok !$is_short->($T - 1, 'i'), 'nor one that comes before all that is counted';

    redis('DEL', 'way');
    fill('way', $T, 2000, '');
    ok $is_short->($T + 2 * $W, 'j'), 'one that comes when very many have left';
    is_deeply entries('way'), { j => $T + 2 * $W };
};

subtest 'every key has a time to live, never shorter than what is in it' => sub {
    for my $window (100_000, 1_500_000, 60 * $S, 31 * 86400 * $S) {
        for my $with ([], [cost => 2], [buckets => 10]) {
            my ($kind) = (@$with, 'log');
            my $stays = $kind eq 'buckets' ? 1.1 * $window : $window;
            ask($T, ["ttl$kind$window", $window, 5, @$with]);
            my $ttl = redis('PTTL', "ttl$kind$window");
            cmp_ok $ttl, '>=', $stays / 1000, "$kind, window of $window us: lives $ttl ms";
            cmp_ok $ttl, '<=', $stays / 1000 + 1000, 'and not much longer';
        }
    }

    ask($T, ['renewed', $W, 5]);
    redis('PEXPIRE', 'renewed', 1000);
    ask($T, ['renewed', $W, 5]);
    cmp_ok redis('PTTL', 'renewed'), '>', 50_000, 'what is counted renews it';
    cmp_ok redis('PTTL', 'renewed'), '<=', 2 * $W / 1000 + 1000, 'for two windows at most';
    redis('PEXPIRE', 'renewed', 10_000);
    ask($T, ['renewed', $W, 2]);
    cmp_ok redis('PTTL', 'renewed'), '<=', 10_000, 'what is refused does not';
    ask($T, ['renewed', $W, 2, rule => 'd']);
    cmp_ok redis('PTTL', 'renewed'), '>', 50_000, 'unless it counts';

    my $is_renewed = sub {
        my ($key, $what) = @_;
        my $ttl = redis('PTTL', $key);
        ok $ttl >= 1.9 * $W / 1000 && $ttl <= 2 * $W / 1000 + 1000, "$what: lives $ttl ms";
        redis('PEXPIRE', $key, 1000);
    };
    ask_short($T + $_, $W, 5, 'short life' => $_) for 0 .. 3;
    $is_renewed->('short life', 'in the shorter form, with the second');
    ask_short($T + $W, $W, 5, 'short life' => 'x');
    $is_renewed->('short life', 'whenever one leaves');
    ask($T + $W + 1, ['short life', $W, 5, cost => 0]);
    $is_renewed->('short life', 'also if somebody only looks then');
};

# Redis's own clock goes with the one that is steered: keys live shorter by as much.
sub pass_time {
    my ($microseconds, @keys) = @_;
    for my $key (@keys) {
        my $ttl = redis('PTTL', $key);
        redis('PEXPIRE', $key, $ttl - int $microseconds / 1000) if $ttl != -2;
    }
}

subtest 'a key outlives those that are younger than what is taken back' => sub {
    my @limit = ('younger', $W, 9);
    ask_as($_->[1], $T + $_->[0] * $W, [@limit]) for [0, 'a'], [0.1, 'b'];
    redis('PEXPIRE', 'younger', 1.1 * $W / 1000);
    ask_short($T + $_->[0] * $W, $W, 9, younger => $_->[1]) for [0.9, 'c'], [0.95, 'd'];
    take_back('a', $T, [@limit]);
    take_back('b', $T + 0.1 * $W, [@limit]);
    my $ttl = redis('PTTL', 'younger');
    cmp_ok $ttl, '>=', 1.9 * $W / 1000, 'by as long as others may come without renewing it';
    cmp_ok $ttl, '<=', 2 * $W / 1000 + 1000, 'and no longer';
};

subtest 'no key goes before what is in it, whatever is asked and taken back' => sub {
    srand 2;
    my @keys = map { "lasting$_" } 1 .. 3;
    my ($now, $id, $too_early, $too_late, @counted) = ($T, 0, 0, 0);

    for (1 .. 4000) {
        # now and then long enough for all to leave
        my $step = int(rand() < 0.02 ? rand 2 * $W : rand $W / 8);
        pass_time($step, @keys);
        $now += $step;

        my ($key, $what) = ($keys[rand @keys], rand);
        if ($what < 0.5) {
            my @requests = map { ($keys[rand @keys], 's' . ++$id) } 1 .. 1 + rand 3;
            my @answers = ask_short($now, $W, 8, @requests);
            push @counted, [$now, $requests[2 * $_ + 1], [$requests[2 * $_], $W, 8]]
                for grep { $answers[$_][0] == 2 } 0 .. $#answers;
        }
        elsif ($what < 0.8) {
            my @limits = map { [$_, $W, 8, $what < 0.6 ? (cost => 2) : $what < 0.65 ? (rule => 'd') : ()] }
                $what < 0.7 ? $key : @keys;
            my $answer = ask_as('l' . ++$id, $now, @limits);
            push @counted, [$now, "l$id", @limits] if $answer->[0] == 2;
        }
        elsif (@counted) {
            my ($then, $whose, @limits) = @{ splice @counted, rand @counted, 1 };
            call_at($now, $then, $whose, @limits);
        }
        @counted = grep { $_->[0] > $now - $W } @counted;

        for my $lasting (@keys) {
            my %entry = %{ entries($lasting) };
            my ($newest) = sort { $b <=> $a } values %entry or next;
            my $ttl = redis('PTTL', $lasting);
            # a millisecond for every rounding, and some for the time that this takes
            $too_early++ if $newest && $ttl * 1000 < $newest + $W - $now - 500_000;
            $too_late++ if $ttl > 2 * $W / 1000 + 1000;
        }
    }
    is $too_early, 0, 'none too early';
    is $too_late, 0, 'nor more than a window late';
};

subtest 'the script as shipped uses the clock of Redis' => sub {
    my ($sec) = @{ redis('TIME') };
    my $answer = redis('EVAL', $script, script_args('', 'me', ['clock', $W, 1]));
    my $time = pop @$answer;
    is_deeply $answer, [2, 1, $W];
    is_deeply entries('clock'), { me => $time }, 'scored with the time of the answer';
    cmp_ok abs($time / $S - $sec), '<', 5, 'which is the present, in microseconds';
    is redis('EVAL', $script, script_args($time, 'me', ['clock', $W, 1])), 1,
        'and is what taking back is told';
};

# The script, which counts the words that go from it to Redis and back, and what ranges remove.
my $counting = <<"END" =~ s/SCRIPT/$steered/r;
local touched, real = 0, redis
local function counted(call)
    return function(name, ...)
        local reply = call(name, ...)
        touched = touched + select('#', ...) + (type(reply) == 'table' and #reply or 1)
        touched = touched + (string.find(name, '^ZREMRANGE') and reply or 0)
        return reply
    end
end
local redis = { call = counted(real.call), pcall = counted(real.pcall) }
local function decide()
SCRIPT
end
decide()
return touched
END

subtest 'however many entries there are, a call touches few of them' => sub {
    my ($many, $now) = (100_000, $T + $W + 50_000);
    my $touched = sub {
        my ($at, @args) = @_;
        return redis('EVAL', $counting, @args, sprintf '%d:%d', $at / 1000000, $at % 1000000);
    };
    my $asked = sub { my $at = shift; return $touched->($at, script_args('', 'id' . ++$serial, @_)) };
    my $filled = sub {
        my ($key, $suffix, $count) = (@_, $many);
        redis('DEL', $key);
        fill($key, $T, $count, $suffix);
        redis('ZADD', $key, 0, "+$count") if $suffix eq '*2';
        return $key;
    };

    my %touched = (
        'an ordinary one' => $asked->($T + $many, [$filled->('t', ''), $W, 2 * $many]),
        'one that is refused' => $asked->($T + $many, ['t', $W, 10]),
        'a part has expired' => $asked->($now, ['t', $W, 2 * $many]),
        'a part of several' => $touched->($T + $W + 2500, 16, map({ $filled->("t$_", '', 5000) } 1 .. 16), '/1', $W, $many, 1 .. 16),
        'a part of several shorter ones' => $touched->($T + $W + 399, 16, map({ $filled->("t$_", '', 500) } 1 .. 16), '/1', $W, $many, 1 .. 16),
        'all has expired' => $asked->($now + $W, ['t', $W, $many]),
        'costs' => $asked->($T + $many, [$filled->('tc', '*2'), $W, 5 * $many, cost => 3]),
        'costs, refused' => $asked->($T + $many, ['tc', $W, 3000, cost => 2]),
        'a part of costs' => $asked->($now, ['tc', $W, $many, cost => 2]),
        'a part of costs, admitted' => $asked->($now, ['tc', $W, 5 * $many, cost => 2]),
        'a part of costs, refused' => $asked->($now, ['tc', $W, 50, cost => 2]),
        'costs of sixteen limits' => $asked->($T + $W + 2500, map { [$filled->("t$_", '*2', 5000), $W, 50, cost => 2] } 1 .. 16),
        'all costs have expired' => $asked->($now + $W, ['tc', $W, $many, cost => 2]),
        'refused ones beside others' => $asked->($T + $many, [$filled->('t', ''), $W, 4, rule => 'd']),
        'refused ones beside costs' => $asked->($T + $many, [$filled->('tc', '*2'), $W, 4, cost => 2, rule => 'd']),
        'a part from the future' => $asked->($T + 50_000, [$filled->('t', ''), $W, $many]),
        'all from the future' => $asked->($T - $H, ['t', $W, $many]),
        'all costs from the future' => $asked->($T - $H, ['tc', $W, $many, cost => 2]),
        'what is taken back' => $touched->($T + $many, script_args($T, 'back5', [$filled->('back', '*2'), $W, $many, cost => 2])),
    );
    cmp_ok $touched{$_}, '<', 2000, "$_: $touched{$_}" for sort keys %touched;
    cmp_ok $asked->($T + $many, [$filled->('tc', '*2'), $W, 2 * $many, cost => 3]), '<', 50, 'a short wait takes few';

    my @buckets = map { ["tb$_", $W, 1000, buckets => 100] } 1 .. 16;
    $asked->($T + $_ * $W / 100, @buckets) for 0 .. 99;
    cmp_ok $asked->($T + 99 * $W / 100, @buckets), '<', 16 * 220, 'but for buckets, of which there are a hundred';
};

subtest 'whether all that the script needs may be called can be found out' => sub {
    my %called = map { lc($_) => 1 } $script =~ /\bp?call\('([A-Z]+)'/g;
    my @limits = (['probe', 100_000, 10], ['probe buckets', 100_000, 10, buckets => 6]);
    my $probe = sub {
        my $answer = redis('EVAL', $script, script_args('?', 'me', @_ ? @_ : @limits));
        return ref $answer ? join ' ', @$answer[0 .. $#$answer - 1] : $answer;
    };

    like $probe->(), qr/^2 1 100000 2 1 1\d{5}$/, 'it is answered as if it had been asked about';
    cmp_ok redis('PTTL', $_), '>', 0, "$_: the set has a time to live" for 'probe', 'probe buckets';
    is_deeply [ keys %{ entries('probe') } ], ['me'], 'and that request in it';

    redis('CONFIG', 'SET', 'maxmemory', 1);
    like $probe->(), qr/^error: OOM/, 'nor is there memory for it if there is none for requests';
    redis('CONFIG', 'SET', 'maxmemory', 0);

    redis('ACL', 'SETUSER', 'limited', 'on', 'nopass', '~*', '+eval', '+acl', map { "+$_" } keys %called);
    redis('AUTH', 'limited', '');
    like $probe->(), qr/^2 /, 'who may call ' . join(', ', sort keys %called);
    for my $command (sort keys %called) {
        redis('ACL', 'SETUSER', 'limited', "-$command");
        like $probe->($_), qr/^error: /, "$_->[0]: without $command" for @limits;
        redis('ACL', 'SETUSER', 'limited', "+$command");
        redis('AUTH', 'default', '');
        unlike redis('PTTL', $_), qr/^-1$/, 'nothing is left that stays' for 'probe', 'probe buckets';
        redis('AUTH', 'limited', '');
    }
    redis('AUTH', 'default', '');
};

subtest 'an ordinary check makes few calls' => sub {
    # those of the script as shipped, in alphabetical order
    my $calls_of = sub {
        redis('CONFIG', 'RESETSTAT');
        redis('EVAL', $script, @_);
        return join ' ', map { /^cmdstat_(\w+):calls=(\d+)/ && $1 !~ /^(?:eval|info|config|ping)$/ ? ($1) x $2 : () }
            sort split /\n/, $redis->cli('INFO', 'commandstats');
    };
    my $calls = sub { return $calls_of->(script_args('', 'id' . ++$serial, @_)) };
    my $short = sub { return $calls_of->(1, 'calls s', '/1', $W, $_[0], 'id' . ++$serial) };

    is $calls->(['calls', $W, 2]), 'pexpire time zadd zrange', 'the first';
    is $calls->(['calls', $W, 2]), 'pexpire time zadd zcard zrange', 'another that is admitted';
    is $calls->(['calls', $W, 2]), 'time zcard zcount zrange', 'one that is refused';
    is $calls->(['calls', $W, 1]), 'time zcard zcount zrange zrange', 'if more than the oldest has to leave';
    is $calls->(['calls b', $W, 1, buckets => 6]), 'pexpire time zincrby zrange', 'with buckets';
    is $calls->(['calls b', $W, 1, buckets => 6]), 'time zrange', 'which refuse';

    is $short->(3), 'pexpire time zadd zrange', 'in the shorter form: the first';
    is $short->(3), 'pexpire time zadd zcard zrange', 'the second';
    is $short->(3), 'time zadd zcard zrange', 'from the third on its time to live need not be set';
    is $short->(3), 'time zcard zcount zrange', 'one that is refused';
    is $short->(1), 'time zcard zcount zrange zrange', 'if more than the oldest has to leave';
};

# ---- What operators have ruled

my $client_script = do { local (@ARGV, $/) = 'lua/client.lua'; <> };
my $client_sha = redis('SCRIPT', 'LOAD', steer($client_script));

# intervene(now in us, key, act, for so many us, max, buckets): where the client stands then
sub intervene {
    my ($now, $key, $act, $for, $max, $buckets) = @_;
    return redis('EVALSHA', $client_sha, 2, $key, "$key!", $act, $W, $buckets // 0, $for // 0, $max // 0,
        sprintf '%d:%d', $now / 1000000, $now % 1000000);
}

# ask(), with the numbers behind the time: the max of each limit that an operator gave.
sub ask_ruled {
    my ($now, @limits) = @_;
    my $answer = call_at($now, '', 'id' . ++$serial, @limits);
    splice @$answer, 3 * @limits, 1;
    return $answer;
}

for my $buckets (0, 6) {
    my $kind = $buckets ? 'buckets' : 'a log';
    my @limit = ($W, 3, buckets => $buckets);

    subtest "a ban refuses, counts nothing, and ends by itself, in $kind" => sub {
        my $key = "banned$buckets";
        ask($T, [$key, @limit]);
        is_deeply [ @{ intervene($T + 1, $key, 'ban', 30 * $S, 0, $buckets) }[0, 2, 3, 4, 5] ],
            [1, 30 * $S, 0, 0, 1], 'it says so';
        is_deeply ask($T + 2, [$key, @limit]), [3, 1, 30 * $S - 1], 'refused for as long';
        is_deeply ask($T + 2, [$key, $W, 3, buckets => $buckets, cost => 0]), [3, 1, 30 * $S - 1], 'also who only looks';
        is_deeply ask($T + 2, [$key, $W, 3, buckets => $buckets, rule => 'd']), [3, 1, 30 * $S - 1], 'and is not counted';
        is_deeply ask($T + 3, [$key, $W, 3, buckets => $buckets, rule => 'n'], ["$key other", @limit]),
            [3, 1, 30 * $S - 2, 2, 1, $buckets ? 70 * $S - 3 : $W], 'a dry run keeps nobody from passing';
        is ask($T + 30 * $S, [$key, @limit])->[0], 3, 'a microsecond before its end';
        is ask($T + 30 * $S + 1, [$key, @limit])->[0], 2, 'then it passes';
        ok !(grep { /^!/ } keys %{ entries($key) }), 'and nothing is left of the ban';
    };

    subtest "another max holds for as long as it was given, in $kind" => sub {
        my $key = "overridden$buckets";
        ask($T, [$key, @limit]) for 1 .. 3;
        is ask($T, [$key, @limit])->[0], 0, 'three are all';
        intervene($T, $key, 'max', 30 * $S, 4, $buckets);
        is_deeply [ @{ ask_ruled($T + 1, [$key, @limit]) }[0, 1, 3] ], [2, 4, 4], 'a fourth, and what allows it';
        is_deeply [ @{ ask_ruled($T + 2, [$key, @limit]) }[0, 1, 3] ], [0, 4, 4], 'but no fifth';
        is_deeply ask_ruled($T + 30 * $S, [$key, @limit])->[0], 0, 'when it is over it is three again';
        intervene($T + 61 * $S, $key, 'max', 30 * $S, 1, $buckets);
        is ask_ruled($T + 140 * $S, [$key, @limit])->[0], 2, 'all that was counted and ruled is past';
        intervene($T + 140 * $S, $key, 'max', 30 * $S, 1, $buckets);
        is_deeply ask_ruled($T + 140 * $S, [$key, @limit]), [0, 1, 30 * $S, 1], 'less: until that is over';
        is_deeply ask_ruled($T + 140 * $S, [$key, $W, 3, buckets => $buckets, cost => 2]), [0, 1, 30 * $S, 1],
            'also for what costs more than that';
        is ask_ruled($T + 170 * $S, [$key, @limit])->[0], 2, 'which it is then';
    };

    subtest "forgetting and lifting, in $kind" => sub {
        my $key = "forgotten$buckets";
        ask($T, [$key, @limit]) for 1 .. 3;
        intervene($T, $key, 'max', 600 * $S, 2, $buckets);
        intervene($T, $key, 'ban', 600 * $S, 0, $buckets);
        is_deeply [ @{ intervene($T + 1, $key, 'forget', 0, 0, $buckets) } ], [0, 0, 0, 2, 600 * $S - 1, 0],
            'counts and ban are gone, another max stays';
        is_deeply [ @{ ask_ruled($T + 2, [$key, @limit]) }[0, 1, 3] ], [2, 1, 2], 'so it passes';
        intervene($T + 3, $key, 'ban', 600 * $S, 0, $buckets);
        is intervene($T + 4, $key, 'ban', 0, 0, $buckets)->[2], 0, 'a ban is lifted';
        is redis('EXISTS', "$key!"), 1, 'while there is another ruling';
        is intervene($T + 4, $key, 'max', 0, 0, $buckets)->[3], 0, 'and so is that';
        is redis('EXISTS', "$key!"), 0, 'then it is not listed any more';
        is_deeply ask($T + 5, [$key, @limit])->[1], 2, 'what was counted still is';
        intervene($T, "$key unseen", 'forget', 0, 0, $buckets);
        intervene($T, "$key unseen", 'ban', 0, 0, $buckets);
        is redis('EXISTS', "$key unseen"), 0, 'nothing is made of nothing';
    };

    subtest "a ruling outlives what is counted, in $kind" => sub {
        my $key = "outlives$buckets";
        intervene($T, $key, 'max', 1000 * $S, 100, $buckets);
        is redis('GET', "$key!"), '0:100:' . ($T + 1000 * $S), 'it can be found';
        my $lives = sub { return redis('PTTL', $key) > 940_000 };
        ok $lives->(), 'alone';
        my $answer = call_at($T, '', 'one', [$key, @limit]);
        ok $lives->(), 'with a request';
        call_at($T + $S, '', 'two', [$key, @limit]);
        call_at($T + $S, $T, 'one', [$key, @limit]);
        ok $lives->(), 'with one that was taken back';
        is intervene($T + $S, $key, 'look', 0, 0, $buckets)->[0], 1, 'which is not counted any more';
        is_deeply [ @{ ask_ruled($T + 200 * $S, [$key, @limit]) }[1, 3] ], [1, 100], 'when all else has left';
        ok redis('PTTL', $key) > 795_000, 'for as long as it holds';
        call_at($T + 200 * $S, $T + 200 * $S, "id$serial", [$key, @limit]);
        is_deeply [ @{ intervene($T + 200 * $S, $key, 'look', 0, 0, $buckets) }[0, 3] ], [0, 100], 'and with nothing else';
    };
}

subtest 'who has no ruling is asked about with others, who has one alone' => sub {
    ask($T, [$_, $W, 5]) for 'plain', 'ruled';
    intervene($T, 'ruled', 'max', $W, 2);
    my @answers = ask_short($T + 1, $W, 5, 'plain', 'a1', 'ruled', 'a2', 'plain', 'a3');
    is_deeply [ map { $_->[0] } @answers ], [2, -1, 2];
    is_deeply ask_ruled($T + 1, ['ruled', $W, 5]), [2, 2, $W - 1, 2], 'alone it is decided about';
};

subtest 'where a client stands' => sub {
    is_deeply intervene($T, 'nobody', 'look'), [0, 0, 0, 0, 0, 0], 'one whom nobody has seen';
    is redis('EXISTS', 'nobody'), 0, 'nothing is left of looking';

    ask_as('first', $T, ['stands', $W, 10]);
    ask_as('second', $T + $S, ['stands', $W, 10, cost => 4]);
    ask_as('third', $T + 2 * $S, ['stands', $W, 10, cost => 6, rule => 'd']);
    my @shown = (0, 6, 1, 'third', $S, 4, 0, 'second', 2 * $S, 1, 0, 'first');
    for (1 .. 2) {
        is_deeply intervene($T + 2 * $S, 'stands', 'look'), [11, 58 * $S, 0, 0, 0, 3, @shown], 'the newest first';
    }
    is_deeply intervene($T + $W, 'stands', 'look'), [10, $S, 0, 0, 0, 2, 58 * $S, @shown[1 .. 3], 59 * $S, @shown[5 .. 7]],
        'what has left is not shown';
    is_deeply intervene($T + 2 * $W, 'stands', 'look'), [0, 0, 0, 0, 0, 0], 'nor is all of it';

    fill('very many', $T, 100_000, '');
    my $answer = intervene($T + 100_000, 'very many', 'look');
    is_deeply [ @$answer[0 .. 5] ], [100_000, $W - 100_000, 0, 0, 0, 100_000], 'of very many';
    is scalar @$answer, 6 + 4 * 100, 'a hundred are shown';
    is $answer->[9], 'very many99999', 'which are the newest';
};

done_testing;
