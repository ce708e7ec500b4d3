# A refused request may have a body: it is thrown away, and the connection goes
# on with the next request wherever it can.

use strict;
use warnings;
use lib 't/lib';

use IO::Select ();
use IO::Socket::INET ();
use SlidingLimit::Servers qw(start_redis start_nginx);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=10s;');
    client_max_body_size 30m;
    sliding_limit zone=bodies max=1 window=60s key=used_up;

    location / { empty_gif; }
    location /page { error_page 429 =429 /free; empty_gif; }
    location /free { sliding_limit off; empty_gif; }
END

my $body = '{"status":429,"code":"rate_limit:exceeded"}';
my $free = "GET /free HTTP/1.1\r\nHost: test\r\n\r\n";

sub open_connection {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $nginx->port) // die $!;
}

# The next answer on a connection: (status, headers, body). Without a status
# there is none.
my %unread;

sub answer {
    my ($socket, %is) = @_;
    my $end = time + 20;
    my $text = \$unread{$socket};
    $$text //= '';

    while (1) {
        if ($$text =~ /^(.*?\r\n)\r\n(.*)$/s) {
            my ($head, $rest) = ($1, $2);
            my ($status) = $head =~ m{^HTTP/1\.1 (\d+)};
            my ($length) = $head =~ /^Content-Length: (\d+)/m;
            $length = 0 if $is{head} || $status == 100;

            if (defined $length && length $rest >= $length) {
                $$text = substr $rest, $length;
                return ($status, $head, substr $rest, 0, $length);
            }
        }

        return unless time < $end && IO::Select->new($socket)->can_read($end - time);
        return unless sysread $socket, $$text, 65536, length $$text;
    }
}

sub is_refused_and_goes_on {
    my ($socket, %is) = @_;

    my ($status, $head, $content) = answer($socket, %is);
    is $status, 429, 'refused';
    like $head, qr/^Retry-After: \d+\r$/m;
    is $content, $is{head} ? '' : $is{page} ? $content : $body, 'the body';

    print $socket $free unless $is{sent};
    ($status, undef, $content) = answer($socket);
    is $status, 200, 'the next request on the connection is answered';
    like $content, qr/^GIF/, 'with its own answer';
}

{
    my $socket = open_connection();
    print $socket "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    is((answer($socket))[0], 200, 'the limit is used up');
}

subtest 'GET' => sub {
    my $socket = open_connection();
    print $socket "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    is_refused_and_goes_on($socket);
};

subtest 'HEAD: what follows the headers is the next answer' => sub {
    my $socket = open_connection();
    print $socket "HEAD / HTTP/1.1\r\nHost: test\r\n\r\n";
    is_refused_and_goes_on($socket, head => 1);
};

for my $path ('/', '/page') {
    my %is = (page => $path eq '/page');

    subtest "POST $path with a body that comes along" => sub {
        my $socket = open_connection();
        print $socket "POST $path HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello$free";
        is_refused_and_goes_on($socket, %is, sent => 1);
    };

    subtest "POST $path with a body that comes after the refusal" => sub {
        my $socket = open_connection();
        print $socket "POST $path HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n";
        my ($status) = answer($socket);
        is $status, 429, 'refused without waiting for the body';
        print $socket 'hello';
        sleep 0.1;
        print $socket "world$free";
        my (undef, undef, $content) = answer($socket);
        like $content, qr/^GIF/, 'the next request on the connection is answered';
    };

    subtest "POST $path with a body that comes in pieces" => sub {
        my $socket = open_connection();
        print $socket "POST $path HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\nab";
        for (qw(cd ef)) {
            sleep 0.1;
            print $socket $_;
        }
        is_refused_and_goes_on($socket, %is);
    };

    subtest "POST $path with 5 MB" => sub {
        my $socket = open_connection();
        my $size = 5_000_000;
        my $pid = fork // die $!;

        # written beside the reading: neither side may wait for the other
        if (!$pid) {
            print $socket "POST $path HTTP/1.1\r\nHost: test\r\nContent-Length: $size\r\n\r\n",
                'x' x $size, $free;
            close $socket;
            POSIX::_exit(0);
        }

        is_refused_and_goes_on($socket, %is, sent => 1);
        waitpid $pid, 0;
    };

    subtest "POST $path in chunks" => sub {
        my $socket = open_connection();
        print $socket "POST $path HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n",
            "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n", $free;
        is_refused_and_goes_on($socket, %is, sent => 1);
    };

    subtest "POST $path in chunks that come one by one, with a trailer" => sub {
        my $socket = open_connection();
        print $socket "POST $path HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
        for ("5\r\nhel", "lo\r\n", "3;ext=1\r\nabc\r\n0\r\n", "X-Trailer: 1\r\n\r\n") {
            sleep 0.05;
            print $socket $_;
        }
        is_refused_and_goes_on($socket, %is);
    };

    subtest "POST $path with Expect: 100-continue is refused without being invited" => sub {
        my $socket = open_connection();
        print $socket "POST $path HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        my ($status) = answer($socket);
        is $status, 429, 'no 100 before the refusal';
        print $socket "hello$free";
        my (undef, undef, $content) = answer($socket);
        like $content, qr/^GIF/, 'a body sent all the same is discarded, the connection goes on';
    };
}

subtest 'a passed request with Expect: 100-continue is invited' => sub {
    my $socket = open_connection();
    print $socket "POST /free HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    my ($status) = answer($socket);
    like $status, qr/^(100|405)$/;
};

subtest 'a refused request with Connection: close is closed' => sub {
    my $socket = open_connection();
    print $socket "POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    my ($status, $head) = answer($socket);
    is $status, 429;
    like $head, qr/^Connection: close\r$/m;
    is_deeply [ answer($socket) ], [], 'the connection ends';
};

subtest 'a client that leaves in the middle of its body does no harm' => sub {
    for (1 .. 5) {
        my $socket = open_connection();
        print $socket "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\nhello";
        is((answer($socket))[0], 429);
        close $socket;
    }
    my $socket = open_connection();
    print $socket $free;
    is((answer($socket))[0], 200);
};

is $nginx->bad_lines, '', 'no alerts in the log';

done_testing;
