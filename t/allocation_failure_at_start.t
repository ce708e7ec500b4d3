# No memory: each allocation on the way of a worker that starts and opens its connections fails
# once, and each that the module asks for while nginx reads its configuration. A worker passes
# requests meanwhile, and counts them soon; nginx refuses the configuration.

use strict;
use warnings;
use lib 't/lib';

use List::Util qw(max);
use SlidingLimit::Allocations qw(watch_allocations);
use SlidingLimit::FakeRedis qw(start_fake_cluster);
use SlidingLimit::NameServer qw(start_name_server);
use SlidingLimit::Sentinels qw(named_reply start_fake_sentinel);
use SlidingLimit::Servers qw(get nginx_binary start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep);

my $allocations = watch_allocations() or plan skip_all => '"make sanitize" builds the nginx for it';

my $redis = start_redis(args => ['--requirepass', 'secret'], cli_args => ['-a', 'secret', '--no-auth-warning']);
my $sentinel = start_fake_sentinel(named_reply('127.0.0.1', $redis->port));
my $names = start_name_server('redis.test' => '127.0.0.1');
my ($node, $other_node) = start_fake_cluster();

my @stores = qw(login named watched cluster);
my $limits = 'max=1000000 window=60s key=$arg_k';
my $locations = join '', map { "location = /$_ { sliding_limit zone=$_ $limits store=$_; empty_gif; }\n" } @stores;
my $timeouts = 'timeout=1s connect_timeout=1s';

my $nginx = start_nginx(<<"END", http => <<"HTTP");
    $locations
    # what else there is to read
    location = /other {
        sliding_limit zone=other max=\$arg_max cost=\$arg_cost window=60s key=\$http_x_key fallback=\$arg_k if=\$arg_k count_status=401,5xx;
        sliding_limit zone=buckets max=5 window=60s key=\$arg_k algorithm=buckets store=memory phase=precontent;
        sliding_limit_body application/json '{"zone":"\$sliding_limit_zone","max":\$sliding_limit_limit}';
        sliding_limit_headers x ietf;
        sliding_limit_on_error local;
        empty_gif;
    }
    location = /free { empty_gif; }
    location = /metrics { sliding_limit_metrics keys=plain; }
END
    resolver 127.0.0.1:@{[ $names->port ]} ipv6=off;
    add_header X-Status \$sliding_limit_status always;
    sliding_limit_redis redis://:secret\@127.0.0.1:@{[ $redis->port ]}/1 $timeouts;
    sliding_limit_redis redis://:secret\@127.0.0.1:@{[ $redis->port ]}/1 name=login $timeouts;
    sliding_limit_redis redis://redis.test:@{[ $other_node->port ]} name=named $timeouts;
    sliding_limit_redis sentinel://127.0.0.1:@{[ $sentinel->port ]}/mymaster password=secret name=watched $timeouts;
    sliding_limit_redis cluster://127.0.0.1:@{[ $node->port ]} name=cluster $timeouts;
HTTP

my $worker;

sub watch_worker {
    my ($old) = @_;
    wait_until { ($worker) = $nginx->workers; $worker && $worker != $old } 10, 'another worker';
    return;
}

# nginx does not start another worker if one has ended for want of its own arrays.
sub gave_up { return scalar(() = $nginx->error_log =~ /cannot be respawned/g) }

# Another worker, whose nth allocation fails. So many there were by the time that its connections
# were open.
sub replace_worker {
    my ($n) = @_;
    my ($asked, $before) = (0, -1);

    $allocations->of(0)->fail($n)->of_next_child;
    kill 'TERM', $worker;
    wait_until { $worker = $allocations->fields->{pid} } 20, 'another worker';
    wait_until { ($before, $asked) = ($asked, $allocations->fields->{asked}); sleep 0.1; $asked && $asked == $before }
        20, 'it to settle';

    return $asked;
}

my $steps = 0;

# What is wrong if the nth allocation fails.
sub start_worker {
    my ($n) = @_;
    my $before = gave_up();

    replace_worker($n);
    wait_until { gave_up() > $before || (get($nginx->port, '/free', 0.5))[0] } 20, 'it to serve, or to end';

    if (gave_up() > $before) {
        my $seen = $allocations->stop;
        $nginx->reload;
        watch_worker(0);
        return $seen->{whose} eq 'nginx' ? '' : "the worker ends: @{ $seen->{callers} }";
    }

    my @answers = map { (get($nginx->port, "/$_?k=k"))[0] } @stores;
    my $seen = $allocations->stop;
    return '' if $seen->{refused} == 0;

    $steps++;
    my @problems = grep({ $_ != 200 } @answers) && $seen->{whose} ne 'nginx' ? "answers @answers" : ();
    for my $store (@stores) {
        eval { wait_until { ((get($nginx->port, "/$store?k=k"))[1]{'x-status'} // '') eq 'PASSED' } 5; 1 }
            or push @problems, "$store is not asked";
    }

    return join ', ', map { "$_ (allocation $n: @{ $seen->{callers} })" } @problems;
}

subtest 'a worker that starts' => sub {
    my @problems;

    watch_worker(0);
    my $count = max map { replace_worker(0) } 1 .. 3;
    for my $n (1 .. $count) {
        push @problems, start_worker($n) || ();
        last if @problems > 5;
    }

    is join("\n", @problems), '', "each of $steps allocations may fail";
    cmp_ok $steps, '>', 50, 'there are many of them';
    is join("\n", grep { !/\[emerg\].*(?:alloc|memalign)|cannot be respawned/ } split /\n/, $nginx->bad_lines), '', 'nothing bad in the log';
    is $nginx->quit, 0, 'nginx ends well';
};

subtest 'a configuration that is read' => sub {
    # a sanitizer's exit status must not be that of nginx, whose pools end with the process
    local $ENV{ASAN_OPTIONS} = join ':', $ENV{ASAN_OPTIONS} // (), 'detect_leaks=0', 'exitcode=99';
    local $ENV{UBSAN_OPTIONS} = join ':', $ENV{UBSAN_OPTIONS} // (), 'exitcode=99';

    my @ended = $allocations->branch(nginx_binary(), '-t', '-p', $nginx->dir, '-c', $nginx->dir . '/nginx.conf', '-e', 'stderr');
    my %problems = map { my ($status, $callers) = @$_; $status == 1 << 8 ? () : ("ends with $status: @$callers[0 .. 9]" => 1) } @ended;

    is join("\n", sort keys %problems), '', 'each of ' . @ended . ' allocations may fail';
    cmp_ok scalar(@ended), '>', 50, 'there are many of them';
};

done_testing;
