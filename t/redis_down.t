# Redis fails and comes back, under load: the site stays up, nobody waits longer
# than the timeout, and afterwards counting is right again.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request start_redis start_nginx get wait_until free_port);
use Test::More;
use Time::HiRes qw(sleep time);

# Seconds: long enough for a busy machine to answer in.
my $TIMEOUT = 1;

# The timeout, and what such a machine adds to it.
my $PATIENCE = 5;

sub nginx_for {
    my ($redis_port, %with) = @_;
    my $on_error = delete $with{on_error} || 'pass';
    my $timeout = delete $with{timeout} || "${TIMEOUT}s";
    my $connect_timeout = delete $with{connect_timeout} || "${TIMEOUT}s";

    return start_nginx(<<"END", workers => 2,
    sliding_limit_on_error $on_error;
    add_header X-Status \$sliding_limit_status always;
    location /count { sliding_limit zone=count max=5 window=600s key=\$arg_k; empty_gif; }
    location /load { sliding_limit zone=load max=1000000 window=600s key=\$arg_k; empty_gif; }
    location /metrics { sliding_limit_metrics; }
END
        http => "sliding_limit_redis redis://127.0.0.1:$redis_port timeout=$timeout connect_timeout=$connect_timeout;", %with);
}

sub status_of { (get($_[0]->port, $_[1]))[1]{'x-status'} // 'no answer' }

# How often the log says that Redis went and came, over all workers.
sub says {
    my ($nginx, $what) = @_;
    my @lines = $nginx->error_log =~ /sliding_limit: redis "\S+" is \Q$what\E/g;
    return scalar @lines;
}

# Until every worker counts again; they take connections at random.
sub counts_again {
    my ($nginx) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = status_of($nginx, '/load?k=again') eq 'PASSED' ? $in_a_row + 1 : 0;
        $in_a_row >= 20;
    } 20, 'counting to return';
}

sub exactly_five_pass {
    my ($nginx, $key) = @_;
    my @status = map { status_of($nginx, "/count?k=$key") } 1 .. 8;
    is "@status", join(' ', ('PASSED') x 5, ('REJECTED') x 3), "counting is right ($key)";
}

sub stayed_up {
    my ($nginx, @answers) = @_;
    my ($slowest) = sort { $b <=> $a } map { $_->{took} } @answers;

    is summary(grep { $_->{status} != 200 } @answers), '', 'nothing but 200: ' . summary(@answers);
    cmp_ok $slowest, '<', $PATIENCE, sprintf 'the slowest took %.3f s', $slowest;
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

sub under_load {
    my ($nginx, $seconds, $trouble) = @_;
    my $load = start_load(clients => 8, seconds => $seconds, ports => [ $nginx->port ],
        path => sub { "/load?k=$_[0]" }, pause => 0.001);
    sleep 0.5;
    $trouble->();
    return $load->finish;
}

subtest 'down at start: nginx starts, requests pass at once, counting begins when it comes' => sub {
    my $port = free_port();
    my $nginx = nginx_for($port);

    wait_until { says($nginx, 'down') } 10, 'the workers to notice';
    my $start = time;
    is status_of($nginx, '/count?k=early'), 'FAILED_OPEN' for 1 .. 20;
    cmp_ok time - $start, '<', 20 * $TIMEOUT / 2, 'twenty requests did not wait for it';
    is says($nginx, 'down'), 1, 'one line, not one per worker or request';

    my $redis = start_redis(port => $port);
    counts_again($nginx);
    exactly_five_pass($nginx, 'came');
    is says($nginx, 'back'), 1, 'and one when it is back';
    is $nginx->bad_lines, '';
};

subtest 'on_error deny refuses with 503 instead' => sub {
    my $nginx = nginx_for(free_port(), on_error => 'deny');
    my ($status, $headers, $body) = get($nginx->port, '/count?k=deny');

    is $status, 503;
    is $headers->{'x-status'}, 'FAILED_CLOSED';
    is $headers->{'x-ratelimit-limit'}, 5, 'only the limit itself is known';
    ok !exists $headers->{$_}, "no $_" for qw(x-ratelimit-remaining x-ratelimit-reset retry-after);
    is $body, '{"status":503,"code":"rate_limit:unavailable"}';
};

subtest 'kill -9 and restart' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);

    my @answers = under_load($nginx, 4, sub {
        $redis->kill9;
        sleep 1;
        $redis->start;
    });
    stayed_up($nginx, @answers);
    counts_again($nginx);
    exactly_five_pass($nginx, 'restarted');
    is says($nginx, 'down'), 1, 'one line when it went';
    is says($nginx, 'back'), 1, 'one when it came';
};

subtest 'kill -STOP and CONT' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);

    my $resumed;
    my @answers = under_load($nginx, 4 * $TIMEOUT + 6, sub {
        $redis->pause;
        sleep 4 * $TIMEOUT;
        $redis->resume;
        $resumed = time;
    });
    stayed_up($nginx, @answers);

    # a few may be slow for other reasons, on a busy machine
    my @meanwhile = grep { $_->{at} < $resumed && $_->{at} > $resumed - 1 } @answers;
    my $slow = grep { $_->{took} > 0.9 * $TIMEOUT } @meanwhile;
    cmp_ok $slow, '<', @meanwhile / 10,
        "once it is known to be down nobody waits for it: $slow slow of " . @meanwhile;

    my ($counted) = grep { $_->{at} > $resumed && $_->{remaining} ne '-' } @answers;
    ok $counted, 'counting again';
    cmp_ok $counted->{at} - $resumed, '<', 5, 'soon after';
    counts_again($nginx);
    exactly_five_pass($nginx, 'continued');
};

subtest 'late replies are never given to another request' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, workers => 1, timeout => '2s');
    is status_of($nginx, '/load?k=first'), 'PASSED';

    # a pause that is longer than the timeout and shorter than what breaks the
    # connection: the reply comes when nobody waits for it any more
    for my $round (1 .. 3) {
        $redis->pause;
        is status_of($nginx, '/count?k=late'), 'FAILED_OPEN', 'timed out';
        $redis->resume;
        my (undef, $headers) = get($nginx->port, "/load?k=other$round");
        is $headers->{'x-ratelimit-remaining'} // 999999, 999999,
            "the next request has the answer to its own question, not $round used";
        sleep 0.3;
    }
    counts_again($nginx);
    is $redis->cli('ZCARD', 'rate_limit:count:late'), 3, 'what passed was counted, if late';
    is $nginx->bad_lines, '';
};

subtest 'a client that leaves does not keep the others waiting' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, workers => 1);
    is status_of($nginx, '/load?k=first'), 'PASSED';

    $redis->pause;
    my $gone = begin_request($nginx->port, "GET /load?k=gone HTTP/1.1\r\nHost: test\r\n\r\n");
    sleep 0.05;
    close $gone;

    my $start = time;
    status_of($nginx, '/load?k=stays') for 1 .. 20;
    cmp_ok time - $start, '<', 20 * $TIMEOUT / 2, 'twenty requests, of which only the first few waited';
    is says($nginx, 'down'), 1, 'Redis is known to be down';
};

# All checks are out and answered, but the workers read the replies only after
# their time is up.
for my $events ('', 'accept_mutex on; accept_mutex_delay 10ms;') {
    subtest "a reply that has come is in time, however late it is read ($events)" => sub {
        my $redis = start_redis();
        my $requests = 1500;
        my $timeout = 10;
        my $nginx = nginx_for($redis->port, timeout => "${timeout}s", slots => 4096, events => $events);
        counts_again($nginx);

        $redis->pause;
        my @clients = map {
            begin_request($nginx->port, "GET /count?k=late HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        } 1 .. $requests;
        wait_until { (get($nginx->port, '/metrics?format=json'))[2] =~ /"checks_in_flight":\s*$requests\b/ } 10, 'all to be asked';
        kill 'STOP', $nginx->workers;
        $redis->resume;
        wait_until { $redis->calls('evalsha') >= $requests } 10, 'Redis to have answered';
        sleep $timeout;
        kill 'CONT', $nginx->workers;

        my %count;
        for my $c (@clients) {
            my $answer = do { local $/; <$c> } // '';
            $count{ $answer =~ /^X-Status: (\S+)\r$/m ? $1 : 'none' }++;
        }
        is join(' ', map { "$_:$count{$_}" } sort keys %count), 'PASSED:5 REJECTED:' . ($requests - 5),
            'every answer was read';
        is $nginx->bad_lines, '';
    };
}

subtest 'a worker that is held up does not take Redis for dead' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, workers => 1);
    my ($worker) = $nginx->workers;

    # for more than twice the timeout
    my @answers = under_load($nginx, 9, sub {
        for (1 .. 3) {
            kill 'STOP', $worker;
            sleep 2.3 * $TIMEOUT;
            kill 'CONT', $worker;
            sleep 0.5;
        }
    });
    stayed_up($nginx, @answers);
    is says($nginx, 'down'), 0, 'Redis has answered all the time';
    my $uncounted = grep { $_->{remaining} eq '-' } @answers;
    cmp_ok $uncounted, '<', @answers / 20, "$uncounted of " . @answers . ' went uncounted';
};

subtest 'SCRIPT FLUSH: loaded again, every request counted once' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, timeout => '5s', connect_timeout => '5s');

    my @answers = under_load($nginx, 3, sub {
        for (1 .. 20) {
            $redis->cli('SCRIPT', 'FLUSH');
            sleep 0.05;
        }
    });
    stayed_up($nginx, @answers);
    is scalar(grep { $_->{remaining} eq '-' } @answers), 0, 'no request went uncounted';

    my $counted = 0;
    $counted += $redis->cli('ZCARD', "rate_limit:load:$_") for 1 .. 8;
    is $counted, scalar @answers, 'and none was counted twice';
    is says($nginx, 'down'), 0, 'nobody noticed';
};

subtest 'CLIENT KILL: the connection is replaced, quietly' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port, timeout => '5s', connect_timeout => '5s');

    sleep 1.2;
    my @answers = under_load($nginx, 3, sub { $redis->cli('CLIENT', 'KILL', 'TYPE', 'normal') });
    stayed_up($nginx, @answers);
    counts_again($nginx);
    is says($nginx, 'down'), 0, 'no outage';
    cmp_ok $redis->info('stats', 'total_connections_received'), '<', 60, 'no storm of connections';
};

subtest 'FLUSHALL: windows start anew' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);

    exactly_five_pass($nginx, 'flushed');
    $redis->cli('FLUSHALL');
    # longer than refusals are remembered
    sleep 1.5;
    exactly_five_pass($nginx, 'flushed');
};

# What Redis says no to, how to make it, and how to mend it.
my @refusals = (
    ['OOM', [['CONFIG', 'SET', 'maxmemory', '1']], [['CONFIG', 'SET', 'maxmemory', '0']]],
    ['READONLY', [['REPLICAOF', '127.0.0.1', free_port()]], [['REPLICAOF', 'NO', 'ONE']]],
    ['NOREPLICAS', [['CONFIG', 'SET', 'min-replicas-to-write', '1']],
        [['CONFIG', 'SET', 'min-replicas-to-write', '0']]],
);

for (@refusals) {
    my ($error, $break, $mend) = @$_;

    subtest "$error: requests pass, one line, and it is over when Redis says so" => sub {
        my $redis = start_redis();
        my $nginx = nginx_for($redis->port);
        is status_of($nginx, '/load?k=before'), 'PASSED';

        $redis->cli(@$_) for @$break;
        wait_until { status_of($nginx, '/load?k=during') eq 'FAILED_OPEN' } 10, $error;
        my @status = map { status_of($nginx, '/load?k=during') } 1 .. 30;
        is scalar(grep { $_ ne 'FAILED_OPEN' } @status), 0, 'all pass, uncounted';
        like $nginx->error_log, qr/is down: $error/, 'the log says why';
        is says($nginx, 'down'), 1, 'once';

        $redis->cli(@$_) for @$mend;
        counts_again($nginx);
        exactly_five_pass($nginx, 'mended');
        is $nginx->bad_lines, '';
    };
}

subtest 'a key of another type passes, others go on being counted' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);

    $redis->cli('SET', 'rate_limit:count:odd', 'text');
    is status_of($nginx, '/count?k=odd'), 'FAILED_OPEN' for 1 .. 10;
    exactly_five_pass($nginx, 'even');
    is says($nginx, 'down'), 0, 'Redis is not down';
    my @lines = $nginx->error_log =~ /check\(s\) failed, the last one because: ([^\n]+)/g;
    cmp_ok scalar @lines, '<=', 2, 'a line a worker, not a line a request';
    is $lines[0], 'a value of another type stands under the key rate_limit:count:odd';
};

done_testing;
