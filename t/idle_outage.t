# Redis goes away and comes back while nobody waits for it: the log says so once for all
# workers, and nothing that is not so.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(get free_port start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

use constant WORKERS => 4;

sub nginx_for {
    my ($port, $options) = @_;

    return start_nginx(<<'END', workers => WORKERS,
    add_header X-Status $sliding_limit_status always;
    location / { sliding_limit zone=wide max=1000000 window=600s key=$arg_k; empty_gif; }
END
        http => "sliding_limit_redis redis://127.0.0.1:$port " . ($options // 'timeout=1s connect_timeout=2s') . ';');
}

# All that the log says about Redis, without what is there for the curious only.
sub lines { map { /\[(?:warn|error|crit)\] .*?sliding_limit: (redis .*)/ ? $1 : () } split /\n/, $_[0]->error_log }

# As many connections as workers, and old enough to be replaced at once.
sub all_connected {
    my ($redis) = @_;
    wait_until { $redis->cli('CLIENT', 'LIST') =~ /(?:cmd=evalsha.*){${\ WORKERS}}/s } 20, 'all workers';
    sleep 1.2;
}

sub outage {
    my ($nginx, $redis, $end, $reason) = @_;
    all_connected($redis);
    $end->();
    wait_until { grep { /is down/ } lines($nginx) } 20, 'the workers to notice';
    # all of them, and some probes
    sleep 1.5;
    my @lines = lines($nginx);
    is @lines, 1, 'one line';
    like $lines[0], qr/^redis "\S+" is down: $reason$/, 'with the reason';
}

sub is_back {
    my ($nginx) = @_;
    wait_until { grep { /is back/ } lines($nginx) } 20, 'its return';
    sleep 1;
    my (undef, @rest) = map { s/"\S+"/-/r } lines($nginx);
    like "@rest", qr/^redis - is back after \d+ ms$/, 'and one when it is back';
    is $nginx->bad_lines, '';
}

for my $round (1 .. 3) {
    subtest "killed and started again ($round)" => sub {
        my $redis = start_redis();
        my $nginx = nginx_for($redis->port);
        # reset is what was under way in that moment
        outage($nginx, $redis, sub { $redis->kill9 }, 'Connection (?:refused|reset by peer)');
        $redis->start;
        is_back($nginx);
    };
}

subtest 'shut down and started again' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);
    outage($nginx, $redis, sub { $redis->stop }, 'Connection (?:refused|reset by peer)');
    $redis->start;
    is_back($nginx);
};

subtest 'it hangs, and goes on' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, 'timeout=100ms connect_timeout=500ms');
    outage($nginx, $redis, sub { $redis->pause }, 'no answer within connect_timeout');
    $redis->resume;
    is_back($nginx);
};

# Whoever listens there for a moment closes what comes, as a server does that is about to
# end: connections are reset before the first answer, which TLS is not to blame for.
subtest 'connections are reset while it restarts' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);
    all_connected($redis);
    $redis->kill9;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $redis->port, Listen => 64,
        ReuseAddr => 1, Timeout => 1) or die $!;
    for (my $end = time + 3; time < $end;) {
        my $client = $listener->accept or next;
        # what has been sent and not read makes it a reset
        sysread $client, my $some, 1;
        close $client;
    }
    close $listener;
    $redis->start;
    wait_until { grep { /is back/ } lines($nginx) } 20, 'its return';
    my @lines = lines($nginx);
    is scalar(grep { /TLS/ } @lines), 0, 'nobody speaks of TLS';
    is scalar(grep { /is down: Connection re(?:set|fused)/ } @lines), 1, 'but of what it was';
    is scalar(grep { /check/ } @lines), 0, 'and of no check, as there was none';
};

subtest 'connections that Redis closes are replaced without a word' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);

    for (1 .. 3) {
        all_connected($redis);
        $redis->cli('CLIENT', 'KILL', 'TYPE', 'normal');
        all_connected($redis);
    }
    is_deeply [lines($nginx)], [], 'nothing in the log';
    is((get($nginx->port, '/?k=a'))[1]{'x-status'}, 'PASSED', 'and counting goes on');
};

subtest 'a Redis that was never there' => sub {
    my $nginx = nginx_for(free_port());
    wait_until { lines($nginx) } 20, 'the workers to notice';
    sleep 1.5;
    is_deeply [map { s/"\S+"/-/r } lines($nginx)], ['redis - is down: Connection refused'], 'one line';
};

done_testing;
