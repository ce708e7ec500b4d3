# All workers know together when Redis is of no use: nobody waits for it then,
# one of them looks for its return, and all count again when it is back.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use IO::Socket::INET ();
use SlidingLimit::FakeRedis qw(start_fake_redis);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request start_redis start_nginx get wait_until);
use SlidingLimit::SlowProxy qw(start_slow_proxy);
use Test::More;
use Time::HiRes qw(sleep time);

sub nginx_for {
    my ($port, %with) = @_;
    my $timeout = delete $with{timeout} || '1s';
    my $connect_timeout = delete $with{connect_timeout} || '1s';

    return start_nginx(<<'END', workers => 2,
    # every request on a connection of its own, so that all workers have some
    keepalive_requests 1;
    add_header X-Status $sliding_limit_status always;
    add_header X-Waited $sliding_limit_time always;
    location / { sliding_limit zone=load max=1000000 window=600s key=$arg_k; empty_gif; }
END
        http => "sliding_limit_redis redis://127.0.0.1:$port timeout=$timeout connect_timeout=$connect_timeout;",
        %with);
}

# What became of a request, and how long it waited for Redis: by nginx's own
# account, as on a busy machine all takes long.
sub ask {
    my ($nginx) = @_;
    my (undef, $headers) = get($nginx->port, '/?k=a');
    return { state => $headers->{'x-status'} // 'no answer', waited => $headers->{'x-waited'} // 0 };
}

sub state_of { ask(@_)->{state} }

# How often the log says that Redis went and came, over all workers.
sub says {
    my ($nginx, $what) = @_;
    my @lines = $nginx->error_log =~ /sliding_limit: redis "\S+" is \Q$what\E/g;
    return scalar @lines;
}

sub median { (sort { $a <=> $b } @_)[@_ / 2] }

# Until every worker counts; they take connections at random.
sub all_count {
    my ($nginx) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = state_of($nginx) eq 'PASSED' ? $in_a_row + 1 : 0;
        $in_a_row >= 30;
    } 20, 'all workers to count';
}

# For so many seconds: nobody is counted, and nobody waits.
sub stays_down {
    my ($nginx, $seconds) = @_;
    my @asked;

    for (my $end = time + $seconds; time < $end; sleep 0.02) {
        push @asked, ask($nginx);
    }
    is scalar(grep { $_->{state} ne 'FAILED_OPEN' } @asked), 0, @asked . ' requests passed uncounted';
    is scalar(grep { $_->{waited} > 0.2 } @asked), 0, 'and none of them had to wait';
}

sub comes_back {
    my ($nginx) = @_;
    all_count($nginx);
    is says($nginx, 'down'), 1, 'one line when it went, for all workers';
    is says($nginx, 'back'), 1, 'and one when it was back';
}

subtest 'a Redis that answers too late each time is as good as none' => sub {
    my $redis = start_redis();
    my $proxy = start_slow_proxy($redis->port);
    my $nginx = nginx_for($proxy->port, timeout => '1s', connect_timeout => '10s');
    all_count($nginx);

    my $start = time;
    $proxy->delay(1.2);
    my @asked = map { ask($nginx) } 1 .. 50;
    my $total = time - $start;
    my $waited = grep { $_->{waited} > 0.2 } @asked;

    is $asked[0]{state}, 'FAILED_OPEN';
    cmp_ok $asked[0]{waited}, '>', 0.8, 'the first request waits for the timeout';
    cmp_ok $waited, '<', 10, "$waited of 50 in a row wait";
    cmp_ok $total, '<', 50 * 1 / 2, sprintf 'all of them take %.3f s', $total;
    is says($nginx, 'down'), 1, 'one line, not one per worker';

    # the set-up of a connection has more time and succeeds meanwhile: that is
    # not enough, as every request would wait in vain again
    my $calls = $redis->calls('evalsha');
    stays_down($nginx, 4);
    cmp_ok $redis->calls('evalsha'), '>', $calls, 'it was probed meanwhile';
    is says($nginx, 'back'), 0;

    my $outage = time - $start;
    $proxy->delay(0);
    comes_back($nginx);
    my ($ms) = $nginx->error_log =~ /is back after (\d+) ms/;
    cmp_ok $ms, '>', ($outage - $total) * 1000, "after $ms ms";
    cmp_ok $ms, '<', (time - $start) * 1000;
    is $nginx->bad_lines, '';
};

subtest 'timeouts of all workers count together' => sub {
    my $redis = start_redis();
    my $proxy = start_slow_proxy($redis->port);
    my $nginx = nginx_for($proxy->port, workers => 4, timeout => '2s', connect_timeout => '10s');
    all_count($nginx);

    # one shortly after the other: what fails at the same time counts once
    $proxy->delay(1.5);
    my @waiting = map {
        sleep 0.05;
        begin_request($nginx->port, "GET /?k=a HTTP/1.1\r\nHost: test\r\n\r\n");
    } 1 .. 20;
    my @answers = map { my $c = $_; local $/; scalar <$c> // '' } @waiting;
    is scalar(grep { /^X-Status: FAILED_OPEN\r$/m } @answers), 20, 'they have waited in vain';
    like $nginx->error_log, qr/sliding_limit: redis "\S+" is down: no replies within the timeout/;
    stays_down($nginx, 1);

    $proxy->delay(0);
    comes_back($nginx);
    is $nginx->bad_lines, '';
};

subtest 'one of four workers looks for its return, at growing intervals' => sub {
    my $log = File::Temp->new;
    my $fake = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        open my $out, '>>', $log or die $!;
        syswrite $out, time . "\n";
        while (SlidingLimit::FakeRedis::read_command($socket)) {
            print $socket "-LOADING Redis is loading the dataset in memory\r\n";
        }
    });
    my $attempts = sub { open my $in, '<', $log or die $!; my @at = sort { $a <=> $b } <$in>; @at };

    my $workers = 4;
    my $nginx = nginx_for($fake->port, workers => $workers);
    wait_until { says($nginx, 'down') && $attempts->() >= $workers } 10, 'all workers to have tried';
    my ($first) = $attempts->();
    stays_down($nginx, 4);
    my @at = $attempts->();
    my $seconds = time - $first;

    # those with which the workers start; probes after 50, 150, 350 and 750 ms
    # at the earliest; and then one every 500 ms
    my $most = $workers + 4 + ($seconds - 0.75) / 0.5;
    cmp_ok @at, '<=', $most + 1, sprintf '%d attempts in %.1f s', scalar @at, $seconds;
    cmp_ok @at, '>=', $workers + 3, 'and not too few';

    my @gaps = map { $at[$_] - $at[$_ - 1] } $workers .. $#at;
    my ($shortest) = sort { $a <=> $b } @gaps[0 .. 2];
    my $later = median(@gaps[-3 .. -1]);
    diag sprintf 'gaps: %s', join ' ', map { sprintf '%.3f', $_ } @gaps if $shortest >= 0.35 || $later <= 0.4;
    cmp_ok $shortest, '<', 0.35, sprintf 'short intervals at first: %.3f s', $shortest;
    cmp_ok $later, '>', 0.4, sprintf 'longer ones later: %.3f s', $later;

    is says($nginx, 'down'), 1, 'one line in all that time';
    is $nginx->bad_lines, '';
};

subtest 'that one worker loses its connection is no outage, as others have answers' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, workers => 4, timeout => '2s', connect_timeout => '2s');
    all_count($nginx);

    my $load = start_load(clients => 8, seconds => 7, ports => [ $nginx->port ], path => '/?k=a', pause => 0.001);
    sleep 0.5;
    my $killed = 0;
    my %since;
    for (my $end = time + 6; time < $end; sleep 0.1) {
        # the youngest, as one that is old would be replaced on the spot; but not
        # while it is being set up, which would be an attempt that fails
        my @ids = map { /^id=(\d+) .* cmd=evalsha / ? $1 : () } split /\n/, $redis->cli('CLIENT', 'LIST');
        $since{$_} ||= time for @ids;
        my ($id) = sort { $b <=> $a } grep { $since{$_} < time - 0.25 } @ids;
        $killed += $redis->cli('CLIENT', 'KILL', 'ID', $id) if $id;
    }
    my @answers = $load->finish;

    cmp_ok $killed, '>=', 5, "$killed connections killed";
    like $nginx->error_log, qr/check\(s\) failed, the last one because: /, 'some workers had trouble';
    is says($nginx, 'down'), 0, 'Redis had not'
        or diag join "\n", grep { /sliding_limit: redis/ } split /\n/, $nginx->error_log;
    is summary(grep { $_->{status} != 200 } @answers), '', 'nothing but 200: ' . summary(@answers);
    my $counted = grep { $_->{remaining} ne '-' } @answers;
    cmp_ok $counted, '>', @answers / 2, "$counted were counted";
    cmp_ok $redis->info('stats', 'total_connections_received'), '<', 200, 'no storm of connections';
    all_count($nginx);
    is $nginx->bad_lines, '';
};

# The worker at the other end of a connection; undef if that is closed again.
sub worker_at {
    my ($nginx, $socket) = @_;
    my $ends = sprintf ' 0100007F:%04X 0100007F:%04X ', $socket->peerport // return, $socket->sockport;
    open my $tcp, '<', '/proc/net/tcp' or die $!;
    my ($inode) = map { (split)[9] } grep { index($_, $ends) > 0 } <$tcp>;

    return unless $inode;
    my ($pid) = grep {
        grep { (readlink // '') eq "socket:[$inode]" } glob "/proc/$_/fd/*";
    } $nginx->workers;
    return $pid;
}

subtest 'the worker that looks for its return is killed: another one goes on' => sub {
    my $redis = start_redis();
    my $port = $redis->port;
    my $nginx = nginx_for($port, workers => 4, connect_timeout => '2s');
    all_count($nginx);
    my %old = map { $_ => 1 } $nginx->workers;

    $redis->kill9;
    wait_until { says($nginx, 'down') } 10, 'the workers to notice';
    # each of them
    sleep 0.5;

    # where probes take as long as they may
    my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port,
        Listen => 64, ReuseAddr => 1, Timeout => 20) or die $!;
    my $killed;
    until ($killed) {
        my $probe = $silent->accept or die 'waited in vain for a probe';
        $killed = worker_at($nginx, $probe) or next;
        kill 'KILL', $killed;
    }
    delete $old{$killed};

    # a new worker tries once anyway, when it starts
    my $by = 0;
    until ($old{$by}) {
        my $probe = $silent->accept or die 'waited in vain for a probe by one of the others';
        $by = worker_at($nginx, $probe) // 0;
    }
    isnt $by, $killed, 'a probe by another one';
    is state_of($nginx), 'FAILED_OPEN', 'still in vain';

    close $silent;
    $redis->start;
    comes_back($nginx);
    is_deeply [grep { !/exited on signal 9/ } split /\n/, $nginx->bad_lines], [],
        'nothing else alarming in the log';
};

# What it answers while a connection is set up does not count.
for (['all but checks', 0], ['checks only while a connection is set up', 1]) {
    my ($what, $answered) = @$_;

    subtest "a Redis that answers $what stays down" => sub {
        my $dir = File::Temp->newdir;
        my $mended = "$dir/mended";
        my $fake = start_fake_redis(undef, on_connect => sub {
            my ($socket) = @_;
            my ($checks, $owed) = (0, 0);
            while (my ($command) = SlidingLimit::FakeRedis::read_command($socket)) {
                if ($command eq 'SCRIPT') {
                    print $socket '$40' . "\r\n" . 'a' x 40 . "\r\n";
                }
                elsif ($command ne 'EVALSHA') {
                    print $socket "+OK\r\n";
                }
                elsif (++$checks <= $answered || -e $mended) {
                    print $socket SlidingLimit::FakeRedis::ADMITTED x ($owed + 1);
                    $owed = 0;
                }
                else {
                    $owed++;
                    open my $out, '>>', "$dir/unanswered" or die $!;
                    syswrite $out, 'x';
                }
            }
        });
        my $nginx = nginx_for($fake->port);

        wait_until { state_of($nginx); says($nginx, 'down') } 30, 'the workers to notice';
        my $before = -s "$dir/unanswered";
        stays_down($nginx, 3);
        cmp_ok -s "$dir/unanswered", '>', $before, 'it was probed meanwhile';
        is says($nginx, 'back'), 0;

        open my $flag, '>', $mended or die $!;
        comes_back($nginx);
        is $nginx->bad_lines, '';
    };
}

done_testing;
