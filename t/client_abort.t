# Clients that go away in the middle of a check, and many checks at once.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET;
use SlidingLimit::Servers qw(begin_request free_port start_redis start_nginx get wait_until);
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $h2_port = free_port();
my $elsewhere = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64, Timeout => 1) or die $!;
my $nginx = start_nginx(<<"END", slots => 4096,
    listen 127.0.0.1:$h2_port http2;
    keepalive_requests 100000;
    add_header X-Status \$sliding_limit_status always;
    location / { sliding_limit zone=abort max=100000 window=60s key=\$arg_k; empty_gif; }
    location /with-post-action {
        sliding_limit zone=abort max=100000 window=60s key=\$arg_k;
        post_action /after;
        empty_gif;
    }
    location /after {
        internal;
        sliding_limit off;
        proxy_pass http://127.0.0.1:${\ $elsewhere->sockport}/;
    }
END
    http => 'http2_max_concurrent_streams 2000; sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');
my ($worker) = $nginx->workers;

sub still_fine {
    is +(get($nginx->port, '/?k=fine'))[1]{'x-status'}, 'PASSED', 'others go on being counted';
    is join(',', $nginx->workers), $worker, 'the worker lives';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

# The clients send what they are told and go while Redis is silent.
sub go_away_during_check {
    my ($key, $count, $reset) = @_;

    $redis->pause;
    my @clients = map { begin_request($nginx->port, "GET /?k=$key HTTP/1.1\r\nHost: test\r\n\r\n") } 1 .. $count;
    sleep 0.3;
    if ($reset) {
        setsockopt $_, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 for @clients;
    }
    close $_ for @clients;
    sleep 0.3;
    $redis->resume;
    wait_until { $redis->cli('ZCARD', "rate_limit:abort:$key") == $count } 10, 'all to be counted';
}

get($nginx->port, '/?k=warm');

subtest 'HTTP/1.1 clients that close during the check: counted on entry' => sub {
    go_away_during_check('close', 50, 0);
    still_fine();
};

subtest 'HTTP/1.1 clients that reset the connection' => sub {
    go_away_during_check('reset', 50, 1);
    still_fine();
};

subtest 'clients that ask and go in one breath' => sub {
    for (1 .. 200) {
        my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $nginx->port) or die $!;
        setsockopt $c, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $_ % 2;
        print $c "GET /?k=breath HTTP/1.1\r\nHost: test\r\n\r\n";
        $c->flush;
        close $c;
    }
    still_fine();
};

subtest 'a request that goes elsewhere when its client leaves runs there once' => sub {
    $redis->pause;
    my @clients = map {
        begin_request($nginx->port, "GET /with-post-action?k=post HTTP/1.1\r\nHost: test\r\n\r\n")
    } 1 .. 10;
    sleep 0.3;
    close $_ for @clients;
    sleep 0.3;
    $redis->resume;
    wait_until { $redis->cli('ZCARD', 'rate_limit:abort:post') == 10 } 10, 'all to be counted';

    # they are still there, waiting for an answer from elsewhere
    my @arrived;
    while (my $c = $elsewhere->accept) {
        push @arrived, $c;
    }
    is @arrived, 10, 'each request came elsewhere once';
    print $_ "HTTP/1.0 204 No Content\r\n\r\n" for @arrived;
    undef @arrived;
    still_fine();
};

subtest 'HTTP/2 streams that are reset during the check' => sub {
    $redis->pause;
    my $pid = fork // die $!;
    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>&', \*STDOUT;
        exec 'h2load', '-n', 200, '-c', 2, '-m', 100, "http://127.0.0.1:$h2_port/?k=h2";
    }
    sleep 0.5;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    sleep 0.3;
    $redis->resume;
    wait_until { $redis->cli('ZCARD', 'rate_limit:abort:h2') == 200 } 10, 'all to be counted';
    still_fine();
};

subtest 'RST_STREAM for streams whose check is under way' => sub {
    my $frame = sub {
        my ($type, $flags, $stream, $data) = @_;
        return substr(pack('N', length $data), 1) . pack('CCN', $type, $flags, $stream) . $data;
    };
    # literal header fields without indexing
    my $field = sub { pack('C', 0) . join '', map { pack('C', length) . $_ } @_ };
    my $headers = join '', map { $field->(@$_) } [':method', 'GET'], [':scheme', 'http'],
        [':path', '/?k=rst'], [':authority', 'test'];

    $redis->pause;
    my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$h2_port") or die $!;
    print $c "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", $frame->(4, 0, 0, '');
    print $c $frame->(1, 5, 2 * $_ + 1, $headers) for 0 .. 49;
    $c->flush;
    sleep 0.3;
    print $c $frame->(3, 0, 2 * $_ + 1, pack 'N', 8) for 0 .. 49;
    $c->flush;
    sleep 0.3;
    $redis->resume;
    wait_until { $redis->cli('ZCARD', 'rate_limit:abort:rst') == 50 } 10, 'all to be counted';
    still_fine();
};

subtest 'more than 30 KB of replies in one burst, then silence: nobody is left waiting' => sub {
    my $requests = 1500;

    $redis->pause;
    my $out = $redis->dir . '/h2load';
    my $pid = fork // die $!;
    if (!$pid) {
        open STDOUT, '>', $out;
        open STDERR, '>&', \*STDOUT;
        exec 'h2load', '-n', $requests, '-c', 1, '-m', $requests, "http://127.0.0.1:$h2_port/?k=burst";
    }
    sleep 1.5;

    # all replies are there before nginx reads the first, and no more follow:
    # only a level-triggered event goes on telling it of the rest
    kill 'STOP', $worker;
    $redis->resume;
    wait_until { $redis->cli('ZCARD', 'rate_limit:abort:burst') == $requests } 10, 'Redis to have answered all';
    sleep 0.3;
    my $start = time;
    kill 'CONT', $worker;
    waitpid $pid, 0;
    my $took = time - $start;

    open my $file, '<', $out or die $!;
    like join('', <$file>), qr/status codes: $requests 2xx/, "all $requests answered";
    cmp_ok $took, '<', 5, sprintf 'in %.2f s, well within the timeout', $took;
    still_fine();
};

done_testing;
