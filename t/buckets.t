# algorithm=buckets in nginx; the script itself is covered by the model.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use SlidingLimit::Load qw(start_load summary);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $nginx = start_nginx(<<'END', workers => 2,
    location /six {
        sliding_limit zone=six max=3 window=60s key=$arg_k fallback=none algorithm=buckets;
        empty_gif;
    }
    location /short {
        sliding_limit zone=short max=20 window=2s key=$arg_k fallback=none algorithm=buckets buckets=4;
        empty_gif;
    }
    location /many {
        sliding_limit zone=many max=100000 window=60s key=$arg_k fallback=none algorithm=buckets buckets=100;
        empty_gif;
    }
    location /look { sliding_limit_metrics; sliding_limit off; }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

subtest 'the same headers as a log' => sub {
    my @names = qw(X-RateLimit-Limit X-RateLimit-Remaining);
    is_deeply [$nginx->try('/six?k=a', @names)], [200, 3, 3 - $_] for 1 .. 3;
    my ($status, $limit, $left, $reset, $retry) =
        $nginx->try('/six?k=a', @names, qw(X-RateLimit-Reset Retry-After));
    is_deeply [$status, $limit, $left], [429, 3, 0];
    is $reset, $retry, 'Reset and Retry-After agree';
    cmp_ok $retry, '>=', 55, 'a window, less the time that the test took,';
    cmp_ok $retry, '<=', 70, 'and at most one bucket more';
};

subtest 'never more than max in any window, however many ask' => sub {
    my $load = start_load(clients => 4, seconds => 7, ports => [$nginx->port], path => '/short?k=load', pause => 0.002);
    my @passed = grep { $_->{status} == 200 } $load->finish;
    cmp_ok @passed, '>=', 40, scalar(@passed) . ' passed';

    # a client's clock cannot tell when Redis counted a request, only that it was
    # between asking and answer: two are certainly within a window if the later
    # one was answered less than a window after the earlier one was asked
    my $most = 0;
    for my $first (@passed) {
        my $n = grep { $_->{at} >= $first->{at} && $_->{at} + $_->{took} < $first->{at} + 2 } @passed;
        $most = $n if $n > $most;
    }
    cmp_ok $most, '<=', 20, "at most $most within 2 seconds";
};

subtest 'memory does not depend on how much is counted' => sub {
    my $load = start_load(clients => 4, seconds => 3, ports => [$nginx->port], path => '/many?k=load');
    my $requests = grep { $_->{status} == 200 } $load->finish;
    cmp_ok $requests, '>', 500, "$requests requests";
    cmp_ok $redis->cli('STRLEN', 'rate_limit:many:load'), '<', 2000, 'a hundred buckets at most';
    cmp_ok $redis->cli('MEMORY', 'USAGE', 'rate_limit:many:load'), '<', 3000;
    my ($used) = (get($nginx->port, '/look?zone=many&key=load'))[2] =~ /"used":(\d+)/;
    is $used, $requests, 'and every one is in it';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
