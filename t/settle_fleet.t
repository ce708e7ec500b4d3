# settle: over several servers, with Sentinels and on a cluster, as with a single Redis.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET;
use SlidingLimit::Cluster qw(start_cluster);
use SlidingLimit::Sentinels qw(start_sentinels);
use SlidingLimit::Servers qw(begin_request get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep);

my $application = start_nginx('location / { add_header X-Tokens $arg_tokens; return 200; }');

# Two servers, with limits of both kinds, by one key and by two.
sub start_servers {
    my ($url) = @_;
    my $settle = 'cost=$arg_reserve settle=$upstream_http_x_tokens';
    my $config = <<"END";
    add_header X-Status \$sliding_limit_status always;
    location /look { sliding_limit_metrics; sliding_limit off; }
    location / {
        sliding_limit zone=minute max=100 window=600s key=\$arg_k fallback=none $settle;
        sliding_limit zone=packed max=100 window=600s key=\$arg_k fallback=none algorithm=packed $settle;
        sliding_limit zone=day max=1000 window=1d key=\$arg_k fallback=none algorithm=buckets $settle;
        sliding_limit zone=team max=1000 window=600s key=team_\$arg_team $settle;
        proxy_pass http://127.0.0.1:${\ $application->port};
    }
END
    my @servers = map { start_nginx($config, http => "sliding_limit_redis $url timeout=5s connect_timeout=5s;") } 1, 2;
    for my $server (@servers) {
        wait_until { ($server->try('/?k=warm&team=warm&reserve=1&tokens=0', 'X-Status'))[1] eq 'PASSED' } 30, 'Redis';
    }
    return @servers;
}

sub used {
    my ($server, $zone, $key) = @_;
    return (get($server->port, "/look?zone=$zone&key=$key"))[2] =~ /"used":(\d+)/ ? $1 : 'unknown';
}

sub comes_to {
    my ($server, $zone, $key, $number) = @_;
    eval { wait_until { used($server, $zone, $key) eq $number } 10 };
    is used($server, $zone, $key), $number, "$zone of $key comes to $number";
}

sub check {
    my ($here, $there, $key) = @_;

    is_deeply [$here->try("/?k=$key&team=t$key&reserve=60&tokens=10", 'X-Status')], [200, 'PASSED'], 'less, on one server';
    comes_to($there, $_, $key, 10) for qw(minute packed day);
    comes_to($there, 'team', "team_t$key", 10);

    is_deeply [$there->try("/?k=$key&team=t$key&reserve=1&tokens=140", 'X-Status')], [200, 'PASSED'], 'more, on the other';
    # a log enters no more than its max beyond what was reserved
    comes_to($here, $_, $key, 111) for qw(minute packed);
    comes_to($here, 'day', $key, 150);
    comes_to($here, 'team', "team_t$key", 150);

    is_deeply [$_->try("/?k=$key&team=t$key&reserve=1&tokens=0", 'X-Status')], [429, 'REJECTED'], 'so both refuse'
        for $here, $there;
    comes_to($here, 'day', $key, 150);
    is $_->bad_lines, '', 'nothing alarming in the log' for $here, $there;
}

subtest 'a single Redis' => sub {
    my $redis = start_redis();
    check(start_servers('redis://127.0.0.1:' . $redis->port), 'one');
};

subtest 'Sentinels, before and after a failover' => sub {
    my $set = start_sentinels();
    my @servers = start_servers($set->url);
    check(@servers, 'before');
    $set->fail_over;
    for my $server (@servers) {
        wait_until { ($server->try('/?k=warm&team=warm&reserve=1&tokens=0', 'X-Status'))[1] eq 'PASSED' } 60, 'the new primary';
    }
    check(@servers, 'after');
};

subtest 'a cluster, whose servers have some of the keys each' => sub {
    my $cluster = start_cluster(primaries => 3);
    check(start_servers($cluster->url), "client$_") for 1 .. 3;
};

# One that is stopped leaves connections and those who connect waiting.
for my $end (qw(dies hangs)) {
    subtest "a cluster whose server $end while a request is under way" => sub {
        my $cluster = start_cluster(primaries => 3, replicas => 1);
        my $app = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8) or die $!;
        my $nginx = start_nginx(<<"END", http => 'sliding_limit_redis ' . $cluster->url . ' timeout=1s connect_timeout=1s;');
            add_header X-Status \$sliding_limit_status always;
            location /look { sliding_limit_metrics; sliding_limit off; }
            location / {
                sliding_limit zone=minute max=1000 window=600s key=\$arg_k cost=10 settle=\$upstream_http_x_tokens;
                proxy_pass http://127.0.0.1:${\ $app->sockport};
            }
END
        wait_until { used($nginx, 'minute', 'a') eq '0' } 30, 'the cluster';
        $cluster->watch_closely;

        my $c = begin_request($nginx->port, "GET /?k=a HTTP/1.0\r\n\r\n");
        my $request = $app->accept;
        sysread $request, my $text, 4096;
        wait_until { used($nginx, 'minute', 'a') eq '10' } 30, 'the reservation';
        my $owner = $cluster->owner('rate_limit:minute:{a}');
        $owner->wait_for_replicas(1);
        $end eq 'dies' ? $owner->kill9 : $owner->pause;
        print $request "HTTP/1.0 200 OK\r\nX-Tokens: 70\r\n\r\n";
        close $request;
        like join('', <$c>), qr/200/;

        eval { wait_until { used($nginx, 'minute', 'a') eq '70' } 60 };
        is used($nginx, 'minute', 'a'), 70, 'its replica is told what the request has cost';
        is $nginx->bad_lines, '';
        $owner->resume if $end eq 'hangs';
    };
}

done_testing();
