# Clients' own libraries understand the headers: two npm packages read those of
# real answers, and find the numbers that stand there.

use strict;
use warnings;
use lib 't/lib';

use IPC::Open2 qw(open2);
use JSON::PP qw(decode_json encode_json);
use SlidingLimit::Servers qw(get start_nginx start_redis);
use Test::More;

# "make test" installs them and says where: there they must be
my $packages = $ENV{SLIDING_LIMIT_NPM_DIR} // 'build/npm';
my @missing = grep { !-e "$packages/node_modules/$_/package.json" }
    qw(ratelimit-header-parser structured-headers);

if (@missing) {
    die "not installed in $packages: @missing\n" if defined $ENV{SLIDING_LIMIT_NPM_DIR};
    plan skip_all => "not installed in $packages: @missing";
}

chomp($packages = `cd '$packages' && pwd`);

my $redis = start_redis();
my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');
    location /delta {
        sliding_limit zone=delta max=3 window=60s key=all;
        empty_gif;
    }
    location /epoch {
        sliding_limit zone=epoch max=3 window=60s key=all;
        sliding_limit_reset epoch;
        empty_gif;
    }
    location /one {
        sliding_limit zone=one max=5 window=60s key=all;
        sliding_limit_headers ietf;
        empty_gif;
    }
    location /two {
        sliding_limit zone=hour-of.2 max=100 window=1h key=all;
        sliding_limit zone=minute_2 max=2 window=1m key=all;
        sliding_limit_headers ietf;
        empty_gif;
    }
    location /short {
        sliding_limit zone=short max=9 window=100ms key=all;
        sliding_limit zone=uneven max=99 window=1500ms key=all;
        sliding_limit_headers ietf;
        empty_gif;
    }
    location /never {
        sliding_limit zone=never max=0 window=60s key=all;
        sliding_limit_headers ietf;
        empty_gif;
    }
    location /largest {
        sliding_limit zone=largest max=1000000000000000 window=60s key=all cost=$arg_cost algorithm=buckets;
        sliding_limit_headers x ietf;
        empty_gif;
    }
    location /units {
        sliding_limit zone=tokens max=200000 window=60s key=all unit=tokens;
        sliding_limit zone=bytes max=1000000 window=1h key=all unit=content-bytes;
        sliding_limit_headers ietf;
        empty_gif;
    }
    location /both {
        sliding_limit zone=both max=2 window=60s key=all;
        sliding_limit_headers x ietf;
        empty_gif;
    }
    location /off {
        sliding_limit zone=off max=1 window=60s key=all;
        sliding_limit_headers off;
        empty_gif;
    }
END

# What the packages find, and what stands there.
sub read_answer {
    my ($path) = @_;
    my ($status, $headers) = get($nginx->port, $path);

    my $node = open2(my $out, my $in, 'node', 't/js/read_headers.mjs', $packages);
    print $in encode_json($headers);
    close $in;
    my $found = do { local $/; <$out> };
    waitpid $node, 0;
    die 'node failed' if $?;

    return { %{ decode_json($found) }, status => $status, headers => $headers };
}

# Those of the answer's headers that matter here.
sub names {
    my ($answer) = @_;

    return join ' ', grep { /ratelimit|retry-after/ } sort keys %{ $answer->{headers} };
}

# Name and parameters of each member, but for the time.
sub members {
    my ($field) = @_;

    return [ map { my %member = %$_; delete @member{qw(type t)}; \%member } @{ $field->{members} } ];
}

sub is_well_formed {
    my ($answer) = @_;

    for ([policy => 'ratelimit-policy'], [service => 'ratelimit']) {
        my ($field, $header) = ($answer->{ietf}{ $_->[0] }, $_->[1]);

        is $field->{canonical}, $answer->{headers}{$header}, "$header is written as the library would write it";
        is join(' ', map { $_->{type} } @{ $field->{members} }),
            join(' ', map { 'string' } @{ $field->{members} }), 'its names are strings';
    }
}

for my $number (1 .. 4) {
    subtest "request $number of 3, reset in seconds" => sub {
        my $answer = read_answer('/delta');
        my $left = $number < 3 ? 3 - $number : 0;
        my $reset = $answer->{headers}{'x-ratelimit-reset'};

        is $answer->{status}, $number <= 3 ? 200 : 429;
        is_deeply $answer->{x}{$_}, { limit => 3, used => 3 - $left, remaining => $left, reset => $reset },
            "all is found, reset $_" for qw(guessed seconds);
        cmp_ok $answer->{x}{guessed}{reset}, '>=', 1, 'at least a second';
        cmp_ok $answer->{x}{guessed}{reset}, '<=', 60, 'at most the window';
        is $answer->{headers}{'retry-after'}, $number <= 3 ? undef : $reset, 'a refusal says when to come back';
        is_deeply $answer->{ietf}, { policy => undef, service => undef }, 'nothing of the IETF\'s';
    };
}

for my $number (1 .. 4) {
    subtest "request $number of 3, reset as a Unix time" => sub {
        my $before = time;
        my $answer = read_answer('/epoch');
        my $left = $number < 3 ? 3 - $number : 0;
        my $reset = $answer->{headers}{'x-ratelimit-reset'};

        is $answer->{status}, $number <= 3 ? 200 : 429;
        is_deeply $answer->{x}{$_}, { limit => 3, used => 3 - $left, remaining => $left, reset => $reset },
            "all is found, reset $_" for qw(guessed unix);
        cmp_ok $answer->{x}{guessed}{reset}, '>=', $before, 'not in the past';
        cmp_ok $answer->{x}{guessed}{reset}, '<=', time + 61, 'at most the window away, rounded up';
    };
}

subtest 'the IETF\'s headers: units' => sub {
    my $answer = read_answer('/units');

    is $answer->{status}, 200;
    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}), [
        { name => 'tokens', q => 200000, qu => 'tokens', w => 60 },
        { name => 'bytes', q => 1000000, qu => 'content-bytes', w => 3600 },
    ];
    is_deeply members($answer->{ietf}{service}), [{ name => 'tokens', r => 199999 }, { name => 'bytes', r => 999999 }];
};

subtest 'the IETF\'s headers: one limit' => sub {
    my $answer = read_answer('/one');

    is $answer->{status}, 200;
    is names($answer), 'ratelimit ratelimit-policy', 'no others';
    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}), [{ name => 'one', q => 5, w => 60 }];
    is_deeply members($answer->{ietf}{service}), [{ name => 'one', r => 4 }];
    cmp_ok $answer->{ietf}{service}{members}[0]{t}, '>=', 1, 'at least a second';
    cmp_ok $answer->{ietf}{service}{members}[0]{t}, '<=', 60, 'at most the window';
};

subtest 'the IETF\'s headers: as much as a structured field can say' => sub {
    my $answer = read_answer('/largest?cost=0');

    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}), [{ name => 'largest', q => 999999999999999, w => 60 }];
    is_deeply members($answer->{ietf}{service}), [{ name => 'largest', r => 999999999999999 }];
    is $answer->{headers}{'x-ratelimit-limit'}, '1000000000000000', 'the others say it all';
    is $answer->{headers}{'x-ratelimit-remaining'}, '1000000000000000';

    $answer = read_answer('/largest?cost=5000000000');
    is_well_formed($answer);
    is_deeply members($answer->{ietf}{service}), [{ name => 'largest', r => 999995000000000 }], 'less is exact';
};

subtest 'the IETF\'s headers: two limits' => sub {
    my $answer = read_answer('/two');

    is $answer->{status}, 200;
    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}),
        [{ name => 'minute_2', q => 2, w => 60 }, { name => 'hour-of.2', q => 100, w => 3600 }],
        'both policies, the one with the least remaining first';
    is_deeply members($answer->{ietf}{service}), [{ name => 'minute_2', r => 1 }, { name => 'hour-of.2', r => 99 }],
        'what is left of both, in the same order';
};

subtest 'the IETF\'s headers: a refusal' => sub {
    is +(get($nginx->port, '/two'))[0], 200, 'the last that passes';
    my $answer = read_answer('/two');

    is $answer->{status}, 429;
    is names($answer), 'ratelimit ratelimit-policy retry-after';
    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}),
        [{ name => 'minute_2', q => 2, w => 60 }, { name => 'hour-of.2', q => 100, w => 3600 }];
    is_deeply members($answer->{ietf}{service}), [{ name => 'minute_2', r => 0 }, { name => 'hour-of.2', r => 98 }],
        'nothing is left of the one, the other is not charged';
    is $answer->{ietf}{service}{members}[0]{t}, $answer->{headers}{'retry-after'}, 't is Retry-After';
};

subtest 'the IETF\'s headers: windows that are not whole seconds are rounded up' => sub {
    my $answer = read_answer('/short');

    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}), [{ name => 'short', q => 9, w => 1 }, { name => 'uneven', q => 99, w => 2 }];
    is_deeply members($answer->{ietf}{service}), [{ name => 'short', r => 8 }, { name => 'uneven', r => 98 }];
    is $answer->{ietf}{service}{members}[0]{t}, 1, 'and so is the wait';
};

subtest 'the IETF\'s headers: where no waiting helps' => sub {
    my $answer = read_answer('/never');

    is $answer->{status}, 429;
    is names($answer), 'ratelimit ratelimit-policy', 'there is no Retry-After';
    is_well_formed($answer);
    is_deeply members($answer->{ietf}{policy}), [{ name => 'never', q => 0, w => 60 }];
    is_deeply $answer->{ietf}{service}{members}, [{ name => 'never', type => 'string', r => 0 }], 'and no t';
};

subtest 'both at once say the same' => sub {
    for my $number (1 .. 3) {
        my $answer = read_answer('/both');
        my ($limit, $left, $reset) = @{ $answer->{headers} }{ map { "x-ratelimit-$_" } qw(limit remaining reset) };

        is $answer->{status}, $number <= 2 ? 200 : 429;
        is "$limit $left", '2 ' . ($number < 2 ? 1 : 0);
        is_well_formed($answer);
        is_deeply members($answer->{ietf}{policy}), [{ name => 'both', q => $limit, w => 60 }];
        is_deeply $answer->{ietf}{service}{members}, [{ name => 'both', type => 'string', r => $left, t => $reset }];
    }
};

subtest 'off: no such headers, but a refusal says when to come back' => sub {
    my %nothing = (x => { guessed => undef, seconds => undef, unix => undef }, ietf => { policy => undef, service => undef });

    for my $expected ([200, ''], [429, 'retry-after']) {
        my $answer = read_answer('/off');
        is_deeply [$answer->{status}, names($answer)], $expected;
        is_deeply { map { $_ => $answer->{$_} } keys %nothing }, \%nothing, 'the libraries find nothing';
    }
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
