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

# Round numbers: T is the first moment of a bucket, whatever their width here.
my $T = 1_800_000_000_000_000;
my $S = 1_000_000;
my $W = 60 * $S;
my $H = 3600 * $S;

# Words that the script knows algorithms by.
my %ALGORITHMS = (0 => 'a log', p => 'a packed log', 6 => 'buckets');

# What the script is called with, from KEYS on. A limit is
# [key, window in us, max, options]; options are cost (1), algorithm ('0'), rule (''), and
# buckets for an algorithm that is a number.
sub script_args {
    my ($time, $id, @limits) = @_;
    return (
        scalar @limits, (map { $_->[0] } @limits), $time, $id,
        map {
            my (undef, $window, $max, %with) = @$_;
            ($window, $max, $with{cost} // 1, $with{algorithm} // $with{buckets} // 0, $with{rule} // '')
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

# Packed logs keep no other ids.
sub uuid { return sprintf '01a1e1f6-bc22-7184-818c-%012x', $_[0] }

sub ask { return ask_as(uuid(++$serial), @_) }

# ask_in(algorithms, now in us, [window, max, window, max, ...], [id, key of each limit], ...): in the
# shorter form, three numbers for each limit of each of these requests
sub ask_in {
    my ($algorithms, $now, $limits, @requests) = @_;
    my @keys = map { @$_[1 .. $#$_] } @requests;
    my $answer = redis('EVALSHA', $steered_sha, scalar @keys, @keys, $algorithms, @$limits, (map { $_->[0] } @requests),
        sprintf '%d:%d', $now / 1000000, $now % 1000000);
    return $answer if $answer =~ /^error/;
    my @numbers = ref $answer ? @$answer : unpack 'q<*', $answer;
    return 'another time' if pop @numbers != $now;
    return map { [ splice @numbers, 0, 3 * (@$_ - 1) ] } @requests;
}

# ask_short(now in us, window, max, key => id, ...): one answer for each, of logs
sub ask_short {
    my ($now, $window, $max, @requests) = @_;
    return ask_in('/0', $now, [$window, $max], map { [ @requests[2 * $_ + 1, 2 * $_] ] } 0 .. $#requests / 2);
}

# settle_at(now in us, when it was counted, id, true cost, limits...): how many counts were changed
sub settle_at {
    my ($now, $then, $id, $true_cost, @limits) = @_;
    return call_at($now, $then, $id, map { [ @$_[0, 1], $true_cost, @$_[3 .. $#$_] ] } @limits);
}

# What was counted is taken back if it has cost nothing.
sub take_back_at { return settle_at(@_[0 .. 2], 0, @_[3 .. $#_]) }

# take_back(id, when it was counted, limits...): how many were
sub take_back {
    my ($id, $then, @limits) = @_;
    return take_back_at($then + 1_000_000, $then, $id, @limits);
}

my $client_script = do { local (@ARGV, $/) = 'lua/client.lua'; <> };
my $client_sha = redis('SCRIPT', 'LOAD', steer($client_script));

# intervene(now in us, key, act, for so many us, max, algorithm): where the client stands then
sub intervene {
    my ($now, $key, $act, $for, $max, $algorithm) = @_;
    return redis('EVALSHA', $client_sha, 2, $key, "$key!", $act, $W, $algorithm // 0, $for // 0, $max // 0,
        sprintf '%d:%d', $now / 1000000, $now % 1000000);
}

# ask(), with the numbers behind the time: the max of each limit that an operator gave.
sub ask_ruled {
    my ($now, @limits) = @_;
    my $answer = call_at($now, '', uuid(++$serial), @limits);
    splice @$answer, 3 * @limits, 1;
    return $answer;
}

# Whether anything of a ruling stands under the key.
sub has_ruling {
    my ($key) = @_;
    return redis('TYPE', $key) eq 'string' ? ord(redis('GETRANGE', $key, 0, 0)) >= 128 : !!grep { /^!/ } keys %{ entries($key) };
}

# What stands in a set: { entry => score }; in buckets: { end => count }.
sub entries {
    my ($key) = @_;
    return { @{ redis('ZRANGE', $key, 0, -1, 'WITHSCORES') } } if redis('TYPE', $key) ne 'string';

    my $text = redis('GETRANGE', $key, 0, -1);
    my ($kind, $older, $latest, $oldest, $moved, $used, $count, @pairs) = unpack 'C n Q>5 Q>*', $text;
    my ($ban, $max, $until) = $kind > 128 ? unpack('Q>3', substr $text, -24) : ();
    splice @pairs, 2 * $older;
    my %counts = (@pairs, $count ? ($latest => $count) : ());
    my $sum = 0;
    $sum += $_ for values %counts;
    return "the sum is $used, not $sum" if $sum != $used;
    my ($first) = (sort keys %counts, $latest);
    return "the oldest is $oldest, not $first" if $first != $oldest;
    $counts{moved} = -$moved if $moved;
    $counts{"!$ban:$max:$until"} = 0 if $kind > 128;
    return \%counts;
}

# Of a packed log: [time, id, cost, was refused], the oldest first; what is not kept is ''.
sub packed {
    my ($key) = @_;
    my $text = redis('GETRANGE', $key, 0, -1);
    my ($first, $slots, $expires, $slot, $oldest, $count, $newest, $surplus, $refused, $tail) = unpack 'C a3 Q> N Q> N Q> Q>3', $text;
    return [] unless $text ne '' && $first & 127;

    my $rings = $first & 127;
    my $base = $rings == 3 ? 60 : 36;
    $slots = unpack 'N', "\0$slots";
    my $bytes = $base + (0, 8, 24, 40)[$rings] * $slots;
    return "$bytes bytes are said to be there, not " . length $text if $bytes > length $text;
    my @found;
    for my $n (map { ($slot + $_) % $slots } 0 .. $count - 1) {
        my $time = unpack 'Q>', substr $text, $base + 8 * $n, 8;
        my ($id, $was_refused, $cost) = ('', '', '');
        $id = join '-', unpack 'H8 H4 H4 H4 H12', substr $text, $base + 8 * $slots + 16 * $n, 16 if $rings > 1;
        ($was_refused, $cost) = unpack 'C X Q>', substr $text, $base + 24 * $slots + 16 * $n, 8 if $rings > 2;
        $cost %= 2**56 if $rings > 2;
        $surplus -= $cost - 1 if $rings > 2;
        push @found, [ $time, $id, $cost, $was_refused ];
    }
    return "the oldest is $oldest" if $count && $found[0][0] != $oldest;
    return "the newest is $newest" if $count && $found[-1][0] != $newest;
    return "the sum is too large by $surplus" if $rings > 2 && $surplus != 0;
    return "the newest $tail are not refused ones" if $rings > 2 && grep { !$_->[3] } @found[$count - $tail .. $count - 1];
    return \@found;
}

sub times_in { return [ map { $_->[0] } @{ packed($_[0]) } ] }

sub ids_in { return [ map { $_->[1] } @{ packed($_[0]) } ] }

sub slots_of { return unpack 'N', "\0" . redis('GETRANGE', $_[0], 1, 3) }

# How many requests a log of either kind has in it.
sub size_of {
    my ($key) = @_;
    return redis('TYPE', $key) eq 'string' ? scalar @{ packed($key) } : redis('ZCARD', $key);
}

# What stands under a key, whatever that is.
sub contents {
    my ($key) = @_;
    my $is_packed = redis('TYPE', $key) eq 'string' && (ord(redis('GETRANGE', $key, 0, 0)) & 127) < 4;
    return $is_packed ? packed($key) : entries($key);
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

# The same in a packed log; options are ids (0), cost (1) and admitted (1). Its ring begins in the
# middle of its slots.
sub fill_packed {
    my ($key, $from, $count, %with) = @_;
    my ($cost, $refused) = ($with{cost} // 1, $with{admitted} // 1 ? 0 : 1);
    my $rings = $cost != 1 || $refused ? 3 : $with{ids} ? 2 : 1;
    my $slots = $count + 100;
    my $slot = int $slots / 2;
    my $ring = sub {
        my ($width, @filled) = @_;
        my $row = join '', @filled, ("\0" x $width) x 100;
        return substr($row, $width * ($slots - $slot)) . substr $row, 0, $width * ($slots - $slot);
    };
    my $text = pack 'C a3 Q> N Q> N Q>', $rings, substr(pack('N', $slots), 1), $from + $count + 1000 * $S, $slot,
        $from, $count, $from + $count - 1;
    $text .= pack 'Q>3', ($cost - 1) * $count, $refused * $cost * $count, $refused * $count if $rings == 3;
    $text .= $ring->(8, map { pack 'Q>', $from + $_ } 0 .. $count - 1);
    $text .= $ring->(16, map { pack 'H*', uuid($_) =~ s/-//gr } 0 .. $count - 1) if $rings > 1;
    $text .= $ring->(16, map { pack 'Q>2', $refused << 56 | $cost, $refused * $cost * $_ } 1 .. $count) if $rings > 2;
    redis('SET', $key, $text, 'PX', 1000_000);
    return $key;
}

# ---- Logs

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
    is_deeply [ map { scalar keys %{ entries($_) } } qw(a b c) ], [2, 1, 1];
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
    is_deeply entries('denied buckets'), { $T + 10 * $S => 5 }, 'in buckets as well';
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

subtest 'several are taken back at once, as many as there are' => sub {
    my @limits = (['all a', $W, 5], ['all b', $W, 5, cost => 2], ['all c', $W, 5, buckets => 3]);
    ask_as('x', $T, @limits);
    is take_back('x', $T, @limits[0, 2]), 2, 'two of three';
    is take_back('x', $T, @limits), 1, 'the third';
    is redis('EXISTS', map { "all $_" } qw(a b c)), 0;
};

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

subtest 'who is refused after a step of the clock is refused for one window' => sub {
    for my $with ([], [cost => 2], [algorithm => 'p'], [algorithm => 'p', cost => 2], [buckets => 6]) {
        my $kind = "@$with" || 'log';
        my @limit = ("hour $kind", $W, 4, @$with);
        my $stays = $kind =~ /buckets/ ? 70 * $S : $W;
        ask($T, [@limit]) for 1 .. 4;
        # a packed log knows for how long it lives, by the clock
        redis('PEXPIRE', "hour $kind", 1000) unless $kind =~ /algorithm p/;
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

subtest 'what is counted stays what it is when the clock steps back' => sub {
    my @limit = ('kept', $W, 9);
    ask_as('a', $T, [@limit, cost => 5]);
    ask_as('b', $T, [@limit, cost => 4]);
    ask_as('c', $T, [@limit, rule => 'd']);
    ask($T - $H, [@limit]);
    is_deeply entries('kept'), { 'a*5' => $T - $H, 'b*4' => $T - $H, 'c!' => $T - $H, '+7' => 0 };
    is take_back_at($T - $H, $T, 'a', [@limit, cost => 5]), 1, 'and can be taken back';

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

# ---- Packed logs

my @PACKED = (algorithm => 'p');
my $NO_ID = '00000000-0000-0000-0000-000000000000';

# ask_packed(now, key, window, max, id, word): one ordinary request, in the shorter form
sub ask_packed {
    my ($now, $key, $window, $max, $id, $word) = @_;
    my ($answer) = ask_in('/' . ($word // 'p'), $now, [$window, $max], [$id // uuid(++$serial), $key]);
    return $answer;
}

for my $form (['the longer form', sub { return ask($_[0], [@_[1 .. 3], @PACKED]) }], ['the shorter form', \&ask_packed]) {
    my ($name, $asked) = @$form;

    subtest "a packed log admits up to max, each with its own remaining, in $name" => sub {
        my @limit = ("packed up $name", $W, 3);
        is_deeply $asked->($T, @limit), [2, 1, 60 * $S], 'first';
        is_deeply $asked->($T + 5 * $S, @limit), [2, 2, 55 * $S], 'second: the first leaves in 55 s';
        is_deeply $asked->($T + 10 * $S, @limit), [2, 3, 50 * $S], 'third';
        is_deeply $asked->($T + 10 * $S, @limit), [0, 3, 50 * $S], 'fourth: refused, not counted';
        is_deeply times_in($limit[0]), [$T, $T + 5 * $S, $T + 10 * $S], 'three are in it';

        is_deeply $asked->($T + $W - 1, @limit), [0, 3, 1], 'a microsecond before the first leaves: wait for one';
        is_deeply $asked->($T + $W, @limit), [2, 3, 5 * $S], 'then there is room';
        is_deeply $asked->($T + 3 * $W, @limit), [2, 1, $W], 'when all have left it starts anew';
        is_deeply times_in($limit[0]), [$T + 3 * $W];
    };

    subtest "requests of the same microsecond are separate in a packed log, in $name" => sub {
        my @limit = ("packed same $name", $W, 10);
        is_deeply $asked->($T, @limit), [2, $_, $W] for 1 .. 10;
        is_deeply $asked->($T, @limit), [0, 10, $W], 'the eleventh is refused';
        is_deeply times_in($limit[0]), [($T) x 10];
        is_deeply $asked->($T + $W, @limit), [2, 1, $W], 'they leave together';
    };

    subtest "a lowered max of a packed log waits for the right one to leave, in $name" => sub {
        my @limit = ("packed lower $name", $W);
        $asked->($T + $_ * $S, @limit, 5) for 0 .. 4;
        is_deeply $asked->($T + 5 * $S, @limit, 2), [0, 5, 58 * $S], 'the fourth, of second 3, must leave';
        is_deeply $asked->($T + 5 * $S, @limit, 9), [2, 6, 55 * $S], 'a raised one counts on';
        is_deeply $asked->($T + 61 * $S, @limit, 2), [0, 4, 3 * $S], 'also when some have left';
        $asked->($T + 62 * $S, @limit, 99) for 1 .. 40;
        is_deeply $asked->($T + 63 * $S, @limit, 11), [0, 42, 59 * $S], 'or the ring has begun anew in between';
    };
}

subtest 'the ring begins anew at its first slot, grows and shrinks, and has every request in it' => sub {
    srand 3;
    my ($now, $wrong, $wrapped, $slot, %slots, @expected) = ($T, 0, 0, 0);
    for my $n (1 .. 3000) {
        # few, many, few again
        my $rate = $n % 1000 < 500 ? 10 : 200;
        $now += int rand 2 * $W / $rate;
        @expected = grep { $_ > $now - $W } @expected;
        my $answer = rand() < 0.8 ? ask_packed($now, 'ring', $W, 150) : ask($now, ['ring', $W, 150, @PACKED]);
        push @expected, $now if @expected < 150 && $answer->[0] == 2;
        $wrong++ unless "@$answer[1, 2]" eq @expected . ' ' . ($expected[0] + $W - $now)
            && "@{ times_in('ring') }" eq "@expected";

        my $begins = unpack 'N', redis('GETRANGE', 'ring', 12, 15);
        $wrapped++ if $begins < $slot;
        ($slot, $slots{slots_of('ring')}) = ($begins, 1);
    }
    is $wrong, 0, 'all answers are right';
    cmp_ok $wrapped, '>', 20, "it began anew $wrapped times";
    my @slots = sort { $a <=> $b } keys %slots;
    cmp_ok $slots[0], '<', 64, "with @slots slots";
    cmp_ok $slots[-1], '<', 250;
};

subtest 'a packed log takes eight bytes for each request, and not much more' => sub {
    for my $n (10, 100, 1000, 10_000) {
        my $key = "packed size $n";
        my $most = 0;
        for my $window (0 .. 4) {
            my $done = 0;
            while ($done < $n) {
                my $some = $n - $done < 250 ? $n - $done : 250;
                ask_in('/p', $T + $window * $W + $done * 1000, [$W, $n], map { [uuid($_), $key] } 1 .. $some);
                $done += $some;
                my $length = redis('STRLEN', $key);
                $most = $length if $length > $most;
            }
        }
        is @{ packed($key) }, $n, "$n are in it";
        cmp_ok $most, '<=', 8 * $n * 1.25 + 200, "$most bytes for $n, at most, in five windows";
    }

    my @now = ($T + 10 * $W, 'packed size 10000', $W, 10_000);
    ask_packed(@now);
    cmp_ok redis('STRLEN', 'packed size 10000'), '<', 200, 'when others have left they take no room';
    my $key = fill_packed('packed shrinks', $T, 10_000);
    ask_packed($T + $W + 9000, $key, $W, 10_000);
    cmp_ok redis('STRLEN', $key), '<=', 8 * 1000 * 1.25 + 200, 'nor if a tenth of them are left';
};

for my $kind (['times', '/p', sub { return (1, '') }], ['ids', '/i', sub { return (1, 'i') }],
    ['costs', '/p', sub { return (1 + int rand 3, 'i') }]) {
    my ($what, $word, $next) = @$kind;

    subtest "rings of $what grow, and nothing in them is lost" => sub {
        srand 4;
        my $key = "grows $what";
        my ($now, $wrong, $grown, $grown_in_between, $slots, @expected) = ($T, 0, 0, 0, 0);
        for my $n (1 .. 1500) {
            # more and more come, until there is a pause that leaves a few
            $now += $n % 300 ? int $W / (10 + $n % 300 / 2) : $W - 10;
            my ($cost, $rule) = $next->();
            my $id = uuid($n);
            my $begins = unpack 'N', redis('GETRANGE', $key, 12, 15) || "\0\0\0\0";
            if ($cost == 1 && rand() < 0.5) {
                ask_packed($now, $key, $W, 10_000, $id, substr $word, 1);
            } else {
                ask_as($id, $now, [$key, $W, 10_000, @PACKED, cost => $cost, rule => $rule]);
            }
            @expected = ((grep { $_->[0] > $now - $W } @expected), [$now, $cost, $id]);

            my $found = packed($key);
            my $is_kept = ref $found && @$found == @expected && !grep {
                my ($entry, $wanted) = ($found->[$_], $expected[$_]);
                $entry->[0] != $wanted->[0] || $entry->[1] !~ /^(?:|$wanted->[2]|$NO_ID)$/ || ($entry->[2] || 1) != $wanted->[1];
            } 0 .. $#expected;
            $wrong++ unless $is_kept && redis('PTTL', $key) > $W / 1000;

            my $are_more = $slots && slots_of($key) > $slots;
            $grown++ if $are_more;
            $grown_in_between++ if $are_more && $begins;
            $slots = slots_of($key);
        }
        is $wrong, 0, 'all are there, for as long as they count';
        cmp_ok $grown, '>', 10, "it grew $grown times";
        cmp_ok $grown_in_between, '>', 3, "$grown_in_between times after it had begun anew";
    };
}

subtest 'what has grown takes no more memory than it needs' => sub {
    ask_packed($T, 'packed memory', $W, 1000) for 1 .. 100;
    cmp_ok redis('MEMORY', 'USAGE', 'packed memory'), '<=', 1100, 'a hundred requests';
    ask($T, ['packed memory', $W, 1000, @PACKED, cost => 2]);
    cmp_ok redis('MEMORY', 'USAGE', 'packed memory'), '<=', 5200, 'and with costs';
};

subtest 'a packed log keeps its ruling while it grows and gets more rings' => sub {
    my @limit = ('packed ruled', $W, 5, @PACKED);
    ask($T, [@limit]);
    intervene($T, 'packed ruled', 'max', $W, 1000, 'p');
    is_deeply [ @{ ask_ruled($T + $_, [@limit]) }[0, 1, 3] ], [2, $_ + 1, 1000], "$_ more" for 1 .. 40;
    is_deeply [ @{ ask_ruled($T + 41, [@limit, rule => 'i']) }[0, 1, 3] ], [2, 42, 1000], 'one with an id';
    is_deeply [ grep { $_ ne $NO_ID } @{ ids_in('packed ruled') } ], [uuid($serial)], 'which no other has';
    is_deeply [ @{ ask_ruled($T + 42, [@limit, cost => 3]) }[0, 1, 3] ], [2, 45, 1000], 'one that costs more';
    is_deeply [ @{ ask_ruled($T + 42 + $_, [@limit, cost => 2]) }[0, 1, 3] ], [2, 45 + 2 * $_, 1000], "$_ more" for 1 .. 40;
    is @{ packed('packed ruled') }, 83, 'all are there';
    ok has_ruling('packed ruled');
};

subtest 'a very long packed log grows where it is' => sub {
    my $key = 'packed long';
    for my $n (0 .. 79) {
        ask_in('/p', $T + $n, [$W, 10**6], map { [uuid($_), $key] } 1 .. 250);
    }
    my $times = times_in($key);
    is_deeply [ @$times[0, 249, 250, -1] ], [$T, $T, $T + 1, $T + 79], 'all are where they belong';
    is @$times, 20_000;
    cmp_ok slots_of($key), '>', 16_384;
    is_deeply ask_packed($T + 100, $key, $W, 10**6), [2, 20_001, $W - 100], 'and it goes on';
};

subtest 'millions of requests become one that costs as much' => sub {
    my $n = 2**22;
    redis('SET', 'packed millions', pack('C a3 Q> N Q> N Q>', 1, substr(pack('N', $n), 1), $T + $W, 0, $T, $n, $T) . pack('Q>', $T) x $n);
    redis('PEXPIRE', 'packed millions', 1000_000);
    is_deeply ask_packed($T + 1, 'packed millions', $W, 10**9), [2, $n + 1, $W - 1], 'none is lost';
    is_deeply packed('packed millions'), [[$T, $NO_ID, $n, 0], [$T + 1, uuid($serial), 1, 0]];
    is_deeply ask_packed($T + $W, 'packed millions', $W, 10**9), [2, 2, 1], 'and they leave together';
};

subtest 'what cost more leaves no trace when all has left' => sub {
    my @limit = ('packed anew', $W, 10, @PACKED);
    ask($T, [@limit, cost => 2]);
    ask_packed($T + 2 * $W, @limit[0 .. 2]);
    is redis('GETRANGE', 'packed anew', 0, 0), "\1", 'one ring is enough again';
};

subtest 'ids are kept where they are needed, costs where there are some' => sub {
    my @limit = ('packed kinds', $W, 100, @PACKED);
    ask_as(uuid(1), $T, [@limit]);
    is_deeply packed('packed kinds'), [[$T, '', '', '']], 'only a time';
    is redis('STRLEN', 'packed kinds'), 36 + 8 * slots_of('packed kinds'), 'of eight bytes';

    ask_as(uuid(2), $T + 1, [@limit, rule => 'i']);
    is_deeply packed('packed kinds'), [[$T, $NO_ID, '', ''], [$T + 1, uuid(2), '', '']], 'with rule i its id as well';
    is redis('STRLEN', 'packed kinds'), 36 + 24 * slots_of('packed kinds'), 'of sixteen';
    ask_packed($T + 2, 'packed kinds', $W, 100, uuid(3), 'i');
    ask_packed($T + 3, 'packed kinds', $W, 100, uuid(4));
    is_deeply ids_in('packed kinds'), [$NO_ID, uuid(2), uuid(3), uuid(4)], 'in the shorter form, too';

    ask_as(uuid(5), $T + 4, [@limit, cost => 7]);
    is_deeply packed('packed kinds'), [[$T, $NO_ID, 1, 0], (map { [$T + $_, uuid($_ + 1), 1, 0] } 1 .. 3), [$T + 4, uuid(5), 7, 0]],
        'and what each costs';
    is redis('STRLEN', 'packed kinds'), 60 + 40 * slots_of('packed kinds'), 'in sixteen more';
    is_deeply ask_packed($T + 5, 'packed kinds', $W, 100, uuid(6), 'i'), [2, 12, $W - 5], 'others then go the longer way';
    is_deeply ask_packed($T + $W + 4, 'packed kinds', $W, 100), [2, 2, 1], 'until what cost more has left, it counts';

    ask_packed($T, 'packed first', $W, 9, uuid(1), 'i');
    is_deeply packed('packed first'), [[$T, uuid(1), '', '']], 'the first may have an id at once';
    ask_as('none', $T, ['packed other id', $W, 9, @PACKED, rule => 'i']);
    is_deeply ids_in('packed other id'), [$NO_ID], 'what is no UUID is not kept';
    is take_back('none', $T, ['packed other id', $W, 9, @PACKED]), 0, 'so it cannot be found';
};

subtest 'requests in a packed log take as much as they cost' => sub {
    my @limit = ('packed cost', $W, 10, @PACKED);
    is_deeply ask($T, [@limit, cost => 6]), [2, 6, $W], 'six of ten';
    is_deeply ask($T + $S, [@limit, cost => 5]), [0, 6, 59 * $S], 'five more do not fit';
    is_deeply ask($T + $S, [@limit, cost => 3]), [2, 9, 59 * $S], 'but three do';
    is_deeply ask($T + 2 * $S, [@limit]), [2, 10, 58 * $S], 'and one';
    is_deeply ask($T + 3 * $S, [@limit, cost => 7]), [0, 10, 58 * $S], 'seven have to wait until six and three have left';
    is_deeply ask($T + 3 * $S, [@limit, cost => 10]), [0, 10, 59 * $S], 'ten until all has';
    is_deeply ask($T + $W, [@limit, cost => 6]), [2, 10, $S], 'six fit again when the six have left';
    is_deeply [ map { $_->[2] } @{ packed('packed cost') } ], [3, 1, 6];

    is_deeply ask($T, ['packed look', $W, 2, @PACKED, cost => 0]), [1, 0, 0], 'a cost of 0 only looks';
    is redis('EXISTS', 'packed look'), 0, 'and leaves nothing behind';
    ask($T, ['packed look', $W, 2, @PACKED]) for 1 .. 2;
    is_deeply ask($T + $S, ['packed look', $W, 2, @PACKED, cost => 0]), [1, 2, 59 * $S], 'also into a full window';
    is_deeply ask($T + $W, ['packed look', $W, 2, @PACKED, cost => 0]), [1, 0, 0], 'all has left';
    is redis('EXISTS', 'packed look'), 0, 'and is gone';

    my $M = 10**15;
    @limit = ('packed huge', $W, $M, @PACKED, rule => 'i');
    is_deeply ask_as(uuid(1), $T, [@limit, cost => 4 * 10**14]), [2, 4 * 10**14, $W];
    is_deeply ask_as(uuid(2), $T + 1, [@limit, cost => 6 * 10**14 - 1]), [2, $M - 1, $W - 1];
    is_deeply ask_as(uuid(3), $T + 2, [@limit]), [2, $M, $W - 2], 'costs of any size are exact to the last unit';
    is_deeply ask($T + 3, [@limit, cost => 4 * 10**14 + 1]), [0, $M, $W - 2], 'one more than the first has to wait for the second';
    is take_back(uuid(2), $T + 1, [@limit, cost => 6 * 10**14 - 1]), 1, 'and can be taken back';
    is_deeply [ map { $_->[2] } @{ packed('packed huge') } ], [4 * 10**14, 1];

    for my $count (10, 250, 10_000) {
        my $key = fill_packed("packed all $count", $T, $count, cost => 2);
        is_deeply ask($T + $W + $count, [$key, $W, 2 * $count, @PACKED, cost => 2 * $count]), [2, 2 * $count, $W],
            "$count of them leave at once";
    }
};

subtest 'taking back removes exactly that request from a packed log' => sub {
    for my $known (1, 0) {
        for my $filled (0, 7, 100) {
            # those in front have left: so it is somewhere else in the ring
            my $key = "packed back $known $filled";
            my @limit = ($key, $W, 200, @PACKED, rule => 'i');
            ask_packed($T - $W, $key, $W, 200, uuid(900 + $_), 'i') for 1 .. $filled;
            ask_packed($T + 10 * $_, $key, $W, 200, uuid($_), 'i') for 1 .. 9;
            my @left = 1 .. 9;
            my $taken_back = sub {
                my ($which, $expected, $what) = @_;
                is take_back_at($T + $S, $known ? $T + 10 * $which : 0, uuid($which), [@limit]), $expected, "$what, "
                    . ($known ? 'by its time' : 'whose time is not known');
                @left = grep { $_ != $which } @left;
                is_deeply packed($key), [ map { [$T + 10 * $_, uuid($_), '', ''] } @left ], 'the others stay';
            };
            $taken_back->(4, 1, 'from the middle');
            $taken_back->(4, 0, 'not twice');
            $taken_back->(1, 1, 'the first');
            $taken_back->(9, 1, 'the last');
            $taken_back->(2, 1, 'the second, which is the first now');
            $taken_back->(7, 1, 'one of the later');
            $taken_back->(12, 0, 'not one that never was');
            is_deeply ask_packed($T + $S, $key, $W, 5, uuid(10), 'i'), [2, 5, $W - $S + 30], 'counting goes on';
            is_deeply ask_packed($T + $S, $key, $W, 5), [0, 5, $W - $S + 30];
            is take_back_at($T + $S, $T + $S, uuid(10), [@limit]), 1;
            $taken_back->($_, 1, 'all') for 3, 8, 5, 6;
            is redis('EXISTS', $key), 0, 'no key is left when there is nothing in it';
        }
    }

    my @limit = ('packed back all', $W, 9, @PACKED, rule => 'i');
    ask_as(uuid($_), $T, [@limit]) for 1 .. 5;
    is take_back(uuid(3), $T, [@limit]), 1, 'also of those of one microsecond';
    is_deeply ids_in('packed back all'), [ map { uuid($_) } 1, 2, 4, 5 ];

    @limit = ('packed back cost', $W, 20, @PACKED, rule => 'i');
    ask_as(uuid(1), $T, [@limit, cost => 5]);
    ask_as(uuid(2), $T + 1, [@limit, cost => 3]);
    ask_as(uuid(3), $T + 2, [@limit]);
    is take_back(uuid(1), $T, [@limit, cost => 5]), 1, 'what cost more gives all of that back';
    is_deeply packed('packed back cost'), [[$T + 1, uuid(2), 3, 0], [$T + 2, uuid(3), 1, 0]];
    is take_back(uuid(1), $T, [@limit, cost => 5]), 0, 'once';
    is_deeply ask($T + 3, [@limit, cost => 0]), [1, 4, $W - 2];

    @limit = ('packed back refused', $W, 1, @PACKED, rule => 'di');
    ask_as(uuid(1), $T, [@limit]);
    ask_as(uuid($_), $T, [@limit]) for 1, 2;
    is take_back(uuid(1), $T, [@limit]), 1;
    is_deeply packed('packed back refused'), [[$T, uuid(1), 1, 1], [$T, uuid(2), 1, 1]], 'what was refused stays';
    is take_back(uuid(2), $T, [@limit]), 0, 'whoever asks for it';

    my $key = fill_packed('packed back many', $T, 100_000, ids => 1);
    @limit = ($key, $W, 200_000, @PACKED, rule => 'i');
    is take_back_at($T + 100_000, $T + $_, uuid($_), [@limit]), 1, "number $_ of very many" for 0, 30_000, 60_000, 99_999;
    is take_back_at($T + 100_000, 0, uuid(99_998), [@limit]), 1, 'a newer one also if it is not known when it was counted';
    is scalar @{ packed($key) }, 99_995;
    my %ids = map { $_ => 1 } @{ ids_in($key) };
    is_deeply [ grep { !$ids{uuid($_)} } 0 .. 99_999 ], [0, 30_000, 60_000, 99_998, 99_999], 'and no other is lost';
};

subtest 'refused requests count in a packed log by rule d' => sub {
    my @limit = ('packed denied', $W, 2, @PACKED, rule => 'd');
    ask($T, [@limit]) for 1 .. 2;
    is_deeply ask($T + 10 * $S, [@limit]), [0, 3, 50 * $S],
        'both of the others have to leave before there is room beside this one';
    is_deeply [ map { "$_->[2] $_->[3]" } @{ packed('packed denied') } ], ['1 0', '1 0', '1 1'], 'which is marked';
    is_deeply ask($T + $W, [@limit]), [2, 2, 10 * $S], 'it still counts then';
    is_deeply ask($T + $W, [@limit]), [0, 3, $W], 'who keeps on stays locked out';

    my @both = (['packed has room', $W, 5, @PACKED, rule => 'd'], ['packed full', $W, 1, @PACKED]);
    ask($T, $both[1]);
    is_deeply ask($T, @both), [1, 0, 0, 0, 1, $W], 'but not those that another limit refuses';
    is redis('EXISTS', 'packed has room'), 0;

    @both = (['packed dry', $W, 1, @PACKED, rule => 'n'], ['packed real', $W, 9, @PACKED]);
    ask($T, @both);
    is_deeply ask($T + $S, @both), [0, 1, 59 * $S, 2, 2, 59 * $S], 'a dry run keeps nobody from passing';
    is_deeply times_in('packed dry'), [$T], 'and does not count what it would have refused';
};

subtest 'refused requests are forgotten in a packed log where they make no difference' => sub {
    my @limit = ('packed crowd', $W, 4, @PACKED, rule => 'd');
    ask($T, [@limit]) for 1 .. 4;
    my ($most, @wrong) = (0);
    for my $n (1 .. 1000) {
        my $answer = ask($T + $n * 1000, [@limit]);
        # all but the newest three have to leave
        my $then = $n < 4 ? $T : $T + 1000 * ($n - 3);
        push @wrong, $n if $answer->[0] != 0 || $answer->[2] != $then + $W - ($T + 1000 * $n);
        my $length = redis('STRLEN', 'packed crowd');
        $most = $length if $length > $most;
    }
    is_deeply \@wrong, [], 'every wait is as if all of them were there';
    cmp_ok $most, '<=', 40 * (3 * 4 + 256), "at most $most bytes for 1004 requests";
    is_deeply ask($T + $W + 999_000, [@limit, cost => 0]), [1, 1, 1000], 'none of them is there when it has left the window';

    ask($T, ['packed heavy crowd', $W, 4, @PACKED, cost => 3, rule => 'd']) for 1 .. 1000;
    cmp_ok @{ packed('packed heavy crowd') }, '<=', 3 * 4 + 256, 'also if they cost more';
    my $answer = ask($T + 1, ['packed heavy crowd', $W, 4, @PACKED, cost => 0]);
    is $answer->[1], 3 * @{ packed('packed heavy crowd') }, 'and the sum is that of those which are left';
};

for my $algorithm (0, 'p') {
    subtest "only the newest refused ones that cost max together are kept, in $ALGORITHMS{$algorithm}" => sub {
        my $M = 10**9;
        for my $matter (1, 10, 200) {
            my $key = "$matter matter $algorithm";
            my @limit = ($key, $W, $M, algorithm => $algorithm, cost => $M / $matter, rule => 'd');
            ask($T, [@limit]) for 1 .. $matter;
            my ($most, @wrong) = (0);
            for my $n (1 .. 1500) {
                my $answer = ask($T + 1000 * $n, [@limit]);
                # it has room when all but the newest that leave some have left
                my $then = $T + ($n > $matter ? 1000 * ($n - $matter + 1) : $n == $matter ? 1000 : 0);
                push @wrong, $n if $answer->[0] != 0 || $answer->[2] != $then + $W - ($T + 1000 * $n);
                my $size = size_of($key);
                $most = $size if $size > $most;
            }
            is_deeply \@wrong, [], 'every wait is as if all of them were there';
            cmp_ok $most, '<=', 2.2 * $matter + 160, "$matter matter, at most $most of 1500 are kept";
        }

        my @limit = ("largest $algorithm", $W, 10**15, algorithm => $algorithm, cost => 10**15, rule => 'd');
        ask($T + $_, [@limit]) for 0 .. 300;
        cmp_ok ask($T + 301, [@limit, cost => 0])->[1], '<', 2**53, 'their sum is never too large to be exact';
    };

    subtest "also beside very many that another max has admitted, in $ALGORITHMS{$algorithm}" => sub {
        my $key = "beside $algorithm";
        $algorithm ? fill_packed($key, $T, 20_000) : fill($key, $T, 20_000, '');
        my @limit = ($key, $W, 4, algorithm => $algorithm, rule => 'd');
        my $most = 0;
        for (1 .. 4000) {
            my $answer = ask($T + 20_000 + $_ * 701, [@limit]);
            $most = $answer->[1] if $answer->[1] > $most;
        }
        # in a packed log there is room for some before they are looked for
        cmp_ok $most, '<', 20_000 * ($algorithm ? 1.25 : 1.06), "at most $most entries";
        my @admitted = $algorithm ? grep { !$_->[3] } @{ packed($key) } : grep { !/!/ } keys %{ entries($key) };
        is @admitted, 20_000, 'none of the admitted ones is lost';
    };
}

subtest 'nothing is admitted early to a packed log when the clock steps back' => sub {
    ask($T, ['packed stepped', 10 * $S, 2, @PACKED]) for 1 .. 2;
    is_deeply ask($T - 5 * $S, ['packed stepped', 10 * $S, 2, @PACKED]), [0, 2, 10 * $S], 'still full';
    is_deeply times_in('packed stepped'), [($T - 5 * $S) x 2], 'they count as of now';
    is ask($T + 5 * $S - 1, ['packed stepped', 10 * $S, 2, @PACKED])->[0], 0, 'for a window';
    is_deeply ask($T + 5 * $S, ['packed stepped', 10 * $S, 2, @PACKED]), [2, 1, 10 * $S], 'and no longer';

    ask($T + $_ * $S, ['packed partly', 10 * $S, 4, @PACKED]) for -3, -2, 0, 0;
    is_deeply ask($T - 1 * $S, ['packed partly', 10 * $S, 4, @PACKED]), [0, 4, 8 * $S], 'also where only the newest are from the future';
    is_deeply times_in('packed partly'), [$T - 3 * $S, $T - 2 * $S, ($T - $S) x 2];

    is_deeply ask_packed($T, "packed ahead $_", 10 * $S, 1), [2, 1, 10 * $S] for 1 .. 2;
    is_deeply [ ask_in('/p', $T - $H, [10 * $S, 1], [uuid(1), 'packed ahead 1'], [uuid(2), 'packed ahead 2']) ], [ ([-1, 0, 0]) x 2 ],
        'several at once are told to ask alone';
    is_deeply ask_packed($T - $H, 'packed ahead 1', 10 * $S, 1), [0, 1, 10 * $S], 'one by one they are refused';
    is_deeply ask_packed($T - $H, 'packed ahead 2', 10 * $S, 3), [2, 2, 10 * $S], 'or admitted';

    my @limit = ('packed kept', $W, 9, @PACKED);
    ask_as(uuid(1), $T, [@limit, cost => 5, rule => 'i']);
    ask_as(uuid(2), $T, [@limit, cost => 4, rule => 'i']);
    ask_as(uuid(3), $T, [@limit, rule => 'di']);
    ask($T - $H, [@limit]);
    is_deeply packed('packed kept'), [[$T - $H, uuid(1), 5, 0], [$T - $H, uuid(2), 4, 0], [$T - $H, uuid(3), 1, 1]],
        'what is counted stays what it is';
    is take_back_at($T - $H, $T, uuid(1), [@limit, cost => 5]), 1, 'and can be taken back';

    fill_packed('packed many ahead', $T, 2000);
    is_deeply ask($T + 999, ['packed many ahead', $W, 2000, @PACKED]), [0, 2000, $W - 999], 'be there ever so many';
    is_deeply times_in('packed many ahead'), [ (map { $T + $_ } 0 .. 999), ($T + 999) x 1000 ], 'each is given its time';
    is_deeply ask($T - $H, ['packed many ahead', $W, 2000, @PACKED]), [0, 2000, $W], 'also if all are from the future';
};

subtest 'of very many with costs in a packed log, bounds decide while they are added up' => sub {
    # 1000 are left, and cost 3000; of the others 128 are added up by a call
    my $now = $T + $W + 3999;
    my $at_most = 1000 + 10_000 - 2 * 128;
    my $key = fill_packed('packed bounds', $T, 5000, cost => 3);
    is_deeply ask($now, [$key, $W, $at_most + 3, @PACKED, cost => 3]), [2, $at_most + 3, 1], 'admitted if there is room in any case';

    fill_packed($key, $T, 5000, cost => 3);
    is ask($now, [$key, $W, 1000, @PACKED, cost => 3])->[0], 0, 'refused if there is none';
    is_deeply ask($now, [$key, $W, 3003, @PACKED, cost => 3]), [-1, 0, 0], 'between the bounds it is not decided';
    my ($calls, $answer) = ask_until_decided($now, [$key, $W, 3003, @PACKED, cost => 3]);
    is_deeply $answer, [2, 3003, 1], 'in the end it is as exact as ever';
    cmp_ok $calls, '<', 5000 / 128, "after $calls calls, each of which removes some";
    is @{ packed($key) }, 1001;
};

# ---- Buckets

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
        my $size = keys %{ entries('few') };
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
    is_deeply ask($T, ['wider', 90 * $S, 10, buckets => 6, cost => 7]), [0, 5, 100 * $S],
        'those of before leave a window after their end';

    ask($T, ['shrunk', 10 * $W, 9, buckets => 6]) for 1 .. 2;
    is ask($T + 1, ['shrunk', $W, 9, buckets => 6])->[1], 3, 'smaller ones, too';
    is ask($T + 10 * $W + 100 * $S, ['shrunk', $W, 9, buckets => 6, cost => 0])->[1], 0;
};

subtest 'nothing is taken back from buckets whose counts were moved' => sub {
    my @limit = ('whose', $W, 3, buckets => 6);
    ask_as('A', $T, [@limit]);
    is ask($T - 15 * $S, [@limit, cost => 0])->[1], 1, 'the clock steps back';
    ask_as($_, $T + 1, [@limit]) for qw(D E);
    is take_back_at($T + 2, $T, 'A', [@limit]), 0, 'then it is not known where the count went';
    is ask($T + 3, [@limit])->[0], 0, 'so it still counts';
    is_deeply ask($T + 55 * $S, [@limit]), [2, 3, 15 * $S], 'as long as what was counted when it was moved';
    is ask($T + 56 * $S, [@limit])->[0], 0, 'and there are never more than max';

    ask_as('H', $T + 62 * $S, [@limit, cost => 0]);
    is take_back_at($T + 62 * $S, $T + 1, 'D', [@limit]), 0, 'nor is what was counted in the same bucket later';
    is_deeply ask($T + 70 * $S, [@limit, cost => 0]), [1, 1, 50 * $S];
    is_deeply entries('whose'), { $T + 60 * $S => 1 }, 'until that has left the window';
    is take_back_at($T + 71 * $S, $T + 55 * $S, 'F', [@limit]), 1, 'what was counted after it can be taken back';
    is redis('EXISTS', 'whose'), 0;

    ask_as('A', $T, [@limit]);
    ask($T - 15 * $S, [@limit, cost => 0]);
    is_deeply ask($T, ['whose', $W, 3]), [2, 1, $W], 'a log that takes their place starts anew';
    is keys %{ entries('whose') }, 1;
    ask_as('A', $T, ['whose short', $W, 3, buckets => 6]);
    ask($T - 15 * $S, ['whose short', $W, 3, buckets => 6, cost => 0]);
    is_deeply ask_short($T, $W, 3, 'whose short' => 'x'), [2, 1, $W];
    is_deeply entries('whose short'), { x => $T };
};

# ---- What requests have cost after all

subtest 'what has cost less keeps its time in a log, and costs less' => sub {
    my @limit = ('less', $W, 20);
    ask_as('a', $T, [@limit, cost => 5]);
    ask_as('b', $T + 1, [@limit, cost => 3]);
    is settle_at($T + $S, $T, 'a', 2, [@limit, cost => 5]), 1, 'it was there';
    is_deeply entries('less'), { 'a*2' => $T, 'b*3' => $T + 1, '+3' => 0 };
    is settle_at($T + $S, $T, 'a', 2, [@limit, cost => 5]), 0, 'once';
    is take_back_at($T + $S, $T, 'a', [@limit, cost => 5]), 0, 'nor is it taken back as what it was';
    is settle_at($T + $S, $T, 'b', 3, [@limit, cost => 3]), 0, 'what has cost as much as was thought changes nothing';
    is_deeply entries('less'), { 'a*2' => $T, 'b*3' => $T + 1, '+3' => 0 };
    is settle_at($T + $S, 0, 'b', 1, [@limit, cost => 3]), 1, 'also if its time is not known';
    is_deeply entries('less'), { 'a*2' => $T, b => $T + 1, '+1' => 0 }, 'to 1';
    is_deeply ask($T + $S, [@limit, cost => 0]), [1, 3, $W - $S];
    is_deeply ask($T + $W, [@limit, cost => 0]), [1, 1, 1], 'it leaves when it would have left';
    is settle_at($T + $W, $T, 'x', 1, [@limit, cost => 2]), 0, 'not one that never was';

    ask_as('a', $T, ['less alone', $W, 20, cost => 5]);
    my $ttl = redis('PTTL', 'less alone');
    is settle_at($T + $S, $T, 'a', 1, ['less alone', $W, 20, cost => 5]), 1;
    is_deeply entries('less alone'), { a => $T }, 'no sum is left where none is needed';
    cmp_ok abs(redis('PTTL', 'less alone') - $ttl), '<', 500, 'and it lives as long as before';

    ask_as('r', $T, ['less refused', $W, 5, cost => 4, rule => 'd']) for 1 .. 2;
    is settle_at($T, $T, 'r', 2, ['less refused', $W, 5, cost => 4]), 1;
    is_deeply entries('less refused'), { 'r*2' => $T, 'r*4!' => $T, '+4' => 0 }, 'what was refused stays';
};

subtest 'what has cost more counts from then on in a log, beyond max, and once' => sub {
    my @limit = ('more', $W, 10);
    ask_as('a', $T, [@limit]);
    is settle_at($T + $S, $T, 'a', 2, [@limit]), 1;
    is_deeply entries('more'), { a => $T, 'a+' => $T + $S }, '1 more';
    is settle_at($T + 2 * $S, $T, 'a', 2, [@limit]), 0, 'only once';
    is_deeply ask($T + 2 * $S, [@limit, cost => 0]), [1, 2, 58 * $S];
    ask_as('b', $T + 2 * $S, [@limit, cost => 3]);
    is settle_at($T + 3 * $S, $T + 2 * $S, 'b', 30, [@limit, cost => 3]), 1;
    my $all = { a => $T, 'a+' => $T + $S, 'b*3' => $T + 2 * $S, 'b+*27' => $T + 3 * $S, '+28' => 0 };
    is_deeply entries('more'), $all, 'much more than there was room for';
    is settle_at($T + 4 * $S, $T + 2 * $S, 'b', 30, [@limit, cost => 3]), 0;
    is_deeply entries('more'), $all, 'once';
    is_deeply ask($T + 4 * $S, [@limit]), [0, 32, 59 * $S], 'those who come next wait for it';
    is_deeply [ ask_short($T + 4 * $S, $W, 10, more => 'c') ], [ [0, 32, 59 * $S] ], 'also in the shorter form';
    is_deeply ask($T + 63 * $S - 1, [@limit, cost => 10]), [0, 27, 1], 'to the end';
    is_deeply ask($T + 63 * $S, [@limit, cost => 10]), [2, 10, $W], 'and no longer';

    ask_as($_, $T, ['debt of ones', $W, 3]) for qw(a b c);
    settle_at($T + 1, $T, $_, 2, ['debt of ones', $W, 3]) for qw(a b);
    is_deeply [ ask_short($T + 2, $W, 3, 'debt of ones' => 'd') ], [ [0, 5, $W - 2] ], 'where none costs more than 1: until three have left';
    is_deeply [ ask_short($T + 2, $W, 1, 'debt of ones' => 'd') ], [ [0, 5, $W - 1] ], 'or all of them';

    is settle_at($T, $T, 'l', 7, ['looked', $W, 5, cost => 0]), 1, 'of one that only looked';
    is_deeply entries('looked'), { 'l+*7' => $T, '+6' => 0 }, 'all of it';
    is settle_at($T + 1, 0, 'l', 7, ['looked', $W, 5, cost => 0]), 0;

    ask_as('late', $T, ['late', $W, 5, cost => 2]);
    is settle_at($T + 3 * $W, $T, 'late', 4, ['late', $W, 5, cost => 2]), 1, 'after its window has passed';
    is_deeply entries('late'), { 'late+*2' => $T + 3 * $W, '+1' => 0 }, 'only what was more counts';
};

subtest 'what has cost less or more in a packed log' => sub {
    my @limit = ('packed settled', $W, 10, @PACKED, rule => 'i');
    my ($a, $b) = (uuid(1), uuid(2));
    ask_as($a, $T, [@limit]);
    is settle_at($T + $S, $T, $a, 2, [@limit]), 1;
    is_deeply packed('packed settled'), [[$T, $a, 1, 0], [$T + $S, $a, 1, 2]], 'there are costs from now on';
    is settle_at($T + 2 * $S, $T, $a, 2, [@limit]), 0, 'only once';
    ask_as($b, $T + 2 * $S, [@limit, cost => 5]);
    is settle_at($T + 3 * $S, $T + 2 * $S, $b, 3, [@limit, cost => 5]), 1, 'less';
    is settle_at($T + 3 * $S, $T + 2 * $S, $b, 3, [@limit, cost => 5]), 0, 'once';
    is take_back_at($T + 3 * $S, $T + 2 * $S, $b, [@limit, cost => 5]), 0;
    is settle_at($T + 3 * $S, 0, uuid(3), 30, [@limit, cost => 3]), 1, 'more, of one that is not there any more';
    my $all = [[$T, $a, 1, 0], [$T + $S, $a, 1, 2], [$T + 2 * $S, $b, 3, 0], [$T + 3 * $S, uuid(3), 27, 2]];
    is_deeply packed('packed settled'), $all;
    is settle_at($T + 4 * $S, 0, uuid(3), 30, [@limit, cost => 3]), 0, 'once';
    is_deeply packed('packed settled'), $all;
    is_deeply ask($T + 4 * $S, [@limit]), [0, 32, 59 * $S], 'those who come next wait for it';
    is_deeply [ ask_in('/i', $T + 4 * $S, [$W, 10], [uuid(4), 'packed settled']) ], [ [0, 32, 59 * $S] ], 'also in the shorter form';
    is take_back_at($T + 4 * $S, $T, $a, [@limit]), 1, 'taking back takes what was counted first';
    is_deeply ids_in('packed settled'), [$a, $b, uuid(3)];
    is_deeply ask($T + 63 * $S, [@limit, cost => 10]), [2, 10, $W], 'all is past';

    is settle_at($T, $T, uuid(5), 7, ['packed looked', $W, 5, @PACKED, cost => 0]), 1, 'of one that only looked';
    is_deeply packed('packed looked'), [[$T, uuid(5), 7, 2]], 'all of it';
    cmp_ok redis('PTTL', 'packed looked'), '>', $W / 1000, 'with a time to live';

    ask_packed($T, 'packed ones', $W, 9) for 1 .. 3;
    is settle_at($T + 1, $T, uuid(6), 0, ['packed ones', $W, 9, @PACKED]), 0, 'where no ids were kept nothing is given back';
    is settle_at($T + 1, $T, uuid(6), 3, ['packed ones', $W, 9, @PACKED]), 1, 'but more is counted';
    is_deeply [ map { [@$_[0, 2, 3]] } @{ packed('packed ones') } ], [([$T, 1, 0]) x 3, [$T + 1, 2, 2]];

    # through every size at which the string becomes longer
    @limit = ('packed growing', $W, 10_000, @PACKED, rule => 'i');
    for my $n (1 .. 300) {
        ask_as(uuid($n), $T + $n, [@limit]);
        settle_at($T + $n, $T + $n, uuid($n), $n % 3, [@limit]);
    }
    is_deeply ask($T + 300, [@limit, cost => 0]), [1, 300, $W - 299], 'while it grows';
    is ref packed('packed growing'), 'ARRAY', 'in order';
};

subtest 'what has cost less or more in buckets' => sub {
    my @limit = ('pails', $W, 20, buckets => 6);
    ask_as('a', $T, [@limit, cost => 5]);
    ask_as('b', $T + 10 * $S, [@limit, cost => 2]);
    is settle_at($T + 25 * $S, $T, 'a', 3, [@limit, cost => 5]), 1, 'less';
    is_deeply entries('pails'), { $T + 10 * $S => 3, $T + 20 * $S => 2 }, 'is given back where it was counted';
    is settle_at($T + 25 * $S, $T + 10 * $S, 'b', 40, [@limit, cost => 2]), 1, 'more';
    is_deeply entries('pails'), { $T + 10 * $S => 3, $T + 20 * $S => 2, $T + 30 * $S => 38 }, 'is counted where they are now';
    is_deeply ask($T + 25 * $S, [@limit]), [0, 43, 65 * $S], 'and has to be waited for';
    is_deeply [ ask_in('/6', $T + 25 * $S, [$W, 20], [uuid(1), 'pails']) ], [ [0, 43, 65 * $S] ], 'also in the shorter form';
    is settle_at($T + 25 * $S, $T, 'a', 5, [@limit, cost => 5]), 0, 'the same changes nothing';
    is settle_at($T + 300 * $S, $T, 'a', 6, [@limit, cost => 5]), 1, 'when all else has left';
    is_deeply entries('pails'), { $T + 310 * $S => 1 };
    cmp_ok redis('PTTL', 'pails'), '>=', 70_000, 'with a time to live';
    is settle_at($T, $T, 'l', 7, ['pails looked', $W, 5, buckets => 6, cost => 0]), 1, 'of one that only looked';
    is_deeply entries('pails looked'), { $T + 10 * $S => 7 }, 'all of it';
};

subtest 'several limits are settled at once, each for itself' => sub {
    my @limits = map { ["each $_", $W, 20, algorithm => $_, rule => 'i', cost => 5] } 0, 'p', 6;
    ask_as(uuid(1), $T, @limits);
    is call_at($T + 1, $T, uuid(1), ['each 0', $W, 9, cost => 5], ['each p', $W, 2, @PACKED, cost => 5], ['each 6', $W, 5, buckets => 6, cost => 5]),
        2, 'two were changed';
    is_deeply [ map { ask($T + 2, [@$_, cost => 0])->[1] } @limits ], [9, 2, 5];
};

for my $algorithm (0, 'p', 6) {
    my $kind = $ALGORITHMS{$algorithm};
    my @with = (algorithm => $algorithm, rule => 'i');

    subtest "no more is used than sums can take, in $kind" => sub {
        my ($M, $key) = (10**15, "bound$algorithm");
        for my $n (1 .. 12) {
            is settle_at($T + $n, 0, uuid($n), $M, [$key, $W, $M, @with, cost => 0]), $n <= 9 ? 1 : 0, "number $n";
            is ask($T + $n, [$key, $W, $M, @with, cost => 0])->[1], ($n < 9 ? $n : 9) * $M;
        }
        is redis('TYPE', $key), $algorithm eq '0' ? 'zset' : 'string';
        my $wait = ($algorithm eq '6' ? 70 * $S : $W + 9) - 12;
        is_deeply ask($T + 12, [$key, $W, $M, @with, cost => $M]), [0, 9 * $M, $wait], 'to the last unit';
        is_deeply ask($T + 12, [$key, $W, $M, @with, rule => 'd', cost => $M]), [0, 9 * $M, $wait], 'nor does a refused one add to it';

        redis('DEL', $key);
        settle_at($T + $_, 0, uuid($_), $M, [$key, $W, $M, @with, cost => 0]) for 1 .. 8;
        settle_at($T + 9, 0, uuid(9), $M - 1, [$key, $W, $M, @with, cost => 0]);
        is settle_at($T + 10, 0, uuid(10), 2**33, [$key, $W, $M, @with, cost => 2**32]), 1, 'what is left out may be a part';
        is ask($T + 10, [$key, $W, $M, @with, cost => 0])->[1], 9 * $M;
        is_deeply contents($key)->[-1], [$T + 10, uuid(10), 1, 2] if $algorithm eq 'p';
        is entries($key)->{uuid(10) . '+'}, $T + 10 if $algorithm eq '0';
    };

    subtest "bytes over 2^32 and costs up to 10^15 are settled to the last one, in $kind" => sub {
        my ($M, $key) = (10**15, "bytes$algorithm");
        ask_as(uuid(1), $T, [$key, $W, $M, @with, cost => $M]);
        is settle_at($T, $T, uuid(1), 2**32 + 1, [$key, $W, $M, @with, cost => $M]), 1;
        is ask($T, [$key, $W, $M, @with, cost => 0])->[1], 2**32 + 1, 'less';
        ask_as(uuid(2), $T + 1, [$key, $W, $M, @with]);
        is settle_at($T + 2, $T + 1, uuid(2), $M, [$key, $W, $M, @with]), 1;
        is ask($T + 2, [$key, $W, $M, @with, cost => 0])->[1], 2**32 + 1 + $M, 'more';
        is take_back_at($T + 2, $T, uuid(1), [$key, $W, $M, @with, cost => 2**32 + 1]), 1;
        is ask($T + 2, [$key, $W, $M, @with, cost => 0])->[1], $M, 'and nothing';
    };

    subtest "a ruling survives what is settled, in $kind" => sub {
        for my $true_cost (0, 2, 5, 9) {
            my ($key, $then) = ("settled under a ruling $algorithm $true_cost", $T + 1);
            ask($T, [$key, $W, 20, @with]);
            ask_as(uuid(1), $then, [$key, $W, 20, @with, cost => 5]);
            intervene($T + 2, $key, 'max', 1000 * $S, 7, $algorithm);
            intervene($T + 2, $key, 'ban', 500 * $S, 0, $algorithm);
            is settle_at($T + 3, $then, uuid(1), $true_cost, [$key, $W, 20, @with, cost => 5]), $true_cost == 5 ? 0 : 1, "settled with $true_cost";
            is_deeply [ @{ intervene($T + 3, $key, 'look', 0, 0, $algorithm) }[0, 2, 3] ], [1 + $true_cost, 500 * $S - 1, 7], 'all is as it was ruled';
            cmp_ok redis('PTTL', $key), '>', 990_000, 'for as long';
            is ask_ruled($T + 4, [$key, $W, 20, @with])->[0], 3, 'and heeded';
        }

        my $key = "settled with a ruling alone $algorithm";
        intervene($T, $key, 'max', 1000 * $S, 7, $algorithm);
        is settle_at($T + 1, 0, uuid(1), 8, [$key, $W, 20, @with, cost => 0]), 1, 'also where nothing else is';
        is_deeply [ @{ ask_ruled($T + 2, [$key, $W, 20, @with]) }[0, 1, 3] ], [0, 8, 7];
        cmp_ok redis('PTTL', $key), '>', 990_000, 'for as long';
    };

    subtest "a clock that steps back before requests are settled, in $kind" => sub {
        my $key = "settled back $algorithm";
        ask_as(uuid($_), $T + $_ * $S, [$key, $W, 20, @with, cost => 2]) for 1 .. 3;
        is settle_at($T + 2 * $S, $T + 3 * $S, uuid(3), 6, [$key, $W, 20, @with, cost => 2]), 1, 'more';
        is ask($T + 2 * $S, [$key, $W, 20, @with, cost => 0])->[1], 10;
        is_deeply times_in($key), [ map { $T + $_ * $S } 1, 2, 2, 2 ], 'times are in their order' if $algorithm eq 'p';
        is_deeply ask($T + 2 * $S, [$key, $W, 20, @with, cost => 20])->[0], 0;
        if ($algorithm ne '6') {
            is settle_at($T + 2 * $S, $T + 3 * $S, uuid(3), 6, [$key, $W, 20, @with, cost => 2]), 0, 'once';
            is settle_at($T + 2 * $S, $T + 3 * $S, uuid(3), 1, [$key, $W, 20, @with, cost => 2]), 1, 'less is found wherever it is now';
            is ask($T + 2 * $S, [$key, $W, 20, @with, cost => 0])->[1], 9;
        }
        is ask($T + 73 * $S, [$key, $W, 20, @with, cost => 0])->[1], 0, 'and all of it leaves';
    };

    subtest "operators see what was counted when it was settled, in $kind" => sub {
        my $key = "seen later $algorithm";
        ask_as(uuid(1), $T, [$key, $W, 20, @with, cost => 5]);
        ask_as(uuid(2), $T + 1, [$key, $W, 20, @with, cost => 5]);
        settle_at($T + 10 * $S, $T, uuid(1), 2, [$key, $W, 20, @with, cost => 5]);
        settle_at($T + 10 * $S, $T + 1, uuid(2), 6, [$key, $W, 20, @with, cost => 5]);
        my @shown = $algorithm eq '6' ? ($S, 1, 0, '', 11 * $S, 7, 0, '')
            : ($S, 1, 0, uuid(2), 11 * $S - 1, 5, 0, uuid(2), 11 * $S, 2, 0, uuid(1));
        is_deeply intervene($T + 11 * $S, $key, 'look', 0, 0, $algorithm),
            [8, ($algorithm eq '6' ? 59 : 49) * $S, 0, 0, 0, @shown / 4, @shown], 'with its id and cost, and not as refused';
    };
}

subtest 'logs and packed logs carry over what was counted when it was settled' => sub {
    my @limit = ('carried later', $W, 20, rule => 'i');
    ask_as(uuid($_), $T + $_, [@limit, cost => $_]) for 1, 2;
    settle_at($T + 2 + $_, $T + $_, uuid($_), 2 * $_, [@limit, cost => $_]) for 1, 2;
    my $log = { uuid(1) => $T + 1, uuid(2) . '*2' => $T + 2, uuid(1) . '+' => $T + 3, uuid(2) . '+*2' => $T + 4, '+2' => 0 };
    is_deeply entries('carried later'), $log;
    is settle_at($T + 5, $T + 1, uuid(1), 2, [@limit, @PACKED]), 0, 'to a packed log, which knows it';
    is_deeply packed('carried later'), [[$T + 1, uuid(1), 1, 0], [$T + 2, uuid(2), 2, 0], [$T + 3, uuid(1), 1, 2], [$T + 4, uuid(2), 2, 2]];
    is settle_at($T + 5, $T + 2, uuid(2), 4, [@limit, cost => 2]), 0, 'and back';
    is_deeply entries('carried later'), $log;
    is settle_at($T + 5, $T + 2, uuid(2), 1, [@limit, @PACKED, cost => 2]), 1, 'less is found in either';
    is settle_at($T + 5, $T + 1, uuid(1), 0, [@limit]), 1;
    is_deeply entries('carried later'), { uuid(2) => $T + 2, uuid(1) . '+' => $T + 3, uuid(2) . '+*2' => $T + 4, '+1' => 0 };
};

# as those are that an old worker still had under way when the zone was changed
subtest 'what was counted in a log is not settled in buckets, nor the other way round' => sub {
    for my $case ([0, 6], ['p', 6], [6, 0], [6, 'p']) {
        my ($before, $after) = @$case;
        my $key = "other $before $after";
        my @old = ($key, $W, 9, algorithm => $before, cost => 3, rule => 'i');
        my @new = ($key, $W, 9, algorithm => $after, cost => 2, rule => 'i');
        ask_as(uuid(1), $T, [@old]);
        ask_as(uuid(2), $T + 1, [@new]);
        intervene($T + 1, $key, 'max', 500 * $S, 7, $after);
        my $there = intervene($T + 2, $key, 'look', 0, 0, $after);
        is $there->[0], 2, "$ALGORITHMS{$after} instead of $ALGORITHMS{$before}";
        is settle_at($T + 2, $T, uuid(1), $_, [@old]), 0, "settled to $_: nothing changes" for 0, 1, 8;
        is_deeply intervene($T + 2, $key, 'look', 0, 0, $after), $there, 'of counts, nor of a ruling';
        is settle_at($T + 2, $T + 1, uuid(2), 1, [@new]), 1, 'its own is settled';
    }
};

# ---- Another algorithm for what was counted

subtest 'buckets and logs start anew in each other\'s place' => sub {
    for my $log (0, 'p') {
        ask($T, ["turn $log", $W, 5, algorithm => $log, cost => 2]) for 1 .. 2;
        is_deeply ask($T, ["turn $log", $W, 5, buckets => 6]), [2, 1, 70 * $S], "from $ALGORITHMS{$log} to buckets";
        is_deeply entries("turn $log"), { $T + 10 * $S => 1 };
        is_deeply ask($T, ["turn $log", $W, 5, algorithm => $log]), [2, 1, $W], 'and back';
        is size_of("turn $log"), 1;
        is_deeply ask($T, ["turn $log", $W, 5, algorithm => $log, cost => 2]), [2, 3, $W], 'which then goes on';

        ask($T, ["turn short $log", $W, 5, algorithm => $log]);
        is_deeply [ ask_in('/6', $T, [$W, 5], [uuid(1), "turn short $log"]) ], [ [2, 1, 70 * $S] ], 'so it is in the shorter form';
        is_deeply [ ask_in("/$log", $T, [$W, 5], [uuid(2), "turn short $log"]) ], [ [2, 1, $W] ];
        is_deeply [ ask_in('/6', $T, [$W, 5], map { [uuid($_), "turn short $log"] } 1 .. 2) ], [ ([-1, 0, 0]) x 2 ],
            'where several are told to ask alone';

        is_deeply ask($T, ["turn $log", $W, 5, buckets => 6, cost => 0]), [1, 0, 0], 'who only looks finds nothing';
    }
};

subtest 'what has left is not carried over' => sub {
    my $now = $T + $W + 1989;
    fill('left log', $T, 2000, '');
    is_deeply ask($now, ['left log', $W, 5000, @PACKED]), [2, 11, 1], 'from a log to a packed one';
    fill_packed('left packed', $T, 2000);
    is_deeply ask($now, ['left packed', $W, 5000]), [2, 11, 1], 'and back';
};

subtest 'logs and packed logs carry over what was counted' => sub {
    my @limit = ('carried', $W, 20);
    ask_as(uuid(1), $T, [@limit]);
    ask_as(uuid(2), $T + 1, [@limit, cost => 5]);
    ask_as(uuid(3), $T + 2, [@limit, cost => 18, rule => 'd']);
    my $log = { uuid(1) => $T, uuid(2) . '*5' => $T + 1, uuid(3) . '*18!' => $T + 2, '+21' => 0 };
    is_deeply entries('carried'), $log;
    is_deeply ask($T + 3, [@limit, @PACKED, cost => 0]), [1, 24, $W - 3], 'from a log';
    is_deeply packed('carried'), [[$T, uuid(1), 1, 0], [$T + 1, uuid(2), 5, 0], [$T + 2, uuid(3), 18, 1]], 'all of it';
    cmp_ok redis('PTTL', 'carried'), '>', $W / 1000, 'with a time to live';
    is_deeply ask($T + 4, [@limit, cost => 0]), [1, 24, $W - 4], 'and back';
    is_deeply entries('carried'), $log;
    cmp_ok redis('PTTL', 'carried'), '>', $W / 1000, 'with a time to live';
    is take_back(uuid(2), $T + 1, [@limit, @PACKED, cost => 5]), 1, 'what is taken back is found in either';
    is_deeply [ map { $_->[1] } @{ packed('carried') } ], [uuid(1), uuid(3)];
    is take_back(uuid(1), $T, [@limit]), 1;
    is_deeply entries('carried'), { uuid(3) . '*18!' => $T + 2, '+17' => 0 };

    ask_packed($T + $_, 'carried ones', $W, 20) for 0, 1, 1, 2;
    is_deeply ask($T + 3, ['carried ones', $W, 20]), [2, 5, $W - 3], 'also where no ids were kept';
    is_deeply [ sort values %{ entries('carried ones') } ], [ map { $T + $_ } 0, 1, 1, 2, 3 ];
    is_deeply ask_packed($T + 4, 'carried ones', $W, 20), [2, 6, $W - 4];
    is_deeply times_in('carried ones'), [ map { $T + $_ } 0, 1, 1, 2, 3, 4 ];

    for my $count (1023, 1024, 1025, 5000) {
        my $exact = $count <= 1024;
        my @wait = ($W - $count + ($exact ? 0 : $count - 1));
        fill("carried $count", $T, $count, '');
        is_deeply ask($T + $count, ["carried $count", $W, $count, @PACKED]), [0, $count, @wait], "$count to a packed log";
        is size_of("carried $count"), $exact ? $count : 1, $exact ? 'one by one' : 'as of the newest';
        fill_packed("carried $count", $T, $count);
        is_deeply ask($T + $count, ["carried $count", $W, $count]), [0, $count, @wait], 'and to a log';
        is size_of("carried $count"), $exact ? $count : 2;
        is_deeply ask($T + $count - 1 + $W, ["carried $count", $W, $count]), [2, 1, $W], 'they leave when the newest does';
    }
    fill_packed('carried costs', $T, 2000, cost => 3);
    is_deeply ask($T + 2000, ['carried costs', $W, 6000]), [0, 6000, $W - 1], 'with all that they cost';
    is_deeply ask($T + 2000, ['carried costs', $W, 6000, @PACKED]), [0, 6000, $W - 1];

    fill('carried late', $T, 1000, '');
    is_deeply ask($T + $W + 499, ['carried late', $W, 5000, @PACKED]), [2, 501, 1], 'what has left is left behind';
    fill_packed('carried late', $T, 1000);
    is_deeply ask($T + $W + 499, ['carried late', $W, 5000]), [2, 501, 1];
};

subtest 'what no algorithm has written is an error, and only for its own requests' => sub {
    for my $word (0, 'p', 'i', 6) {
        my $algorithm = $word eq 'i' ? 'p' : $word;
        my %foreign = (
            'a number' => [SET => 1], 'a short text' => [SET => 'hello'], 'a long text' => [SET => 'x' x 1000],
            'a list' => ['RPUSH', 1 .. 3], 'a hash' => ['HSET', 'a', 1],
        );
        for my $what (sort keys %foreign) {
            my ($command, @values) = @{ $foreign{$what} };
            redis('DEL', 'foreign');
            redis($command, 'foreign', @values);
            my $before = redis('DUMP', 'foreign');
            like ask($T, ['foreign', $W, 9, algorithm => $algorithm]), qr/^error: WRONGTYPE/, "$what, $ALGORITHMS{$algorithm}";
            like take_back(uuid(1), $T, ['foreign', $W, 9, algorithm => $algorithm]), qr/^error: WRONGTYPE/, 'nor is anything taken back';
            like join(' ', ask_in("/$word", $T, [$W, 9], [uuid(1), 'foreign'])), qr/^error: WRONGTYPE/, 'in the shorter form';
            is_deeply [ ask_in("/$word", $T, [$W, 9], map { [uuid(++$serial), $_] } "beside $word $what", 'foreign', "beside $word $what") ],
                [[2, 1, $word eq 6 ? 70 * $S : $W], [-1, 0, 0], [2, 2, $word eq 6 ? 70 * $S : $W]], 'of several, it is for this one';
            my @key = ("first $word $what", 'foreign');
            is_deeply [ ask_in("/$word/$word", $T, [$W, 9, $W, 9], map { [uuid(++$serial), @$_] } [@key], [reverse @key]) ],
                [ ([(-1, 0, 0) x 2]) x 2 ], 'also as one of several limits';
            is redis('EXISTS', $key[0]), 0, 'where nothing is counted';
            is redis('DUMP', 'foreign'), $before, 'and it stays as it is';
        }
    }
};

# ---- The shorter form

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

for my $word (0, 'p', 'i', 6) {
    my ($algorithm, $rule) = $word eq 'i' ? ('p', 'i') : ($word, '');

    subtest "several ordinary requests at once are decided as one after the other: /$word" => sub {
        srand 1;
        my ($now, $id, $different) = ($T, 0, 0);
        my @keys = map { "several$word$_" } 0 .. 3;
        for (1 .. 300) {
            $now += int rand $W / 20;
            my @requests = map { [uuid(++$id), $keys[rand @keys]] } 1 .. 2 + rand 6;
            my $max = 12;
            my @one_by_one = map { ask_as($_->[0], $now, ["alone$_->[1]", $W, $max, algorithm => $algorithm, rule => $rule]) } @requests;
            my @at_once = ask_in("/$word", $now, [$W, $max], @requests);
            $different++ unless "@{[ map { @$_ } @one_by_one ]}" eq "@{[ map { @$_ } @at_once ]}";
        }
        is $different, 0, "$id requests";
        is_deeply contents($_), contents("alone$_"), 'the same is counted' for @keys;
        cmp_ok redis('PTTL', $_), '>', $W / 1000 - 5000, 'and expires' for @keys;
    };
}

subtest 'so they are if max varies, but for buckets that have counted more' => sub {
    for my $word (0, 'p', 6) {
        srand 1;
        my ($now, $id, $different, $undecided) = ($T, 0, 0, 0);
        for (1 .. 300) {
            $now += int rand $W / 20;
            my @requests = map { [uuid(++$id), "vary$word" . int rand 4] } 1 .. 2 + rand 6;
            my $max = 3 + int rand 8;
            for my $request (@requests) {
                my ($id, $key) = @$request;
                my $alone = ask_as($id, $now, ["alone$key", $W, $max, algorithm => $word]);
                # with another one, so that it is not decided the longer way at once
                my ($answer) = ask_in("/$word", $now, [$W, $max], [$id, $key], [uuid(++$serial), "vary others $serial"]);
                if ($answer->[0] == -1) {
                    $undecided++;
                    ($answer) = ask_in("/$word", $now, [$W, $max], [$id, $key]);
                }
                $different++ unless "@$alone" eq "@$answer";
            }
        }
        is $different, 0, "$id requests, $ALGORITHMS{$word}";
        $word eq 6 ? cmp_ok $undecided, '>', 0, 'some of which have to be asked about alone' : is $undecided, 0, 'none has to be asked about alone';
        is_deeply contents("vary$word$_"), contents("alonevary$word$_"), 'the same is counted' for 0 .. 3;
    }
};

for my $algorithms ('/0/0', '/p/6/0', '/i/p', '/6/100/p', '/0/6') {
    subtest "so are those that have several limits each: $algorithms" => sub {
        srand 1;
        my @words = $algorithms =~ m{/(\w+)}g;
        my ($now, $id, $different, $refused) = ($T, 0, 0, 0);
        my @windows = map { $W / ($_ + 1) } 0 .. $#words;
        my @maxes = map { 11 - 2 * $_ } 0 .. $#words;
        my $key = sub { my ($l, $n) = @_; return "limits$algorithms $l $n" };
        for (1 .. 300) {
            $now += int rand $W / 20;
            my @requests = map { [uuid(++$id), map { $key->($_, int rand 3) } 0 .. $#words] } 1 .. 1 + rand 5;
            my @one_by_one = map {
                my ($id, @keys) = @$_;
                ask_as($id, $now, map {
                    ["alone $keys[$_]", $windows[$_], $maxes[$_], $words[$_] eq 'i' ? (algorithm => 'p', rule => 'i') : (algorithm => $words[$_])]
                } 0 .. $#words)
            } @requests;
            my @at_once = ask_in($algorithms, $now, [ map { ($windows[$_], $maxes[$_]) } 0 .. $#words ], @requests);
            $different++ unless "@{[ map { @$_ } @one_by_one ]}" eq "@{[ map { @$_ } @at_once ]}";
            $refused += grep { $_->[0] != 2 } @at_once;
            my @torn = grep { my %all = map { ($_ == 2) => 1 } @$_[map { 3 * $_ } 0 .. $#words]; keys %all > 1 } @at_once;
            is @torn, 0, 'all limits count it, or none' if @torn;
        }
        is $different, 0, "$id requests, $refused of them refused";
        cmp_ok $refused, '>', 20;
        for my $l (0 .. $#words) {
            is_deeply contents($key->($l, $_)), contents('alone ' . $key->($l, $_)), 'the same is counted' for 0 .. 2;
        }
    };
}

subtest 'all limits of a request count it or none does, whatever they are' => sub {
    my @limits = ($W, 9, $W, 9, $W, 1);
    my @keys = ('mixed p', 'mixed b', 'mixed l');
    is_deeply [ ask_in('/p/6/0', $T, \@limits, map { [uuid($_), @keys] } 1 .. 3) ],
        [[2, 1, $W, 2, 1, 70 * $S, 2, 1, $W], ([1, 1, $W, 1, 1, 70 * $S, 0, 1, $W]) x 2], 'each says how it stands';
    is_deeply [ map { contents($_) } @keys ], [[[$T, '', '', '']], { $T + 10 * $S => 1 }, { uuid(1) => $T }], 'one is counted';

    is_deeply [ ask_in('/p/6/0', $T, \@limits, [uuid(1), 'mixed new', 'mixed fresh', 'mixed l']) ],
        [[1, 0, 0, 1, 0, 0, 0, 1, $W]], 'where nothing is counted yet';
    is redis('EXISTS', 'mixed new', 'mixed fresh'), 0, 'nothing is left behind';

    is_deeply [ ask_in('/0/6/p', $T + $W, [$W, 9, $W, 9, $W, 1], map { [uuid($_), 'mixed l', 'mixed b', 'mixed p'] } 4, 5) ],
        [[2, 1, $W, 2, 2, 10 * $S, 2, 1, $W], [1, 1, $W, 1, 2, 10 * $S, 0, 1, $W]], 'and when the others have left';
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
        'first c', 'second c', '/0/0', $W, 9, $W, 9, 'a', 'b', 'c', sprintf '%d:0', $T / 1000000);
    is_deeply [ unpack 'q<*', $answer ],
        [(-1, 0, 0) x 4, 2, 1, $W, 2, 1, $W, $T], 'whichever of them it is';
    is redis('EXISTS', 'first a', 'first b'), 0;
    is_deeply entries('second c'), { c => $T };
};

subtest 'ordinary requests take the short way, whatever else has happened' => sub {
    my $is_short = sub {
        my ($now, $id) = @_;
        my $answer = redis('EVALSHA', $steered_sha, 1, 'way', '/0', $W, 3, $id,
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

subtest 'so they do in packed logs and buckets' => sub {
    for my $word ('p', 'i', 6) {
        my $stays = $word eq 6 ? 70 * $S : $W;
        my $is_short = sub {
            my ($now, $max) = @_;
            my $answer = redis('EVALSHA', $steered_sha, 1, "way $word", "/$word", $W, $max // 3, uuid(++$serial),
                sprintf '%d:%d', $now / 1000000, $now % 1000000);
            return length $answer == 4 * 8;
        };

        ok $is_short->($T), 'the first';
        ok $is_short->($T), 'another of the same microsecond';
        ok $is_short->($T + 1), 'the last that is admitted';
        ok $is_short->($T + 1), 'one that is refused';
        is $is_short->($T + 1, 2), $word ne 6, 'or has to wait for more than the oldest';
        ok $is_short->($T + $stays), 'one that comes when others leave';
        ok $is_short->($T + 3 * $W), 'or all of them';
        ok !$is_short->($T - $W), 'but not one that comes when the clock has stepped back';
        ok $is_short->($T - $W), 'and others after it do';
    }

    fill_packed('way p', $T, 2000);
    is_deeply ask_packed($T + $W + 1500, 'way p', $W, 2000), [2, 500, 1], 'one that comes when very many have left';
    is_deeply ask_packed($T + 2 * $W, 'way p', $W, 2000), [2, 2, 1500], 'or all but one';
};

# ---- Times to live

subtest 'every key has a time to live, never shorter than what is in it' => sub {
    for my $window (100_000, 1_500_000, 60 * $S, 31 * 86400 * $S) {
        for my $with ([], [cost => 2], [algorithm => 'p'], [algorithm => 'p', cost => 2], [algorithm => 'p', rule => 'i'], [buckets => 10]) {
            my $kind = "@$with" || 'log';
            my $stays = $kind =~ /buckets/ ? 1.1 * $window : $window;
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

    for my $form (['longer', sub { ask($_[0], [@_[1 .. 3], @PACKED]) }], ['shorter', \&ask_packed]) {
        my ($name, $asked) = @$form;
        my @limit = ("packed life, $name", $W, 3);
        my $renewed = sub {
            my ($now) = @_;
            redis('PEXPIRE', $limit[0], 10_000_000);
            $asked->($now, @limit);
            my $ttl = redis('PTTL', $limit[0]);
            return $ttl > 9_000_000 ? 'as it was' : $ttl >= 1.9 * $W / 1000 && $ttl <= 2 * $W / 1000 + 1000 ? 'for two windows' : $ttl;
        };
        $asked->($T, @limit);
        is $renewed->($T + 1), 'for two windows', "in a packed log it is set with the second, in the $name form";
        is $renewed->($T + 2), 'as it was', 'not with the third';
        is $renewed->($T + 3), 'as it was', 'nor if one is refused';
        is $renewed->($T + $W), 'as it was', 'nor when others leave, as long as it is enough';
        is $renewed->($T + $W + 2), 'for two windows', 'but then it is';
    }
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

# When the last of what stands under a key leaves; 0: there is nothing.
sub last_leaves {
    my ($key, $window, $algorithm) = @_;
    my @times = $algorithm eq 'p' ? @{ times_in($key) } : $algorithm ? keys %{ entries($key) } : values %{ entries($key) };
    my ($newest) = sort { $b <=> $a } @times;
    return $newest ? $newest + $window : 0;
}

for my $algorithm (0, 'p', 6) {
    subtest "no key goes before what is in it, whatever is asked and settled, in $ALGORITHMS{$algorithm}" => sub {
        srand 2;
        my @keys = map { "lasting$algorithm$_" } 1 .. 3;
        my @with = (algorithm => $algorithm, rule => 'i');
        my $word = $algorithm eq 'p' ? 'i' : $algorithm;
        my ($now, $id, $too_early, $too_late, $taken, @counted) = ($T, 0, 0, 0, 0);

        for (1 .. 4000) {
            # now and then long enough for all to leave
            my $step = int(rand() < 0.02 ? rand 2 * $W : rand $W / 8);
            pass_time($step, @keys);
            $now += $step;

            my ($key, $what) = ($keys[rand @keys], rand);
            if ($what < 0.5) {
                my @requests = map { [uuid(++$id), $keys[rand @keys]] } 1 .. 1 + rand 3;
                my @answers = ask_in("/$word", $now, [$W, 8], @requests);
                push @counted, [$now, $requests[$_][0], [$requests[$_][1], $W, 8, @with]]
                    for grep { $answers[$_][0] == 2 } 0 .. $#answers;
            }
            elsif ($what < 0.8) {
                my @limits = map { [$_, $W, 8, @with, $what < 0.6 ? (cost => 2) : $what < 0.65 ? (rule => 'di') : ()] }
                    $what < 0.7 ? $key : @keys;
                my $answer = ask_as(uuid(++$id), $now, @limits);
                push @counted, [$now, uuid($id), @limits] if $answer->[0] == 2;
            }
            elsif (@counted) {
                my ($then, $whose, @limits) = @{ splice @counted, rand @counted, 1 };
                $taken += settle_at($now, $then, $whose, (0, 0, 0, 1, 2, 3, 4)[rand 7], @limits);
            }
            @counted = grep { $_->[0] > $now - $W } @counted;

            for my $lasting (@keys) {
                my $leaves = last_leaves($lasting, $W, $algorithm) or next;
                my $ttl = redis('PTTL', $lasting);
                # a millisecond for every rounding, and some for the time that this takes
                $too_early++ if $ttl * 1000 < $leaves - $now - 500_000;
                $too_late++ if $ttl > 2 * $W / 1000 + 1000;
            }
        }
        is $too_early, 0, 'none too early';
        is $too_late, 0, 'nor more than a window late';
        cmp_ok $taken, '>', 500, "though $taken were settled";
    };
}

# ---- What is asked of Redis

subtest 'the script as shipped uses the clock of Redis' => sub {
    my ($sec) = @{ redis('TIME') };
    my $answer = redis('EVAL', $script, script_args('', 'me', ['clock', $W, 1]));
    my $time = pop @$answer;
    is_deeply $answer, [2, 1, $W];
    is_deeply entries('clock'), { me => $time }, 'scored with the time of the answer';
    cmp_ok abs($time / $S - $sec), '<', 5, 'which is the present, in microseconds';
    is redis('EVAL', $script, script_args($time, 'me', ['clock', $W, 0])), 1,
        'and is what taking back is told';
};

# The script, which counts the words that go from it to Redis and back, and what ranges remove; and
# then the bytes of these words.
my $counting = <<"END" =~ s/SCRIPT/$steered/r;
local touched, bytes, real = 0, 0, redis
local function counted(call)
    return function(name, ...)
        local reply = call(name, ...)
        touched = touched + select('#', ...) + (type(reply) == 'table' and #reply or 1)
        touched = touched + (string.find(name, '^ZREMRANGE') and reply or 0)
        for _, word in ipairs({ ... }) do
            bytes = bytes + #tostring(word)
        end
        for _, word in ipairs(type(reply) == 'table' and reply or { reply }) do
            bytes = bytes + #tostring(word)
        end
        return reply
    end
end
local redis = { call = counted(real.call), pcall = counted(real.pcall) }
local function decide()
SCRIPT
end
decide()
return { touched, bytes }
END

subtest 'however many entries there are, a call touches few of them' => sub {
    my ($many, $now, $bytes) = (100_000, $T + $W + 50_000);
    my $touched = sub {
        my ($at, @args) = @_;
        my $answer = redis('EVAL', $counting, @args, sprintf '%d:%d', $at / 1000000, $at % 1000000);
        $bytes = $answer->[1];
        return $answer->[0];
    };
    my $asked = sub { my $at = shift; return $touched->($at, script_args('', uuid(++$serial), @_)) };
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
        'a part of several' => $touched->($T + $W + 2500, 16, map({ $filled->("t$_", '', 5000) } 1 .. 16), '/0', $W, $many, 1 .. 16),
        'a part of several shorter ones' => $touched->($T + $W + 399, 16, map({ $filled->("t$_", '', 500) } 1 .. 16), '/0', $W, $many, 1 .. 16),
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
        'what is taken back' => $touched->($T + $many, script_args($T, 'back5', [$filled->('back', '*2'), $W, 0, cost => 2])),
        'what has cost less' => $touched->($T + $many, script_args($T, 'back6', ['back', $W, 1, cost => 2])),
        'what has cost more' => $touched->($T + $many, script_args($T, 'back7', ['back', $W, 9, cost => 2])),
        'what has cost more, and a part has expired' => $touched->($now, script_args($T, 'back8', ['back', $W, 9, cost => 2])),
        'what has cost more, and all has expired' => $touched->($now + $W, script_args($T, 'back9', ['back', $W, 9, cost => 2])),
    );
    cmp_ok $touched{$_}, '<', 2000, "$_: $touched{$_}" for sort keys %touched;
    cmp_ok $asked->($T + $many, [$filled->('tc', '*2'), $W, 2 * $many, cost => 3]), '<', 50, 'a short wait takes few';

    # [words, bytes]
    my $short = sub { my ($at, $max, $word) = @_; return [$touched->($at, 1, 'tp', "/$word", $W, $max, uuid(++$serial)), $bytes] };
    my $long = sub { my ($at, @limit) = @_; return [$asked->($at, ['tp', $W, @limit, @PACKED]), $bytes] };
    my %packed;
    for my $word ('p', 'i') {
        fill_packed('tp', $T, $many, ids => $word eq 'i');
        $packed{"an ordinary one, $word"} = $short->($T + $many, 2 * $many, $word);
        $packed{"one that is refused, $word"} = $short->($T + $many, 10, $word);
        $packed{"few have left, $word"} = $short->($T + $W + 4, 2 * $many, $word);
        $packed{"many have left, $word"} = $short->($now, 2 * $many, $word);
        $packed{"and one is refused, $word"} = $short->($now + 10_000, 10, $word);
        $packed{"in the longer form, $word"} = $long->($now + 20_000, 2 * $many);
        $packed{"refused in it, $word"} = $long->($now + 20_000, 10);
        $packed{"all have left, $word"} = $short->($now + 2 * $W, 10, $word);
    }
    fill_packed('tp', $T, $many, cost => 2);
    $packed{'costs'} = $long->($T + $many, 5 * $many, cost => 3);
    cmp_ok $packed{$_}[0], '<', 150, "packed, $_: $packed{$_}[0] words" for sort keys %packed;
    cmp_ok $packed{$_}[1], '<', 2048, "and $packed{$_}[1] bytes" for sort keys %packed;

    %packed = (
        'refused ones beside costs' => $long->($T + $many, 4, cost => 2, rule => 'd'),
        'costs, refused' => $long->($T + $many, 3000, cost => 2),
        'a part of costs' => $long->($now, $many, cost => 2),
        'a part of costs, admitted' => $long->($now, 5 * $many, cost => 2),
        'a part of costs, refused' => $long->($now, 50, cost => 2),
        'all costs have expired' => $long->($now + $W, $many, cost => 2),
    );
    fill_packed('tp', $T, $many, ids => 1);
    $packed{'what is taken back'} = [$touched->($T + $many, script_args($T + 99_990, uuid(99_990), ['tp', $W, 0, @PACKED])), $bytes];
    cmp_ok $packed{$_}[0], '<', 2000, "packed, $_: $packed{$_}[0] words" for sort keys %packed;
    cmp_ok $packed{$_}[1], '<', 20_000, "and $packed{$_}[1] bytes" for sort keys %packed;

    # whether it was settled before is looked for among the newest 16384
    my $settled = sub { return [$touched->($_[0], script_args($T, uuid(7), ['tp', $W, 9, @PACKED, cost => 2])), $bytes] };
    fill_packed('tp', $T, $many, cost => 2);
    %packed = (
        'what has cost more' => $settled->($T + $many),
        'and a part has expired' => $settled->($now),
        'and all has expired' => $settled->($now + $W),
    );
    cmp_ok $packed{$_}[0], '<', 2000, "packed, $_: $packed{$_}[0] words" for sort keys %packed;
    cmp_ok $packed{$_}[1], '<', 17 * 16384 + 20_000, "and $packed{$_}[1] bytes" for sort keys %packed;

    my @buckets = map { ["tb$_", $W, 1000, buckets => 100] } 1 .. 16;
    $asked->($T + $_ * $W / 100, @buckets) for 0 .. 99;
    cmp_ok $asked->($T + 99 * $W / 100, @buckets), '<', 16 * 220, 'but for buckets, of which there are a hundred';
};

subtest 'whether all that the script needs may be called can be found out' => sub {
    my %called = map { lc($_) => 1 } $script =~ /\bp?call\('([A-Z]+)'/g;
    my @limits = (['probe', 100_000, 10], ['probe packed', 100_000, 10, algorithm => 'p'], ['probe buckets', 100_000, 10, buckets => 6]);
    my $probe = sub {
        my $answer = redis('EVAL', $script, script_args('?', 'me', @_ ? @_ : @limits));
        return ref $answer ? join ' ', @$answer[0 .. $#$answer - 1] : $answer;
    };

    like $probe->(), qr/^2 1 100000 2 1 100000 2 1 1\d{5}$/, 'it is answered as if it had been asked about';
    cmp_ok redis('PTTL', $_), '>', 0, "$_: the set has a time to live" for map { $_->[0] } @limits;
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
        unlike redis('PTTL', $_), qr/^-1$/, 'nothing is left that stays' for map { $_->[0] } @limits;
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
    my $short = sub { my ($max, $word) = (@_, 0); return $calls_of->(1, "calls s$word", "/$word", 24 * $H, $max, uuid(++$serial)) };

    is $calls->(['calls', $W, 2]), 'pexpire time zadd zrange', 'the first';
    is $calls->(['calls', $W, 2]), 'pexpire time zadd zcard zrange', 'another that is admitted';
    is $calls->(['calls', $W, 2]), 'time zcard zcount zrange', 'one that is refused';
    is $calls->(['calls', $W, 1]), 'time zcard zcount zrange zrange', 'if more than the oldest has to leave';
    is $calls->(['calls b', 24 * $H, 1, buckets => 1]), 'getrange set time', 'with buckets';
    is $calls->(['calls b', 24 * $H, 1, buckets => 1]), 'getrange time', 'which refuse';

    is $short->(3), 'pexpire time zadd zrange', 'in the shorter form: the first';
    is $short->(3), 'pexpire time zadd zcard zrange', 'the second';
    is $short->(3), 'time zadd zcard zrange', 'from the third on its time to live need not be set';
    is $short->(3), 'time zcard zcount zrange', 'one that is refused';
    is $short->(1), 'time zcard zcount zrange zrange', 'if more than the oldest has to leave';

    is $short->(3, 'p'), 'getrange set time', 'in a packed log: the first';
    is $short->(3, 'p'), 'getrange pexpire setrange setrange setrange time', 'the second';
    is $short->(3, 'p'), 'getrange setrange setrange time', 'from the third on its time to live need not be set';
    is $short->(3, 'p'), 'getrange time', 'one that is refused';
    is $short->(1, 'p'), 'getrange getrange time', 'if more than the oldest has to leave';
    is $short->(3, 'i'), 'getrange set time', 'if ids are kept: the first';
    is $short->(3, 'i'), 'getrange pexpire setrange setrange setrange setrange time', 'the second';
    is $short->(3, 'i'), 'getrange setrange setrange setrange time', 'from the third on';
    is $calls->(['calls p', $W, 2, @PACKED]), 'getrange set setrange setrange time', 'in the longer form: the first';
    is $calls->(['calls p', $W, 1, @PACKED]), 'getrange time', 'one that is refused';

    is $short->(2, 1), 'getrange set time', 'with buckets: the first';
    is $short->(2, 1), 'getrange setrange time', 'another';
    is $short->(2, 1), 'getrange time', 'one that is refused';
};

subtest 'to settle a request makes few calls' => sub {
    my $calls = sub {
        my ($true_cost, $key, %with) = @_;
        my $id = uuid(++$serial);
        my $time = $with{cost} ? redis('EVAL', $script, script_args('', $id, [$key, $W, 100, %with]))->[-1] : 0;
        redis('CONFIG', 'RESETSTAT');
        redis('EVAL', $script, script_args($time, $id, [$key, $W, $true_cost, %with]));
        return join ' ', map { /^cmdstat_(\w+):calls=(\d+)/ && $1 !~ /^(?:eval|info|config|ping)$/ ? ($1) x $2 : () }
            sort split /\n/, $redis->cli('INFO', 'commandstats');
    };

    ask($T, ['settling', $W, 100]);     # long ago
    is $calls->(0, 'settling', cost => 1), 'time zrange zrem', 'one that is taken back';
    is $calls->(1, 'settling', cost => 1), 'time', 'one that has cost what was thought';
    is $calls->(3, 'settling', cost => 5), 'time zadd zadd zadd zrange zrem zrem', 'less';
    is $calls->(7, 'settling', cost => 5), 'pexpire time zadd zadd zadd zcard zrange zrange zrem', 'more';
    my @with = (algorithm => 'p', rule => 'i');
    is $calls->(0, 'settling p', @with, cost => 1), 'getrange getrange time unlink', 'in a packed log: one that is taken back';
    is $calls->(3, 'settling p', @with, cost => 5), 'getrange getrange getrange getrange setrange setrange time', 'less';
    is $calls->(7, 'settling p', @with, cost => 5), 'getrange getrange getrange setrange setrange setrange setrange time', 'more';
    is $calls->(0, 'settling 1', algorithm => 1, cost => 1), 'getrange time unlink', 'with buckets: one that is taken back';
    is $calls->(3, 'settling 1', algorithm => 1, cost => 5), 'getrange set time', 'less';
    is $calls->(7, 'settling 1', algorithm => 1, cost => 5), 'getrange set time', 'more';
};

# ---- What operators have ruled

for my $algorithm (0, 'p', 6) {
    my $kind = $ALGORITHMS{$algorithm};
    my @limit = ($W, 3, algorithm => $algorithm, rule => 'i');

    subtest "a ban refuses, counts nothing, and ends by itself, in $kind" => sub {
        my $key = "banned$algorithm";
        ask($T, [$key, @limit]);
        is_deeply [ @{ intervene($T + 1, $key, 'ban', 30 * $S, 0, $algorithm) }[0, 2, 3, 4, 5] ],
            [1, 30 * $S, 0, 0, 1], 'it says so';
        is_deeply ask($T + 2, [$key, @limit]), [3, 1, 30 * $S - 1], 'refused for as long';
        ok has_ruling($key), 'which stands with its counts';
        is_deeply ask($T + 2, [$key, @limit, cost => 0]), [3, 1, 30 * $S - 1], 'also who only looks';
        is_deeply ask($T + 2, [$key, @limit, rule => 'di']), [3, 1, 30 * $S - 1], 'and is not counted';
        is_deeply ask($T + 3, [$key, @limit, rule => 'ni'], ["$key other", @limit]),
            [3, 1, 30 * $S - 2, 2, 1, $algorithm eq 6 ? 70 * $S - 3 : $W], 'a dry run keeps nobody from passing';
        is ask($T + 30 * $S, [$key, @limit])->[0], 3, 'a microsecond before its end';
        is ask($T + 30 * $S + 1, [$key, @limit])->[0], 2, 'then it passes';
        ok !has_ruling($key), 'and nothing is left of the ban';
    };

    subtest "another max holds for as long as it was given, in $kind" => sub {
        my $key = "overridden$algorithm";
        ask($T, [$key, @limit]) for 1 .. 3;
        is ask($T, [$key, @limit])->[0], 0, 'three are all';
        intervene($T, $key, 'max', 30 * $S, 4, $algorithm);
        is_deeply [ @{ ask_ruled($T + 1, [$key, @limit]) }[0, 1, 3] ], [2, 4, 4], 'a fourth, and what allows it';
        is_deeply [ @{ ask_ruled($T + 2, [$key, @limit]) }[0, 1, 3] ], [0, 4, 4], 'but no fifth';
        is_deeply ask_ruled($T + 30 * $S, [$key, @limit])->[0], 0, 'when it is over it is three again';
        intervene($T + 61 * $S, $key, 'max', 30 * $S, 1, $algorithm);
        is ask_ruled($T + 140 * $S, [$key, @limit])->[0], 2, 'all that was counted and ruled is past';
        intervene($T + 140 * $S, $key, 'max', 30 * $S, 1, $algorithm);
        is_deeply ask_ruled($T + 140 * $S, [$key, @limit]), [0, 1, 30 * $S, 1], 'less: until that is over';
        is_deeply ask_ruled($T + 140 * $S, [$key, @limit, cost => 2]), [0, 1, 30 * $S, 1],
            'also for what costs more than that';
        is ask_ruled($T + 170 * $S, [$key, @limit])->[0], 2, 'which it is then';
    };

    subtest "forgetting and lifting, in $kind" => sub {
        my $key = "forgotten$algorithm";
        ask($T, [$key, @limit]) for 1 .. 3;
        intervene($T, $key, 'max', 600 * $S, 2, $algorithm);
        intervene($T, $key, 'ban', 600 * $S, 0, $algorithm);
        is_deeply [ @{ intervene($T + 1, $key, 'forget', 0, 0, $algorithm) } ], [0, 0, 0, 2, 600 * $S - 1, 0],
            'counts and ban are gone, another max stays';
        is_deeply [ @{ ask_ruled($T + 2, [$key, @limit]) }[0, 1, 3] ], [2, 1, 2], 'so it passes';
        intervene($T + 3, $key, 'ban', 600 * $S, 0, $algorithm);
        is intervene($T + 4, $key, 'ban', 0, 0, $algorithm)->[2], 0, 'a ban is lifted';
        is redis('EXISTS', "$key!"), 1, 'while there is another ruling';
        is intervene($T + 4, $key, 'max', 0, 0, $algorithm)->[3], 0, 'and so is that';
        is redis('EXISTS', "$key!"), 0, 'then it is not listed any more';
        is_deeply ask($T + 5, [$key, @limit])->[1], 2, 'what was counted still is';
        intervene($T, "$key unseen", 'forget', 0, 0, $algorithm);
        intervene($T, "$key unseen", 'ban', 0, 0, $algorithm);
        is redis('EXISTS', "$key unseen"), 0, 'nothing is made of nothing';
    };

    subtest "a ruling outlives what is counted, in $kind" => sub {
        my $key = "outlives$algorithm";
        intervene($T, $key, 'max', 1000 * $S, 100, $algorithm);
        is redis('GET', "$key!"), '0:100:' . ($T + 1000 * $S), 'it can be found';
        my $lives = sub { return redis('PTTL', $key) > 940_000 };
        ok $lives->(), 'alone';
        my $answer = call_at($T, '', uuid(1), [$key, @limit]);
        ok $lives->(), 'with a request';
        call_at($T + $S, '', uuid(2), [$key, @limit]);
        take_back_at($T + $S, $T, uuid(1), [$key, @limit]);
        ok $lives->(), 'with one that was taken back';
        is intervene($T + $S, $key, 'look', 0, 0, $algorithm)->[0], 1, 'which is not counted any more';
        is_deeply [ @{ ask_ruled($T + 200 * $S, [$key, @limit]) }[1, 3] ], [1, 100], 'when all else has left';
        ok redis('PTTL', $key) > 795_000, 'for as long as it holds';
        take_back_at($T + 200 * $S, $T + 200 * $S, uuid($serial), [$key, @limit]);
        is_deeply [ @{ intervene($T + 200 * $S, $key, 'look', 0, 0, $algorithm) }[0, 3] ], [0, 100], 'and with nothing else';
    };
}

subtest 'a ruling is kept when the zone changes its algorithm' => sub {
    for my $from (0, 'p', 6) {
        for my $to (grep { $_ ne $from } 0, 'p', 6) {
            my ($key, $title) = ("shifted $from $to", "from $ALGORITHMS{$from} to $ALGORITHMS{$to}");
            my $is_kept = $from ne 6 && $to ne 6;
            my @limit = ($key, $W, 3, algorithm => $to);
            for my $first (['one that is counted', sub { ask_ruled($T + 1, [@limit]) }],
                ['one in the shorter form', sub { ask_in("/$to", $T + 1, [$W, 3], [uuid(++$serial), $key]) }],
                ['one that only looks', sub { ask_ruled($T + 1, [@limit, cost => 0]) }],
                ['one that is taken back', sub { take_back(uuid(1), $T, [@limit]) }],
                ['an operator', sub { intervene($T + 1, $key, 'max', 600 * $S, 2, $to) }]) {
                redis('DEL', $key);
                ask($T, [$key, $W, 3, algorithm => $from]) for 1 .. 2;
                intervene($T, $key, 'max', 600 * $S, 2, $from);
                intervene($T, $key, 'ban', 600 * $S, 0, $from) unless $first->[0] =~ /counted/;
                $first->[1]->();
                my ($ban, $max) = @{ intervene($T + 2 * $S, $key, 'look', 0, 0, $to) }[2, 3];
                is $max, 2, "$title, the first is $first->[0]: another max";
                is $ban, $first->[0] =~ /counted/ ? 0 : 598 * $S, 'a ban';
                is ask_ruled($T + 2 * $S, [@limit])->[0], 3, 'which is heeded' if $ban;
                is ask_ruled($T + 2 * $S, [@limit])->[3], 2, 'and so is that max';
                cmp_ok redis('PTTL', $key), '>', 590_000, 'for as long as it holds';
            }
            redis('DEL', $key);
            ask($T, [$key, $W, 3, algorithm => $from]) for 1 .. 2;
            intervene($T, $key, 'max', 600 * $S, 5, $from);
            is ask_ruled($T + 1, [@limit])->[1], $is_kept ? 3 : 1, $is_kept ? 'with what was counted' : 'without what was counted';
        }
    }
};

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

    is_deeply intervene($T, 'nobody', 'look', 0, 0, $_), [0, 0, 0, 0, 0, 0], "nobody in $ALGORITHMS{$_}" for 'p', 6;
    ask_as(uuid(1), $T, ['stands packed', $W, 10, @PACKED]);
    is_deeply intervene($T + $S, 'stands packed', 'look', 0, 0, 'p'), [1, 59 * $S, 0, 0, 0, 1, $S, 1, 0, ''], 'without an id';
    ask_as(uuid(2), $T + $S, ['stands packed', $W, 10, @PACKED, rule => 'i']);
    is_deeply intervene($T + $S, 'stands packed', 'look', 0, 0, 'p'), [2, 59 * $S, 0, 0, 0, 2, 0, 1, 0, uuid(2), $S, 1, 0, ''], 'with one';
    ask_as(uuid(3), $T + 2 * $S, ['stands packed', $W, 10, @PACKED, cost => 9, rule => 'd']);
    @shown = (0, 9, 1, uuid(3), $S, 1, 0, uuid(2), 2 * $S, 1, 0, '');
    is_deeply intervene($T + 2 * $S, 'stands packed', 'look', 0, 0, $_), [11, 58 * $S, 0, 0, 0, 3, @shown], 'and with costs'
        for 'p', 0, 6;
    is_deeply intervene($T + $W + $S, 'stands packed', 'look', 0, 0, 'p'), [9, $S, 0, 0, 0, 1, 59 * $S, 9, 1, uuid(3)],
        'what has left is not shown';
    is_deeply intervene($T + 2 * $W, 'stands packed', 'look', 0, 0, 'p'), [0, 0, 0, 0, 0, 0], 'nor is all of it';

    fill_packed('very many packed', $T, 100_000, ids => 1);
    my $many = intervene($T + $W + 50_000, 'very many packed', 'look', 0, 0, 'p');
    is_deeply [ @$many[0 .. 9] ], [49_999, 1, 0, 0, 0, 49_999, $W - 49_999, 1, 0, uuid(99_999)], 'of very many packed ones';
    is scalar @$many, 6 + 4 * 100, 'a hundred are shown';

    ask($T, ['stands buckets', $W, 10, buckets => 6]);
    ask($T + 10 * $S, ['stands buckets', $W, 10, buckets => 6, cost => 3]);
    is_deeply intervene($T + 15 * $S, 'stands buckets', 'look', 0, 0, 6), [4, 55 * $S, 0, 0, 0, 2, 5 * $S, 3, 0, '', 15 * $S, 1, 0, ''],
        'buckets are shown with when they began';

    fill('very many', $T, 100_000, '');
    my $answer = intervene($T + 100_000, 'very many', 'look');
    is_deeply [ @$answer[0 .. 5] ], [100_000, $W - 100_000, 0, 0, 0, 100_000], 'of very many';
    is scalar @$answer, 6 + 4 * 100, 'a hundred are shown';
    is $answer->[9], 'very many99999', 'which are the newest';
};

subtest 'a string of somebody else is not touched' => sub {
    redis('SET', 'not ours', 'x' x 100);
    like intervene($T, 'not ours', 'ban', $W, 0, 'p'), qr/^error: WRONGTYPE/, 'a ban is an error';
    like intervene($T, 'not ours', 'look', 0, 0, 'p'), qr/^error: WRONGTYPE/, 'so is a look';
    is redis('GETRANGE', 'not ours', 0, -1), 'x' x 100;
    intervene($T, 'not ours', 'forget', 0, 0, 'p');
    is redis('EXISTS', 'not ours'), 0, 'it can be forgotten';
};

done_testing;
