# prefix= begins every key in Redis: so staging and production can share one,
# each with rights to its own keys alone.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Cluster qw(start_cluster);
use SlidingLimit::Sentinels qw(start_sentinels);
use SlidingLimit::Rights qw(rights);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use Test::More;

my $SECRET = 'Hunter2Swordfish';
my $TIMES = 'timeout=2s connect_timeout=3s';
my $LONG = 'k' x 300;

my @RIGHTS = (rights(), qw(+role +cluster|nodes +asking));

sub nginx_for {
    my ($redis, $times) = @_;
    $times ||= $TIMES;

    return start_nginx(<<'END', http => "sliding_limit_redis $redis $times;");
    add_header X-Status $sliding_limit_status always;
    location /count { sliding_limit zone=count max=5 window=600s key=$arg_k; empty_gif; }
    location /buckets { sliding_limit zone=buckets max=5 window=600s key=$arg_k algorithm=buckets; empty_gif; }
    location /load { sliding_limit zone=load max=1000000 window=600s key=$arg_k; empty_gif; }
    location /failed { sliding_limit zone=failed max=5 window=600s key=$arg_k count_status=404; empty_gif; }
END
}

sub status_of { my ($nginx, $path) = @_; return ($nginx->try($path, 'X-Status'))[1] }

# Once a request has been counted: servers may take their time to be found.
sub wait_for { my ($nginx, $key) = @_; wait_until { status_of($nginx, "/load?k=$key") eq 'PASSED' } 60, 'counting' }

sub five_pass {
    my ($name, $nginx, $path) = @_;
    is join(' ', map { ($nginx->try($path))[0] } 1 .. 6), '200 200 200 200 200 429', $name;
}

sub keys_in { return map { sort split /\n/, $_->cli('KEYS', '*') } @_ }

sub may_only {
    my ($user, @servers) = @_;
    is $_->cli('ACL', 'SETUSER', $user, 'reset', 'on', ">$SECRET", "~$user:*", @RIGHTS), 'OK', "a user $user" for @servers;
}

sub none_is_bad { is join('', map { $_->bad_lines } @_), '', 'nothing alarming in the log' }

{
    my $redis = start_redis();
    my $url = 'redis://127.0.0.1:' . $redis->port;
    may_only($_, $redis) for qw(staging production);

    # several connections, too: which of them a call takes depends on its key
    my $staging = nginx_for("$url prefix=staging user=staging password=$SECRET connections=3");
    my $production = nginx_for("$url prefix=production user=production password=$SECRET");
    my $other = nginx_for($url);
    wait_for($_, 'begin') for $staging, $production, $other;

    subtest 'of each prefix as many pass as if it were alone' => sub {
        for my $path ('/count?k=a', '/buckets?k=a', "/count?k=$LONG", '/count?k={a}') {
            five_pass(substr($path, 0, 20), $_, $path) for $staging, $production, $other;
        }
    };

    subtest 'the prefix stands at the beginning, and rate_limit by default' => sub {
        is $redis->cli('ZCARD', "$_:count:a"), 5, $_ for qw(staging production rate_limit);
        is scalar(grep { /^staging:count:#[0-9a-f]{64}$/ } keys_in($redis)), 2, 'also of keys that are hashed';
        is_deeply [grep { !/^(?:staging|production|rate_limit):/ } keys_in($redis)], [], 'of every key';
    };

    subtest 'what is taken back is that of the prefix' => sub {
        is status_of($_, '/failed?k=a'), 'PASSED' for ($staging) x 6, $production;
        wait_until { !$redis->cli('ZCARD', 'staging:failed:a') } 10, 'all to be taken back';
        is $redis->cli('ZCARD', 'staging:failed:a'), 0;
    };

    subtest 'who may use other keys only is told so' => sub {
        my $wrong = nginx_for("$url prefix=staging user=production password=$SECRET");
        is status_of($wrong, '/count?k=b'), 'FAILED_OPEN';
        wait_until { $wrong->error_log =~ /is down/ } 30, 'a line in the log';
        like $wrong->error_log, qr/\[crit\].* is down: NOPERM .*key/;
        none_is_bad($wrong);
    };

    subtest 'after an outage its return is found with a key of the prefix' => sub {
        my $nginx = nginx_for("$url prefix=staging user=staging password=$SECRET", 'timeout=200ms connect_timeout=3s');
        wait_for($nginx, 'c');
        $redis->pause;
        wait_until { status_of($nginx, '/load?k=c'); $nginx->error_log =~ /is down/ } 60, 'the outage to be noticed';
        $redis->resume;
        wait_for($nginx, 'c');
        unlike $nginx->error_log, qr/NOPERM/;
        none_is_bad($nginx);
    };

    none_is_bad($staging, $production, $other);
}

subtest 'with Sentinel' => sub {
    my $set = start_sentinels(sentinels => 1, replicas => 0, down_after => 60000);
    my $redis = $set->primary;
    may_only('staging', $redis);

    my $staging = nginx_for($set->url . " prefix=staging user=staging password=$SECRET");
    my $other = nginx_for($set->url);
    wait_for($_, 'begin') for $staging, $other;

    five_pass('of each as many pass as if it were alone', $_, '/count?k=a') for $staging, $other;
    is $redis->cli('ZCARD', "$_:count:a"), 5, $_ for qw(staging rate_limit);
    none_is_bad($staging, $other);
};

subtest 'on a cluster' => sub {
    my $cluster = start_cluster(primaries => 3);
    my @nodes = $cluster->primaries;
    my @keys = map { $cluster->keys_of($_, 1, 'k') } @nodes;
    may_only('staging', @nodes);

    my $staging = nginx_for($cluster->url . " prefix=staging user=staging password=$SECRET");
    my $other = nginx_for($cluster->url);
    wait_for($staging, $_), wait_for($other, $_) for @keys;

    for my $i (0 .. $#nodes) {
        five_pass('of each as many pass as if it were alone', $_, "/count?k=$keys[$i]") for $staging, $other;
        is $nodes[$i]->cli('ZCARD', "$_:count:{$keys[$i]}"), 5, "$_, in the slot of the client's key"
            for qw(staging rate_limit);
    }

    five_pass('a long key', $_, "/count?k=$LONG") for $staging, $other;
    is_deeply [grep { !/^(?:staging|rate_limit):\w*:\{.+\}$/ } keys_in(@nodes)], [], 'every key has a prefix and its braces';
    none_is_bad($staging, $other);
};

done_testing;
