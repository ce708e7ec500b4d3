# Reset names the moment at which the oldest request leaves the window, however
# long the answer that carries it has taken.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET ();
use SlidingLimit::Servers qw(free_port start_redis start_nginx request wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $delay = 3;

# an application that takes its time
my $backend = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => free_port(), Listen => 10, ReuseAddr => 1) or die $!;
my $app = fork // die $!;
if (!$app) {
    while (my $client = $backend->accept) {
        sysread $client, my $request, 65536;
        sleep $delay;
        print $client "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\napp";
        close $client;
    }
    POSIX::_exit(0);
}
END { my $status = $?; kill 'KILL', $app and waitpid $app, 0 if $app; $? = $status }

my $redis = start_redis();
my $nginx = start_nginx(<<"END", http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=10s; log_format reset $sliding_limit_reset;');
    sliding_limit zone=slow max=9 window=60s key=\$uri;
    proxy_pass_request_headers off;

    location /delta { proxy_pass http://127.0.0.1:@{[ $backend->sockport ]}; }
    location /epoch {
        sliding_limit_reset epoch;
        access_log logs/epoch.log reset;
        proxy_pass http://127.0.0.1:@{[ $backend->sockport ]};
    }
END

# Its headers, and when it came. It was counted `delay` before that, or earlier.
sub slow {
    my ($path) = @_;
    my ($status, $headers) = request($nginx->port,
        "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", 30);
    is $status, 200;
    return ($headers, time);
}

subtest 'as a time of day' => sub {
    my ($headers, $came) = slow('/epoch');
    my $leaves = $came - $delay + 60;
    cmp_ok $headers->{'x-ratelimit-reset'}, '<=', $leaves + 1, 'not later than the window ends';

    my $logged;
    wait_until {
        open my $log, '<', $nginx->dir . '/logs/epoch.log';
        $logged = $log && <$log>;
    } 10, 'the log';
    cmp_ok $logged, '<=', $leaves + 1, 'neither in the log';
};

subtest 'as seconds from now' => sub {
    my ($headers) = slow('/delta');
    cmp_ok $headers->{'x-ratelimit-reset'}, '<=', 60 - $delay + 1, 'the time the answer took is not in it';
};

is $nginx->bad_lines, '', 'no alerts in the log';

done_testing;
