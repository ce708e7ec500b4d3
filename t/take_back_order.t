# What is taken back follows its question on the same way, whatever becomes of the
# question: so it is executed after it, and before anything that is asked later.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Cluster qw(slot);
use SlidingLimit::FakeRedis qw(numbers read_command start_fake_redis);
use SlidingLimit::Servers qw(begin_request get start_nginx start_redis wait_until);
use SlidingLimit::SlowProxy qw(start_slow_proxy);
use File::Temp ();
use Test::More;
use Time::HiRes qw(sleep time);

sub status_of { my ($status, $headers) = get($_[0]->port, $_[1]); return join ' ', $status, $headers->{'x-status'} // '-' }

# ---- connections=N

subtest 'with several connections it goes over that of its question' => sub {
    my $redis = start_redis();
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' connections=8 timeout=5s connect_timeout=5s;');
    add_header X-Status $sliding_limit_status always;
    location / {
        sliding_limit zone=address max=1000 window=600s key=$arg_a;
        sliding_limit zone=login max=1000 window=600s key=$arg_b count_status=401;
        empty_gif;
    }
END

    my $dir = File::Temp->newdir();
    my $monitor = fork // die $!;
    if (!$monitor) {
        open STDOUT, '>', "$dir/seen" or die $!;
        exec 'redis-cli', '-p', $redis->port, 'MONITOR' or die $!;
    }
    my $seen = sub { open my $file, '<', "$dir/seen" or return ''; local $/; return <$file> // '' };
    wait_until { $seen->() =~ /^OK/ } 30, 'MONITOR';

    is status_of($nginx, "/?a=one$_&b=two$_"), '200 PASSED' for 1 .. 20;
    wait_until { (my @calls = $seen->() =~ /"EVALSHA".*rate_limit:login:two/g) >= 40 } 30, 'questions and take-backs';
    kill 'KILL', $monitor;
    waitpid $monitor, 0;

    my %ways;
    for (split /\n/, $seen->()) {
        my ($from, $n) = /\[0 (\S+)\] "EVALSHA".*rate_limit:login:two(\d+)"/i or next;
        $ways{$n}{$from}++;
    }
    is join(' ', map { $_ => scalar keys %{ $ways{$_} } } sort { $a <=> $b } keys %ways),
        join(' ', map { "$_ 1" } 1 .. 20), 'one connection for each request';
    is $redis->cli('EXISTS', map { "rate_limit:login:two$_" } 1 .. 20), 0, 'all are taken back';
    is $nginx->bad_lines, '';
};

# ---- a question that is executed late

{
    my ($late, $prompt) = (start_redis(), start_redis());
    my $proxy = start_slow_proxy($late->port);
    my $config = <<'END';
    sliding_limit_deny_cache off;
    add_header X-Status $sliding_limit_status always;
    location /open {
        sliding_limit zone=late max=1000 window=600s key=$arg_k store=late;
        sliding_limit zone=prompt max=1 window=600s key=$arg_site store=prompt;
        empty_gif;
    }
    location /closed {
        sliding_limit_on_error deny;
        sliding_limit zone=late max=1000 window=600s key=$arg_k store=late;
        empty_gif;
    }
    location /local {
        sliding_limit_on_error local;
        sliding_limit zone=here max=1 window=600s key=$arg_site store=late;
        empty_gif;
    }
END

    # a fresh one each time: a store that has failed too often is not asked
    my $nginx_for = sub {
        my $nginx = start_nginx($config, http => <<"END");
    sliding_limit_redis redis://127.0.0.1:@{[ $proxy->port ]} name=late timeout=1s connect_timeout=10s;
    sliding_limit_redis redis://127.0.0.1:@{[ $prompt->port ]} name=prompt timeout=10s connect_timeout=10s;
END
        wait_until { status_of($nginx, '/closed?k=up') eq '200 PASSED' } 30, 'the store';
        return $nginx;
    };

    # Requests whose question to the slow store arrives after its time is up, and the
    # answer a good while later.
    my $late_to = sub {
        my ($key, $expected, @paths) = @_;
        my $nginx = $nginx_for->();

        status_of($nginx, "/open?k=first&site=full") for 1 .. 2;
        $proxy->delay(1.3);
        is status_of($nginx, $_), $expected, "$_: $expected" for @paths;
        $proxy->delay(0);

        # what is asked now comes after all that
        wait_until { status_of($nginx, "/closed?k=after$key") eq '200 PASSED' } 30, 'the store to be back';
        wait_until { $late->cli('EXISTS', "rate_limit:late:after$key") } 30, 'all to be executed';
        is $nginx->bad_lines, '';
    };

    subtest 'a question that is late, and another store refuses: it does not stay counted' => sub {
        $late_to->('a', '429 REJECTED', '/open?k=refused&site=full');
        is $late->cli('EXISTS', 'rate_limit:late:refused'), 0, 'nothing is counted';
    };

    subtest 'a question that is late, and no answer means no: it does not stay counted' => sub {
        $late_to->('b', '503 FAILED_CLOSED', '/closed?k=closed');
        is $late->cli('EXISTS', 'rate_limit:late:closed'), 0, 'nothing is counted';
    };

    subtest 'a question that is late, and this nginx decides: what it refuses does not stay counted' => sub {
        my $nginx = $nginx_for->();
        $proxy->delay(1.3);
        is status_of($nginx, '/local?site=x'), '200 PASSED', 'counted here';
        is status_of($nginx, '/local?site=x'), '429 REJECTED', 'refused here';
        $proxy->delay(0);
        wait_until { status_of($nginx, '/closed?k=after') eq '200 PASSED' } 30, 'the store to be back';
        is $late->cli('ZCARD', 'rate_limit:here:x'), 1, 'the first one counts there, too';
        is $nginx->bad_lines, '';
    };

    subtest 'a question that is late, and the request has passed: it stays counted' => sub {
        $late_to->('c', '200 FAILED_OPEN', '/open?k=passed&site=free');
        is $late->cli('ZCARD', 'rate_limit:late:passed'), 1, 'it counts';
        is $prompt->cli('ZCARD', 'rate_limit:prompt:free'), 1, 'as it does elsewhere';
    };
}

# ---- taking back while a reply is being dealt with

# A cluster of one node that does not know it is one. Calls for y and z it sends to
# itself once one for x has come, so that they come again after it; then it says
# nothing more until it is told to: no to x, an error that takes several reads to y, and
# nothing to z. All others pass. What it has seen is in `seen`.
sub start_slow_node {
    my ($dir) = @_;

    return start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        my $port = $socket->sockport;
        my $is_asked = 0;
        my (@owed, %times);

        while (my ($command, @args) = read_command($socket)) {
            my ($key) = $command eq 'EVALSHA' ? $args[2] // '' : '';
            my ($name) = $key =~ /\{([xyz])\d+\}/;

            open my $seen, '>>', "$dir/seen" or die $!;
            syswrite $seen, join(' ', $command, $key, $name && ++$times{$name} > 1 ? 'again' : '', $args[3] // '') . "\n";
            push @owed, [$command, $key, $name];

            # in order: what has to wait holds up the rest
            while (@owed && !($is_asked || $owed[0][2])) {
                my ($what) = @{ shift @owed };
                print $socket $what eq 'CLUSTER' ? "-ERR not now\r\n"
                    : $what eq 'EVALSHA' ? SlidingLimit::FakeRedis::ADMITTED : "+OK\r\n";
            }
            if (!$is_asked && ($name // '') eq 'x') {
                while (($owed[0][2] // '') ne 'x') {
                    my ($what, $at, $its) = @{ shift @owed };
                    print $socket $its ? '-MOVED ' . slot($at) . " 127.0.0.1:$port\r\n" : "-ERR not now\r\n";
                }
                $is_asked = 1;
            }
            if (($times{y} // 0) > 1 && ($times{z} // 0) > 1) {
                sleep 0.01 until -e "$dir/go";
                print $socket numbers(0, 5, 60_000_000, 1_790_000_000_000_000), '-ERR ', 'y' x 30000, "\r\n";
                sleep 60;
            }
        }
    });
}

# The first key of this name on this one of two connections.
sub key_on { my ($connection, $name) = @_; return (grep { slot($_) % 2 == $connection } map { "$name$_" } 1 .. 100)[0] }

subtest 'a reply refuses, while others on its connection are overdue: no reply is lost by what is taken back' => sub {
    my $dir = File::Temp->newdir();
    my $node = start_slow_node("$dir");
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis cluster://127.0.0.1:' . $node->port . ' connections=2 timeout=6s connect_timeout=18s;');
    sliding_limit_deny_cache off;
    add_header X-Status $sliding_limit_status always;
    location /one { sliding_limit zone=one max=9 window=600s key=$arg_a; empty_gif; }
    location /two {
        sliding_limit zone=one max=9 window=600s key=$arg_a;
        sliding_limit zone=two max=9 window=600s key=$arg_b;
        empty_gif;
    }
END
    my ($worker) = $nginx->workers;
    my $seen = sub { open my $file, '<', "$dir/seen" or return ''; local $/; return <$file> // '' };
    my $send = sub { return begin_request($nginx->port, "GET $_[0] HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n") };
    my $answer = sub { my ($socket) = @_; local $/; return join ' ', (<$socket> // '') =~ m{^HTTP/1\.1 (\d+).*^X-Status: (\w+)}ms };
    my $other = key_on(1, 'other');

    wait_until { status_of($nginx, "/one?a=$other") eq '200 PASSED' && status_of($nginx, '/one?a=' . key_on(0, 'up')) eq '200 PASSED' }
        30, 'both connections';

    my @overdue = map { $send->('/one?a=' . key_on(0, $_)) } 'y', 'z';
    wait_until { $seen->() =~ /\{y/ && $seen->() =~ /\{z/ } 30, 'questions';
    # so long before it is overdue, too: the worker must be stopped by then
    sleep 3;
    my $refused = $send->("/two?a=$other&b=" . key_on(0, 'x'));
    wait_until { $seen->() =~ /\{y\d+\} again/ && $seen->() =~ /\{z\d+\} again/ } 30, 'questions to come again';
    is $answer->($_), '200 FAILED_OPEN', 'it is overdue' for @overdue;

    # when it goes on, what is overdue is so by more than another timeout
    kill 'STOP', $worker;
    open my $go, '>', "$dir/go" or die $!;
    sleep 7;
    kill 'CONT', $worker;

    is $answer->($refused), '429 REJECTED', 'the reply is what counts';
    wait_until { $seen->() =~ /one:\{$other\} +:settle$/m } 30, 'the other count to be taken back';
    unlike $nginx->error_log, qr/is down/, 'it has replied';
    is_deeply [$nginx->workers], [$worker], 'no crash';
    is $nginx->bad_lines, '';
};

done_testing;
