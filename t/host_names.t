# Host names are looked up by nginx's resolver, on every connect: a Redis that gets
# another address is found again without a reload.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::NameServer qw(start_name_server);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $first = start_redis(args => ['--bind', '127.0.0.1']);
my $second = start_redis(port => $first->port, args => ['--bind', '127.0.0.2']);
my $dns = start_name_server('redis.test' => '127.0.0.1');

sub nginx {
    my ($url, %with) = @_;
    my $parameters = $with{parameters} || 'timeout=5s connect_timeout=1s';

    return start_nginx(<<'END', workers => 2,
    add_header X-Status $sliding_limit_status always;
    location / { sliding_limit zone=names max=100000 window=600s key=$arg_k fallback=none; empty_gif; }
END
        http => "sliding_limit_redis $url $parameters; resolver 127.0.0.1:" . $dns->port . ' valid=1s ipv6=off;');
}

sub status_of { ($_[0]->try('/?k=a', 'X-Status'))[1] }

sub counts_again {
    my ($nginx) = @_;
    my $in_a_row = 0;
    wait_until { $in_a_row = status_of($nginx) eq 'PASSED' ? $in_a_row + 1 : 0; $in_a_row >= 10 } 20, 'counting';
}

subtest 'a name is looked up' => sub {
    my $nginx = nginx('redis://redis.test:' . $first->port);

    counts_again($nginx);
    cmp_ok $first->cli('ZCARD', 'rate_limit:names:a'), '>=', 10, 'counted where the name leads';
    is $nginx->bad_lines, '';
};

subtest 'another address is found on reconnect' => sub {
    my $nginx = nginx('redis://redis.test:' . $first->port);

    counts_again($nginx);
    $dns->set('redis.test' => '127.0.0.2');
    $first->stop;
    counts_again($nginx);
    cmp_ok $second->cli('-h', '127.0.0.2', 'ZCARD', 'rate_limit:names:a'), '>=', 10, 'counted at the new address';
    is $nginx->bad_lines, '';
};

subtest 'a name that does not exist: requests pass, and the log says why' => sub {
    my $nginx = nginx('redis://nowhere.test');

    is status_of($nginx), 'FAILED_OPEN' for 1 .. 3;
    wait_until { $nginx->error_log =~ /is down: "nowhere\.test": Host not found/ } 10, 'the reason';
    is $nginx->bad_lines, '';

    $dns->set('nowhere.test' => '127.0.0.2');
    is status_of($nginx), 'FAILED_OPEN', 'nothing listens there';
    is $nginx->bad_lines, '';
};

subtest 'a name server that does not answer holds nobody up' => sub {
    $dns->set('silent.test' => 'silence');
    my $nginx = nginx('redis://silent.test', parameters => 'timeout=100ms connect_timeout=300ms');
    my $slowest = 0;

    for (1 .. 20) {
        my $start = time;
        is status_of($nginx), 'FAILED_OPEN';
        $slowest = time - $start if time - $start > $slowest;
    }

    cmp_ok $slowest, '<', 2, sprintf 'the slowest took %.3f s', $slowest;
    wait_until { $nginx->error_log =~ /is down: "silent\.test": Operation timed out/ } 20, 'the reason';
    is $nginx->bad_lines, '';
};

subtest 'many reloads while a name is looked up' => sub {
    my $nginx = nginx('redis://silent.test', parameters => 'timeout=100ms connect_timeout=2s');

    for (1 .. 5) {
        $nginx->reload;
        status_of($nginx) for 1 .. 3;
        sleep 0.1;
    }

    $nginx->quit;
    is $nginx->bad_lines, '', 'nothing left behind';
};

done_testing();
