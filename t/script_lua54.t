# The script runs unchanged in Lua 5.4, which tells whole numbers from others: the same calls of
# it get the same replies as in a real Redis, and leave the same behind.

use strict;
use warnings;
use lib 't/lib';

use File::Temp;
use IPC::Open2;
use SlidingLimit::Script qw(steered_script connect_redis uuid);
use SlidingLimit::Servers qw(start_redis);
use Test::More;

my ($T, $S) = (1_800_000_000_000_000, 1_000_000);
my $W = 60 * $S;

my $script = steered_script();
my $file = File::Temp->new;
print $file $script;
close $file;

my $server = start_redis();
my $redis = connect_redis($server->port);
my $sha = $redis->('SCRIPT', 'LOAD', $script);
my $pid = open2(my $replies, my $calls, 'lua5.4', 't/lua/script.lua', $file->filename);

sub in_lua {
    print $calls join("\t", @_), "\n";
    my $reply = <$replies> // 'nothing';
    chomp $reply;
    return $reply;
}

# What both reply. Both must fail if one does, but may say it in their own way.
sub in_both {
    my ($now, $keys, @words) = @_;
    my @call = (scalar @$keys, @$keys, @words, sprintf '%d:%d', $now / $S, $now % $S);
    my $reply = $redis->('EVALSHA', $sha, @call);
    my $text = ref $reply ? "table @$reply"
        : $reply =~ /^error/ ? $reply
        : $words[0] eq ':settle' ? "number $reply"
        : 'string ' . unpack 'H*', $reply;
    my $other = in_lua('eval', @call);
    return $text =~ /^error/ && $other =~ /^error: (?!.*is given)/ ? () : ($text, $other);
}

sub are_alike {
    my ($what, @call) = @_;
    my ($text, $other) = in_both(@call);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is $other, $text, $what;
}

# Whether a key holds the same, for as long.
sub is_left_alike {
    my ($key) = @_;
    my $type = $redis->('TYPE', $key);
    my $shown = $type eq 'string' ? unpack('H*', $redis->('GETRANGE', $key, 0, -1))
        : $type eq 'zset' ? join ' ', @{ $redis->('ZRANGE', $key, 0, -1, 'WITHSCORES') } : '';
    my ($lives, $other) = in_lua('show', $key) =~ /^(\S+) (.*)/;
    my $ttl = $redis->('PTTL', $key);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is $other, $shown, "$key: it holds the same";
    $type eq 'none' ? is $lives, 'nil' : ok $lives - $ttl >= 0 && $lives - $ttl < 60_000, "$key: for as long, $ttl ms";
}

for my $kind ('l', 'p', 'b6') {
    subtest "the same calls, the same replies: $kind" => sub {
        my ($key, $other) = ("key $kind", "other $kind");
        are_alike("number $_", $T + $_ * $S, [$key], $kind, $W, 3, uuid($_)) for 1 .. 4;
        are_alike('when the first leaves', $T + 11 * $S + $W, [$key], $kind, $W, 3, uuid(5));
        are_alike('with costs', $T + $_ * 10 * $S, ["$key costs"], "$kind*3", $W, 8, uuid($_)) for 10 .. 13;
        are_alike('refused ones count', $T + $_ * $S + 7, ["$key refused"], "$kind*2d", $W, 5, uuid($_)) for 20 .. 30;
        are_alike('a dry run', $T + 30 * $S, ["$key refused", $other], "${kind}n/$kind", $W, 1, 2 * $W, 9, uuid(31));
        are_alike('who looks', $T + 30 * $S, [$other], "$kind*0", $W, 1, uuid(32));
        are_alike('several at once', $T + 31 * $S, [$key, $other, "$key third", $other], "$kind/$kind*2", $W, 3, 10 * $W, 4, uuid(33), uuid(34));
        are_alike('very many', $T + 40 * $S + $_, ["$key many"], "$kind*500", $W, 4000, uuid($_)) for 1 .. 5;
        are_alike('which leave', $T + 111 * $S + $_, ["$key many"], $kind, $W, 4000, uuid($_)) for 1 .. 3;

        are_alike("settled to $_->[0]", $T + 131 * $S, ["$key costs"], ':settle', "$kind*3", $T + $_->[1] * 10 * $S, uuid($_->[1]), $W, $_->[0])
            for [1, 10], [0, 11], [9, 12], [9, 12], [0, 13], [0, 13], [3, 12];
        are_alike('of an unknown time', $T + 131 * $S, ["$key costs"], ':settle', "$kind*3", 0, uuid(12), $W, 2);
        are_alike('to look', $T + 132 * $S, ["$key costs"], ':look', $kind, 0, 0, $W, 1);

        for my $act ('ban', 'max', 'look', 'forget', 'ban', 'ban') {
            my $for = $act eq 'max' ? 500 * $S : 20 * $S;
            are_alike("to $act", $T + 132 * $S, [$key, "$key!"], ":$act", $kind, $for, 7, $W, 1);
            is_left_alike("$key!");
            are_alike('heeded', $T + $_ * $S, [$key, $other], "$kind/$kind*2", $W, 3, $W, 9, uuid($_)) for 133 .. 136;
            are_alike('settled', $T + 137 * $S, [$key], ':settle', $kind, $T + 134 * $S, uuid(134), $W, $_) for 3, 0;
        }
        are_alike('lifted', $T + 132 * $S, [$key, "$key!"], ":$_", $kind, 0, 0, $W, 1) for 'ban', 'max';
        are_alike('with very many under a ruling', $T + 140 * $S + $_ * $S, ["$key many", "$key many!"], ':max', $kind, 900 * $S, 5000, $W, 1) for 1, 900;
        are_alike('which leave', $T + (200 + $_) * $S, ["$key many"], "$kind*2d", $W, 4000, uuid($_)) for 1 .. 90;

        are_alike('the clock steps back', $T - $_ * 3600 * $S, [$key, $other], "$kind/$kind*2", $W, 1 + $_ % 3, $W, 9, uuid($_)) for 1 .. 6;
        are_alike('to try it', $T + 300 * $S, ["$key try", $key], ":try", "$kind/$kind*2", $W, 1, $W, 3, uuid(99));
        is_left_alike($_) for $key, $other, map { "$key $_" } qw(costs refused third many try);

        for my $foreign ([SET => 'hello'], [SET => 'x' x 100], $kind eq 'l' ? () : [ZADD => 1, 'a']) {
            my ($command, @words) = @$foreign;
            $redis->('DEL', 'foreign');
            $redis->($command, 'foreign', @words);
            in_lua('call', 'UNLINK', 'foreign');
            in_lua('call', $command, 'foreign', @words);
            are_alike('what another has written', $T, ['foreign', $key, 'foreign'], $kind, $W, 9, map { uuid($_) } 200 .. 202);
            are_alike('is not settled', $T, ['foreign'], ':settle', $kind, $T, uuid(200), $W, 9);
            are_alike("to $_", $T, ['foreign', 'foreign!'], ":$_", $kind, $S, 1, $W, 9) for 'look', 'ban', 'forget';
        }
    };
}

subtest 'at random' => sub {
    srand 6;
    my ($now, @different, @counted) = ($T + 1000 * $S);
    for my $n (1 .. 1500) {
        $now += int rand $W / 10;
        $now -= int rand $W if rand() < 0.02;
        my $kind = ('l', 'p', 'b6', 'b13')[rand 4];
        my ($key, $what) = ("random $kind " . int rand 2, rand);
        my $cost = int rand 4;
        my @settled = @counted && $what < 0.3 ? @{ $counted[rand @counted] } : ();
        my @call = $what < 0.04 ? ([$key, "$key!"], ':' . ('ban', 'max', 'forget', 'look')[rand 4], $kind, int rand 5 * $W, 6, $W, 1)
            : @settled ? ([$settled[0]], ':settle', @settled[1 .. 3], $W, int rand 5)
            : ([$key], "$kind*$cost" . ('', 'd', 'n')[rand 3], $W, 1 + int rand 12, uuid($n));
        push @counted, [$key, "$kind*$cost", $now, uuid($n)] if !@settled && $what >= 0.04;
        shift @counted if @counted > 20;
        my ($text, $other) = in_both($now, @call);
        push @different, "@call: $text, not $other" if ($text // '') ne ($other // '');
    }
    is_deeply \@different, [], 'calls get the same replies';
    for my $kind ('l', 'p', 'b6', 'b13') {
        is_left_alike("random $kind $_") for 0, 1;
    }
};

close $calls;
waitpid $pid, 0;
is $?, 0, 'it ends well';

done_testing;
