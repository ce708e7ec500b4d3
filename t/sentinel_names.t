# Sentinels that name the primary by a host name (announce-hostnames): it is looked up
# like any other, by nginx's resolver.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::NameServer qw(start_name_server);
use SlidingLimit::Sentinels qw(named_reply start_fake_sentinel start_sentinels);
use SlidingLimit::Servers qw(free_port get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

# A name that the servers themselves can look up on any system: to the C library it is
# short for 127.0.0.1, to nginx it is no address.
my $NAME = '127.1';

my $dns = start_name_server($NAME => '127.0.0.1', 'redis.test' => '127.0.0.1');

# Never the reason for a failure, however busy the machine is.
my $TIMES = 'timeout=2s connect_timeout=3s';

# For as long as it takes to look for another primary.
my $A_LOOK = 8;

sub nginx_for {
    my ($url, %with) = @_;
    my $resolver = $with{resolver} // 'resolver 127.0.0.1:' . $dns->port . ' valid=1s ipv6=off;';

    return start_nginx(<<'END', workers => 2, http => "sliding_limit_redis $url connections=2 $TIMES; $resolver");
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;
    location /count { sliding_limit zone=count max=5 window=600s key=$arg_k; empty_gif; }
    location /load { sliding_limit zone=load max=1000000 window=600s key=$arg_k; empty_gif; }
END
}

sub sentinel_url { return 'sentinel://' . join(',', map { '127.0.0.1:' . $_->port } @_) . '/mymaster' }

sub status_of { return join ' ', ($_[0]->try($_[1], 'X-Status', 'X-Store'))[1, 2] }

# Until every worker counts; they take connections at random.
sub counts {
    my ($nginx) = @_;
    my $in_a_row = 0;

    wait_until {
        $in_a_row = status_of($nginx, '/load?k=again') eq 'PASSED redis' ? $in_a_row + 1 : 0;
        $in_a_row >= 20;
    } 60, 'counting';
}

sub exactly_five_pass {
    my ($nginx, $redis, $key) = @_;
    my @status = map { status_of($nginx, "/count?k=$key") } 1 .. 6;

    is join(', ', @status), join(', ', ('PASSED redis') x 5, 'REJECTED redis'), 'counting is right';
    is $redis->cli('ZCARD', "rate_limit:count:$key"), 5, 'and there';
}

# Of nginx alone; redis-cli connects, too, but is gone.
sub ids_of_clients {
    my ($redis) = @_;
    my @clients = grep { !/cmd=(?:client|replconf|psync)|name=sentinel/ }
        split /\n/, $redis->cli('CLIENT', 'LIST', 'TYPE', 'normal');

    return join ' ', sort { $a <=> $b } map { /^id=(\d+)/ } @clients;
}

sub keeps_its_connections {
    my ($nginx, $redis, $why) = @_;
    my $before = ids_of_clients($redis);
    my $end = time + $A_LOOK;

    while (time < $end) {
        status_of($nginx, '/load?k=on');
        sleep 0.1;
    }

    is ids_of_clients($redis), $before, "connections stay: $why";
    unlike $nginx->error_log, qr/the primary is now|is down/, 'nothing to tell';
}

subtest 'the primary has a name, and is followed when another one takes over' => sub {
    my $set = start_sentinels(down_after => 60000, host => $NAME);
    like +($set->sentinels)[0]->cli('SENTINEL', 'get-master-addr-by-name', 'mymaster'), qr/^\Q$NAME\E\n/,
        'that is what Sentinels say';

    my $nginx = nginx_for($set->url);
    my $old = $set->primary;
    counts($nginx);
    exactly_five_pass($nginx, $old, 'named');
    keeps_its_connections($nginx, $old, 'it is the same primary');

    my $new = $set->fail_over;
    wait_until { ids_of_clients($old) eq '' } 60, 'nginx to leave the old one';
    counts($nginx);
    exactly_five_pass($nginx, $new, 'moved');
    like $nginx->error_log, qr/the primary is now 127\.0\.0\.1:@{[ $new->port ]}/, 'the log says where it is';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'the primary dies: the one that takes over has a name, too' => sub {
    my $set = start_sentinels(host => $NAME);
    my $nginx = nginx_for($set->url);
    my $old = $set->primary;
    counts($nginx);

    $old->kill9;
    wait_until { $set->primary != $old } 120, 'another primary';
    counts($nginx);
    exactly_five_pass($nginx, $set->primary, 'survived');
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'without a resolver: the log says that one is needed, and for which name' => sub {
    my $sentinel = start_fake_sentinel(named_reply('redis.test', 6379));
    my $nginx = nginx_for(sentinel_url($sentinel), resolver => '');

    wait_until {
        $nginx->error_log =~ /\[error\] .* is down: Sentinel 127\.0\.0\.1:\d+: it names "redis\.test": nginx needs a "resolver" in the http block/
    } 60, 'the reason';
    is status_of($nginx, '/count?k=none'), 'FAILED_OPEN none', 'requests pass' for 1 .. 3;
    is $nginx->bad_lines, '', 'nothing alarming in the log';

    # one of them may say it in numbers
    my $redis = start_redis();
    my $other = start_fake_sentinel(named_reply('127.0.0.1', $redis->port));
    $nginx = nginx_for(sentinel_url($sentinel, $other), resolver => '');
    counts($nginx);
    exactly_five_pass($nginx, $redis, 'numbers');
    unlike $nginx->error_log, qr/is down/, 'that is nothing to tell';
};

subtest 'a name that nobody knows, until somebody does' => sub {
    my $redis = start_redis();
    my $sentinel = start_fake_sentinel(named_reply('New.Redis.TEST', $redis->port));
    my $nginx = nginx_for(sentinel_url($sentinel));

    wait_until { $nginx->error_log =~ /is down: Sentinel \S+: it names "new\.redis\.test": Host not found/ } 60, 'the reason';
    is status_of($nginx, '/count?k=unknown'), 'FAILED_OPEN none', 'requests pass';

    $dns->set($NAME => '127.0.0.1', 'redis.test' => '127.0.0.1', 'new.redis.test' => '127.0.0.1');
    counts($nginx);
    exactly_five_pass($nginx, $redis, 'known');
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'another address of the same name, or the address instead: it is the same server' => sub {
    my $redis = start_redis(args => ['--bind', '127.0.0.1', '127.0.0.2']);
    my $sentinel = start_fake_sentinel(named_reply('redis.test', $redis->port));
    my $nginx = nginx_for(sentinel_url($sentinel));
    counts($nginx);

    $dns->set('redis.test' => '127.0.0.2');
    keeps_its_connections($nginx, $redis, 'the name is the same');

    $sentinel->says(named_reply('127.0.0.1', $redis->port));
    keeps_its_connections($nginx, $redis, 'the address is the same');

    $sentinel->says(named_reply('redis.test', my $elsewhere = free_port()));
    wait_until { $nginx->error_log =~ /the primary is now 127\.0\.0\.2:$elsewhere/ } 30, 'another port is another server';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

done_testing;
