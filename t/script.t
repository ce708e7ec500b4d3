# The script on its own, against a real Redis. Time is steered: the line that asks Redis
# for it is replaced, everything else runs as it is shipped. These are examples; t/model.t
# tries it on millions of random requests, and t/script_lua54.t in a newer Lua.

use strict;
use warnings;
use lib 't/lib';

use List::Util qw(max min sum0);
use SlidingLimit::Script qw(script steered_script connect_redis uuid);
use SlidingLimit::Servers qw(start_redis);
use Test::More;

my $script = script();
my $steered = steered_script();

my $server = start_redis();
my $redis = connect_redis($server->port);

sub redis { return $redis->(@_) }

# Round numbers: T is the first moment of a bucket, whatever their width here.
my $T = 1_800_000_000_000_000;
my $S = 1_000_000;
my $W = 60 * $S;
my $H = 3600 * $S;

my %NAMES = (l => 'a log', p => 'a packed log', b6 => 'buckets');
my @KINDS = sort keys %NAMES;

# Redis would have to read through all of it again for each call.
my $sha = redis('SCRIPT', 'LOAD', $steered);

sub call_at {
    my ($now, $keys, @words) = @_;
    return redis('EVALSHA', $sha, scalar @$keys, @$keys, @words, sprintf '%d:%d', $now / $S, $now % $S);
}

my $serial = 0;

# What a check is told: a limit is [key, window in us, max, kind], a kind 'l*5d' for one.
sub words_of { return join('/', map { $_->[3] // 'l' } @_), map { @$_[1, 2] } @_ }

# The numbers of an answer up to the time, which is looked at here, and those behind it.
sub numbers_of {
    my ($now, $limits, $answer) = @_;
    return ([$answer], []) if $answer =~ /^error/;
    my @numbers = unpack 'q<*', $answer;
    my ($time, @behind) = splice @numbers, 3 * $limits;
    return (['another time'], []) if $time != $now;
    return (\@numbers, \@behind);
}

# ask_as(id, now in us, limits...): three numbers for each limit
sub ask_as {
    my ($id, $now, @limits) = @_;
    my ($numbers) = numbers_of($now, scalar @limits, call_at($now, [ map { $_->[0] } @limits ], words_of(@limits), $id));
    return @$numbers == 1 ? $numbers->[0] : $numbers;
}

sub ask { return ask_as(uuid(++$serial), @_) }

# The same, and the max that an operator gave for each limit.
sub ask_ruled {
    my ($now, @limits) = @_;
    my $answer = call_at($now, [ map { $_->[0] } @limits ], words_of(@limits), uuid(++$serial));
    my ($numbers, $behind) = numbers_of($now, scalar @limits, $answer);
    return [ @$numbers, @$behind ];
}

# ask_several(now in us, [limits without keys], [id, key of each limit], ...): of each request
# three numbers for each limit
sub ask_several {
    my ($now, $limits, @requests) = @_;
    my @keys = map { @$_[1 .. $#$_] } @requests;
    my $answer = call_at($now, \@keys, words_of(map { ['', @$_] } @$limits), map { $_->[0] } @requests);
    my ($numbers) = numbers_of($now, scalar @keys, $answer);
    return map { [ splice @$numbers, 0, 3 * @$limits ] } @requests;
}

# settle_at(now in us, when it was counted, id, what it has cost, limits...): how many counts were
# changed
sub settle_at {
    my ($now, $then, $id, $cost, @limits) = @_;
    my ($kinds, @numbers) = words_of(map { [@$_[0, 1], $cost, $_->[3]] } @limits);
    return call_at($now, [ map { $_->[0] } @limits ], ':settle', $kinds, $then, $id, @numbers);
}

# operate(now in us, act, key, kind, for so many us, max): where the client stands then
sub operate {
    my ($now, $act, $key, $kind, $for, $max) = @_;
    return call_at($now, [$key, "$key!"], ":$act", $kind, $for // 0, $max // 0, $W, 1);
}

# When what is counted at a time leaves the window.
sub leaves {
    my ($kind, $then, $window) = (@_, $W);
    return $then + $window unless $kind =~ /^b(\d+)/;
    my $width = int(($window + $1 - 1) / $1);
    return (int($then / $width) + 1 + $1) * $width;
}

# ---- What stands under a key: {entry => score}, [time of each unit] or {end => units}

sub in_log { return { @{ redis('ZRANGE', $_[0], 0, -1, 'WITHSCORES') } } }

sub in_packed {
    my $text = redis('GETRANGE', $_[0], 0, -1);
    return [] if $text eq '';
    my ($gone, $used, $oldest, $newest, undef, @numbers) = unpack 'N2 Q>3 Q>*', $text;
    my @ruling = $gone >= 2**31 ? splice @numbers, 0, 3 : ();
    return 'not whole' if length($text) != 32 + 8 * (@ruling + @numbers);
    splice @numbers, 0, $gone % 2**31;
    return "$used are said to be there, not " . @numbers if $used != @numbers;
    return 'not in order' if grep { $numbers[$_ - 1] > $numbers[$_] } 1 .. $#numbers;
    return "the oldest is $oldest, the newest $newest" if @numbers && "$oldest $newest" ne "@numbers[0, -1]";
    return \@numbers;
}

sub in_buckets {
    my $text = redis('GETRANGE', $_[0], 0, -1);
    return {} if $text eq '';
    my ($older, $latest, $oldest, $moved, $used, $count, @pairs) = unpack 'N Q>5 Q>*', $text;
    my @ruling = $older >= 2**31 ? splice @pairs, 0, 3 : ();
    return 'not whole' if @pairs != 2 * ($older % 2**31) || length($text) != 44 + 8 * (@ruling + @pairs);
    my %counts = (@pairs, $count ? ($latest => $count) : ());
    return "the sum is $used" if $used != sum0 values %counts;
    return "the oldest is $oldest" if $oldest != min $latest, keys %counts;
    $counts{moved} = $moved if $moved;
    return \%counts;
}

sub contents {
    my ($key, $kind) = @_;
    return $kind =~ /^l/ ? in_log($key) : $kind =~ /^p/ ? in_packed($key) : in_buckets($key);
}

# How many units are stored.
sub stored {
    my ($key, $kind) = @_;
    my $contents = contents($key, $kind);
    return scalar grep { !/^!/ } keys %$contents if $kind =~ /^l/;
    return $kind =~ /^p/ ? scalar @$contents : sum0 map { $_ eq 'moved' ? 0 : $contents->{$_} } keys %$contents;
}

# When the last of what stands under a key leaves; 0: there is nothing.
sub last_leaves {
    my ($key, $kind, $window) = (@_, $W);
    my $contents = contents($key, $kind);
    my @times = ref $contents eq 'ARRAY' ? @$contents : $kind =~ /^l/ ? values %$contents : grep { $_ ne 'moved' } keys %$contents;
    my $newest = max grep { $_ } @times;
    return $newest ? $newest + $window : 0;
}

# So many units, one every microsecond from `from` on.
sub fill {
    my ($key, $kind, $from, $count) = @_;
    redis('DEL', $key);
    if ($kind eq 'p') {
        redis('SET', $key, pack 'N2 Q>3 Q>*', 0, $count, $from, $from + $count - 1, $from + $count + 1000 * $S, $from .. $from + $count - 1);
    }
    for (my $first = 0; $kind eq 'l' && $first < $count; $first += 10_000) {
        redis('ZADD', $key, map { ($from + $_, "$key$_") } $first .. min($first + 10_000, $count) - 1);
    }
    redis('PEXPIRE', $key, 1000_000);
    return $key;
}

sub lives_as_long {
    my ($key, $from, $to, $what) = @_;
    my $ttl = redis('PTTL', $key);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    ok $ttl * 1000 >= $from && $ttl * 1000 <= $to + 1001 * 1000, "$what: lives $ttl ms";
}

# ---- Checks

for my $kind (@KINDS) {
    my $in = "in $NAMES{$kind}";

    subtest "requests are admitted up to max, each with its own remaining, $in" => sub {
        my @limit = ("up $kind", $W, 3, $kind);
        my $end = leaves($kind, $T);
        is_deeply ask($T, [@limit]), [2, 1, $end - $T], 'first';
        is_deeply ask($T + 5 * $S, [@limit]), [2, 2, $end - $T - 5 * $S], 'second: until the first leaves';
        is_deeply ask($T + 10 * $S, [@limit]), [2, 3, $end - $T - 10 * $S], 'third';
        is_deeply ask($T + 10 * $S, [@limit]), [0, 3, $end - $T - 10 * $S], 'fourth: refused, not counted';
        is stored(@limit[0, 3]), 3, 'three are there';
        is_deeply ask($T + 3 * $W, [@limit]), [2, 1, leaves($kind, $T + 3 * $W) - $T - 3 * $W], 'when all have left it starts anew';
        is stored(@limit[0, 3]), 1;
    };

    subtest "there is room exactly when a request leaves, $in" => sub {
        my @limit = ("edge $kind", $W, 1, $kind);
        my $end = leaves($kind, $T);
        ask($T, [@limit]);
        is_deeply ask($end - 1, [@limit]), [0, 1, 1], 'a microsecond before: wait for one';
        is_deeply ask($end, [@limit]), [2, 1, leaves($kind, $end) - $end], 'then: admitted';
    };

    subtest "requests of the same microsecond are counted each, refused ones do not extend the wait, $in" => sub {
        my @limit = ("same $kind", $W, 10, $kind);
        is ask($T, [@limit])->[1], $_ for 1 .. 10;
        is ask($T + $_ * 1000, [@limit])->[0], 0, 'the eleventh is refused, and those after it' for 0 .. 50;
        is_deeply ask(leaves($kind, $T), [@limit])->[1], 1, 'all leave together';
    };

    subtest "a lowered max waits for the right one to leave, $in" => sub {
        my @limit = ("lower $kind", $W);
        ask($T + $_ * 10 * $S, [@limit, 5, $kind]) for 0 .. 4;
        my $now = $T + 45 * $S;
        is_deeply ask($now, [@limit, 2, $kind]), [0, 5, leaves($kind, $T + 30 * $S) - $now], 'the fourth must leave';
        is_deeply ask($now, [@limit, 9, $kind]), [2, 6, leaves($kind, $T) - $now], 'a raised one counts on';
    };

    subtest "a request takes as much as it costs, $in" => sub {
        my @limit = ("cost $kind", $W, 10);
        my ($first, $second) = map { leaves($kind, $T + $_ * 10 * $S) } 0, 1;
        my $now = $T + 30 * $S;
        is_deeply ask($T, [@limit, "$kind*6"]), [2, 6, $first - $T], 'six of ten';
        is_deeply ask($T + 10 * $S, [@limit, "$kind*5"]), [0, 6, $first - $T - 10 * $S], 'five more do not fit';
        is_deeply ask($T + 10 * $S, [@limit, "$kind*3"]), [2, 9, $first - $T - 10 * $S], 'but three do';
        is_deeply ask($T + 20 * $S, [@limit, $kind]), [2, 10, $first - $T - 20 * $S], 'and one';
        is_deeply ask($now, [@limit, "$kind*6"]), [0, 10, $first - $now], 'six have to wait for the six';
        is_deeply ask($now, [@limit, "$kind*7"]), [0, 10, $second - $now], 'seven until six and three have left';
        is_deeply ask($now, [@limit, "$kind*10"]), [0, 10, leaves($kind, $T + 20 * $S) - $now], 'ten until all has';
        is_deeply ask($now, [@limit, "$kind*11"]), [0, 10, 0], 'and what costs more than max never passes';
        is_deeply ask($first, [@limit, "$kind*6"]), [2, 10, $second - $first], 'six fit again when the six have left';
    };

    subtest "a cost of 0 only looks, $in" => sub {
        my @limit = ("look $kind", $W, 2);
        is_deeply ask($T, [@limit, "$kind*0"]), [1, 0, 0], 'nothing is there';
        is redis('EXISTS', $limit[0]), 0, 'and nothing is left behind';
        ask($T, [@limit, $kind]) for 1 .. 2;
        is_deeply ask($T + $S, [@limit, "$kind*0"]), [1, 2, leaves($kind, $T) - $T - $S], 'also a full window lets one look';
        is_deeply ask(leaves($kind, $T), [@limit, "$kind*0"]), [1, 0, 0], 'all has left';
    };

    subtest "a dry run keeps nobody from passing, $in" => sub {
        my @both = (["dry $kind", $W, 1, "${kind}n"], ["beside dry $kind", $W, 9, $kind]);
        my $end = leaves($kind, $T);
        ask($T, @both);
        is_deeply ask($T + $S, @both), [0, 1, $end - $T - $S, 2, 2, $end - $T - $S], 'it says what it would have done';
        is stored("dry $kind", $kind), 1, 'and does not count what it would have refused';
        my $refused = ask($T + 2 * $S, ["dry $kind", $W, 1, "${kind}dn"], $both[1]);
        is_deeply [@$refused[0, 3, 4]], [0, 2, 3], 'unless it counts refused ones';
        is_deeply ask($T + 3 * $S, ["roomy $kind", $W, 5, "${kind}n"], ["beside dry $kind", $W, 1, $kind]),
            [1, 0, 0, 0, 3, leaves($kind, $T + 2 * $S) - $T - 3 * $S], 'what another limit refuses it does not count';
    };

    subtest "a request refused by one limit is charged to none, $in" => sub {
        my @both = (["minute $kind", $W, 2, $kind], ["hour $kind", $H, 100, "$kind*3"]);
        my ($minute, $hour) = (leaves($kind, $T) - $T, leaves($kind, $T, $H) - $T);
        ask($T, @both) for 1 .. 2;
        is_deeply ask($T + $S, @both), [0, 2, $minute - $S, 1, 6, $hour - $S], 'each says how it stands';
        is stored("hour $kind", $kind), 6, 'the hour has not moved';
        is_deeply ask($T, ["minute $kind", $W, 1, "$kind*0"], ["looked $kind", $W, 5, $kind]), [1, 2, $minute, 2, 1, $minute],
            'one that only looks does not keep the others from counting';
    };

    subtest "ids are needed only by logs, $in" => sub {
        my @words = (words_of(["", $W, 9, "$kind*2"]), $kind eq 'l' ? 'me' : ());
        my ($numbers) = numbers_of($T, 1, call_at($T, ["ids $kind"], @words));
        is_deeply $numbers, [2, 2, leaves($kind, $T) - $T];
        is_deeply contents("ids $kind", $kind),
            { l => { me => $T, 'me:2' => $T }, p => [$T, $T], b6 => { $T + 10 * $S => 2 } }->{$kind}, 'what is stored';
    };
}

subtest 'all limits of a request count it or none does, whatever they are' => sub {
    my @three = (['a', $W, 9, 'l*4'], ['b', $W, 9, 'b6'], ['c', $W, 1, 'p']);
    is_deeply ask($T, @three), [2, 4, $W, 2, 1, 70 * $S, 2, 1, $W], 'logs and buckets together';
    is_deeply ask($T, @three), [1, 4, $W, 1, 1, 70 * $S, 0, 1, $W], 'all or nothing';
    is_deeply [ map { stored(@$_[0, 3]) } @three ], [4, 1, 1];
    is_deeply [ ask_several($T + $S, [[$W, 9, 'p'], [$W, 9, 'b6'], [$W, 1, 'l']], map { [uuid($_), "p", 'q', "r$_"] } 1, 1, 2) ],
        [[2, 1, $W, 2, 1, 69 * $S, 2, 1, $W], [1, 1, $W, 1, 1, 69 * $S, 0, 1, $W], [2, 2, $W, 2, 2, 69 * $S, 2, 1, $W]],
        'each of several requests for itself';
};

for my $kind ('l', 'p') {
    subtest "the newest decide where refused requests count, in $NAMES{$kind}" => sub {
        my @limit = ("denied $kind", $W, 2, "${kind}d");
        ask($T, [@limit]) for 1 .. 2;
        is_deeply ask($T + 10 * $S, [@limit]), [0, 2, 50 * $S], 'the oldest has been dropped, the other has to leave';
        is_deeply ask($T + $W, [@limit]), [2, 2, 10 * $S], 'the refused one still counts';
        is_deeply ask($T + $W, [@limit]), [0, 2, $W], 'who keeps on stays locked out';
        is stored(@limit[0, 3]), 2;

        @limit = ("denied costs $kind", $W, 3);
        ask($T + $_ * $S, [@limit, "${kind}d"]) for 0 .. 2;
        is_deeply ask($T + 3 * $S, [@limit, "$kind*2d"]), [0, 3, $W], 'also one that costs more';
        is_deeply ask($T + 3 * $S, [@limit, "${kind}d"]), [0, 3, $W], 'so all three are of now';
        is_deeply ask($T + 4 * $S, [@limit, "$kind*5d"]), [0, 3, 0], 'or one that costs more than max, which never passes';
        is_deeply ask($T + 5 * $S, [@limit, "${kind}"]), [0, 3, 59 * $S];

        my @both = (["has room $kind", $W, 5, "${kind}d"], ["full $kind", $W, 1, $kind]);
        ask($T, $both[1]);
        is_deeply ask($T, @both), [1, 0, 0, 0, 1, $W], 'what another limit refuses is not counted';
    };

    subtest "older ones are dropped where refused requests count, in $NAMES{$kind}" => sub {
        for my $cost (1, 3) {
            my @limit = ("crowd $kind $cost", $W, 4 * $cost, $kind . "*${cost}d");
            ask($T, [@limit]) for 1 .. 4;
            my @wrong;
            for my $n (1 .. 500) {
                my $then = $n < 4 ? $T : $T + 1000 * ($n - 3);
                my $answer = ask($T + $n * 1000, [@limit]);
                push @wrong, $n if "@$answer" ne join ' ', 0, 4 * $cost, $then + $W - ($T + 1000 * $n);
            }
            is_deeply \@wrong, [], "a cost of $cost: the wait is until the oldest of the newest has left";
            is stored(@limit[0, 3]), 4 * $cost, 'no others are kept';
            lives_as_long($limit[0], $W, 2 * $W, 'the key');
        }

        my $key = fill("crowd of others $kind", $kind, $T, 3000);
        my @used = map { ask($T + 3000, [$key, $W, 10, "${kind}d"])->[1] } 1 .. 4;
        is_deeply \@used, [2001, 1002, 10, 10], 'of very many a thousand in a call';
        is_deeply ask($T + 3001, [$key, $W, 10, "${kind}d"]), [0, 10, 2995 + $W - 3001], 'down to max';
    };
}

subtest 'buckets add up where refused requests count' => sub {
    my @limit = ('denied b6', $W, 2, 'b6d');
    ask($T + $_ * $S, [@limit]) for 0 .. 10;
    is_deeply ask($T + 10 * $S, [@limit]), [0, 12, 70 * $S], 'more than max';
    is_deeply in_buckets('denied b6'), { $T + 10 * $S => 10, $T + 20 * $S => 2 };
    is_deeply ask($T + 70 * $S, [@limit]), [0, 3, 10 * $S], 'until they leave';
};

for my $kinds ('l', 'p', 'b6', 'l*2/l*0', 'p*2d/p', 'b6*3/b100d', 'l/p*0/b6', 'p*2/l*3d/b6dn') {
    subtest "several requests at once are decided as one after the other: $kinds" => sub {
        srand 1;
        my ($now, $id, $different, $refused, $torn) = ($T, 0, 0, 0, 0);
        my @kinds = split '/', $kinds;
        my @limits = map { [$W / ($_ + 1), 12 - 2 * $_, $kinds[$_]] } 0 .. $#kinds;
        my $key = sub { return "$kinds $_[0] $_[1]" };
        for (1 .. 200) {
            $now += int rand $W / 20;
            my @requests = map { [uuid(++$id), map { $key->($_, int rand 3) } 0 .. $#kinds] } 1 .. 1 + rand 5;
            my @one_by_one = map {
                my ($id, @keys) = @$_;
                ask_as($id, $now, map { ["alone $keys[$_]", @{ $limits[$_] }] } 0 .. $#kinds)
            } @requests;
            my @at_once = ask_several($now, \@limits, @requests);
            $different++ unless "@{[ map { @$_ } @one_by_one ]}" eq "@{[ map { @$_ } @at_once ]}";
            $refused += grep { $_->[0] != 2 } @at_once;
        }
        is $different, 0, "$id requests, $refused of them refused";
        cmp_ok $refused, '>', 20;
        for my $l (0 .. $#kinds) {
            for my $key (map { $key->($l, $_) } 0 .. 2) {
                is_deeply contents($key, $kinds[$l]), contents("alone $key", $kinds[$l]), 'the same is counted';
                cmp_ok redis('PTTL', $key), '>', (last_leaves($key, $kinds[$l], $limits[$l][0]) - $now) / 1000 - 5000, 'and expires';
            }
        }
    };
}

subtest 'a packed log decides as a log does' => sub {
    srand 7;
    my ($now, $different, %decisions) = ($T, 0);
    for (1 .. 3000) {
        $now += int(rand() < 0.01 ? rand 3 * $W : rand $W / 30);
        my ($key, $max) = ('pair' . int rand 3, 1 + int rand 30);
        my $rule = '*' . int(rand 4) . ('', '', 'd', 'n')[rand 4];
        my ($log, $packed) = map { ask($now, ["$key$_", $W, $max, "$_$rule"]) } 'l', 'p';
        $different++ if "@$log" ne "@$packed";
        $decisions{$log->[0]}++;
    }
    is $different, 0;
    cmp_ok $decisions{$_}, '>', 500, "$decisions{$_} times $_" for 0 .. 2;
};

# ---- Long logs

# The script, which counts the words that go from it to Redis and back, and what ranges remove.
my $counting = <<"END" =~ s/SCRIPT/$steered/r;
local touched, real = 0, redis
local function counted(call)
    return function(name, ...)
        local reply = call(name, ...)
        touched = touched + select('#', ...) + (type(reply) == 'table' and #reply or 1)
        touched = touched + (string.find(name, '^ZREMRANGE') and reply or 0)
        for _, word in ipairs({ ... }) do
            touched = touched + #tostring(word) / 100
        end
        touched = touched + (type(reply) == 'string' and #reply / 100 or 0)
        return reply
    end
end
local redis = { call = counted(real.call), pcall = counted(real.pcall) }
local function decide()
SCRIPT
end
decide()
return math.floor(touched)
END
my $counting_sha = redis('SCRIPT', 'LOAD', $counting);

sub touched {
    my ($now, @limits) = @_;
    my @keys = map { $_->[0] } @limits;
    return redis('EVALSHA', $counting_sha, scalar @keys, @keys, words_of(@limits), uuid(++$serial), sprintf '%d:%d', $now / $S, $now % $S);
}

subtest 'of a very long log a call removes a thousand that have left, and counts the others' => sub {
    my $key = fill('long', 'l', $T, 100_000);
    my $now = $T + $W + 49_999;
    is_deeply ask($now, [$key, $W, 100_000, 'l']), [2, 50_001, 1], 'it is exact';
    is redis('ZCARD', $key), 99_001, 'though most are still there';
    is_deeply ask($now, [$key, $W, 50_001, 'l']), [0, 50_001, 1], 'for a wait';
    is_deeply ask($now, [$key, $W, 40_001, 'l*3']), [0, 50_001, 10_003], 'also if more has to leave';
    is redis('ZCARD', $key), 97_001;
    is_deeply [ @{ operate($now, 'look', $key, 'l') }[0, 1, 5 .. 8] ], [50_001, 1, 50_001, 0, 1, uuid($serial - 2)], 'to look';
    is settle_at($now, 0, "${key}99999", 0, [$key, $W, 9, 'l']), 1, 'to settle';
    is_deeply ask($now, [$key, $W, 9, 'l*0']), [1, 50_000, 1];
    is_deeply ask($now, [$key, $W, 10, 'ld']), [0, 49_001, 49_992], 'and to drop a thousand of those that have not';
    is redis('ZCARD', $key), 92_001;

    is_deeply ask($T + 3 * $W, [$key, $W, 9, 'l']), [2, 1, $W], 'all of it leaves at once';
    is redis('ZCARD', $key), 1;

    my @keys = map { fill("long $_", 'l', $T, 900) } 1 .. 4;
    is_deeply [ ask_several($T + $W + 799, [[$W, 900, 'l']], map { [uuid($_), "long $_"] } 1 .. 4) ], [ ([2, 101, 1]) x 4 ],
        'several at once are exact, too';
    is_deeply [ map { redis('ZCARD', $_) } @keys ], [101, 701, 901, 901], 'with a thousand for all of them';
};

subtest 'so it is where an operator has ruled' => sub {
    my $key = fill('long ruled', 'l', $T, 5000);
    operate($T, 'max', $key, 'l', $H, 4000);
    is_deeply ask_ruled($T + $W + 1999, [$key, $W, 9, 'l']), [2, 3001, 1, 4000];
    is redis('ZCARD', $key), 4002;
    my $now = $T + 3 * $W;
    operate($now, 'max', $key, 'l', $H, 3);
    is_deeply ask_ruled($now, [$key, $W, 2, 'l*4d']), [0, 3, 0, 3], 'if all have left only what was just refused is there';
    is_deeply ask_ruled($now + 1, [$key, $W, 2, 'l']), [0, 3, $W - 1, 3];
    is_deeply ask_ruled($now + 2, [$key, $W, 2, 'ld']), [0, 3, $W - 2, 3];
    ask($now, [$key, $W, 2, 'l*0']) for 1 .. 3;
    is redis('ZCARD', $key), 4, 'later calls remove the rest';
};

subtest 'of a very long log that has left as a whole nothing is taken for what is refused then' => sub {
    my $key = fill('long left', 'l', $T, 5000);
    is_deeply ask($T + $W + 5000, [$key, $W, 2, 'l*4d']), [0, 2, 0];
    is scalar keys %{ in_log($key) }, 2;
};

subtest 'a long packed log is written anew when more has left than remains' => sub {
    my $key = fill('long packed', 'p', $T, 10_000);
    my $bytes = sub { return (redis('STRLEN', $key) - 32) / 8 };
    is_deeply ask($T + $W + 3999, [$key, $W, 10_000, 'p']), [2, 6001, 1], 'some have left';
    is $bytes->(), 10_001, 'and are still there';
    is_deeply ask($T + $W + 4003, [$key, $W, 10_000, 'p*3']), [2, 6000, 1], 'a few more';
    is_deeply ask($T + $W + 4999, [$key, $W, 5001, 'p*3']), [0, 5004, 6], 'for a wait';
    is_deeply ask($T + $W + 5999, [$key, $W, 10_000, 'p']), [2, 4005, 1], 'most have';
    is $bytes->(), 4005, 'and are gone';
    is_deeply in_packed($key), [ (map { $T + $_ } 6000 .. 9999), $T + $W + 3999, ($T + $W + 4003) x 3, $T + $W + 5999 ];
    is_deeply ask($T + 3 * $W, [$key, $W, 9, 'p']), [2, 1, $W], 'all of it leaves at once';
    is $bytes->(), 1;

    for my $count (64, 65) {
        fill($key, 'p', $T, $count + 1);
        ask($T + $W + $count - 1, [$key, $W, 99, 'p']);
        is $bytes->(), $count == 64 ? 66 : 2, "but not for $count";
    }
};

subtest 'however many entries there are, a call touches few of them' => sub {
    for my $kind ('l', 'p') {
        my $many = 100_000;
        my ($key, $now) = ("touched $kind", $T + $W + 50_000);
        fill($key, $kind, $T, $many);
        my %touched = (
            'an ordinary one' => touched($T + $many, [$key, $W, 2 * $many, $kind]),
            'one that is refused' => touched($T + $many, [$key, $W, 10, $kind]),
            'one that costs more' => touched($T + $many, [$key, $W, 2 * $many, "$kind*5"]),
            'refused ones that count' => touched($T + $many, [$key, $W, 10, "${kind}d"]),
            'few have left' => touched($T + $W + 1002, [$key, $W, 2 * $many, $kind]),
        );
        cmp_ok $touched{$_}, '<', $_ =~ /count/ && $kind eq 'l' ? 1100 : 70, "$kind, $_: $touched{$_}" for sort keys %touched;
        cmp_ok touched($now - 1000, [$key, $W, 2 * $many, $kind]), '<', $kind eq 'l' ? 1100 : 100, 'half of it has left';
        cmp_ok touched($now - 1000, [$key, $W, 10, $kind]), '<', $kind eq 'l' ? 1100 : 100, 'and one is refused';
        cmp_ok touched($now + $W, [$key, $W, 10, $kind]), '<', 50, 'all of it has left';
    }
    my $key = fill('touched ahead', 'l', $T, 100_000);
    cmp_ok touched($T + 10, [$key, $W, 10, 'l']), '<', 6000, 'of a log from the future';
    cmp_ok touched($T, map { ["touched b$_", $W, 1000, 'b100'] } 1 .. 16), '<', 16 * 20, 'buckets';
};

# ---- Buckets

subtest 'there are few buckets, however many requests' => sub {
    my $most = 0;
    for (1 .. 300) {
        ask($T + $_ * $S, ['few', $W, 1_000_000, 'b6']);
        $most = max $most, scalar keys %{ in_buckets('few') };
    }
    is $most, 7, 'one more than a window has';
    is redis('STRLEN', 'few'), 44 + 6 * 16;
};

subtest 'a window that is no multiple of its buckets is not cut short' => sub {
    ask($T + 4, ['odd', 100, 1, 'b7']);
    my $wait = ask($T + 4, ['odd', 100, 1, 'b7'])->[2];
    cmp_ok $wait, '>=', 100;
    cmp_ok $wait, '<=', 8 * 15;
    is_deeply ask($T, ['one bucket', $W, 3, 'b1']), [2, 1, 2 * $W], 'nor if there is only one';
};

subtest 'costs in buckets may be as large as max, and stay exact' => sub {
    my ($M, $key) = (10**15, 'huge');
    is_deeply ask($T, [$key, $W, $M, 'b6*' . ($M - 1)]), [2, $M - 1, 70 * $S];
    is_deeply ask($T, [$key, $W, $M, 'b6']), [2, $M, 70 * $S], 'to the last unit';
    is_deeply ask($T + 10 * $S, [$key, $W, $M, 'b6']), [0, $M, 60 * $S];
    is settle_at($T + 10 * $S, $T, 'x', 2**32 + 1, [$key, $W, $M, "b6*$M"]), 1, 'also when they are settled';
    is ask($T + 10 * $S, [$key, $W, $M, 'b6*0'])->[1], 2**32 + 1;
    settle_at($T + 10 * $S, 0, 'x', $M, [$key, $W, $M, 'b6*0']) for 1 .. 12;
    is_deeply ask($T + 10 * $S, [$key, $W, $M, 'b6*0']), [1, 9 * $M, 60 * $S], 'but there are never more than sums can take';
};

# ---- Times to live

for my $kind (@KINDS) {
    subtest "every key has a time to live, never shorter than what is in it, in $NAMES{$kind}" => sub {
        for my $window (100_000, 1_500_000, 60 * $S, 31 * 86400 * $S) {
            my ($key, $stays) = ("ttl $kind $window", leaves($kind, $T, $window) - $T);
            ask($T, [$key, $window, 5, $kind]);
            lives_as_long($key, $stays, leaves($kind, 0, $window), "a window of $window us");
            redis('PEXPIRE', $key, 1000_000_000_000);
            ask($T + 1, [$key, $window, 2, $kind]) for 1 .. 3;
            lives_as_long($key, $stays, $kind eq 'b6' ? 1000_000_000_000_000 : 2 * $window, 'with two');
            ask($T, ["$key costs", $window, 5, "$kind*2"]);
            lives_as_long("$key costs", $stays, 2 * $window, 'with one that costs more');
        }
    };
}

subtest 'a time to live is renewed only where it has to be' => sub {
    my $renewed = sub {
        my ($now, $key, $kind) = @_;
        redis('PEXPIRE', $key, 10_000_000);
        ask($now, [$key, $W, 3, $kind]);
        my $ttl = redis('PTTL', $key);
        return $ttl > 9_000_000 ? 'as it was' : $ttl >= 2 * $W / 1000 && $ttl <= 2 * $W / 1000 + 1000 ? 'two windows' : $ttl;
    };
    for my $kind ('l', 'p') {
        my $key = "renewed $kind";
        ask($T, [$key, $W, 3, $kind]);
        is $renewed->($T + 1, $key, $kind), 'two windows', "$NAMES{$kind}: with the second";
        is $renewed->($T + 2, $key, $kind), 'as it was', 'not with the third';
        is $renewed->($T + 3, $key, $kind), 'as it was', 'nor if one is refused';
        is $renewed->($T + $W, $key, $kind), $kind eq 'l' ? 'two windows' : 'as it was', 'when the first leaves';
        is $renewed->($T + $W + 2, $key, $kind), 'two windows', 'when the others do';
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

for my $kind (@KINDS) {
    subtest "no key goes before what is in it, whatever is asked and settled, in $NAMES{$kind}" => sub {
        srand 2;
        my @keys = map { "lasting $kind $_" } 1 .. 3;
        my ($now, $id, $too_early, $too_late, $taken, $ruling_ended, @counted, %ruled) = ($T, 0, 0, 0, 0, 0);

        for (1 .. 4000) {
            # now and then long enough for all to leave
            my $step = int(rand() < 0.02 ? rand 2 * $W : rand $W / 8);
            pass_time($step, @keys, map { "$_!" } @keys);
            $now += $step;

            my ($key, $what) = ($keys[rand @keys], rand);
            if ($what < 0.7) {
                my $word = $kind . ('', '*2', 'd', '*3d')[rand 4];
                my @requests = map { [uuid(++$id), $keys[rand @keys]] } 1 .. 1 + rand 3;
                my @answers = ask_several($now, [[$W, 8, $word]], @requests);
                push @counted, map { [$now, $requests[$_][0], [$requests[$_][1], $W, 8, $word]] } grep { $answers[$_][0] == 2 } 0 .. $#answers;
            } elsif ($what < 0.95 && @counted) {
                my ($then, $whose, $limit) = @{ splice @counted, rand @counted, 1 };
                $taken += settle_at($now, $then, $whose, (0, 0, 0, 1, 2, 3, 4)[rand 7], $limit);
            } elsif ($what > 0.99) {
                my $for = int rand 5 * $W;
                my $act = ('ban', 'max', 'max', 'forget')[rand 4];
                operate($now, $act, $key, $kind, $for, 9);
                $ruled{$key} = max $ruled{$key} // 0, $now + $for unless $act eq 'forget';
            } elsif ($what > 0.97) {
                operate($now, $_, $key, $kind, 0) for 'ban', 'max';
                $ruled{$key} = 0;
            }
            @counted = grep { $_->[0] > $now - $W } @counted;

            for my $lasting (@keys) {
                my $leaves = last_leaves($lasting, $kind) or next;
                my $ttl = redis('PTTL', $lasting);
                $too_early++ if $ttl * 1000 < $leaves - $now;
                $too_late++ if $ttl > max(2 * $W, ($ruled{$lasting} // 0) - $now) / 1000 + 2000;
            }
        }
        is $too_early, 0, 'none too early';
        is $too_late, 0, 'nor more than a window late';
        cmp_ok $taken, '>', 300, "though $taken were settled";
    };
}

# ---- A clock that steps back

for my $kind (@KINDS) {
    my ($in, $stays) = ("in $NAMES{$kind}", $kind eq 'b6' ? 70 * $S : $W);

    subtest "a clock that steps back admits nothing early, $in" => sub {
        my @limit = ("stepped $kind", $W, 2, $kind);
        ask($T, [@limit]) for 1 .. 2;
        is_deeply ask($T - 30 * $S, [@limit]), [0, 2, $stays], 'still full';
        my $end = $T - 30 * $S + $stays;
        is_deeply ask($end - 1, [@limit]), [0, 2, 1], 'for a window';
        is_deeply ask($end, [@limit]), [2, 1, $stays], 'and no longer';

        @limit = ("partly $kind", $W, 4, $kind);
        ask($T + $_ * $S, [@limit]) for -30, -20, 0, 0;
        redis('PEXPIRE', $limit[0], 10_000);
        is_deeply ask($T - 10 * $S, [@limit]), [0, 4, leaves($kind, $T - 30 * $S) - $T + 10 * $S], 'also where only some are from the future';
        lives_as_long($limit[0], $kind eq 'b6' ? $stays : 2 * $W, 2 * $W, 'the key');
        is_deeply ask($T - 10 * $S + $stays, [@limit]), [2, 1, $stays], 'which leave with the others of that time';
    };

    subtest "who is refused after a step of the clock is refused for one window, $in" => sub {
        for my $cost (1, 2) {
            for my $ruled (0, 1) {
                my @limit = ("hour $kind $cost $ruled", $W, 4, "$kind*$cost");
                ask($T, [@limit]) for 1 .. 4;
                operate($T, 'max', $limit[0], $kind, 2 * $H, 4) if $ruled;
                redis('PEXPIRE', $limit[0], 1000) unless $ruled;
                my $wait = ask($T - $H, [@limit])->[2];
                cmp_ok $wait, '<=', $stays, "a cost of $cost: a wait of $wait us";
                cmp_ok redis('PTTL', $limit[0]), '>=', $wait / 1000, 'as long as the key lives';
                is ask($T - $H + $wait - 1, [@limit])->[0], 0, 'up to its end';
                is ask($T - $H + $wait, [@limit])->[0], 2, 'and not longer';
            }
        }
    };

    subtest "a key is kept for those who come after a step of the clock, $in" => sub {
        my @limit = ("kept $kind", $W, 9, $kind);
        ask($T, [@limit]) for 1 .. 3;
        redis('PEXPIRE', $limit[0], 10_000);
        is ask($T - $H, [@limit])->[1], 4;
        lives_as_long($limit[0], $kind eq 'b6' ? $stays : 2 * $W, 2 * $W, 'the key');
        ask($T - $H + 10 * $S, ["$limit[0] looked", @limit[1 .. 3]]) for 1 .. 3;
        redis('PEXPIRE', "$limit[0] looked", 10_000);
        ask($T - 2 * $H, ["$limit[0] looked", $W, 9, "$kind*0"]);
        ask($T - 2 * $H + 5 * $S, ["$limit[0] looked", @limit[1 .. 3]]);
        lives_as_long("$limit[0] looked", $stays, 2 * $W, 'so it does if somebody has only looked before');
    };

    subtest "however often the clock steps, $in" => sub {
        srand 5;
        my @limit = ("steps $kind", $W);
        my ($now, $real, $early, $late, $waits, $wrong, @admitted) = ($T, 0, 0, 0, 0, 0);
        for (1 .. 2000) {
            my $step = int rand $W / 5;
            ($now, $real) = ($now + $step, $real + $step);
            $now -= int rand(rand() < 0.5 ? $W : $H) if rand() < 0.05;
            pass_time($step, $limit[0]);
            my $cost = 1 + int rand 3;
            my $answer = ask($now, [@limit, 8, "$kind*$cost"]);
            push @admitted, ($real) x $cost if $answer->[0] == 2;
            @admitted = grep { $_ > $real - $W } @admitted;
            $early++ if @admitted > 8;
            $late++ if $answer->[2] > $stays;
            $wrong++ unless ref contents($limit[0], $kind);
            next if $answer->[0] == 2 || rand() < 0.5;

            $waits++;
            pass_time($answer->[2], $limit[0]);
            ($now, $real) = ($now + $answer->[2], $real + $answer->[2]);
            $late++ if ask($now, [@limit, 8, "$kind*$cost"])->[0] != 2;
            @admitted = ((grep { $_ > $real - $W } @admitted), ($real) x $cost);
            $early++ if @admitted > 8;
        }
        is $early, 0, 'none is admitted early';
        is $late, 0, "nor too late, of $waits that waited";
        is $wrong, 0, 'and all is in order';
    };
}

subtest 'what is from the future is counted at the time at which that is noticed' => sub {
    ask_as('a', $T, ['noticed', $W, 9, 'l*2']);
    ask_as('b', $T - $S, ['noticed', $W, 9, 'l']);
    is_deeply in_log('noticed'), { a => $T, 'a:2' => $T, b => $T - $S }, 'in a log not yet when one is admitted';
    ask($T - $S, ['noticed', $W, 3, 'l']);
    is_deeply in_log('noticed'), { a => $T - $S, 'a:2' => $T - $S, b => $T - $S }, 'but when one is refused';

    ask($T + $_ * $S, ['noticed p', $W, 9, 'p']) for -3, -2, 0, 0;
    ask($T - $S, ['noticed p', $W, 9, 'p']);
    is_deeply in_packed('noticed p'), [$T - 3 * $S, $T - 2 * $S, ($T - $S) x 3], 'a packed log stays in order';

    ask($T, ['noticed b', $W, 9, 'b6']);
    ask($T - 15 * $S, ['noticed b', $W, 9, 'b6*2']);
    is_deeply in_buckets('noticed b'), { $T - 10 * $S => 3, moved => $T + 10 * $S }, 'buckets note it';
    is settle_at($T - 15 * $S, $T - 15 * $S, 'x', 0, ['noticed b', $W, 9, 'b6*2']), 0, 'as nobody can tell whose units they are';
    is settle_at($T, $T, 'x', 0, ['noticed b', $W, 9, 'b6']), 0;
    is_deeply ask($T + 10 * $S, ['noticed b', $W, 9, 'b6*2']), [2, 5, 40 * $S], 'what is counted later';
    is settle_at($T + 10 * $S, $T + 10 * $S, 'x', 0, ['noticed b', $W, 9, 'b6*2']), 1, 'can be taken back';

    fill('many ahead l', 'l', $T, 2500);
    fill('many ahead p', 'p', $T, 2500);
    is_deeply ask($T - $H, ["many ahead $_", $W, 2500, $_]), [0, 2500, $W], "$NAMES{$_}, be there ever so many" for 'l', 'p';
    ask($T - $H, ['many ahead l', $W, 2500, 'l']) for 1 .. 2;
    is redis('ZCOUNT', 'many ahead l', $T - $H + 1, '+inf'), 0, 'of a log a thousand in a call';
    is_deeply in_packed('many ahead p'), [ ($T - $H) x 2500 ];
    is_deeply ask($T - $H + $W, ["many ahead $_", $W, 2500, $_]), [2, 1, $W], 'a window later all have left' for 'l', 'p';
};

# ---- What requests have cost after all

for my $kind (@KINDS) {
    my $in = "in $NAMES{$kind}";

    subtest "what has cost less is given back where it was counted, $in" => sub {
        my ($key, $then) = ("less $kind", $T + 10 * $S);
        my $limit = [$key, $W, 20, "$kind*5"];
        my $shown = sub { my %all = @_; return $all{$kind} };
        ask_as('a', $T, $limit);
        ask_as('b', $then, $limit);
        is settle_at($T + 25 * $S, $T, 'a', 2, $limit), 1, 'it was there';
        is_deeply contents($key, $kind), $shown->(l => { a => $T, 'a:2' => $T, b => $then, map { ("b:$_" => $then) } 2 .. 5 },
            p => [ ($T) x 2, ($then) x 5 ], b6 => { $T + 10 * $S => 2, $T + 20 * $S => 5 }), 'the others stay';
        is settle_at($T + 25 * $S, $then, 'b', 5, $limit), 0, 'what has cost as much as was thought changes nothing';
        is_deeply ask($T + 25 * $S, [$key, $W, 20, "$kind*0"]), [1, 7, leaves($kind, $T) - $T - 25 * $S];
        is settle_at($T + 25 * $S, $then, 'b', 1, $limit), 1, 'to 1';
        is_deeply ask(leaves($kind, $T), [$key, $W, 20, "$kind*0"]), [1, 1, 10 * $S], 'it leaves when it would have left';
        is settle_at($T + 30 * $S, $T + 20 * $S, 'x', 1, $limit), 0, 'not one that never was';
    };

    subtest "what has cost nothing is taken back, $in" => sub {
        my $limit = ["back $kind", $W, 9, "$kind*2"];
        my @counted = map { [$T + $_ * 10 * $S, "id$_"] } 0 .. 4;
        ask_as($_->[1], $_->[0], $limit) for @counted[0 .. 3];
        my @left = (6, 4, 2, 0);
        for my $n (2, 0, 3, 1) {
            is settle_at($T + 40 * $S, @{ $counted[$n] }, 0, $limit), 1, "number $n";
            is settle_at($T + 40 * $S, @{ $counted[$n] }, 0, $limit), 0, 'which is not there a second time';
            is stored(@$limit[0, 3]), shift @left, 'the others are';
            redis('EXISTS', $limit->[0]) and ok redis('PTTL', $limit->[0]) > 0, 'and do not stay for ever';
        }
        is redis('EXISTS', $limit->[0]), 0, 'no key is left when there is nothing in it';
    };

    subtest "what has cost more counts from then on, beyond max, $in" => sub {
        my $key = "more $kind";
        ask_as('a', $T, [$key, $W, 10, "$kind*2"]);
        my $now = $T + 10 * $S;
        is settle_at($now, $T, 'a', 12, [$key, $W, 10, "$kind*2"]), 1;
        is_deeply contents($key, $kind), { p => [ ($T) x 2, ($now) x 10 ], b6 => { $T + 10 * $S => 2, $T + 20 * $S => 10 },
            l => { a => $T, 'a:2' => $T, 'a+' => $now, map { ("a+:$_" => $now) } 2 .. 10 } }->{$kind};
        is_deeply ask($now, [$key, $W, 10, $kind]), [0, 12, leaves($kind, $now) - $now], 'those who come next wait for it';
        is settle_at($now + 10 * $S, $T, 'a', 12, [$key, $W, 10, "$kind*2"]), 1, 'a second time';
        is stored($key, $kind), $kind eq 'l' ? 12 : 22, 'a log knows it, others do not';

        is settle_at($T, $T, 'l', 7, ["looked more $kind", $W, 5, "$kind*0"]), 1, 'of one that only looked';
        is_deeply ask($T, ["looked more $kind", $W, 5, $kind]), [0, 7, leaves($kind, $T) - $T], 'all of it';
        lives_as_long("looked more $kind", leaves($kind, $T) - $T, 2 * $W, 'the key');
    };

    subtest "what is settled late, or of an unknown time, $in" => sub {
        my $limit = ["late $kind", $W, 20, "$kind*5"];
        ask_as('a', $T, $limit);
        is settle_at($T + 1, 0, 'a', 3, $limit), $kind eq 'l' ? 1 : 0, 'without its time only a log finds it';
        is stored(@$limit[0, 3]), $kind eq 'l' ? 3 : 5;
        is settle_at($T + 1, 0, 'b', 6, $limit), 1, 'more is counted';
        is stored(@$limit[0, 3]), $kind eq 'l' ? 4 : 6;
        is settle_at($T + 3 * $W, $T, 'a', 1, $limit), 0, 'when its window has passed there is nothing to give back';
        is settle_at($T + 3 * $W, $T, 'a', 7, $limit), 1, 'but more is counted';
        is_deeply ask($T + 3 * $W, [@$limit[0 .. 2], "$kind*0"]), [1, 2, leaves($kind, $T) - $T];
    };

    subtest "no more is given back than is left, $in" => sub {
        my $limit = ["part $kind", $W, 5, "$kind*5"];
        ask_as('a', $T, $limit);
        is settle_at($T, $T, 'a', 3, $limit), 1;
        is settle_at($T, $T, 'a', 2, $limit), 1, 'less than before';
        is stored(@$limit[0, 3]), $kind eq 'l' ? 2 : 0, 'a log knows what is left, others give back as much again';
        return if $kind eq 'b6';
        ask_as('d', $T, ["dropped $kind", $W, 5, "$kind*4"]);
        ask_as('e', $T + 1, ["dropped $kind", $W, 5, "$kind*4d"]);
        is settle_at($T + 2, $T, 'd', 0, ["dropped $kind", $W, 5, "$kind*4"]), 1, 'where some have been dropped';
        is stored("dropped $kind", $kind), 4, 'the others stay';
        is settle_at($T + 2, $T, 'd', 0, ["dropped $kind", $W, 5, "$kind*4"]), 0;
    };

    subtest "what was moved by a step of the clock is given back where it can be told, $in" => sub {
        my $limit = ["moved $kind", $W, 5, "$kind*4"];
        ask_as('a', $T, $limit);
        ask($T - 30 * $S, $limit);
        is settle_at($T - 30 * $S, $T, 'a', 1, $limit), $kind eq 'l' ? 1 : 0, 'only in a log';
        is ask($T - 30 * $S, [@$limit[0 .. 2], "$kind*0"])->[1], $kind eq 'l' ? 1 : 4;
        is settle_at($T - 40 * $S, $T, 'a', 6, $limit), 1, 'more is counted as of now';
        ok ref contents(@$limit[0, 3]), 'in order';
        is ask($T - 30 * $S + leaves($kind, 0), [@$limit[0 .. 2], "$kind*0"])->[1], 0, 'and all of it leaves';
    };

    subtest "a ruling survives what is settled, $in" => sub {
        for my $cost (0, 2, 5, 9) {
            my ($key, $then) = ("ruled $kind $cost", $T + 1);
            ask($T, [$key, $W, 20, $kind]);
            ask_as('a', $then, [$key, $W, 20, "$kind*5"]);
            operate($T + 2, 'max', $key, $kind, 1000 * $S, 7);
            operate($T + 2, 'ban', $key, $kind, 500 * $S);
            is settle_at($T + 3, $then, 'a', $cost, [$key, $W, 20, "$kind*5"]), $cost == 5 ? 0 : 1, "settled with $cost";
            is_deeply [ @{ operate($T + 3, 'look', $key, $kind) }[0, 2, 3] ], [1 + $cost, 500 * $S - 1, 7], 'all is as it was ruled';
            lives_as_long($key, 999 * $S, 1000 * $S, 'for as long');
            is ask($T + 4, [$key, $W, 20, $kind])->[0], 3, 'and heeded';
            settle_at($T + 5, $T, uuid($serial - 1), 0, [$key, $W, 20, $kind]);
            settle_at($T + 5, $then, 'a', 0, [$key, $W, 20, "$kind*5"]);
            is operate($T + 5, 'look', $key, $kind)->[3], 7, 'also where little else is left';
        }
        my $key = "ruled alone $kind";
        operate($T, 'max', $key, $kind, 1000 * $S, 7);
        is settle_at($T + 1, 0, 'a', 8, [$key, $W, 20, "$kind*0"]), 1, 'or nothing else was there';
        is_deeply [ @{ ask_ruled($T + 2, [$key, $W, 20, $kind]) }[0, 1, 3] ], [0, 8, 7];
        lives_as_long($key, 999 * $S, 1000 * $S, 'for as long');
    };
}

subtest 'a bucket from the future of which all was taken back says nothing of the others' => sub {
    my $limit = ['emptied b', $W, 5, 'b6'];
    ask_as('a', $T, $limit);
    ask_as('b', $T + 10 * $S, $limit);
    is settle_at($T + 10 * $S, $T + 10 * $S, 'b', 0, $limit), 1;
    is settle_at($T + 5 * $S, $T, 'a', 0, $limit), 1, 'the clock has stepped back, and what was counted before can be taken back';
};

subtest 'several limits are settled at once, each for itself' => sub {
    my @limits = map { ["each $_", $W, 20, "$_*5"] } @KINDS;
    ask_as('a', $T, @limits);
    is call_at($T + 1, [ map { $_->[0] } @limits ], ':settle', 'b6*5/l*5/p*5', $T, 'a', $W, 5, $W, 9, $W, 2), 2, 'two were changed';
    is_deeply [ map { ask($T + 2, [@$_[0 .. 2], substr($_->[3], 0, -1) . 0])->[1] } @limits ], [5, 9, 2];
};

# ---- What operators rule

for my $kind (@KINDS) {
    my $in = "in $NAMES{$kind}";
    my @limit = ($W, 3, $kind);

    subtest "a ban refuses, counts nothing, and ends by itself, $in" => sub {
        my $key = "banned $kind";
        ask($T, [$key, @limit]);
        is_deeply [ @{ operate($T + 1, 'ban', $key, $kind, 30 * $S) }[0, 2 .. 5] ], [1, 30 * $S, 0, 0, 1], 'it says so';
        is_deeply ask($T + 2, [$key, @limit]), [3, 1, 30 * $S - 1], 'refused for as long';
        is_deeply ask($T + 2, [$key, $W, 3, "$kind*0"]), [3, 1, 30 * $S - 1], 'also who only looks';
        is_deeply ask($T + 2, [$key, $W, 3, "${kind}d"]), [3, 1, 30 * $S - 1], 'and is not counted';
        is_deeply ask($T + 2, [$key, $W, 1, $kind]), [3, 1, leaves($kind, $T) - $T - 2], 'or until there is room, if that is later';
        is_deeply ask($T + 3, [$key, $W, 3, "${kind}n"], ["$key other", @limit]),
            [3, 1, 30 * $S - 2, 2, 1, leaves($kind, $T) - $T - ($kind eq 'b6' ? 3 : 0)], 'a dry run keeps nobody from passing';
        is_deeply [ map { $_->[0] } ask_several($T + 4, [[@limit]], map { ["x$_", $_] } "$key other", $key, "$key third") ], [2, 3, 2],
            'others are asked about at the same time';
        is ask($T + 30 * $S, [$key, @limit])->[0], 3, 'a microsecond before its end';
        is ask($T + 30 * $S + 1, [$key, @limit])->[0], 2, 'then it passes';
    };

    subtest "another max holds for as long as it was given, $in" => sub {
        my $key = "overridden $kind";
        ask($T, [$key, @limit]) for 1 .. 3;
        operate($T, 'max', $key, $kind, 30 * $S, 4);
        is_deeply [ @{ ask_ruled($T + 1, [$key, @limit]) }[0, 1, 3] ], [2, 4, 4], 'a fourth, and what allows it';
        is_deeply [ @{ ask_ruled($T + 2, [$key, @limit]) }[0, 1, 3] ], [0, 4, 4], 'but no fifth';
        is_deeply [ @{ ask_ruled($T + 2, ["$key beside", @limit], [$key, @limit]) }[0, 3, 6, 7] ], [1, 0, 0, 4], 'as one of two limits';
        is_deeply [ @{ ask_ruled($T + 30 * $S, [$key, @limit]) }[0, 3] ], [0, 0], 'when it is over it is three again';
        operate($T + 140 * $S, 'max', $key, $kind, 30 * $S, 1);
        is_deeply [ @{ ask_ruled($T + 140 * $S, [$key, @limit]) }[0, 3] ], [2, 1], 'when all is past, there is room for one';
        is_deeply ask_ruled($T + 140 * $S, [$key, @limit]), [0, 1, 30 * $S, 1], 'another waits until less is allowed no more';
        is_deeply ask_ruled($T + 140 * $S, [$key, $W, 3, "$kind*2"]), [0, 1, 30 * $S, 1], 'also what costs more than that';
        is_deeply ask_ruled($T + 140 * $S, [$key, $W, 3, "$kind*4"]), [0, 1, 0, 1], 'but not what costs more than its own';
        is ask_ruled($T + 170 * $S, [$key, @limit])->[0], 2, 'which it is then';

        operate($T, 'max', "$key more", $kind, 30 * $S, 5);
        ask($T, ["$key more", $W, 3, "$kind*5"]);
        is_deeply ask_ruled($T + 1, ["$key more", @limit]), [0, 5, leaves($kind, $T) - $T - 1, 5], 'who has used more waits for its own max';

        my @denied = ("overridden and refused $kind", $W, 3, "${kind}d");
        ask($T, [@denied]);
        operate($T, 'max', $denied[0], $kind, 30 * $S, 1);
        ask($T + 10 * $S, [@denied]);
        is_deeply ask_ruled($T + 20 * $S, [@denied]), [0, 3, leaves($kind, $T) - $T - 20 * $S, 1],
            'where refused requests count, the first one has to leave';

        for my $one ('less is allowed', 'as many') {
            ask($T + $_ * $S, ["$one $kind", @limit]) for 0 .. 2;
        }
        operate($T + 3 * $S, 'max', "less is allowed $kind", $kind, 1000 * $S, 2);
        my $second = [0, 3, leaves($kind, $T + $S) - $T - 3 * $S];
        is_deeply ask_ruled($T + 3 * $S, ["less is allowed $kind", @limit]), [@$second, 2], 'with less allowed two have to leave';
        is_deeply [ ask_several($T + 3 * $S, [[$W, 2, $kind]], map { [uuid(++$serial), "$_ $kind"] } 'less is allowed', 'as many') ],
            [$second, $second], 'also of another client that is asked about at the same time';
    };

    subtest "forgetting and lifting, $in" => sub {
        my $key = "forgotten $kind";
        ask($T, [$key, @limit]) for 1 .. 3;
        operate($T, 'max', $key, $kind, 600 * $S, 2);
        operate($T, 'ban', $key, $kind, 600 * $S);
        is_deeply operate($T + 1, 'forget', $key, $kind), [0, 0, 0, 2, 600 * $S - 1, 0], 'counts and ban are gone, another max stays';
        is_deeply [ @{ ask_ruled($T + 2, [$key, @limit]) }[0, 1, 3] ], [2, 1, 2], 'so it passes';
        operate($T + 3, 'ban', $key, $kind, 600 * $S);
        is operate($T + 4, 'ban', $key, $kind, 0)->[2], 0, 'a ban is lifted';
        is redis('GET', "$key!"), '0:2:' . ($T + 600 * $S), 'while there is another ruling';
        is operate($T + 4, 'max', $key, $kind, 0)->[3], 0, 'and so is that';
        is redis('EXISTS', "$key!"), 0, 'then it is not listed any more';
        is_deeply ask_ruled($T + 5, [$key, @limit]), [2, 2, leaves($kind, $T) - $T - ($kind eq 'b6' ? 5 : 3)], 'what was counted still is';
        lives_as_long($key, $W, 2 * $W, 'as long as it has to');
        is_deeply operate($T, 'forget', $key, $kind), [0, 0, 0, 0, 0, 0];
        is redis('EXISTS', $key), 0, 'until it is forgotten';
        operate($T, $_, "$key unseen", $kind) for 'look', 'forget', 'ban', 'max';
        is redis('EXISTS', "$key unseen", "$key unseen!"), 0, 'nothing is made of nothing';
    };

    subtest "a ruling outlives what is counted, $in" => sub {
        my $key = "outlives $kind";
        operate($T, 'ban', $key, $kind, 10 * $S);
        operate($T, 'max', $key, $kind, 1000 * $S, 100);
        is redis('GET', "$key!"), join(':', $T + 10 * $S, 100, $T + 1000 * $S), 'it can be found';
        lives_as_long($_, 999 * $S, 1000 * $S, "by the name $_") for $key, "$key!";
        ask_as('a', $T + 10 * $S, [$key, @limit]);
        ask_as('b', $T + 11 * $S, [$key, @limit]);
        settle_at($T + 12 * $S, $T + 10 * $S, 'a', 0, [$key, @limit]);
        is operate($T + 12 * $S, 'look', $key, $kind)->[0], 1, 'where requests are counted and taken back';
        redis('PEXPIRE', $key, 900_000);
        is_deeply [ @{ ask_ruled($T + 200 * $S, [$key, @limit]) }[1, 3] ], [1, 100], 'when all else has left';
        cmp_ok redis('PTTL', $key), '>', 795_000, 'for as long as it holds';
        settle_at($T + 200 * $S, $T + 200 * $S, uuid($serial), 0, [$key, @limit]);
        is_deeply [ @{ operate($T + 200 * $S, 'look', $key, $kind) }[0, 3] ], [0, 100], 'and with nothing else';

        # often enough to be written anew
        $key = "outlives many $kind";
        operate($T, 'max', $key, $kind, 1000 * $S, 300);
        my @wrong = grep { ask_ruled($T + $_ * $S / 2, [$key, @limit])->[3] != 300 } 1 .. 600;
        is_deeply \@wrong, [], 'with very many';
        is ask_ruled($T + 301 * $S, [$key, $W, 3, "$kind*0"])->[1], $kind eq 'b6' ? 121 : 118, 'of which all are counted';
    };

    subtest "an operator sees where a client stands, $in" => sub {
        my ($key, $now) = ("stands $kind", $T + 25 * $S);
        ask_as('first', $T, [$key, $W, 10, $kind]);
        ask_as('second', $T + 10 * $S, [$key, $W, 10, "$kind*4"]);
        ask_as('third', $now, [$key, $W, 10, "$kind*2"]);
        my @ids = $kind eq 'l' ? qw(third second first) : ('') x 3;
        my $ago = $kind eq 'b6' ? 5 * $S : 0;
        is_deeply operate($now, 'look', $key, $kind), [7, leaves($kind, $T) - $now, 0, 0, 0, $kind eq 'b6' ? 3 : 7,
            $ago, 2, $ids[0], 15 * $S, 4, $ids[1], 25 * $S, 1, $ids[2]], 'the newest first' for 1 .. 2;
        settle_at($now + $S, $now, 'third', 5, [$key, $W, 10, "$kind*2"]);
        my @settled = $kind eq 'b6' ? (6 * $S, 5, '') : (0, 3, $ids[0], $S, 2, $ids[0]);
        my $answer = operate($now + $S, 'look', $key, $kind);
        is_deeply [ @$answer[6 .. 5 + @settled] ], \@settled, 'what was settled is of its own time';
        $answer = operate($T + 82 * $S, 'look', $key, $kind);
        is_deeply [ @$answer[0, 6 .. $#$answer] ], [5, map { /000000/ ? $_ + 56 * $S : $_ eq '0' ? 56 * $S : $_ } @settled], 'what has left is not shown';
        ask($T - $H, [$key, $W, 1, "$kind*2"]);
        is operate($T - $H, 'look', $key, $kind)->[6], 0, 'nothing is from the future';
        is_deeply operate($now + 2 * $W, 'look', $key, $kind), [0, 0, 0, 0, 0, 0], 'nor is there anything when all has left';
    };
}

subtest 'requests are shown one by one where that can be told, at most a hundred' => sub {
    ask_as($_, $T, ['moment l', $W, 100, 'l*3']) for 'a' .. 'd';
    is_deeply [ @{ operate($T + 5, 'look', 'moment l', 'l') }[5 .. 11] ], [12, 5, 3, 'd', 5, 3, 'c'], 'of a log';
    ask($T, ['moment p', $W, 100, 'p*3']) for 1 .. 4;
    is_deeply operate($T + 5, 'look', 'moment p', 'p'), [12, $W - 5, 0, 0, 0, 12, 5, 12, ''], 'of a packed log by their time';

    for my $kind ('l', 'p') {
        fill("very many $kind", $kind, $T, 20_000);
        my $answer = operate($T + $W + 9_999, 'look', "very many $kind", $kind);
        is_deeply [ @$answer[0 .. 8] ], [10_000, 1, 0, 0, 0, 10_000, $W - 10_000, 1, $kind eq 'l' ? 'very many l19999' : ''], 'of very many';
        is scalar @$answer, 6 + 3 * 100, 'a hundred are shown';
        is $answer->[-3], $W - 10_000 + 99, 'which are the newest';
    }
    ask_as('y' x 50 . $_, $T, ['long ids', $W, 100, 'l']) for 1 .. 2;
    is_deeply [ @{ operate($T, 'look', 'long ids', 'l') }[5 .. 8] ], [2, 0, 2, 'y' x 36], 'long ids are cut';
    ask($T + $_ * 600_000, ['all buckets', $W, 1000, 'b100']) for 0 .. 100;
    is scalar @{ operate($T + $W, 'look', 'all buckets', 'b100') }, 6 + 3 * 100, 'of buckets, too';
};

# ---- What others have written

for my $kind (@KINDS) {
    subtest "what another has written is left as it is, and concerns only its own request, in $NAMES{$kind}" => sub {
        my %foreign = (
            'a number' => [SET => 1], 'a short text' => [SET => 'hello'], 'a long text' => [SET => 'x' x 1000],
            'a text as long as a head' => [SET => 'The quick brown fox jumps over the lazy dogs'],
            'a list' => ['RPUSH', 1 .. 3], 'a hash' => ['HSET', 'a', 1], 'a set' => ['SADD', 'a'],
            $kind eq 'l' ? () : ('a sorted set' => ['ZADD', $T, 'a']),
        );
        for my $what (sort keys %foreign) {
            my ($command, @values) = @{ $foreign{$what} };
            redis('DEL', 'foreign');
            redis($command, 'foreign', @values);
            my $before = redis('DUMP', 'foreign');
            my $limit = ['foreign', $W, 9, "$kind*2"];
            is_deeply ask($T, $limit), [-1, 0, 0], $what;
            is_deeply [ map { @$_[0, 1] } ask_several($T, [[$W, 9, $kind]], map { [uuid(++$serial), $_] } "beside $kind $what", 'foreign', "beside $kind $what") ],
                [2, 1, -1, 0, 2, 2], 'of several requests it concerns one';
            my @key = ("first $kind $what", 'foreign');
            is_deeply [ map { @$_[0, 3] } ask_several($T, [ ([$W, 9, "${kind}d"]) x 2 ], map { [uuid(++$serial), @$_] } [@key], [reverse @key]) ],
                [ (-1) x 4 ], 'with all of its limits';
            is redis('EXISTS', $key[0]), 0, 'where nothing is counted';
            is settle_at($T, $T, 'a', $_, $limit), 0, "nothing is settled to $_" for 0, 9;
            like operate($T, $_, 'foreign', $kind, $W, 5), qr/^error: WRONGTYPE/, "to $_ is an error" for 'look', 'ban', 'max';
            is redis('DUMP', 'foreign'), $before, 'it stays as it is';
            is redis('EXISTS', 'foreign!'), 0;
            is_deeply operate($T, 'forget', 'foreign', $kind), [ (0) x 6 ], 'until it is forgotten';
            is redis('EXISTS', 'foreign'), 0;
        }
    };
}

# ---- What is asked of Redis

subtest 'the script as shipped uses the clock of Redis' => sub {
    my ($sec) = @{ redis('TIME') };
    my @numbers = unpack 'q<*', redis('EVAL', $script, 1, 'clock', 'l', $W, 1, 'me');
    is_deeply [ @numbers[0 .. 2] ], [2, 1, $W];
    is_deeply in_log('clock'), { me => $numbers[3] }, 'scored with the time of the answer';
    cmp_ok abs($numbers[3] / $S - $sec), '<', 5, 'which is the present, in microseconds';
    is redis('EVAL', $script, 1, 'clock', ':settle', 'l', $numbers[3], 'me', $W, 0), 1, 'and is what settling is told';
};

my %called = map { lc($_) => 1 } $script =~ /\bp?call\('([A-Z]+)'/g;

subtest 'whether all that the script needs may be called can be found out' => sub {
    my ($others, $try) = map { my $files = $_; join '', map { do { local (@ARGV, $/) = $_; <> } } glob $files }
        'lua/{script,check,client,settle,log,packed,buckets}.lua', 'lua/try.lua';
    my %tried = map { lc($_) => 1 } time => $try =~ /\bcall\('([A-Z]+)'/g;
    is_deeply [ grep { !$tried{lc $_} } $others =~ /\bp?call\('([A-Z]+)'/g ], [], 'all that others call is called';
    is_deeply [ $script =~ /\bp?call\((?!')|redis\.p?call\b(?!, )/g ], [], 'nothing is called by another name';

    my @kinds = ('l', 'p', 'b6');
    my $try_on = sub { return redis('EVAL', $script, scalar @_, (map { "try $_" } @_), ':try', join('/', @_), (100_000, 10) x @_, 'me') };
    my $answer = $try_on->(@kinds);
    my @numbers = unpack 'q<*', $answer;
    is_deeply [ @numbers[0, 1, 3, 4, 6, 7] ], [ (2, 1) x 3 ], 'it is answered as a check is';
    cmp_ok redis('PTTL', "try $_"), '>', 0, "$_: the key has a time to live" for @kinds;
    is length redis('EVAL', $script, 0, ':try', ''), 8, 'without a key there is only the time';
    redis('DEL', 'try l');
    $try_on->('l');
    is_deeply [ keys %{ in_log('try l') } ], ['me'], 'that request is counted';

    redis('CONFIG', 'SET', 'maxmemory', 1);
    like $try_on->(@kinds), qr/^error: OOM/, 'there is no memory for it if there is none for requests';
    redis('CONFIG', 'SET', 'maxmemory', 0);

    redis('ACL', 'SETUSER', 'limited', 'on', 'nopass', '~*', '+eval', '+acl', map { "+$_" } keys %called);
    redis('AUTH', 'limited', '');
    like $try_on->(@kinds), qr/^\x02\x00/, 'who may call ' . join(', ', sort keys %called);
    for my $command (sort keys %called) {
        redis('ACL', 'SETUSER', 'limited', "-$command");
        like $try_on->($_), qr/^error: /, "$_: without $command" for @kinds;
        redis('ACL', 'SETUSER', 'limited', "+$command");
        redis('AUTH', 'default', '');
        unlike redis('PTTL', "try $_"), qr/^-1$/, 'nothing is left that stays' for @kinds;
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
            sort split /\n/, $server->cli('INFO', 'commandstats');
    };
    my $check = sub { my ($kind, $max) = @_; return $calls_of->(1, "calls $kind", $kind, 24 * $H, $max, uuid(++$serial)) };

    is $check->('l', 3), 'pexpire time zadd zrange', 'a log: the first';
    is $check->('l', 3), 'pexpire time zadd zcard zrange', 'the second';
    is $check->('l', 3), 'time zadd zcard zrange', 'from the third on its time to live need not be set';
    is $check->('l', 3), 'time zcard zrange zrange', 'one that is refused';
    is $check->('l', 1), 'time zcard zrange zrange zrange', 'if more than the oldest has to leave';
    is $check->('p', 3), 'getrange set time', 'a packed log: the first';
    is $check->('p', 3), 'append getrange pexpire setrange setrange time', 'the second';
    is $check->('p', 3), 'append getrange setrange time', 'from the third on its time to live need not be set';
    is $check->('p', 3), 'getrange time', 'one that is refused';
    is $check->('p', 1), 'getrange getrange time', 'if more than the oldest has to leave';
    is $check->('b1', 2), 'getrange set time', 'buckets: the first';
    is $check->('b1', 2), 'getrange setrange time', 'another';
    is $check->('b1', 2), 'getrange time', 'one that is refused';
};

# ---- The files

subtest 'the script is short, and so is each part of it' => sub {
    my $lines = 0;
    for my $file (glob 'lua/*.lua') {
        my @lines = do { local @ARGV = $file; <> };
        $lines += @lines;
        my @long;
        for my $first (grep { $lines[$_] =~ /\bfunction\b.*\)$|^\s*(?:for|while)\b.*\bdo$|^\s*repeat$/ } 0 .. $#lines) {
            my ($indent) = $lines[$first] =~ /^( *)/;
            my ($last) = grep { $lines[$_] =~ /^$indent(?:end|until)\b/ } $first + 1 .. $#lines;
            push @long, $first + 1 if !$last || $last - $first >= 60;
        }
        is_deeply \@long, [], "no function or loop of $file is longer than 60 lines";
    }
    cmp_ok $lines, '<=', 900, "$lines lines in all";
};

done_testing;
