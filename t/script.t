# The Lua script on its own, against a real Redis. Time is steered: the line that
# asks Redis for it is replaced, everything else runs as it is shipped.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET;
use SlidingLimit::Servers qw(start_redis);
use Test::More;

my $script = do { local (@ARGV, $/) = 'lua/sliding_window.lua'; <> };
my $steered = $script;
$steered =~ s/^local time = redis\.call\('TIME'\)$/local time = { string.match(table.remove(ARGV), '(%d+):(%d+)') }/m
    or die 'the line that asks for the time is not where it was';

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
    print $socket join '', '*' . @_ . "\r\n", map { '$' . length($_) . "\r\n$_\r\n" } @_;
    $socket->flush;
    return read_reply();
}

my $serial = 0;

# ask(now in us, [key, window in us, max], ...): the script's numbers
sub ask {
    my ($now, @limits) = @_;
    return redis('EVAL', $steered, scalar @limits, (map { $_->[0] } @limits),
        'id' . ++$serial, (map { @$_[1, 2] } @limits),
        sprintf '%d:%d', $now / 1000000, $now % 1000000);
}

my $T = 1_800_000_000_000_000;
my $S = 1_000_000;

subtest 'requests are admitted up to max, each with its own remaining' => sub {
    is_deeply ask($T, ['up', 2 * $S, 3]), [1, 1, 2 * $S], 'first';
    is_deeply ask($T + 500_000, ['up', 2 * $S, 3]), [1, 2, 1_500_000], 'second: the first leaves in 1.5 s';
    is_deeply ask($T + 1_000_000, ['up', 2 * $S, 3]), [1, 3, 1_000_000], 'third';
    is_deeply ask($T + 1_000_000, ['up', 2 * $S, 3]), [0, 3, 1_000_000], 'fourth: refused, not counted';
    is redis('ZCARD', 'up'), 3, 'three entries';
};

subtest 'a slot is free exactly when its request is one window old' => sub {
    ask($T, ['edge', $S, 1]);
    is_deeply ask($T + $S - 1, ['edge', $S, 1]), [0, 1, 1], 'a microsecond before: wait for one';
    is_deeply ask($T + $S, ['edge', $S, 1]), [1, 1, $S], 'then: admitted';
};

subtest 'requests of the same microsecond are separate entries' => sub {
    ask($T, ['same', $S, 10]) for 1 .. 10;
    is redis('ZCARD', 'same'), 10;
    is ask($T, ['same', $S, 10])->[0], 0, 'and the eleventh is refused';
};

subtest 'refused requests do not extend the wait' => sub {
    ask($T, ['hammer', $S, 1]);
    ask($T + $_ * 1000, ['hammer', $S, 1]) for 1 .. 500;
    is_deeply ask($T + $S, ['hammer', $S, 1]), [1, 1, $S];
};

subtest 'every key has a time to live, never shorter than the window' => sub {
    for my $window (100_000, 1_500_000, 60 * $S, 31 * 86400 * $S) {
        ask($T, ["ttl$window", $window, 5]);
        my $ttl = redis('PTTL', "ttl$window");
        cmp_ok $ttl, '>=', $window / 1000 - 500, "window of $window us: lives $ttl ms";
        cmp_ok $ttl, '<=', $window / 1000 + 1000, 'and not much longer';
    }
};

subtest 'a lowered max waits for the right entry to leave' => sub {
    ask($T + $_ * $S, ['lower', 10 * $S, 5]) for 0 .. 4;
    is_deeply ask($T + 5 * $S, ['lower', 10 * $S, 2]), [0, 5, 8 * $S],
        'the fourth entry, of second 3, must leave';
};

subtest 'a request refused by one limit is charged to none' => sub {
    my @both = (['minute', 60 * $S, 2], ['hour', 3600 * $S, 100]);
    ask($T, @both) for 1 .. 2;
    is_deeply ask($T + $S, @both), [0, 2, 59 * $S, 1, 2, 3599 * $S], 'each says how it stands';
    is redis('ZCARD', 'hour'), 2, 'the hour has not moved';
};

subtest 'a clock that steps back admits nothing early' => sub {
    ask($T, ['back', 10 * $S, 2]);
    ask($T, ['back', 10 * $S, 2]);
    is_deeply ask($T - 5 * $S, ['back', 10 * $S, 2]), [0, 2, 15 * $S], 'still full';
    is_deeply ask($T + 10 * $S, ['back', 10 * $S, 2])->[0], 1, 'free when the window has passed';
};

subtest 'decisions are those of a brute-force model' => sub {
    srand 20;
    my ($wrong, $admitted, $refused) = (0, 0, 0);
    for my $round (1 .. 20) {
        my @zones = map { ["m$round-$_", 1 + int rand(5 * $S), 1 + int rand 8] } 1 .. 1 + int rand 3;
        my %log = map { $_->[0] => [] } @zones;
        my $now = $T;
        for (1 .. 200) {
            $now += int rand(rand() < 0.1 ? 3 * $S : 300_000);
            my @want;
            my $all = 1;
            for my $z (@zones) {
                my ($key, $window, $max) = @$z;
                my $in = $log{$key} = [ grep { $now - $_ < $window } @{ $log{$key} } ];
                my $ok = @$in < $max;
                my $leaving = $ok ? $in->[0] // $now : $in->[@$in - $max];
                push @want, $ok ? 1 : 0, scalar @$in, $leaving + $window - $now;
                $all &&= $ok;
            }
            if ($all) {
                push @{ $log{ $_->[0] } }, $now for @zones;
                $want[3 * $_ + 1]++ for 0 .. $#zones;
            }
            $all ? $admitted++ : $refused++;
            my $got = ask($now, @zones);
            $wrong++, diag "want @want, got @$got" if "@$got" ne "@want";
        }
    }
    is $wrong, 0, "no difference in $admitted admitted and $refused refused requests";
};

subtest 'the script as shipped uses the clock of Redis' => sub {
    my ($sec) = @{ redis('TIME') };
    is_deeply redis('EVAL', $script, 1, 'clock', 'me', $S, 1), [1, 1, $S];
    my $entry = redis('ZRANGE', 'clock', 0, -1, 'WITHSCORES');
    is $entry->[0], 'me';
    cmp_ok abs($entry->[1] / $S - $sec), '<', 5, 'scored with the present time in microseconds';
};

subtest 'an ordinary check makes few calls' => sub {
    redis('CONFIG', 'RESETSTAT');
    redis('EVAL', $script, 1, 'calls', 'a', 60 * $S, 2);
    redis('EVAL', $script, 1, 'calls', 'b', 60 * $S, 2);
    redis('CONFIG', 'RESETSTAT');
    redis('EVAL', $script, 1, 'calls', 'c', 60 * $S, 2);
    my $calls = () = $redis->cli('INFO', 'commandstats') =~ /^cmdstat_(?!eval|info|config|ping)/mg;
    is $calls, 3, 'refused: TIME, ZRANGE, ZCARD';
};

done_testing;
