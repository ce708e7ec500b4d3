# What answers is broken, hostile, or no Redis at all: requests pass, the worker
# lives, memory stays where it was, and with a healthy answer all is well again.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::FakeRedis qw(numbers read_command start_fake_redis);
use SlidingLimit::Servers qw(start_nginx get wait_until);
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

my $GOOD = SlidingLimit::FakeRedis::ADMITTED;

# What nobody waits for takes less, also on a busy machine.
my $PATIENCE = 8;

# Seconds for what is certain to come.
my $SOON = 30;

sub nginx_for {
    my ($fake, $timeout, $connect_timeout) = @_;
    $timeout ||= '200ms';
    $connect_timeout ||= '5s';
    return start_nginx(<<'END', http => "sliding_limit_redis redis://127.0.0.1:${\ $fake->port} timeout=$timeout connect_timeout=$connect_timeout;");
    add_header X-Status $sliding_limit_status always;
    location / { sliding_limit zone=nonsense max=100 window=60s key=$arg_k; empty_gif; }
END
}

sub ask {
    my ($nginx) = @_;
    my $start = time;
    my ($status, $headers) = get($nginx->port, '/?k=a');
    return ($status, $headers->{'x-status'} // '-', time - $start);
}

sub memory_of {
    my ($pid) = @_;
    open my $file, '<', "/proc/$pid/status" or die $!;
    return (join '', <$file>) =~ /^VmRSS:\s+(\d+)/m ? $1 : 0;
}

# [what, answer to a check, log line expected]
my @nonsense = (
    ['garbage', "HTTP/1.1 200 OK\r\n\r\nhello\r\n", qr/is down: Protocol error/],
    ['a string', "\$5\r\nhello\r\n", qr/not what the script returns/],
    ['an integer', ":1\r\n", qr/not what the script returns/],
    ['nil', "\$-1\r\n", qr/not what the script returns/],
    ['a nil array', "*-1\r\n", qr/not what the script returns/],
    ['an empty string', "\$0\r\n\r\n", qr/not what the script returns/],
    ['too few numbers', numbers((1) x 3), qr/not what the script returns/],
    ['too many numbers', numbers((1) x 6), qr/not what the script returns/],
    ['a byte too few', numbers((1) x 4) =~ s/32/31/r =~ s/.\r\n\z/\r\n/sr, qr/not what the script returns/],
    ['a byte too many', numbers((1) x 4) =~ s/32/33/r =~ s/\r\n\z/x\r\n/r, qr/not what the script returns/],
    ['negative numbers', numbers(1, -7, 1, 1), qr/not what the script returns/],
    ['a max below 0 that was given', numbers((1) x 4, -1), qr/not what the script returns/],
    ['neither yes nor no', numbers(4, 1, 1, 1), qr/not what the script returns/],
    ['less than no', numbers(-2, 1, 1, 1), qr/not what the script returns/],
    ['an array of numbers', "*4\r\n" . ":1\r\n" x 4, qr/not what the script returns/],
    ['nested arrays', "*4\r\n*1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", qr/not what the script returns/],
    ['very deep nesting', "*1\r\n" x 1000, qr/unlike any that was asked for/],
    ['an array of 4294967295', "*4294967295\r\n", qr/is down/],
    ['an array of 2147483647', "*2147483647\r\n", qr/unlike any that was asked for/],
    ['a number that overflows', ":99999999999999999999999\r\n", qr/is down|not what/],
    ['a reply that nothing asked for', "$GOOD+OK\r\n", qr/a reply came that nothing asked for/],
    ['two replies for one', $GOOD . $GOOD, qr/a reply came that nothing asked for/],
);

for (@nonsense) {
    my ($what, $answer, $line) = @$_;

    subtest $what => sub {
        my $fake = start_fake_redis(sub { my ($socket) = @_; print $socket $answer; 1 });
        my $nginx = nginx_for($fake);
        my ($worker) = $nginx->workers;
        my $before = memory_of($worker);

        for (1 .. 3) {
            my ($status, $state, $took) = ask($nginx);
            is $status, 200, "passes ($state)";
            cmp_ok $took, '<', $PATIENCE, 'in time';
        }
        # before there is a connection nobody gets an answer
        wait_until { ask($nginx); $nginx->error_log =~ $line } $SOON, "the log to say why: $line";

        is join(',', $nginx->workers), $worker, 'the worker lives';
        cmp_ok memory_of($worker) - $before, '<', 8192, 'and has not grown';
        is $nginx->bad_lines, '';
    };
}

subtest 'something else than numbers while the connection is set up' => sub {
    my $fake = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        print $socket "+OK\r\n" while read_command($socket);
    });
    my $nginx = nginx_for($fake);

    is +(ask($nginx))[1], 'FAILED_OPEN', 'passes';
    wait_until { $nginx->error_log =~ /its answers are not those of a Redis/ } 5, 'the log to say why';
    is $nginx->bad_lines, '';
};

subtest 'a reply that nothing asked for, on an idle connection' => sub {
    my $fake = start_fake_redis(sub {
        my ($socket) = @_;
        print $socket $GOOD;
        sleep 0.2;
        print $socket "+surprise\r\n";
        1;
    });
    my $nginx = nginx_for($fake, '5s');
    my ($worker) = $nginx->workers;

    is +(ask($nginx))[1], 'PASSED';
    wait_until { $nginx->error_log =~ /a reply came that nothing asked for/ } $SOON, 'the log line';
    is join(',', $nginx->workers), $worker, 'the worker lives';
};

subtest 'a bulk header of one gigabyte, and data without end' => sub {
    my $fake = start_fake_redis(sub {
        my ($socket) = @_;
        print $socket "\$1073741824\r\n";
        my $sent = 0;
        while ($sent < 256 * 1024 * 1024) {
            my $n = syswrite $socket, 'x' x 65536 or return 0;
            $sent += $n;
        }
        0;
    });
    my $nginx = nginx_for($fake);
    my ($worker) = $nginx->workers;
    my $before = memory_of($worker);

    is +(ask($nginx))[0], 200;
    wait_until { ask($nginx); $nginx->error_log =~ /the reply is too large/ } $SOON, 'the log line';
    cmp_ok memory_of($worker) - $before, '<', 8192, 'memory has not grown';
};

subtest 'replies in slices of one byte' => sub {
    my $fake = start_fake_redis(sub {
        my ($socket) = @_;
        for my $byte (split //, $GOOD) {
            syswrite $socket, $byte;
            sleep 0.002;
        }
        1;
    });
    my $nginx = nginx_for($fake, '5s');

    is +(ask($nginx))[1], 'PASSED' for 1 .. 5;
    is $nginx->bad_lines, '';
};

subtest 'a reset in mid-reply' => sub {
    my $fake = start_fake_redis(sub {
        my ($socket, $n) = @_;
        if ($n == 1) {
            print $socket $GOOD;
            return 1;
        }
        print $socket substr $GOOD, 0, 20;
        setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
        close $socket;
        0;
    });
    my $nginx = nginx_for($fake, '20s');

    is +(ask($nginx))[1], 'PASSED', 'first';
    my ($status, $state, $took) = ask($nginx);
    is $state, 'FAILED_OPEN', 'the one that was cut off';
    cmp_ok $took, '<', $PATIENCE, 'without waiting for the timeout';
    wait_until { (ask($nginx))[1] eq 'PASSED' } $SOON, 'the connection to be replaced';
    is $nginx->bad_lines, '';
};

subtest 'silence: half-open, nothing ever comes back' => sub {
    my $fake = start_fake_redis(sub { 1 });
    my $nginx = nginx_for($fake, '100ms');

    my ($status, $state, $took) = ask($nginx);
    is "$status $state", '200 FAILED_OPEN';
    cmp_ok $took, '>', 0.08, 'after the timeout';
    cmp_ok $took, '<', $PATIENCE;
    wait_until { ask($nginx); $nginx->error_log =~ /is down: it does not reply/ } $SOON, 'the connection to be given up';
    is $nginx->bad_lines, '';
};

subtest 'too many clients' => sub {
    my $fake = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        print $socket "-ERR max number of clients reached\r\n";
    });
    my $nginx = nginx_for($fake);

    is +(ask($nginx))[0], 200 for 1 .. 5;
    wait_until { $nginx->error_log =~ /is down: (?:ERR max number of clients|Server closed|Connection reset)/ } $SOON,
        'the log line';
    is $nginx->bad_lines, '';
};

subtest 'a server that accepts and says nothing' => sub {
    my $fake = start_fake_redis(undef, on_connect => sub { sleep 30 });
    my $nginx = nginx_for($fake, '100ms', '200ms');

    wait_until { $nginx->error_log =~ /is down: no answer within connect_timeout/ } $SOON, 'the log line';
    my ($status, $state, $took) = ask($nginx);
    is "$status $state", '200 FAILED_OPEN';
    cmp_ok $took, '<', $PATIENCE;
    is $nginx->bad_lines, '';
};

subtest 'a server that closes every connection right away is not stormed' => sub {
    my $log = File::Temp->new;
    my $fake = start_fake_redis(undef, on_connect => sub {
        open my $out, '>>', $log or die $!;
        syswrite $out, sprintf("%.3f\n", time);
    });
    my $nginx = nginx_for($fake);

    # one check for all: thousands of lines would have to wait for whoever reads them
    my %statuses;
    my $end = time + 3;
    $statuses{ (ask($nginx))[0] }++ while time < $end;
    my @attempts = do { local @ARGV = $log; <> };
    is join(' ', keys %statuses), 200, 'all requests pass';
    cmp_ok scalar @attempts, '<', 30, 'a few attempts in three seconds'
        or diag(@attempts, $nginx->error_log);
    cmp_ok scalar @attempts, '>', 1, 'but not only one';
};

done_testing;
