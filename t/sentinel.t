# Sentinels know where the primary is: it is found, and followed when it moves,
# however it does and whatever they say.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Rights qw(rights);
use SlidingLimit::Sentinels qw(named_reply start_fake_sentinel start_sentinels);
use SlidingLimit::Servers qw(begin_request free_port get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $SECRET = 'Hunter2Swordfish';

# Never the reason for a failure, however busy the machine is.
my $TIMES = 'timeout=2s connect_timeout=3s';

# The timeout, and scheduling noise of a busy machine.
my $PATIENCE = 5;

# Sentinels that do not take anybody for dead.
my @CALM = (down_after => 60000);

sub nginx_for {
    my ($url, %with) = @_;
    my $times = delete $with{times} || $TIMES;

    return start_nginx(<<'END', workers => 2, http => "sliding_limit_redis $url $times;", %with);
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;
    add_header X-Worker $pid always;
    location /count { sliding_limit zone=count max=5 window=600s key=$arg_k; empty_gif; }
    location /fifty { sliding_limit zone=fifty max=50 window=600s key=$arg_k; empty_gif; }
    location /load { sliding_limit zone=load max=1000000 window=600s key=$arg_k; empty_gif; }
    location /upload { proxy_pass http://127.0.0.1:1; }
END
}

# As "PASSED redis".
sub status_of {
    my ($nginx, $path) = @_;
    my (undef, $headers) = get($nginx->port, $path);
    return join ' ', map { $headers->{$_} // '-' } qw(x-status x-store);
}

sub says {
    my ($nginx, $what) = @_;
    my @lines = $nginx->error_log =~ /sliding_limit: redis "\S+" is \Q$what\E/g;
    return scalar @lines;
}

# Until every worker counts; they take connections at random.
sub counts {
    my ($nginx, $seconds) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = status_of($nginx, '/load?k=again') eq 'PASSED redis' ? $in_a_row + 1 : 0;
        $in_a_row >= 20;
    } $seconds || 60, 'counting';
}

sub exactly_five_pass {
    my ($nginx, $key) = @_;
    my @status = map { status_of($nginx, "/count?k=$key") } 1 .. 8;
    is join(', ', @status[0 .. 5]), join(', ', ('PASSED redis') x 5, 'REJECTED redis'),
        "counting is right ($key)";
    is scalar(grep { /^REJECTED/ } @status), 3, 'and stays so';
}

# Requests pass uncounted, and the log says why.
sub passes_uncounted {
    my ($nginx, $why) = @_;

    wait_until { $nginx->error_log =~ $why } 60, $why;
    my @status = map { status_of($nginx, '/count?k=uncounted') } 1 .. 20;
    is scalar(grep { $_ ne 'FAILED_OPEN none' } @status), 0, "requests pass: $status[0]";
    pass "the log says why: $why";
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

# For as long as it takes to look for another primary twice.
sub goes_on_counting {
    my @down = map { says($_, 'down') } @_;
    my $end = time + 13;
    my %status;

    while (time < $end) {
        $status{ status_of($_, '/load?k=on') }++ for @_;
        sleep 0.05;
    }
    is join(', ', sort keys %status), 'PASSED redis', 'all are counted';
    is_deeply [map { says($_, 'down') } @_], \@down, 'nothing more to tell';
    is $_->bad_lines, '', 'nothing alarming in the log' for @_;
}

# Most requests are admitted, some refused.
sub load_on {
    my ($nginx, $seconds) = @_;
    return start_load(clients => 6, seconds => $seconds, ports => [ $nginx->port ], pause => 0.005,
        path => sub { $_[1] % 10 ? "/load?k=$_[0]" : "/count?k=load$_[0]" });
}

sub stayed_up {
    my ($nginx, @answers) = @_;
    my ($slowest) = sort { $b <=> $a } map { $_->{took} } @answers;

    is summary(grep { $_->{status} != 200 && $_->{status} != 429 } @answers), '',
        'nothing but 200 and 429: ' . summary(@answers);
    cmp_ok $slowest, '<', $PATIENCE, sprintf 'the slowest took %.3f s', $slowest;
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

sub connections_of { return $_[0]->info('stats', 'total_connections_received') }

sub clients_of {
    my ($redis) = @_;
    my @clients = grep { !/cmd=(?:client|replconf|psync)|name=sentinel/ }
        split /\n/, $redis->cli('CLIENT', 'LIST', 'TYPE', 'normal');
    return scalar @clients;
}

sub sentinel_url { return 'sentinel://' . join(',', map { "127.0.0.1:$_" } @_) . '/mymaster' }

# ---- Sentinels that do what they should

{
    my $set = start_sentinels(@CALM);
    my $primary = $set->primary;
    my @ports = map { $_->port } $set->sentinels;

    subtest 'all workers count at the primary' => sub {
        my $nginx = nginx_for($set->url);
        counts($nginx);
        exactly_five_pass($nginx, 'found');
        is $primary->cli('ZCARD', 'rate_limit:count:found'), 5, 'and there';

        my %worker;
        wait_until { $worker{ ($nginx->try('/load?k=all', 'X-Worker'))[1] }++; keys %worker == 2 } 30, 'both workers';
        my @answers = start_load(clients => 8, seconds => 2, ports => [ $nginx->port ],
            path => '/fifty?k=all', pause => 0.005)->finish;
        is scalar(grep { $_->{status} == 200 } @answers), 50, 'fifty of ' . @answers;
        is summary(grep { $_->{status} != 200 && $_->{status} != 429 } @answers), '', 'others are refused';
        is $primary->cli('ZCARD', 'rate_limit:fifty:all'), 50, 'and not counted';

        is says($nginx, 'down'), 0, 'nothing to tell';
        is $nginx->bad_lines, '';
    };

    subtest 'a database, and several connections' => sub {
        my $nginx = nginx_for($set->url . '/3 connections=4');
        counts($nginx);
        exactly_five_pass($nginx, 'third');
        is $primary->cli('-n', 3, 'ZCARD', 'rate_limit:count:third'), 5, 'in that database';
        is $primary->cli('EXISTS', 'rate_limit:count:third'), 0, 'and in no other';
        is $nginx->bad_lines, '';
    };

    my $silent = start_fake_sentinel(undef);
    my $closing = start_fake_sentinel('');

    for (['refuses', free_port()], ['never answers', $silent->port], ['hangs up', $closing->port]) {
        my ($how, $port) = @$_;

        subtest "a Sentinel that $how: another one is asked" => sub {
            my $nginx = nginx_for(sentinel_url($port, @ports), times => 'timeout=2s connect_timeout=1s');
            counts($nginx);
            exactly_five_pass($nginx, "one-$port");
            is says($nginx, 'down'), 0, 'that is nothing to tell';
            is $nginx->bad_lines, '';
        };
    }

    subtest 'no Sentinel is there at all' => sub {
        my @dead = (free_port(), free_port());
        my $nginx = nginx_for(sentinel_url(@dead));
        passes_uncounted($nginx, qr/is down: Sentinel 127\.0\.0\.1:(?:$dead[0]|$dead[1]): Connection refused/);
        is says($nginx, 'down'), 1, 'once';
    };

    subtest 'a primary that they do not know' => sub {
        (my $url = $set->url) =~ s/mymaster/other/;
        my $nginx = nginx_for($url);
        passes_uncounted($nginx, qr/is down: Sentinel 127\.0\.0\.1:\d+: it knows no primary named "other"/);
        is says($nginx, 'down'), 1, 'once';
    };

    subtest 'reloads under load, and the end' => sub {
        # one that does not answer: there is always a question under way
        my $nginx = nginx_for(sentinel_url($silent->port, @ports), times => 'timeout=2s connect_timeout=300ms');
        counts($nginx);
        exactly_five_pass($nginx, 'kept');

        my $load = load_on($nginx, 5);
        for (1 .. 5) {
            my %old = map { $_ => 1 } $nginx->workers;
            $nginx->reload;
            wait_until { 2 <= grep { !$old{$_} } $nginx->workers } 30, 'new workers';
            sleep 0.5;
        }
        stayed_up($nginx, $load->finish);

        counts($nginx);
        like status_of($nginx, '/count?k=kept'), qr/^REJECTED/, 'counts are kept';
        wait_until { $nginx->workers == 2 } 30, 'the last old workers to leave';
        is $nginx->quit, 0, 'exits cleanly';
        unlike $nginx->error_log, qr/open socket/, 'no socket is left open';
        is $nginx->bad_lines, '', 'nothing alarming in the log';
        wait_until { clients_of($primary) == 0 } 30, 'connections to be closed';
    };

    subtest 'the end while a Sentinel is asked' => sub {
        for my $main ('', 'worker_shutdown_timeout 100ms;') {
            my $nginx = nginx_for(sentinel_url($silent->port), times => 'timeout=2s connect_timeout=30s', main => $main);
            is status_of($nginx, '/count?k=early'), 'FAILED_OPEN none', 'nobody waits for it';
            # without a request that goes on the worker would leave before its time is over
            my $held = $main && begin_request($nginx->port,
                "POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\n");
            sleep 0.2;
            my $start = time;
            is $nginx->quit, 0, 'exits cleanly';
            cmp_ok time - $start, '<', 10, 'and soon';
            is $nginx->bad_lines, '', 'nothing alarming in the log';
        }
    };

    # last: it ends the Sentinels
    subtest 'Sentinels that are gone do not matter while the primary is there' => sub {
        my $nginx = nginx_for($set->url);
        counts($nginx);
        $_->kill9 for $set->sentinels;

        goes_on_counting($nginx);
        is says($nginx, 'down'), 0, 'nothing to tell';
    };
}

# ---- another primary

subtest 'the primary dies under load' => sub {
    my $set = start_sentinels();
    my $nginx = nginx_for($set->url);
    counts($nginx);
    exactly_five_pass($nginx, 'before');
    sleep 1.2;

    my $old = $set->primary;
    my $load = load_on($nginx, 10);
    sleep 0.5;
    $old->kill9;

    wait_until { status_of($nginx, '/load?k=away') eq 'FAILED_OPEN none' } 30, 'it to be missed';
    wait_until { my $port = $set->named(0); $port && $port != $old->port } 120, 'the Sentinels to decide';
    my $decided = time;
    # the new one is not to be taken for dead, too, only because the machine is busy
    $_->cli('SENTINEL', 'SET', 'mymaster', 'down-after-milliseconds', 60000) for $set->sentinels;
    wait_until { status_of($nginx, '/load?k=away') eq 'PASSED redis' } 60, 'counting';
    my $took = time - $decided;
    cmp_ok $took, '<', 5, sprintf 'counting again %.1f s after that', $took;

    my @answers = $load->finish;
    stayed_up($nginx, @answers);
    counts($nginx);
    exactly_five_pass($nginx, 'after');
    is $set->primary->cli('ZCARD', 'rate_limit:count:after'), 5, 'at the new primary';
    ok scalar(grep { $_->{store} eq 'redis' } @answers), 'some were counted';
    my @said = $nginx->error_log =~ /sliding_limit: redis "\S+" is (down|back)/g;
    is $said[-1] // 'back', 'back', 'the log says when it was over';
    unlike "@said", qr/back back/, 'once';
    cmp_ok says($nginx, 'down'), '<', 4, 'and did not say much before';
};

subtest 'a failover by hand is followed' => sub {
    my $set = start_sentinels(@CALM);
    my $nginx = nginx_for($set->url . ' connections=2');
    counts($nginx);
    sleep 1.2;

    my $old = $set->primary;
    my $load = load_on($nginx, 8);
    my $new = $set->fail_over;
    isnt $new->port, $old->port, 'another primary';
    wait_until { clients_of($old) == 0 } 30, 'nginx to leave the old one';
    counts($nginx);
    exactly_five_pass($nginx, 'moved');
    is $new->cli('ZCARD', 'rate_limit:count:moved'), 5, 'counted there';

    wait_until { $old->cli('ROLE') =~ /^slave/ } 60, 'the old one to become a replica';
    stayed_up($nginx, $load->finish);
    counts($nginx);
    is clients_of($old), 0, 'nginx does not return to it';
};

subtest 'a primary that is none any more, which Sentinels do not know' => sub {
    my $set = start_sentinels(@CALM);
    my $nginx = nginx_for($set->url);
    my $old = $set->primary;
    counts($nginx);

    $old->cli('REPLICAOF', '127.0.0.1', free_port());
    wait_until { status_of($nginx, '/load?k=during') eq 'FAILED_OPEN none' } 30, 'READONLY';
    like $nginx->error_log, qr/is down: READONLY/, 'the log says why';

    my $connections = connections_of($old);
    my $end = time + 4;
    my %status;
    while (time < $end) {
        $status{ status_of($nginx, '/load?k=during') }++;
        sleep 0.02;
    }
    is join(' ', keys %status), 'FAILED_OPEN none', 'all pass';
    cmp_ok connections_of($old) - $connections, '<', 40, 'there are few attempts';
    is says($nginx, 'down'), 1, 'one line';
    is $set->named(0), $old->port, 'the Sentinels know nothing';

    my $late = nginx_for($set->url);
    passes_uncounted($late, qr/is down: Sentinel names a server that is not the primary/);

    my $new = $set->fail_over;
    for ($nginx, $late) {
        counts($_);
        exactly_five_pass($_, 'mended' . $_->port);
        is $new->cli('ZCARD', 'rate_limit:count:mended' . $_->port), 5, 'at the new primary';
        is $_->bad_lines, '';
    }
};

subtest 'the old primary still answers, but Sentinels name another' => sub {
    my ($old, $new) = (start_redis(), start_redis());
    my $sentinel = start_fake_sentinel(named_reply('127.0.0.1', $old->port));
    my $nginx = nginx_for(sentinel_url($sentinel->port) . ' connections=3');
    counts($nginx);
    exactly_five_pass($nginx, 'old');
    is $old->cli('ZCARD', 'rate_limit:count:old'), 5, 'at the one they name';

    my $load = load_on($nginx, 12);
    $sentinel->says(named_reply('127.0.0.1', $new->port));
    my $start = time;
    wait_until { clients_of($old) == 0 } 60, 'nginx to leave the old one';
    my $took = time - $start;
    cmp_ok $took, '<', 10, sprintf 'it left after %.1f s', $took;

    my @answers = $load->finish;
    stayed_up($nginx, @answers);
    my $uncounted = grep { $_->{store} eq 'none' } @answers;
    cmp_ok $uncounted, '<', @answers / 20, "$uncounted of " . @answers . ' went uncounted';
    counts($nginx);
    exactly_five_pass($nginx, 'new');
    is $new->cli('ZCARD', 'rate_limit:count:new'), 5, 'now at the other one';
    is $old->cli('EXISTS', 'rate_limit:count:new'), 0, 'and not at the old one';
    like $nginx->error_log, qr/\[notice\] .* the primary is now 127\.0\.0\.1:@{[ $new->port ]}/, 'the log says so';
    is says($nginx, 'down'), 0, 'it was not down';
};

subtest 'a Sentinel behind the times: the others are asked' => sub {
    my $primary = start_redis();
    my $replica = start_redis(args => ['--replicaof', '127.0.0.1', $primary->port]);
    my $right = start_fake_sentinel(named_reply('127.0.0.1', $primary->port));
    my @stale = map { start_fake_sentinel(named_reply('127.0.0.1', $_)) } $replica->port, free_port();
    my @nginx = map { nginx_for(sentinel_url($_->port, $right->port) . ' connections=2') } @stale;

    for my $nginx (@nginx) {
        counts($nginx);
        exactly_five_pass($nginx, 'stale' . $nginx->port);
    }

    goes_on_counting(@nginx);
};

# ---- Sentinels that say something else

subtest 'a Sentinel that names a replica' => sub {
    my $primary = start_redis();
    my $replica = start_redis(args => ['--replicaof', '127.0.0.1', $primary->port]);
    my $sentinel = start_fake_sentinel(named_reply('127.0.0.1', $replica->port));
    my $nginx = nginx_for(sentinel_url($sentinel->port));

    passes_uncounted($nginx, qr/is down: Sentinel names a server that is not the primary/);
    is says($nginx, 'down'), 1, 'once';

    $replica->cli('REPLICAOF', 'NO', 'ONE');
    counts($nginx);
    exactly_five_pass($nginx, 'promoted');
    is $replica->cli('ZCARD', 'rate_limit:count:promoted'), 5;
};

subtest 'nonsense: requests pass, the log says why, and it is over when it is' => sub {
    my $redis = start_redis();
    my $not_one = qr/its answer is not that of a Sentinel/;
    my $no_host = sub { qr/it names "\Q$_[0]\E"(?:, which is neither an address nor a name|: nginx needs a "resolver")/ };
    my $no_port = sub { qr/it names port "\Q$_[0]\E", must be from 1 to 65535/ };
    my $broken = qr/Protocol error|connection|reply|answer/i;
    my $long = 'long' x 100;

    my @answers = (
        ["-ERR the moon is full\r\n", qr/ERR the moon is full/],
        ["-IDONTKNOW No such master with that name\r\n", qr/IDONTKNOW/],
        ["-\r\n", qr//],
        ["*-1\r\n", qr/it knows no primary named "mymaster"/],
        ["\$-1\r\n", qr/it knows no primary named "mymaster"/],
        ["*0\r\n", qr/it knows no primary named "mymaster"/],
        ["+OK\r\n", $not_one],
        [":6379\r\n", $not_one],
        ["\$9\r\n127.0.0.1\r\n", $not_one],
        ["*1\r\n\$9\r\n127.0.0.1\r\n", $not_one],
        ["*3\r\n\$9\r\n127.0.0.1\r\n\$4\r\n6379\r\n\$1\r\nx\r\n", $not_one],
        ["*2\r\n\$9\r\n127.0.0.1\r\n:6379\r\n", $not_one],
        ["*2\r\n\$-1\r\n\$-1\r\n", $not_one],
        ["*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n", $not_one],
        ["*2\r\n-ERR a\r\n-ERR b\r\n", $not_one],
        (map { [named_reply('127.0.0.1', $_), $no_port->($_)] }
            '0', '-1', '65536', '99999999999999999999', 'port', '', ' 6379', '6379 '),
        (map { [named_reply($_, $redis->port), $no_host->($_)] }
            'redis.example', 'localhost', '', '127.0.0.1 ', '127.0.0', '127.0.0.1:6379', '[::1]', '*', '/run/redis.sock', '%s%n%V'),
        [named_reply($long, $redis->port), qr/it names "longlong/],
        [named_reply("redis\r\nspoilt\n", $redis->port), qr/it names "redis/],
        ["\x00\xff\x80\r\n" x 10, $broken],
        ["HTTP/1.1 400 Bad Request\r\n\r\n", $broken],
        ["*2\r\n\$999999999999\r\n", $broken],
        ["*1000000\r\n", $broken],
        ['$10000000' . "\r\n" . 'x' x 200000, qr/too large|connect_timeout/],
        ["*2\r\n\$9\r\n127.0", qr/no answer within connect_timeout/],
        ["%1\r\n+a\r\n+b\r\n", $broken],
        ['', qr/Server closed the connection|Connection reset/],
        [undef, qr/no answer within connect_timeout/],
    );

    my @fakes = map { start_fake_sentinel($_->[0]) } @answers;
    my $nginx = start_nginx(<<"END" . join('', map { <<"LOCATION" } 0 .. $#fakes),
    add_header X-Status \$sliding_limit_status always;
    add_header X-Store \$sliding_limit_store always;
END
    location = /$_ { sliding_limit zone=z$_ max=5 window=600s key=a store=s$_; empty_gif; }
LOCATION
        http => join("\n", map { 'sliding_limit_redis ' . sentinel_url($fakes[$_]->port) . " name=s$_ $TIMES;" } 0 .. $#fakes));

    for my $i (0 .. $#fakes) {
        my ($answer, $why) = @{ $answers[$i] };
        my $port = $fakes[$i]->port;
        my $text = substr $answer // 'silence', 0, 60;
        $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;

        my $line = qr/\Q@{[ sentinel_url($port) ]}\E" is down: Sentinel 127\.0\.0\.1:$port: .*?$why/;
        ok eval { wait_until { $nginx->error_log =~ $line } 30; 1 }, "$text: the log says why"
            or diag grep { /:$port/ } map { "$_\n" } split /\n/, $nginx->error_log;
        is status_of($nginx, "/$i"), 'FAILED_OPEN none', 'and requests pass';
    }

    is $nginx->bad_lines, '', 'nothing alarming in the log';
    unlike $nginx->error_log, qr/^spoilt/m, 'no line but our own in it';

    # what it begins to say now is right, after all
    $_->says(named_reply('127.0.0.1', $redis->port)) for @fakes;
    for my $i (0 .. $#fakes) {
        ok eval { wait_until { status_of($nginx, "/$i") eq 'PASSED redis' } 30; 1 }, "$i: counts now";
    }

    # with more than was asked for behind it
    $fakes[0]->says(named_reply('127.0.0.1', $redis->port) . "+more\r\n" x 10);
    is scalar(my @workers = $nginx->workers), 1;
    $nginx->reload;
    wait_until { my @now = $nginx->workers; @now == 1 && $now[0] != $workers[0] } 30, 'another worker';
    ok eval { wait_until { status_of($nginx, '/0') eq 'PASSED redis' } 30; 1 }, 'more than an answer: the answer counts';

    is $nginx->quit, 0, 'exits cleanly';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

# ---- logging in

my $temp = File::Temp->newdir();

sub write_file {
    my ($name, $content) = @_;

    open my $file, '>', "$temp/$name" or die $!;
    print $file $content;
    close $file or die $!;

    return "$temp/$name";
}

sub shows_no_password { unlike $_[0]->error_log, qr/Hunter2|Swordfish/, 'no password in the log' }

subtest 'Sentinels with a password' => sub {
    my $set = start_sentinels(@CALM, sentinels => 1, replicas => 0, conf => "requirepass $SECRET\n",
        cli_args => ['--no-auth-warning', '-a', $SECRET]);
    my $file = write_file('right', "$SECRET\n");
    my $n = 0;

    for my $login ("sentinel_password=$SECRET", "sentinel_password_file=$file",
        "sentinel_user=default sentinel_password=$SECRET")
    {
        my $nginx = nginx_for($set->url . " $login");
        counts($nginx);
        exactly_five_pass($nginx, 'password' . ++$n);
        shows_no_password($nginx);
        is $nginx->bad_lines, '';
    }

    for (['', 'NOAUTH'], ["sentinel_password=not$SECRET", 'WRONGPASS'],
        ["sentinel_user=nobody sentinel_password=$SECRET", 'WRONGPASS'],
        # that one is for Redis
        ["password=$SECRET", 'NOAUTH'])
    {
        my ($login, $error) = @$_;
        my $nginx = nginx_for($set->url . " $login");
        passes_uncounted($nginx, qr/is down: Sentinel 127\.0\.0\.1:\d+: $error/);
        shows_no_password($nginx);
    }
};

subtest 'users with rights of their own, here and there' => sub {
    my @commands = ((grep { $_ ne '+select' } rights()), '+role');
    my $set = start_sentinels(@CALM, sentinels => 1, replicas => 0, conf => <<"END");
user asker on >$SECRET -\@all +sentinel|get-master-addr-by-name
user idler on >$SECRET -\@all +ping
END
    my $redis = $set->primary;
    is $redis->cli('ACL', 'SETUSER', 'limiter', 'on', ">other$SECRET", '~rate_limit:*', @commands), 'OK';

    my $nginx = nginx_for($set->url
        . " sentinel_user=asker sentinel_password=$SECRET user=limiter password=other$SECRET");
    counts($nginx);
    exactly_five_pass($nginx, 'users');
    shows_no_password($nginx);
    is $nginx->bad_lines, '';

    $nginx = nginx_for($set->url . " sentinel_user=idler sentinel_password=$SECRET");
    passes_uncounted($nginx, qr/is down: Sentinel 127\.0\.0\.1:\d+: NOPERM/);
    shows_no_password($nginx);

    $nginx = nginx_for($set->url . " sentinel_user=asker sentinel_password=$SECRET user=limiter password=not$SECRET");
    passes_uncounted($nginx, qr/\[crit\] .*is down: WRONGPASS/);
    shows_no_password($nginx);
};

subtest 'a Sentinel that does not know AUTH, and quotes it' => sub {
    my $sentinel = start_fake_sentinel("-NOAUTH Authentication required.\r\n",
        auth => "-ERR unknown command `AUTH`, with args beginning with: `$SECRET`, \r\n");
    my $nginx = nginx_for(sentinel_url($sentinel->port) . " sentinel_password=$SECRET");

    passes_uncounted($nginx, qr/is down: Sentinel 127\.0\.0\.1:\d+: ERR unknown command/);
    shows_no_password($nginx);
};

# Wherever what it says is cut off, that is in the middle of a password for some of them.
subtest 'a Sentinel that repeats the password, again and again' => sub {
    for my $before ('', 'x' x 8) {
        my $error = "-ERR $before" . $SECRET x 100 . "\r\n";

        for my $sentinel (start_fake_sentinel($error), start_fake_sentinel('', auth => $error)) {
            my $nginx = nginx_for(sentinel_url($sentinel->port) . " sentinel_password=$SECRET");

            passes_uncounted($nginx, qr/is down: Sentinel 127\.0\.0\.1:\d+: ERR $before\*{30}/);
            unlike $nginx->error_log, qr/\*{3}\w/, 'nothing of the password in the log';
        }
    }
};

done_testing;
