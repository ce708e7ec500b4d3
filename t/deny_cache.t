# Refusals are remembered by all workers, so that a client over its limit costs Redis
# next to nothing; never where Redis would admit it.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $REDIS = 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;';

# Script calls since the last time.
my $calls_before = 0;

sub calls {
    my $calls = $redis->calls('evalsha');
    my $more = $calls - $calls_before;
    $calls_before = $calls;
    return $more;
}

# The stores that decided about requests, in order; "-" before those that passed.
sub decided_by {
    my ($nginx, $times, $path) = @_;
    my @by;

    for (1 .. $times) {
        my ($status, $store) = $nginx->try($path, 'X-Store');
        push @by, ($status == 200 ? '-' : '') . $store;
    }

    return join ' ', @by;
}

# Arguments of start_nginx().
sub config {
    my ($locations, %with) = @_;

    return (<<"END", workers => 2, http => $REDIS, %with);
    add_header X-Store \$sliding_limit_store always;
    add_header X-Status \$sliding_limit_status always;
    $locations
END
}

sub nginx { return start_nginx(config(@_)) }

# Status and store of the next answer on a connection, which stays open.
sub answer_on {
    my ($socket) = @_;
    my $head = '';

    while ((my $line = readline $socket) ne "\r\n") { $head .= $line }
    read $socket, my $body, $1 if $head =~ /^Content-Length: (\d+)/m;

    return join ' ', $head =~ m{^HTTP/1.1 (\d+)}, $head =~ /^X-Store: (\S+)/m;
}

sub ask_on {
    my ($socket, $path) = @_;

    print $socket "GET $path HTTP/1.1\r\nHost: test\r\n\r\n";
    return $socket;
}

# Reloads, with another configuration if one is given, and waits for the old workers to go.
sub reload {
    my ($nginx, @config) = @_;
    my @old = $nginx->workers;

    $nginx->configure(config(@config)) if @config;
    $nginx->reload;
    wait_until { my %now = map { $_ => 1 } $nginx->workers; !grep { $now{$_} } @old } 20, 'new workers';
}

subtest 'a refusal is remembered by all workers, and then forgotten' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 3s;
        location / { sliding_limit zone=all max=2 window=600s key=$arg_k fallback=none; empty_gif; }
END

    is decided_by($nginx, 3, '/?k=a'), '-redis -redis redis', 'Redis refuses';
    calls();
    is decided_by($nginx, 20, '/?k=a'), join(' ', ('deny_cache') x 20), 'all others are refused without it';
    is calls(), 0, 'it was not asked';
    is decided_by($nginx, 1, '/?k=b'), '-redis', 'other clients are none of this';

    wait_until { decided_by($nginx, 1, '/?k=a') eq 'redis' } 10, 'Redis to be asked again';
    is decided_by($nginx, 5, '/?k=a'), join(' ', ('deny_cache') x 5), 'and so on';
};

subtest 'what the client is told is what Redis said' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 10s;
        location / { sliding_limit zone=told max=2 window=600s key=$arg_k fallback=none; empty_gif; }
END
    my @names = qw(X-RateLimit-Limit X-RateLimit-Remaining X-Status);

    $nginx->try('/?k=a') for 1 .. 2;
    my ($status, @first) = $nginx->try('/?k=a', @names, 'Retry-After', 'X-RateLimit-Reset');
    sleep 2.2;
    my @then = $nginx->try('/?k=a', @names, 'Retry-After', 'X-RateLimit-Reset', 'X-Store');

    is $then[0], 429;
    is "@then[1 .. 3]", "@first[0 .. 2]", 'the same headers';
    is $then[6], 'deny_cache', 'from memory';
    is $then[4], $then[5], 'Retry-After equals Reset';
    cmp_ok $then[4], '<', $first[3] - 1, "the wait goes on: $first[3] s, $then[4] s";
    cmp_ok $then[4], '>', $first[3] - 60, 'and is no other';
    like $nginx->error_log, qr/refused by zone "told", max 2 in 600000 ms, retry after \d+ s, store: deny_cache/,
        'the log says who refused';
};

subtest 'nobody is refused whom Redis would admit' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 1h;
        location / { sliding_limit zone=short max=3 window=2s key=$arg_k fallback=none; empty_gif; }
END
    my ($passed, $remembered, $wrong) = (0, 0, 0);
    my ($start, $enough, $end) = (time, time + 8, time + 120);

    # what has left the window before a request is sent cannot refuse it
    while (time < $enough || (time < $end && ($passed < 6 || $remembered <= 20))) {
        my $in_window = $redis->cli('EVAL', <<'LUA', 1, 'rate_limit:short:a');
            local time = redis.call('TIME')
            local now = time[1] * 1000000 + time[2]
            return redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', now - 2000000), '+inf')
LUA
        my ($status, $store) = $nginx->try('/?k=a', 'X-Store');

        $passed++ if $status == 200;
        $remembered++ if $store eq 'deny_cache';
        $wrong++ if $store eq 'deny_cache' && $in_window < 3;
    }

    cmp_ok $passed, '>=', 6, sprintf '%d passed in %.0f s', $passed, time - $start;
    cmp_ok $remembered, '>', 20, "$remembered were refused from memory";
    is $wrong, 0, 'none of them while there was room';
};

subtest 'another max or cost is another question' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 1h;
        location / { sliding_limit zone=tiers max=$arg_max cost=$arg_cost window=600s key=$arg_k fallback=none; empty_gif; }
END
    is decided_by($nginx, 4, '/?k=a&max=3'), '-redis -redis -redis redis', 'three pass';
    is decided_by($nginx, 2, '/?k=a&max=5'), '-redis -redis', 'of whom more may pass, more do';
    is decided_by($nginx, 2, '/?k=a&max=3'), 'deny_cache deny_cache';
    is decided_by($nginx, 2, '/?k=b&max=10&cost=8'), '-redis redis';
    is decided_by($nginx, 3, '/?k=b&max=10&cost=1'), '-redis -redis redis', 'what costs less may pass';
    is decided_by($nginx, 1, '/?k=b&max=10&cost=8'), 'deny_cache';
    is decided_by($nginx, 1, '/?k=b&max=10&cost=0'), '-redis', 'who only looks passes';
};

subtest 'of several limits one is enough, and nothing is charged' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 1h;
        location / {
            sliding_limit zone=few max=2 window=600s key=$arg_k fallback=none;
            sliding_limit zone=many max=9 window=600s key=$arg_k fallback=none;
            empty_gif;
        }
END
    is decided_by($nginx, 6, '/?k=a'), '-redis -redis redis deny_cache deny_cache deny_cache';
    is $redis->cli('ZCARD', 'rate_limit:many:a'), 2, 'only those that passed';
    is_deeply [$nginx->try('/?k=a', qw(X-RateLimit-Limit))], [429, 2], 'the one that refused is shown';
};

# Where an answer could change before its time, or a refusal counts: every request
# is asked about.
my %not_used = (
    'count=denied' => 'sliding_limit zone=denied max=2 window=600s key=$arg_k fallback=none count=denied;',
    'beside count=denied' => 'sliding_limit zone=beside max=2 window=600s key=$arg_k fallback=none;
        sliding_limit zone=hammers max=9 window=600s key=$arg_k fallback=none count=denied;',
    'count_status' => 'sliding_limit zone=status max=2 window=600s key=$arg_k fallback=none count_status=200;',
    'two stores' => 'sliding_limit zone=one max=2 window=600s key=$arg_k fallback=none;
        sliding_limit zone=other max=9 window=600s key=$arg_k fallback=none store=memory;',
    'two phases' => 'sliding_limit zone=early max=2 window=600s key=$arg_k fallback=none;
        sliding_limit zone=late max=9 window=600s key=$arg_k fallback=none phase=precontent;',
    'deny_cache off' => 'sliding_limit_deny_cache off;
        sliding_limit zone=off max=2 window=600s key=$arg_k fallback=none;',
);

for my $case (sort keys %not_used) {
    my $nginx = nginx("sliding_limit_deny_cache 1h; location / { $not_used{$case} empty_gif; }");

    is decided_by($nginx, 5, '/?k=a'), '-redis -redis redis redis redis', "not used: $case";
}

{
    my $nginx = nginx('sliding_limit_deny_cache 1h;
        location / { sliding_limit zone=dry max=1 window=600s key=$arg_k fallback=none dry_run; empty_gif; }');

    is decided_by($nginx, 4, '/?k=a'), '-redis -redis -redis -redis', 'not used: a dry run';
}

subtest 'a zone that is counted differently elsewhere is not remembered here' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 1h;
        location /a { sliding_limit zone=shared max=2 window=600s key=$arg_k fallback=none; empty_gif; }
        location /b { sliding_limit zone=shared max=2 window=600s key=$arg_k fallback=none count_status=500; empty_gif; }
END
    is decided_by($nginx, 4, '/a?k=a'), '-redis -redis redis redis';
};

subtest 'a reset behind its back is noticed after the time, by all' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 500ms;
        location / { sliding_limit zone=reset max=2 window=600s key=$arg_k fallback=none; empty_gif; }
END
    is decided_by($nginx, 3, '/?k=a'), '-redis -redis redis';
    $redis->cli('DEL', 'rate_limit:reset:a');
    sleep 1;
    is decided_by($nginx, 3, '/?k=a'), '-redis -redis redis', 'who is admitted ends it for the others';
};

subtest 'locations with different times share what is remembered' => sub {
    my $nginx = nginx(<<'END');
        location /long { sliding_limit_deny_cache 1h; sliding_limit zone=times max=1 window=600s key=$arg_k fallback=none; empty_gif; }
        location /short { sliding_limit_deny_cache 1ms; sliding_limit zone=times max=1 window=600s key=$arg_k fallback=none; empty_gif; }
END
    is decided_by($nginx, 3, '/long?k=a'), '-redis redis deny_cache';
    sleep 0.05;
    is decided_by($nginx, 1, '/short?k=a'), 'redis', 'it is too old for one';
    is decided_by($nginx, 1, '/long?k=a'), 'deny_cache', 'but not for the other';
};

subtest 'a reload keeps what is remembered, unless the limit has changed' => sub {
    my $nginx = nginx(<<'END');
        sliding_limit_deny_cache 1h;
        location / { sliding_limit zone=reload max=1 window=600s key=$arg_k fallback=none; empty_gif; }
END
    is decided_by($nginx, 3, '/?k=a'), '-redis redis deny_cache';

    reload($nginx);
    is decided_by($nginx, 1, '/?k=a'), 'deny_cache';
};

# ---- a refusal belongs to the store that gave it

{
    my $other = start_redis();
    my ($port, $other_port) = ($redis->port, $other->port);
    my $line = sub { "sliding_limit_redis redis://127.0.0.1:$_[0] timeout=10s connect_timeout=5s;" };

    # a zone for each case, so that counts of earlier cases are none of it
    my $zones = 0;
    my $limit = sub { sprintf <<'END', $zones, $_[0] // '' };
        sliding_limit_deny_cache 1h;
        location / { sliding_limit zone=moved%d max=1 window=600s key=$arg_k fallback=none %s; empty_gif; }
END

    # [what is changed, http before, http after, parameters of the limit before, after]
    my @elsewhere = (
        ['another port', $line->($port), $line->($other_port)],
        ['another database', $line->($port), $line->("$port/1")],
        ['another prefix', $line->($port), $line->("$port prefix=other")],
        ['another name that limits refer to',
            ($line->("$port name=a") . $line->("$other_port name=b")) x 2, 'store=a', 'store=b'],
        ['the same name for another Redis', $line->("$port name=a"), $line->("$other_port name=a"), ('store=a') x 2],
    );

    for my $case (@elsewhere) {
        my ($what, $before, $after, @limits) = @$case;

        subtest "a reload with $what: that store is asked" => sub {
            $zones++;
            my $nginx = nginx($limit->($limits[0]), http => $before);

            is decided_by($nginx, 3, '/?k=a'), '-redis redis deny_cache', 'refused from memory';
            reload($nginx, $limit->($limits[1]), http => $after);
            is decided_by($nginx, 3, '/?k=a'), '-redis redis deny_cache', 'it decides, and is remembered itself';

            reload($nginx, $limit->($limits[0]), http => $before);
            is decided_by($nginx, 1, '/?k=a'), 'deny_cache', 'the first store still refuses when it is back';
            is $nginx->bad_lines, '';
        };
    }

    my @same = (
        ['other times and connections', $line->($port),
            "sliding_limit_redis redis://127.0.0.1:$port timeout=9s connect_timeout=4s connections=3;"],
        ['a default that is written out', $line->($port), $line->("$port/0 prefix=rate_limit")],
        ['another name for the same Redis', $line->("$port name=a"), $line->("$port name=b"), 'store=a', 'store=b'],
    );

    for my $case (@same) {
        my ($what, $before, $after, @limits) = @$case;

        subtest "a reload with $what: refusals are kept" => sub {
            $zones++;
            my $nginx = nginx($limit->($limits[0]), http => $before);

            is decided_by($nginx, 3, '/?k=a'), '-redis redis deny_cache', 'refused from memory';
            reload($nginx, $limit->($limits[1]), http => $after);
            is decided_by($nginx, 1, '/?k=a'), 'deny_cache', 'still';
            is $nginx->bad_lines, '';
        };
    }

    subtest 'from Redis to memory and back' => sub {
        $zones++;
        my $nginx = nginx($limit->(), http => $line->($port));

        is decided_by($nginx, 3, '/?k=a'), '-redis redis deny_cache', 'refused from memory';
        reload($nginx, $limit->('store=memory'), http => $line->($port));
        is decided_by($nginx, 3, '/?k=a'), '-memory memory memory', 'another count, and no refusal of Redis';
        reload($nginx, $limit->(), http => $line->($port));
        is decided_by($nginx, 1, '/?k=a'), 'deny_cache', 'the refusal of Redis';
    };

    subtest 'old workers go on with the refusals of their store while new ones have those of another' => sub {
        $zones++;
        my $nginx = nginx($limit->(), http => $line->($port), workers => 1);

        is decided_by($nginx, 3, '/?k=a'), '-redis redis deny_cache', 'the old store has refused a';

        # requests that the old worker has begun to read, and finishes when it is told to
        my %begun = map { $_ => begin_request($nginx->port, "GET /?k=$_ HTTP/1.1\r\n") } qw(a b);
        my $finish = sub {
            my ($key) = @_;

            print { $begun{$key} } "Host: test\r\n\r\n";
            return answer_on($begun{$key});
        };

        # the worker has read them when it answers somebody who came later
        is decided_by($nginx, 1, '/?k=a'), 'deny_cache';
        $nginx->configure(config($limit->(), http => $line->($other_port), workers => 1));
        $nginx->reload;
        wait_until { $nginx->error_log =~ /gracefully shutting down/ } 20, 'the old worker to take no more connections';
        is decided_by($nginx, 3, '/?k=b'), '-redis redis deny_cache', 'the new store has refused b';

        is $finish->('a'), '429 deny_cache', 'the old worker knows of a';
        is $finish->('b'), '200 redis', 'and nothing of b';
        is $nginx->bad_lines, '';
    };
}

# ---- a request that nginx has refused for want of an answer, and that Redis counts too late

# A location whose only room such a request takes until it is taken back.
my $CLOSED = <<'END';
    keepalive_timeout 600s;
    sliding_limit_deny_cache 1h;
    sliding_limit_on_error deny;
    location / { sliding_limit zone=closed max=1 window=600s key=$arg_k fallback=none; empty_gif; }
END

subtest 'what Redis refuses because of it before it is taken back is not remembered' => sub {
    my $stopped = start_redis();
    my $nginx = nginx($CLOSED, workers => 1,
        http => 'sliding_limit_redis redis://127.0.0.1:' . $stopped->port . ' timeout=4s connect_timeout=20s;');
    my @clients = map { begin_request($nginx->port, '') } 1 .. 2;

    wait_until { decided_by($nginx, 1, '/?k=up') eq '-redis' } 20, 'the store';
    $stopped->pause;
    ask_on($clients[0], '/?k=a');
    sleep 2;
    ask_on($clients[1], '/?k=a');
    is answer_on($clients[0]), '503 none', 'the first has waited in vain';

    # Redis finds the first, the second, and then that the first does not count
    $stopped->resume;
    is answer_on($clients[1]), '429 redis', 'the second comes too late';
    wait_until { !$stopped->cli('EXISTS', 'rate_limit:closed:a') } 20, 'the first to be taken back';
    wait_until { decided_by($nginx, 1, '/?k=a') eq '-redis' } 20, 'the third to pass';
    is decided_by($nginx, 2, '/?k=a'), 'redis deny_cache', 'from then on refusals are remembered';
    is $nginx->bad_lines, '';
};

# ---- an outage that begins with requests of which nobody knows whether they are counted

# [on_error, the answer to somebody who has not been refused]
for (['pass', '-none'], ['deny', 'none'], ['local', '-memory']) {
    my ($on_error, $stranger) = @$_;

    subtest "Redis hangs, on_error $on_error: remembered refusals hold" => sub {
        my $hung = start_redis();
        my $nginx = nginx(<<"END", http => 'sliding_limit_redis redis://127.0.0.1:' . $hung->port . ' timeout=2s connect_timeout=20s;');
            sliding_limit_deny_cache 10ms;
            sliding_limit_on_error $on_error;
            location / { sliding_limit zone=hung max=1 window=600s key=\$arg_k fallback=none; empty_gif; }
END

        wait_until { decided_by($nginx, 1, '/?k=up') =~ /redis/ } 20, 'the store';
        for my $key (qw(a b)) {
            is decided_by($nginx, 1, "/?k=$key"), '-redis', "$key passes";
            like decided_by($nginx, 1, "/?k=$key"), qr/^redis$/, 'and is refused';
        }

        sleep 0.1;
        $hung->pause;
        is decided_by($nginx, 1, '/?k=a'), 'deny_cache', 'one of them has waited in vain, and stays refused';
        is decided_by($nginx, 1, '/?k=c'), $stranger, 'somebody else';
        is decided_by($nginx, 2, '/?k=c'), join(' ', ($stranger =~ s/^-memory/memory/r) x 2), 'again';
        is decided_by($nginx, 3, "/?k=$_"), 'deny_cache deny_cache deny_cache', "$_ stays refused" for qw(a b);
        is $nginx->bad_lines, '';
    };
}

subtest 'load on denied clients: about one script call for each, second and server' => sub {
    my $keys = 100;
    my $nginx = nginx(<<'END', main => 'worker_rlimit_nofile 4096;');
        location / { sliding_limit zone=flood max=1 window=600s key=$arg_k fallback=none; empty_gif; }
END
    $nginx->try("/?k=$_") for 1 .. $keys;
    calls();

    my $start = time;
    my $load = start_load(clients => 8, requests => 4000, ports => [ $nginx->port ],
        path => sub { '/?k=' . (1 + ($_[0] * 13 + $_[1]) % $keys) });
    my @answers = $load->finish;
    my $seconds = time - $start;
    my $calls = calls();

    is summary(@answers), '429:32000', 'all are refused';
    cmp_ok $calls, '<=', 1.25 * $keys * ($seconds + 1), sprintf '%d script calls in %.1f s', $calls, $seconds;
    cmp_ok $calls, '<', @answers / 2, 'by far fewer than requests';
    # several of them may be one call
    cmp_ok scalar(grep { $_->{store} eq 'redis' } @answers), '>=', $keys, 'but it is asked about each';
    is $nginx->bad_lines, '';
};

done_testing();
