# A connection to Redis that dies without a word: a NAT, a firewall or a balancer on the
# way has forgotten it. What is idle says something now and then, so that it is not
# forgotten, or found dead before a request does; and a request that finds it so is not
# followed by many others.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET ();
use SlidingLimit::Load qw(start_load);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use SlidingLimit::SlowProxy qw(start_slow_proxy);
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_KEEPALIVE);
use Test::More;
use Time::HiRes qw(sleep time);

# A connection says something after so many seconds of silence, and must have been
# answered within twice the timeout.
use constant SILENCE => 5;

sub nginx_for {
    my ($port, %with) = @_;
    my $options = delete $with{options} // '';

    return start_nginx(<<'END', workers => 2,
    add_header X-Status $sliding_limit_status always;
    add_header X-Key $pid always;
    # every request on a connection of its own, so that all workers have some
    keepalive_requests 1;
    location / { sliding_limit zone=wide max=1000000 window=600s key=$arg_k; empty_gif; }
END
        http => "sliding_limit_redis redis://127.0.0.1:$port $options;", %with);
}

sub status_of { (get($_[0]->port, '/?k=a'))[1]{'x-status'} // 'no answer' }
sub lines { my ($nginx, $what) = @_; return grep { /sliding_limit: redis .*$what/ } split /\n/, $nginx->error_log }

# Until every worker counts; they take connections at random.
sub all_count {
    my ($nginx) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = status_of($nginx) eq 'PASSED' ? $in_a_row + 1 : 0;
        $in_a_row >= 30;
    } 60, 'all workers to count';
}

# [address, seconds of silence] of each connection of nginx, as Redis has it.
sub connections {
    my ($redis) = @_;
    return map { /addr=(\S+) .*?idle=(\d+) .*?cmd=(?!client)/ ? [$1, $2] : () } split /\n/, $redis->cli('CLIENT', 'LIST');
}

my $redis = start_redis();
my $proxy = start_slow_proxy($redis->port);
my $nginx = nginx_for($proxy->port, options => 'timeout=1s connect_timeout=5s');
all_count($nginx);

subtest 'an idle connection is never silent for 10 seconds' => sub {
    my $checks = $redis->cli('ZCARD', 'rate_limit:wide:a');
    my $longest = 0;
    my @before = sort map { $_->[0] } connections($redis);
    for (my $end = time + 3 * SILENCE; time < $end; sleep 0.2) {
        for (connections($redis)) { $longest = $_->[1] if $_->[1] > $longest }
    }
    cmp_ok $longest, '<=', 9, "at most $longest";
    cmp_ok $longest, '>=', SILENCE - 2, 'and does not talk all the time';
    is_deeply [sort map { $_->[0] } connections($redis)], \@before, 'they are the same ones all the time';
    is @before, 2, 'one of each worker';
    is $redis->cli('ZCARD', 'rate_limit:wide:a'), $checks, 'nothing was counted for it';
    is scalar(lines($nginx, '.')), 0, 'and nothing is in the log';
};

subtest 'one that is forgotten while it is idle is replaced before a request meets it' => sub {
    my @before = sort map { $_->[0] } connections($redis);
    $proxy->forget;
    my $start = time;
    wait_until { lines($nginx, 'opening another') == 2 } 60, 'both workers to notice';
    my $took = time - $start;
    cmp_ok $took, '<', 10 + 10, sprintf 'after %.1f s', $took;
    sleep 0.5;

    my @status = map { status_of($nginx) } 1 .. 40;
    is scalar(grep { $_ ne 'PASSED' } @status), 0, 'all are counted';
    is scalar(lines($nginx, 'is down')), 0, 'that was no outage';
    is scalar(lines($nginx, 'failed')), 0, 'and no check failed';
    is $nginx->bad_lines, '';
};

# Of the worker that took longest: from its first request that was not counted to the next
# that was.
sub recovery_time {
    my (@answers) = @_;
    my (%failed_at, %took);

    for (@answers) {
        if ($_->{remaining} eq '-') {
            $failed_at{ $_->{key} } //= $_->{at};
        }
        elsif ($failed_at{ $_->{key} }) {
            $took{ $_->{key} } //= $_->{at} - $failed_at{ $_->{key} };
        }
    }

    return (sort { $b <=> $a } values %took)[0];
}

# The first that wait in vain find out, long before a sign of life is missed; a round may
# take longer on a busy machine, so the median counts. That it is not by luck is in the
# log: another connection was opened at once, instead of taking the server for dead.
subtest 'when requests meet it, those that come when they have waited in vain are counted' => sub {
    my $timeout = 1;
    my $used = nginx_for($proxy->port, options => "timeout=${timeout}s connect_timeout=5s");
    my @took;

    for my $round (1 .. 3) {
        all_count($used);
        # longer than what makes a connection one that has worked for a while
        sleep 1.5;
        my $load = start_load(clients => 4, seconds => $timeout + SILENCE, ports => [$used->port], path => '/?k=a',
            pause => 0.01);
        sleep 0.3;
        $proxy->forget;
        push @took, recovery_time($load->finish) // 99;
    }
    my $median = (sort { $a <=> $b } @took)[1];
    cmp_ok $median, '<', SILENCE,
        sprintf 'seconds until all are counted again: %s', join ' ', map { sprintf '%.3f', $_ } @took;
    cmp_ok scalar(lines($used, 'opening another')), '>=', 3, 'in each round another connection was opened';
    is scalar(lines($used, 'is down: it does not reply')), 0, 'and nobody took the server for dead';
    is $used->bad_lines, '';
};

subtest 'one that dies while a request waits is replaced although no other comes' => sub {
    my $alone = nginx_for($proxy->port, workers => 1, options => 'timeout=200ms connect_timeout=5s');
    all_count($alone);
    sleep 1.2;
    $proxy->forget;
    is status_of($alone), 'FAILED_OPEN', 'it waits in vain';
    wait_until { lines($alone, 'opening another') } 60, 'another connection';
    sleep 0.5;
    is status_of($alone), 'PASSED', 'the next one is counted';
};

# pidfd_open and pidfd_getfd: a look at the sockets of another process.
subtest 'the kernel watches the connection, too' => sub {
    my $direct = nginx_for($redis->port, workers => 1);
    all_count($direct);
    my ($worker) = $direct->workers;
    my $pidfd = syscall 434, $worker + 0, 0;
    plan skip_all => "no look at another process's sockets: $!" if $pidfd < 0;

    my @sockets = grep { (readlink("/proc/$worker/fd/$_") // '') =~ /^socket/ } map { m{(\d+)$} } glob "/proc/$worker/fd/*";
    my ($to_redis) = grep {
        my $peer = eval { getpeername $_ };
        $peer && length $peer == 16 && (Socket::unpack_sockaddr_in($peer))[0] == $redis->port;
    } map {
        my $fd = syscall 438, $pidfd, $_ + 0, 0;
        plan skip_all => "no look at another process's sockets: $!" if $fd < 0;
        open my $handle, '+<&=', $fd or die $!;
        $handle;
    } @sockets;

    ok $to_redis, 'the connection';
    my $option = sub { unpack 'i', getsockopt $to_redis, $_[0], $_[1] };
    is $option->(SOL_SOCKET, SO_KEEPALIVE), 1, 'asks its peer for signs of life';
    my ($idle, $interval, $count, $unacknowledged) = map { $option->(IPPROTO_TCP, $_) } 4, 5, 6, 18;
    cmp_ok $idle + $interval * $count, '<=', 10, 'and gives up after ten seconds';
    cmp_ok $unacknowledged, '<=', 10000, 'also if what it says is not acknowledged';
    cmp_ok $unacknowledged, '>', 0;
};

subtest 'unix sockets work as ever' => sub {
    my $local = start_redis(args => ['--unixsocket', '/tmp/sliding-limit-' . $$ . '.sock']);
    my $by_path = start_nginx('add_header X-Status $sliding_limit_status always;'
        . 'location / { sliding_limit zone=wide max=1000000 window=600s key=$arg_k; empty_gif; }',
        http => "sliding_limit_redis unix:/tmp/sliding-limit-$$.sock;");
    wait_until { status_of($by_path) eq 'PASSED' } 60, 'counting';
    is scalar(lines($by_path, '.')), 0, 'nothing in the log';
    unlink "/tmp/sliding-limit-$$.sock";
};

done_testing;
