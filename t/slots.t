# redis:// to a server that has slots, as one of a cluster has, or a proxy before several:
# what cannot be asked about together is asked about alone, and counted as exactly. Where
# the server has only a part of the keys it is the wrong one, and known to be down.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Cluster qw(slot start_cluster start_cluster_node);
use SlidingLimit::FakeRedis qw(numbers read_command start_fake_redis);
use SlidingLimit::Load qw(start_load);
use SlidingLimit::Rights qw(rules);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

sub nginx_for {
    my ($url, %with) = @_;
    my $options = delete $with{options} // 'timeout=10s connect_timeout=10s';

    return start_nginx(<<'END', workers => 2,
    add_header X-Status $sliding_limit_status always;
    keepalive_requests 1000000;
    location /five { sliding_limit zone=five max=5 window=600s key=$arg_k; empty_gif; }
    location /wide { sliding_limit zone=wide max=1000000 window=600s key=$arg_k; empty_gif; }
    location /both {
        sliding_limit zone=roomy max=100 window=600s key=$arg_k;
        sliding_limit zone=tight max=5 window=600s key=$arg_k;
        empty_gif;
    }
    location /one { sliding_limit zone=one max=1 window=600s key=$arg_k; empty_gif; }
    location /full { sliding_limit zone=full max=1 window=600s key=$arg_k; empty_gif; }
    location /one_and_full {
        sliding_limit zone=one max=1 window=600s key=$arg_k;
        sliding_limit zone=full max=1 window=600s key=$arg_full;
        empty_gif;
    }
END
        http => "sliding_limit_redis $url $options;", %with);
}

sub status_of { (get($_[0]->port, $_[1]))[1]{'x-status'} // 'no answer' }
sub lines { my ($nginx, $what) = @_; return grep { /sliding_limit: .*$what/ } split /\n/, $nginx->error_log }

# One server with all slots, which it knows to be well.
sub whole_cluster {
    my $node = start_cluster_node(@_);
    $node->cli('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    wait_until { $node->cli('CLUSTER', 'INFO') =~ /cluster_state:ok/ } 20, 'all slots to be served';
    return $node;
}

# Twenty clients over 64 connections: how many answers there are of each status.
sub twenty_clients {
    my ($nginx, $path) = @_;
    my $load = start_load(clients => 64, requests => 40, ports => [$nginx->port],
        path => sub { my ($client, $n) = @_; "$path?k=" . ($client + $n) % 20 });
    my %count;
    $count{ $_->{status} }++ for $load->finish;
    return \%count;
}

my $server = whole_cluster();
my $nginx = nginx_for('redis://127.0.0.1:' . $server->port);

subtest 'twenty clients at once are counted exactly' => sub {
    my $count = twenty_clients($nginx, '/five');
    is $count->{200}, 100, 'five of each pass';
    is join(' ', map { $server->cli('ZCARD', "rate_limit:five:$_") } 0 .. 19), join(' ', (5) x 20), 'and are counted';
};

subtest 'requests with several limits, too' => sub {
    my $count = twenty_clients($nginx, '/both');
    is $count->{200}, 100, 'five of each pass';
    is join(' ', map { $server->cli('ZCARD', "rate_limit:tight:$_") } 0 .. 19), join(' ', (5) x 20), 'are counted';
    wait_until { !grep { $server->cli('ZCARD', "rate_limit:roomy:$_") != 5 } 0 .. 19 } 10,
        'what one limit refuses to be taken back from the other';
    pass 'by both limits';
};

subtest 'it is said once, for all workers' => sub {
    my @lines = lines($nginx, 'slots');
    is @lines, 1, 'one line';
    like $lines[0], qr{redis "redis://127\.0\.0\.1:\d+" refuses calls .*use cluster://}, 'with what to do about it';
    is scalar(lines($nginx, 'is down')), 0, 'and it is not down';
    is scalar(lines($nginx, 'failed')), 0, 'no check has failed';
    is $nginx->bad_lines, '';
};

# Each is counted by the first limit until the second has refused it: so others are
# refused by the first, but not for long.
subtest 'no refusal is remembered because of a count that is taken back' => sub {
    is status_of($nginx, '/full?k=used'), 'PASSED';
    my @answers = start_load(clients => 16, requests => 50, ports => [$nginx->port],
        path => '/one_and_full?k=revised&full=used')->finish;
    is scalar(grep { $_->{status} == 200 } @answers), 0, 'nobody passes';
    wait_until { $server->cli('ZCARD', 'rate_limit:one:revised') == 0 } 10, 'all to be taken back';
    is status_of($nginx, '/one?k=revised'), 'PASSED', 'and the next may';
};

subtest 'a user with no more rights than the documentation names' => sub {
    $server->cli('ACL', 'SETUSER', 'nginx', 'on', '>secret', rules());
    my $limited = nginx_for('redis://nginx:secret@127.0.0.1:' . $server->port);
    is status_of($limited, '/both?k=acl'), 'PASSED', 'is enough';
    is scalar(lines($limited, 'slots')), 1, 'also to find out';
};

subtest 'a server that has slots from one moment to the next' => sub {
    my $plain = start_redis();
    my $port = $plain->port;
    my $to_both = nginx_for("redis://127.0.0.1:$port");
    is status_of($to_both, '/five?k=before'), 'PASSED';
    is scalar(lines($to_both, 'slots')), 0;

    $plain->stop;
    my $slotted = start_redis(port => $port, args => ['--cluster-enabled', 'yes',
        '--cluster-port', SlidingLimit::Servers::free_port(), '--cluster-config-file', 'nodes.conf']);
    $slotted->cli('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    my $in_a_row = 0;
    wait_until {
        $in_a_row = status_of($to_both, '/wide?k=again') eq 'PASSED' ? $in_a_row + 1 : 0;
        $in_a_row >= 20;
    } 30, 'both workers to count again';
    my $count = twenty_clients($to_both, '/five');
    is $count->{200}, 100, 'counts exactly';
};

# A proxy: it takes keys of the set-up in one call, and nobody else's.
my $checks_of = sub {
    my ($error, $probe_fails) = @_;
    my %seen;

    return start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        while (my ($command, @args) = read_command($socket)) {
            my ($sha, $keys, $first) = @args;
            if ($command ne 'EVALSHA') {
                print $socket $command eq 'SCRIPT' ? '$40' . "\r\n" . 'a' x 40 . "\r\n" : "+OK\r\n";
            }
            elsif ($keys > 1 && ($first !~ /^rate_limit::/ || $probe_fails)) {
                print $socket "-$error\r\n";
            }
            elsif ($keys > 1) {
                print $socket numbers((1) x 6, 1_790_000_000_000_000);
            }
            else {
                my $used = ++$seen{$first};
                print $socket numbers($used <= 5 ? (2, $used) : (0, 5), 60_000_000, 1_790_000_000_000_000);
            }
        }
    });
};

for my $error ("CROSSSLOT Keys in request don't hash to the same slot", 'ERR no call with several keys') {
    subtest "a proxy that answers to several keys: $error" => sub {
        my $proxy = $checks_of->($error, 0);
        my $behind = nginx_for('redis://127.0.0.1:' . $proxy->port, workers => 1);
        my $count = twenty_clients($behind, '/five');
        is $count->{200}, 100, 'each is asked about again, alone, and counted once';
        is scalar(lines($behind, 'failed')), 0, 'no check has failed';
        is scalar(lines($behind, 'cluster://')), $error =~ /^CROSS/ ? 1 : 0, 'what is certain is said';
    };
}

subtest 'a request with several limits that is the first to find out' => sub {
    my $proxy = $checks_of->('CROSSSLOT no', 0);
    my $behind = nginx_for('redis://127.0.0.1:' . $proxy->port, workers => 1);
    is join(' ', map { status_of($behind, '/both?k=first') } 1 .. 6),
        join(' ', ('PASSED') x 5, 'REJECTED'), 'is asked about again, each limit alone';
    is scalar(lines($behind, 'failed')), 0, 'no check has failed';
};

subtest 'a proxy that says so when a connection is set up' => sub {
    my $proxy = $checks_of->('ERR no call with several keys', 1);
    my $behind = nginx_for('redis://127.0.0.1:' . $proxy->port, workers => 1);
    wait_until { lines($behind, 'cluster://') } 20, 'the connection to be set up';
    is join(' ', map { status_of($behind, '/both?k=told') } 1 .. 6),
        join(' ', ('PASSED') x 5, 'REJECTED'), 'is asked about each limit alone';
    is scalar(lines($behind, 'cluster://')), 1, 'which is said';
};

subtest 'one error by chance when a connection is set up is no proof of slots' => sub {
    my $moody = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        my $of_two = 0;
        while (my ($command, @args) = read_command($socket)) {
            my $keys = $command eq 'EVALSHA' ? $args[1] : 0;
            print $socket $command ne 'EVALSHA' ? "+OK\r\n"
                : $keys == 2 && ++$of_two == 1 ? "-ERR just this once\r\n"
                : numbers((2, 1, 60_000_000) x $keys, 1_790_000_000_000_000);
        }
    });
    my $nginx = nginx_for('redis://127.0.0.1:' . $moody->port);
    is status_of($nginx, '/both?k=moody'), 'PASSED' for 1 .. 5;
    is scalar(lines($nginx, $_)), 0, "nothing of it in the log: $_" for 'different slots', 'is down';
};

subtest 'one server of several: it is down, and stays down' => sub {
    my $cluster = start_cluster(primaries => 3);
    my ($here) = grep { $cluster->owner('rate_limit::probe') == $_ } $cluster->nodes;
    my $wrong = nginx_for('redis://127.0.0.1:' . $here->port, options => 'timeout=2s connect_timeout=2s');
    my (@near, $far);
    for (my $i = 0; @near < 5 || !$far; $i++) {
        if ($cluster->owner("rate_limit:wide:$i") == $here) { push @near, $i } else { $far //= $i }
    }

    is status_of($wrong, "/wide?k=$_"), 'PASSED', 'keys that are there are counted' for @near[0 .. 2];
    is status_of($wrong, "/wide?k=$far"), 'FAILED_OPEN', 'one that is not';
    is status_of($wrong, "/wide?k=$near[3]"), 'FAILED_OPEN', 'is enough for all';

    # with probes meanwhile, of this and of the other worker
    my $end = time + 12.5;
    my %status;
    while (time < $end) {
        $status{ status_of($wrong, "/wide?k=$near[4]") }++;
        sleep 0.05;
    }
    is join(' ', keys %status), 'FAILED_OPEN', 'from then on';

    my @down = lines($wrong, 'is down');
    is @down, 1, 'one line';
    my $slot = slot("rate_limit:wide:$far");
    my $to = $cluster->owner("rate_limit:wide:$far")->port;
    like $down[0], qr/\[crit\].*is down: MOVED $slot 127\.0\.0\.1:$to; .*cluster:\/\//, 'with where the key is, and what to do';
    is scalar(lines($wrong, 'is back')), 0, 'it never is back';

    is $wrong->bad_lines, '';
};

subtest 'one server of several whose set-up finds out' => sub {
    my $cluster = start_cluster(primaries => 3);
    my ($other) = grep { $cluster->owner('rate_limit::probe') != $_ } $cluster->nodes;
    my $wrong = nginx_for('redis://127.0.0.1:' . $other->port);
    wait_until { lines($wrong, 'is down') } 20, 'the workers to notice';
    sleep 0.5;
    is scalar(lines($wrong, 'is down')), 1, 'one line for all workers';
    like +(lines($wrong, 'is down'))[0], qr/\[crit\].*is down: MOVED \d+ .*cluster:\/\//;
    is status_of($wrong, '/wide?k=any'), 'FAILED_OPEN';
};

subtest 'a Redis without slots is asked as ever' => sub {
    my $plain = start_redis();
    my $usual = nginx_for('redis://127.0.0.1:' . $plain->port);
    is status_of($usual, '/both?k=usual'), 'PASSED';
    my $before = $plain->calls('evalsha');
    is status_of($usual, '/both?k=usual'), 'PASSED';
    is $plain->calls('evalsha') - $before, 1, 'two limits in one call';
    is scalar(lines($usual, 'cluster')), 0, 'nothing in the log';
};

done_testing;
