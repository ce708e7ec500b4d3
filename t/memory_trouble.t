# The embedded store when its memory is too small, and when workers are killed.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(module start_nginx);
use Test::More;
use Time::HiRes qw(sleep time);

sub memory_of {
    my ($pid) = @_;
    open my $file, '<', "/proc/$pid/status" or return 0;
    return (join '', <$file>) =~ /^VmRSS:\s+(\d+)/m ? $1 : 0;
}

subtest 'a million clients in a memory for fifty thousand' => sub {
    # sixteen at a time, each counted under a name that comes only once
    my @sixteen = map { "sliding_limit zone=flood$_ max=5 window=1h key=\$request_id;" } 1 .. 16;
    my $nginx = start_nginx(<<"END", workers => 2, slots => 2048, http => 'sliding_limit_memory 4m;');
    keepalive_requests 1000000;
    add_header X-Status \$sliding_limit_status always;
    location /flood { @sixteen empty_gif; }
    location /offender { sliding_limit zone=offender max=3 window=1h key=\$arg_k fallback=none; empty_gif; }
    location /other { sliding_limit zone=other max=3 window=60s key=\$arg_k fallback=none; empty_gif; }
END
    is_deeply [$nginx->try('/offender?k=a')], [200] for 1 .. 3;

    my ($clients, $refused, $tries) = (0, 0, 0);
    my $end = time + 600;

    while ($clients < 1_000_000 && time < $end) {
        my $pid = fork // die $!;
        if (!$pid) {
            open STDOUT, '>', $nginx->dir . '/wrk';
            exec 'wrk', '-t1', '-c16', '-d3s', 'http://127.0.0.1:' . $nginx->port . '/flood';
        }
        until (waitpid($pid, 1) == $pid) {
            $tries++;
            $refused++ if ($nginx->try('/offender?k=a'))[0] == 429;
            sleep 0.05;
        }
        open my $out, '<', $nginx->dir . '/wrk' or die $!;
        my $said = join '', <$out>;
        my ($requests) = $said =~ /(\d+) requests in/ or die $said;
        unlike $said, qr/Non-2xx|Socket errors/, "$requests requests passed";
        $clients += 16 * $requests;
    }

    cmp_ok $clients, '>=', 1_000_000, "$clients clients";
    is $refused, $tries, "the offender was refused each of $tries times";
    is_deeply [$nginx->try('/other?k=a', 'X-Status')], [200, 'PASSED'], 'there is room for others';
    # a sanitized nginx, which has the module built in, keeps what it has freed
    if (module()) {
        cmp_ok memory_of($_), '<', 60_000, 'a worker has not grown' for $nginx->workers;
    }
    like $nginx->error_log,
        qr/\[error\] .*sliding_limit: sliding_limit_memory of 4096k is too small: \d+ clients have been forgotten early/,
        'the log says that it is too small';
    my @lines = $nginx->error_log =~ /(is too small)/g;
    cmp_ok @lines, '<', 50, 'now and then';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'one client that fills all memory: it cannot be counted, and that is not silent' => sub {
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_memory 64k;', slots => 2048);
    keepalive_requests 1000000;
    add_header X-Status $sliding_limit_status always;
    location /greedy { sliding_limit zone=greedy max=1000000 window=1h key=all; empty_gif; }
    location /greedy_denied {
        sliding_limit zone=greedy max=1000000 window=1h key=all;
        sliding_limit_on_error deny;
        empty_gif;
    }
    location /greedy_at_its_end { sliding_limit zone=greedy max=1 window=1h key=all; empty_gif; }
    location /other { sliding_limit zone=other max=3 window=60s key=all; empty_gif; }
END
    for (1 .. 20_000) {
        last if ($nginx->try('/greedy', 'X-Status'))[1] ne 'PASSED';
    }
    is_deeply [$nginx->try('/greedy', 'X-Status')], [200, 'FAILED_OPEN'], 'the store has no answer';
    is_deeply [$nginx->try('/greedy_denied', 'X-Status')], [503, 'FAILED_CLOSED'], 'so on_error decides';
    is_deeply [$nginx->try('/greedy_at_its_end', 'X-Status')], [429, 'REJECTED'], 'to refuse takes no memory';
    like $nginx->error_log, qr/sliding_limit_memory of 64k is too small: .*and one could not be counted/;
    is_deeply [$nginx->try('/other', 'X-Status')], [200, 'PASSED'], 'another client makes room for itself';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'workers that are killed in the middle of it, a hundred times' => sub {
    my $max = 30_000;
    my $nginx = start_nginx(<<"END", workers => 2, slots => 2048);
    keepalive_requests 1000000;
    location /exact { sliding_limit zone=exact max=$max window=1h key=all; empty_gif; }
    location /look { sliding_limit zone=exact max=$max window=1h key=all cost=0; empty_gif; }
    location /many {
        sliding_limit zone=many max=100000 window=1h key=\$request_id;
        sliding_limit zone=short max=100000 window=100ms key=\$request_id cost=3;
        sliding_limit zone=buckets max=100000 window=1s key=\$remote_addr algorithm=buckets;
        sliding_limit zone=taken_back max=100000 window=1h key=\$remote_addr count_status=404;
        empty_gif;
    }
END
    my $load = start_load(clients => 6, seconds => 600, ports => [$nginx->port], path => '/exact');
    my $noise = start_load(clients => 2, seconds => 600, ports => [$nginx->port], path => '/many');
    my $kills = 0;

    for (my $end = time + 600; $kills < 100 && time < $end; sleep 0.1) {
        my @workers = $nginx->workers;
        $kills += kill 'KILL', $workers[rand @workers] if @workers;
    }
    is $kills, 100, 'killed';

    my @answers = $load->stop->finish;
    my @others = $noise->stop->finish;
    my $passed = grep { $_->{status} == 200 } @answers;
    cmp_ok $passed, '<=', $max, "$passed of " . scalar(@answers) . ' passed, no more than may';
    is scalar(grep { $_->{status} == 500 } @answers, @others), 0, 'none failed';

    my ($status, $left) = $nginx->try('/look', 'X-RateLimit-Remaining');
    is $status, 200;
    my $used = $max - $left;
    cmp_ok $used, '>=', $passed, "$used are counted: every one that has passed";
    # whose answers were lost
    cmp_ok $used, '<=', $passed + $kills * 8, 'and few others';

    # who was killed with the lock in its hands is reported, too
    is_deeply [grep { !/exited on signal 9|was locked by/ } split /\n/, $nginx->bad_lines], [],
        'nothing else alarming in the log';
};

done_testing;
