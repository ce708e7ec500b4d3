# A Redis Cluster: every client is counted on the node that has its slot, exactly,
# whatever becomes of slots and nodes meanwhile.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use IO::Socket::IP ();
use SlidingLimit::Cluster qw(slot start_cluster start_cluster_node);
use SlidingLimit::FakeRedis qw(read_command start_fake_redis);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::NameServer qw(start_name_server);
use SlidingLimit::Rights qw(rules);
use SlidingLimit::Servers qw(begin_request free_port get start_nginx wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

# seconds in which workers notice things that are not announced to them
my $SOON = 5;

my $config = <<'END';
    # all refusals are Redis's own, and not in the log
    sliding_limit_deny_cache off;
    error_log logs/error.log error;
    # so that clients get to all workers
    keepalive_requests 100;
    add_header X-Status $sliding_limit_status always;
    add_header X-Zone $sliding_limit_zone always;
    add_header X-Key $arg_k always;
    location /count { sliding_limit zone=count max=5 window=600s key=$arg_k; empty_gif; }
    location /exact { sliding_limit zone=exact max=50 window=600s key=$arg_k; empty_gif; }
    location /load { sliding_limit zone=load max=1000000 window=600s key=$arg_k; empty_gif; }
    location /both {
        sliding_limit zone=minute max=3 window=60s key=$arg_k;
        sliding_limit zone=hour max=100 window=1h key=$arg_k;
        empty_gif;
    }
    location /keys {
        sliding_limit zone=user max=5 window=600s key=$arg_k;
        sliding_limit zone=site max=3 window=600s key=$arg_site;
        empty_gif;
    }
END

sub nginx_for {
    my ($url, %with) = @_;
    my $timeout = delete $with{timeout} || '5s';
    my $connect_timeout = delete $with{connect_timeout} || '5s';
    my $more = delete $with{more} || '';
    my $resolver = delete $with{resolver} || '';

    return start_nginx($config, workers => 2,
        http => "sliding_limit_redis $url timeout=$timeout connect_timeout=$connect_timeout $more; $resolver", %with);
}

sub status_of { (get($_[0]->port, $_[1]))[1]{'x-status'} // 'no answer' }

# The log about one node: how often it went and came.
sub says {
    my ($nginx, $node, $what) = @_;
    my $port = $node->port;
    my @lines = $nginx->error_log =~ /sliding_limit: redis "\S+ at \S+:$port" is \Q$what\E/g;
    return scalar @lines;
}

sub exactly_five_pass {
    my ($nginx, $key) = @_;
    my @status = map { status_of($nginx, "/count?k=$key") } 1 .. 8;
    is "@status", join(' ', ('PASSED') x 5, ('REJECTED') x 3), "counting is right ($key)";
}

# Until every worker counts this key; they take connections at random.
sub counts {
    my ($nginx, $key) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = status_of($nginx, "/load?k=$key") eq 'PASSED' ? $in_a_row + 1 : 0;
        $in_a_row >= 20;
    } 60, "$key to be counted";
}

# Eight clients ask for all keys in turn, each beginning with another one, until
# they are told to stop.
sub load_on {
    my ($servers, $path, $keys, %with) = @_;

    return start_load(clients => 8, ports => [map { $_->port } @$servers], pause => 0.001, seconds => 300,
        path => sub { my ($n, $i) = @_; "/$path?k=" . $keys->[($i + $n * @$keys / 8) % @$keys] }, %with);
}

sub nothing_uncounted {
    my (@answers) = @_;

    like summary(@answers), qr/^200:\d+(?: 429:\d+)?$/, 'nothing but 200 and 429: ' . summary(@answers);
    is scalar(grep { $_->{remaining} eq '-' } @answers), 0, 'and all were counted';
}

# Of each of these keys exactly `max` have passed, once some more have been tried.
sub exactly_max_pass {
    my ($nginx, $path, $max, $keys, @answers) = @_;
    my %passed = map { $_ => 0 } @$keys;
    $passed{ $_->{key} }++ for grep { $_->{status} == 200 } @answers;

    for my $key (@$keys) {
        for (0 .. $max) {
            last if ($nginx->try("/$path?k=$key"))[0] != 200;
            $passed{$key}++;
        }
    }

    my @wrong = map { "$_: $passed{$_}" } grep { $passed{$_} != $max } @$keys;
    is "@wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]", '', "exactly $max have passed for each of " . @$keys . ' clients';
}

sub about_redis { join "\n", grep { /sliding_limit: redis/ } split /\n/, $_[0]->error_log }
sub alarming { join '', map { $_->bad_lines } @_ }

# If a node is away, the others are to go on; and one without slots stays a primary.
my $cluster = start_cluster(primaries => 3, replicas => 1,
    args => ['--cluster-require-full-coverage', 'no', '--cluster-allow-replica-migration', 'no']);
my $nginx = nginx_for($cluster->url($cluster->primaries));
my @primaries = $cluster->primaries;

counts($nginx, $_) for map { $cluster->keys_of($_, 1, 'first') } @primaries;

subtest 'a client is counted over all workers, on the node that has its slot' => sub {
    my @answers = start_load(clients => 8, requests => 10, ports => [$nginx->port], path => '/exact?k=client')->finish;

    is summary(@answers), '200:50 429:30', 'exactly max pass';
    my @members = $cluster->members('exact', 'client');
    is scalar @members, 50, 'its set is called rate_limit:exact:{client}';
    like $members[0], qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/, 'and has the ids of requests in it';

    exactly_five_pass($nginx, ($cluster->keys_of($_, 1, 'each'))[0]) for @primaries;
    is status_of($nginx, '/load?k={a}{b'), 'PASSED' for 1 .. 3;
    is scalar(grep { $_->cli('KEYS', 'rate_limit:load:{#*}') } @primaries), 1, 'of a key with braces there is a hash';
};

subtest 'two limits with one key are decided in one call, all or nothing' => sub {
    is +($nginx->try('/both?k=both'))[0], 200 for 1 .. 3;
    is_deeply [$nginx->try('/both?k=both', 'X-Zone')], [429, 'minute'], 'refused' for 1 .. 3;
    is_deeply [map { $cluster->count($_, 'both') } qw(minute hour)], [3, 3], 'the hour has not moved';

    # now and then there is one that is only a sign of life
    my ($node) = @primaries;
    my $calls = $node->calls('evalsha');
    is +($nginx->try("/both?k=$_"))[0], 200 for $cluster->keys_of($node, 20, 'call');
    cmp_ok $node->calls('evalsha') - $calls, '<', 30, 'one script call for each request';
};

subtest 'limits with keys on different nodes: what was counted is taken back if another refuses' => sub {
    my ($site) = $cluster->keys_of($primaries[0], 1, 'site');
    my @users = map { $cluster->keys_of($_, 1, 'user') } @primaries[1, 2, 1];

    is_deeply [$nginx->try("/keys?k=$_&site=$site", 'X-Status')], [200, 'PASSED'] for @users;
    is $cluster->count('site', $site), 3, 'all used up';
    my @before = map { $cluster->count('user', $_) } @users;

    for (1 .. 3) {
        is_deeply [$nginx->try("/keys?k=$_&site=$site", 'X-Zone')], [429, 'site'], 'refused' for @users;
    }
    wait_until { "@before" eq join ' ', map { $cluster->count('user', $_) } @users } 10, 'counts to be taken back';
    pass 'counts of the users are what they were';
    is $cluster->count('site', $site), 3, 'and that of the site';

    # from two workers at once
    my ($busy) = $cluster->keys_of($primaries[1], 1, 'busy');
    my ($hall) = $cluster->keys_of($primaries[2], 1, 'hall');
    my @answers = start_load(clients => 8, requests => 10, ports => [$nginx->port],
        path => "/keys?k=$busy&site=$hall")->finish;
    is summary(@answers), '200:3 429:77';
    wait_until { $cluster->count('user', $busy) == 3 } 10, 'counts to be taken back';
    pass 'also under load';
};

subtest 'a thousand clients of two servers at once' => sub {
    my $other = nginx_for($cluster->url($primaries[1]));
    my @keys = map { "thousand$_" } 1 .. 1000;

    my @answers = load_on([$nginx, $other], 'count', \@keys, requests => 1000)->finish;
    nothing_uncounted(@answers);
    exactly_max_pass($nginx, 'count', 5, \@keys, @answers);

    my %nodes = map { $_ => 1 } ($cluster->owners)[map { slot($_) } @keys];
    is scalar keys %nodes, 3, 'all nodes have some of them';
    is alarming($nginx, $other), '';
};

subtest 'slots move under load, as redis-cli does it' => sub {
    my @keys = ($cluster->keys_of($primaries[0], 200, 'reshard', 300), $cluster->keys_of($primaries[2], 50, 'stays'));
    my $load = load_on([$nginx], 'exact', \@keys);

    sleep 0.3;
    $cluster->reshard(300, $primaries[0], $primaries[1]);
    sleep 1;
    my @answers = $load->stop->finish;

    nothing_uncounted(@answers);
    exactly_max_pass($nginx, 'exact', 50, \@keys, @answers);
    is scalar(grep { $cluster->owner($_) != $primaries[1] } @keys[0, 199]), 0, 'their slots have moved';
};

subtest 'half of a slot has moved: ASK' => sub {
    my ($here, $there) = @primaries[0, 1];
    my ($old) = $cluster->keys_of($here, 1, 'ask');
    my ($first, $new) = $cluster->keys_of($here, 2, 'asknew', 1);
    my ($full) = $cluster->keys_of($primaries[2], 1, 'full');

    is +($nginx->try("/keys?k=filler&site=$full"))[0], 200 for 1 .. 3;
    is status_of($nginx, "/count?k=$old"), 'PASSED' for 1 .. 2;

    my $move = $cluster->begin_move(slot($old), $here, $there);
    is status_of($nginx, "/count?k=$old"), 'PASSED', 'not moved yet';
    is $cluster->move_key($move, "rate_limit:count:{$old}"), 'OK';
    is status_of($nginx, "/count?k=$old"), 'PASSED', 'moved' for 1 .. 2;
    is status_of($nginx, "/count?k=$old"), 'REJECTED' for 1 .. 3;

    # a set that has never been there is made where the slot goes, and taken back there
    is_deeply [$nginx->try("/keys?k=$old&site=$full", 'X-Zone')], [429, 'site'] for 1 .. 3;
    $cluster->end_move($move);
    wait_until { $cluster->count('user', $old) == 0 } 10, 'counts to be taken back';
    is $cluster->owner($old), $there, 'the slot has moved';
    is status_of($nginx, "/count?k=$old"), 'REJECTED', 'and is as full as it was';

    $move = $cluster->begin_move(slot($first), $here, $there);
    is status_of($nginx, "/count?k=$first"), 'PASSED', 'counted where the slot goes';
    $cluster->end_move($move);
    is status_of($nginx, "/count?k=$new"), 'PASSED', 'another one of the slot';
    is_deeply [map { $there->cli('ZCARD', "rate_limit:count:{$_}") } $first, $new], [1, 1], 'both there';
};

# So many requests at once, and what became of them.
sub begin_both {
    my ($nginx, $key, $count) = @_;

    return map {
        begin_request($nginx->port, "GET /both?k=$key HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
    } 1 .. $count;
}

sub statuses {
    my (@requests) = @_;

    return map {
        my $answer = do { local $/; <$_> } // '';
        $answer =~ /^X-Status: (\S+)\r$/m ? $1 : 'no answer'
    } @requests;
}

subtest 'half of a client has moved: TRYAGAIN, until the other half has, too' => sub {
    my ($here, $there) = @primaries[0, 1];
    my $hurried = nginx_for($cluster->url(@primaries), timeout => '1s', workers => 1);
    my ($key, $other) = $cluster->keys_of($here, 2, 'again');
    counts($hurried, $_) for $key, $other;

    is status_of($nginx, "/both?k=$key"), 'PASSED';
    my $move = $cluster->begin_move(slot($key), $here, $there);
    $cluster->move_key($move, "rate_limit:minute:{$key}");

    my @hurried = statuses(begin_both($hurried, $key, 8));
    is "@hurried", join(' ', ('FAILED_OPEN') x 8), 'who has no time passes';
    like $hurried->error_log, qr/check\(s\) failed, the last one because: TRYAGAIN/, 'the log says why';
    is says($hurried, $_, 'down'), 0, 'that is not an outage' for $here, $there;
    is status_of($hurried, "/load?k=$other"), 'PASSED', 'others are counted';

    my @waiting = begin_both($nginx, $key, 5);
    sleep 0.5;
    $cluster->end_move($move);
    is join(' ', sort(statuses(@waiting))), 'PASSED PASSED REJECTED REJECTED REJECTED', 'who waits is counted';
    is_deeply [map { $cluster->count($_, $key) } qw(minute hour)], [3, 3], 'all or nothing';
    is alarming($nginx, $hurried), '';
};

subtest 'slots move back and forth under load: who has what is not asked for too often' => sub {
    my ($here, $there) = @primaries[0, 1];
    my @keys = $cluster->keys_of($here, 40, 'throttle', 20);
    my %slots = map { slot($_) => 1 } @keys;
    my $errors = sub {
        my $sum = 0;
        for my $node (@primaries) {
            $sum += $_ for $node->cli('INFO', 'errorstats') =~ /^errorstat_(?:MOVED|ASK):count=(\d+)/mg;
        }
        return $sum;
    };
    my $other = nginx_for($cluster->url($here));
    my @warm_up = map { status_of($other, "/load?k=$_") } (@keys) x 20;
    is scalar(grep { $_ ne 'PASSED' } @warm_up), 0, 'all are counted';
    my @before = ($errors->(), $cluster->calls('cluster|nodes'));

    my $start = time;
    my $load = load_on([$other], 'load', \@keys);
    while (time < $start + 5) {
        my $calls = $cluster->calls('evalsha');
        $cluster->end_move($cluster->begin_move($_, $here, $there)) for keys %slots;
        ($here, $there) = ($there, $here);
        # a call that met nothing but moves would be given up
        wait_until { $cluster->calls('evalsha') > $calls + 100 } 10, 'calls between moves';
    }
    my @answers = $load->stop->finish;
    my $asked = $cluster->calls('cluster|nodes') - $before[1];
    my $sent_on = $errors->() - $before[0];
    my $took = time - $start;

    # of each worker two a second; those of the other nginx may have some to do, too
    cmp_ok $asked, '<=', 4 * (2 * $took + 2), "asked $asked times";
    cmp_ok $sent_on, '>', 2 * $asked, "while $sent_on calls were sent on";

    nothing_uncounted(@answers);
    my %requests = map { $_ => 20 } @keys;
    $requests{ $_->{key} }++ for @answers;
    my @wrong = grep { $cluster->count('load', $_) != $requests{$_} } @keys;
    is "@wrong", '', 'every request was counted once';
    is alarming($other), '';
    $cluster->settle;
};

# Until this node need not send calls on any more, while many are made: all workers know
# who has its slots now.
sub all_leave {
    my ($node) = @_;
    my ($sent_on, $calls) = (-1, 0);

    wait_until {
        my ($now) = $node->cli('INFO', 'errorstats') =~ /^errorstat_MOVED:count=(\d+)/m;
        my $calls_now = $cluster->calls('evalsha');
        ($sent_on, $calls) = ($now // 0, $calls_now) if ($now // 0) != $sent_on;
        $calls_now >= $calls + 2000;
    } 60, 'calls to go elsewhere';
}

subtest 'a node comes, and goes, under load' => sub {
    my @keys = ($cluster->keys_of($primaries[1], 150, 'comes', 200), $cluster->keys_of($primaries[2], 50, 'remains'));
    my $load = load_on([$nginx], 'exact', \@keys);

    my $new = $cluster->add;
    $cluster->reshard(200, $primaries[1], $new);
    sleep 1;
    my @answers = $load->stop->finish;

    nothing_uncounted(@answers) or diag(about_redis($nginx));
    exactly_max_pass($nginx, 'exact', 50, \@keys, @answers);
    is $cluster->owner($keys[0]), $new, 'it has clients of its own';

    $load = load_on([$nginx], 'load', \@keys);
    $cluster->reshard(200, $new, $primaries[1]);

    # who asks it for what it had before it is forgotten is sent on; afterwards it knows nobody
    all_leave($new);
    $cluster->remove($new);

    # it still runs, and would say that it knows nobody
    sleep 2;
    $new->stop;
    sleep 1;
    @answers = $load->stop->finish;

    nothing_uncounted(@answers) or diag(about_redis($nginx));
    exactly_five_pass($nginx, ($cluster->keys_of($_, 1, 'afterwards'))[0]) for @primaries;

    my $asked = $cluster->calls('evalsha');
    get($nginx->port, "/load?k=$_") for @keys[0 .. 99];
    cmp_ok $cluster->calls('evalsha') - $asked, '<=', 120, 'and calls go to the right node at once';
    is alarming($nginx), '';
};

subtest 'which nodes to begin with' => sub {
    my ($replica) = $cluster->replica_of($primaries[0]);
    my $loner = start_cluster_node();

    for (['the first one is dead', 'cluster://127.0.0.1:' . free_port() . ',127.0.0.1:' . $primaries[0]->port],
        ['only one', $cluster->url($primaries[2])], ['only a replica', $cluster->url($replica)],
        ['one that is not in the cluster', $cluster->url($loner, $primaries[1])])
    {
        my ($name, $url) = @$_;
        my $begun = nginx_for($url);
        my $word = $name =~ tr/ //dr;

        counts($begun, $_) for map { $cluster->keys_of($_, 1, "known$word") } @primaries;
        exactly_five_pass($begun, ($cluster->keys_of($_, 1, $word))[0]) for @primaries;
        is alarming($begun), '', $name;
    }
};

subtest 'several connections for each worker and node' => sub {
    my $calm = sub { my ($node) = @_; return scalar grep { !/ cmd=client/ } split /\n/, $node->cli('CLIENT', 'LIST', 'TYPE', 'normal') };
    my %before = map { $_->port => $calm->($_) } @primaries;
    my $wide = nginx_for($cluster->url($primaries[0]), more => 'connections=3');
    my @keys = map { "wide$_" } 1 .. 60;

    for my $node (@primaries) {
        wait_until { $calm->($node) == $before{ $node->port } + 6 } 30, 'three of each of two workers';
        pass 'three of each worker';
    }
    my @answers = load_on([$wide], 'exact', \@keys, requests => 420)->finish;
    nothing_uncounted(@answers);
    exactly_max_pass($wide, 'exact', 50, \@keys, @answers);
    is $calm->($_), $before{ $_->port } + 6, 'and no more' for @primaries;

    is $wide->quit, 0;
    is alarming($wide), '';
};

subtest 'a user with no more rights than the documentation names' => sub {
    my $secret = 'not-for-the-log';

    for my $node ($cluster->alive) {
        is $node->cli('ACL', 'SETUSER', 'limiter', 'reset', 'on', ">$secret", rules(), '+cluster|nodes',
            '+asking'), 'OK';
    }

    my ($here, $there) = @primaries[0, 1];
    my ($moving) = $cluster->keys_of($here, 1, 'rights', 1);
    my $nginx = nginx_for($cluster->url($here), more => "user=limiter password=$secret");

    counts($nginx, ($cluster->keys_of($_, 1, 'right'))[0]) for @primaries;
    my $move = $cluster->begin_move(slot($moving), $here, $there);
    is status_of($nginx, "/count?k=$moving"), 'PASSED', 'also where the server says ASK';
    $cluster->end_move($move);
    unlike $nginx->error_log, qr/NOPERM|$secret/, 'nothing is missing';
    is alarming($nginx), '';
};

subtest 'reload under load, and quit' => sub {
    my $reloaded = nginx_for($cluster->url(@primaries), more => 'connections=2');
    my @keys = map { "reload$_" } 1 .. 50;
    my $load = load_on([$reloaded], 'load', \@keys);

    for (1 .. 5) {
        sleep 0.6;
        $reloaded->reload;
    }
    sleep 1;
    my @answers = $load->stop->finish;
    is summary(grep { $_->{status} != 200 } @answers), '', 'nothing but 200: ' . summary(@answers);
    is $reloaded->quit, 0, 'it ends';
    is alarming($reloaded), '', 'and leaves nothing behind';
};

subtest 'a primary is killed under load' => sub {
    my ($victim, @others) = @primaries;
    my ($replica) = $cluster->replica_of($victim);
    my @its_own = $cluster->keys_of($victim, 20, 'killed');
    my @of_others = map { $cluster->keys_of($_, 60, 'unharmed') } @others;
    $cluster->settle;
    $cluster->watch_closely;

    my $own_load = load_on([$nginx], 'load', \@its_own, pause => 0.01);
    my $load = load_on([$nginx], 'exact', \@of_others, pause => 0.02);
    sleep 1;
    my $killed = time;
    $victim->kill9;
    wait_until { $replica->info('replication', 'role') eq 'master' } 30, 'the promotion';
    my $promoted = time;
    sleep $SOON + 1;
    my @of_its_own = $own_load->stop->finish;
    my @answers = $load->stop->finish;

    is summary(grep { $_->{status} != 200 } @of_its_own), '', 'all of its clients pass: ' . summary(@of_its_own);
    my @uncounted = grep { $_->{remaining} eq '-' } @of_its_own;
    ok scalar(@uncounted), 'some were not counted';
    cmp_ok $uncounted[0]{at}, '>', $killed - 1, 'when it was away';
    cmp_ok $uncounted[-1]{at}, '<', $promoted + $SOON,
        sprintf 'the last one %.1f s after the promotion', $uncounted[-1]{at} - $promoted;

    nothing_uncounted(@answers);
    exactly_max_pass($nginx, 'exact', 50, \@of_others, @answers);
    exactly_five_pass($nginx, ($cluster->keys_of($replica, 1, 'promoted'))[0]);
    is says($nginx, $victim, 'down'), 1, 'one line for all workers';

    # one to begin with: it is not forgotten
    $victim->start;
    $cluster->settle;
    wait_until { says($nginx, $victim, 'back') } 60, 'the workers to notice that it is back';
    exactly_five_pass($nginx, ($cluster->keys_of($replica, 2, 'returned'))[1]);

    # a replica now; connections to it are as good as any
    $victim->cli('CLIENT', 'KILL', 'TYPE', 'normal');
    counts($nginx, $its_own[0]);
    $replica->cli('CLIENT', 'KILL', 'TYPE', 'normal');
    counts($nginx, $its_own[0]);
    is join('', $nginx->error_log =~ /.*\[crit\].*/g), '', 'nothing that would need somebody';
    is alarming($nginx), '';
};

subtest 'a replica takes over while all are there' => sub {
    my ($old) = $cluster->primaries;
    my ($new) = $cluster->replica_of($old);
    my @keys = $cluster->keys_of($old, 100, 'manual');

    my $load = load_on([$nginx], 'exact', \@keys);
    sleep 0.5;
    is $new->cli('CLUSTER', 'FAILOVER'), 'OK';
    wait_until { $new->info('replication', 'role') eq 'master' } 30, 'the promotion';
    $old->cli('CLIENT', 'KILL', 'TYPE', 'normal');
    sleep 2;
    my @answers = $load->stop->finish;

    like summary(@answers), qr/^200:\d+(?: 429:\d+)?$/, 'nothing but 200 and 429: ' . summary(@answers);
    exactly_five_pass($nginx, ($cluster->keys_of($new, 1, 'tookover'))[0]);
    is join('', $nginx->error_log =~ /.*\[crit\].*/g), '', 'nothing that would need somebody';
    is alarming($nginx), '';
};

subtest 'a primary hangs under load' => sub {
    my ($victim) = $cluster->primaries;
    my ($replica) = $cluster->replica_of($victim);
    my @its_own = $cluster->keys_of($victim, 20, 'hanging');
    my $hurried = nginx_for($cluster->url, timeout => '1s', connect_timeout => '1s');
    counts($hurried, $its_own[0]);
    $cluster->settle;
    $cluster->watch_closely;

    my $load = load_on([$hurried], 'load', \@its_own, pause => 0.01);
    sleep 0.5;
    $victim->pause;
    wait_until { $replica->info('replication', 'role') eq 'master' } 30, 'the promotion';
    my $promoted = time;
    sleep $SOON + 1;
    my @answers = $load->stop->finish;
    $victim->resume;

    is summary(grep { $_->{status} != 200 } @answers), '', 'all of its clients pass: ' . summary(@answers);
    my @uncounted = grep { $_->{remaining} eq '-' } @answers;
    cmp_ok $uncounted[-1]{at}, '<', $promoted + $SOON,
        sprintf 'the last one uncounted is %.1f s after the promotion', $uncounted[-1]{at} - $promoted;
    $cluster->settle;
    exactly_five_pass($nginx, ($cluster->keys_of($replica, 1, 'hung'))[0]);
    is alarming($hurried, $nginx), '';
};

is $nginx->quit, 0, 'nginx ends';
is alarming($nginx), '', 'nothing alarming in the log';
undef $cluster;

subtest 'CLUSTERDOWN: requests pass, a line for each node, and it is over when the cluster says so' => sub {
    my $cluster = start_cluster(primaries => 3, scattered => 1, args => ['--cluster-require-full-coverage', 'yes']);
    my ($victim, @others) = $cluster->nodes;
    my $nginx = nginx_for($cluster->url(@others));
    my @keys = map { $cluster->keys_of($_, 1, 'down') } $cluster->nodes;
    my ($lost, @kept) = @keys;

    # a map of some 90 KB, too
    counts($nginx, $_) for @keys;

    $cluster->watch_closely;
    $victim->kill9;
    for my $key (@kept) {
        wait_until { status_of($nginx, "/load?k=$key") eq 'FAILED_OPEN' } 30, 'CLUSTERDOWN';
    }
    my @status = map { status_of($nginx, "/load?k=$_") } (@keys) x 20;
    is scalar(grep { $_ ne 'FAILED_OPEN' } @status), 0, 'all pass, uncounted';
    is says($nginx, $_, 'down: CLUSTERDOWN'), 1, 'the log says why, once' for @others;
    is says($nginx, $victim, 'down'), 1, 'and that one is away';

    $victim->start;
    counts($nginx, $_) for @keys;
    exactly_five_pass($nginx, $_) for @keys;
    is says($nginx, $_, 'back'), 1, 'and that it is over' for $victim, @others;
    is alarming($nginx), '';
};

# A fake node that sends every check elsewhere; where to is for the test to write
# into `file`. It counts them there, too.
sub start_sender {
    my $dir = File::Temp->newdir();
    my $fake = start_fake_redis(sub {
        my ($socket) = @_;
        open my $order, '<', "$dir/order" or return;
        open my $tally, '>>', "$dir/tally" or return;
        syswrite $tally, '.';
        print $socket '-', scalar(<$order>), "\r\n";
    });

    return { fake => $fake, dir => $dir };
}

sub order {
    my ($sender, $order) = @_;
    open my $file, '>', "$sender->{dir}/order" or die $!;
    print $file $order;
}

sub tally { -s "$_[0]{dir}/tally" // 0 }
sub sender_url { 'cluster://127.0.0.1:' . $_[0]{fake}->port }

subtest 'nodes that send calls to each other, for ever' => sub {
    my @senders = map { start_sender() } 1 .. 2;
    order($senders[$_], 'MOVED 1 127.0.0.1:' . $senders[1 - $_]{fake}->port) for 0, 1;
    my $nginx = nginx_for(sender_url($senders[0]), workers => 1);
    my @workers = $nginx->workers;

    is status_of($nginx, '/load?k=circles'), 'FAILED_OPEN' for 1 .. 10;
    my $calls = tally($senders[0]) + tally($senders[1]);
    cmp_ok $calls, '<=', 80, "no storm: $calls calls";
    cmp_ok tally($_), '>', 0, 'both were asked' for @senders;
    like $nginx->error_log, qr/check\(s\) failed, the last one because: MOVED/, 'the log says why';
    is_deeply [$nginx->workers], \@workers, 'no crash';
    is alarming($nginx), '';
};

subtest 'redirections that lead nowhere' => sub {
    for my $order ('MOVED', 'MOVED 99999 x', 'MOVED 1', 'MOVED 1 ', 'MOVED 1 :', 'MOVED 1 127.0.0.1:0',
        'MOVED -1 127.0.0.1:1', 'MOVED 1 host.example:1', 'MOVED 1 ' . 'x' x 1000 . ':1', 'ASK',
        'ASK 1 host.example:1', 'MOVED 1 127.0.0.1:' . free_port(), 'ASK 1 127.0.0.1:' . free_port())
    {
        my $sender = start_sender();
        order($sender, $order);
        my $nginx = nginx_for(sender_url($sender), workers => 1);
        my @workers = $nginx->workers;

        is status_of($nginx, '/load?k=nowhere'), 'FAILED_OPEN', substr $order, 0, 40 for 1 .. 3;
        like $nginx->error_log, qr/\[error\].*sliding_limit: redis/, 'the log says so';
        cmp_ok tally($sender), '<=', 30, 'no storm';
        is_deeply [$nginx->workers], \@workers, 'no crash';
        is alarming($nginx), '';
    }
};

# A fake node that knows of many others, which nobody has ever met, and has half of the
# slots itself.
sub start_gossip {
    my ($others) = @_;
    my $port;
    my $map = sub {
        my $line = "%040d 127.0.0.1:%d@%d master - 0 0 %d connected %s\n";

        return join '', map({ sprintf $line, $_, 1 + $_, 1, $_, 20 * $_ . '-' . (20 * $_ + 19) } 0 .. $others - 1),
            sprintf $line, $others, $port, 1, $others, 20 * $others . '-16383';
    };

    return start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        $port = $socket->sockport;

        while (my ($command) = read_command($socket)) {
            print $socket $command eq 'CLUSTER' ? '$' . length($map->()) . "\r\n" . $map->() . "\r\n"
                : $command eq 'EVALSHA' ? SlidingLimit::FakeRedis::ADMITTED : "+OK\r\n";
        }
    });
}

subtest 'more servers than can be known together: those that are away do not take others with them' => sub {
    my $fake = start_gossip(400);
    my $key = (grep { slot($_) >= 8000 } 1 .. 100)[0];
    my $nginx = nginx_for('cluster://127.0.0.1:' . $fake->port, slots => 4096);

    wait_until { (my @down = $nginx->error_log =~ /at 127\.0\.0\.1:\d+" is down/g) >= 400 } 60, 'those that are away';
    counts($nginx, $key);
    my %status;
    my $end = time + 5;
    while (time < $end) {
        $status{ status_of($nginx, "/load?k=$key") }++;
        sleep 0.01;
    }
    is join(' ', keys %status), 'PASSED', 'all are counted';
    is alarming($nginx), '';
};

sub has_ipv6 { IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1) }

# Nodes with cluster-preferred-endpoint-type hostname send calls to names.
my $dns = start_name_server('node.test' => '127.0.0.1');
my $resolver = 'resolver 127.0.0.1:' . $dns->port . ' ipv6=off;';

for my $to (['a redirection without a host leads to the same host', '127.0.0.1', ''],
    ['a redirection to an IPv6 address', '::1', '::1'],
    ['a redirection to a name, which is looked up', '127.0.0.1', 'Node.TEST'])
{
    my ($name, $host, $in_order) = @$to;

    subtest $name => sub {
        plan skip_all => 'no IPv6 here' if $host eq '::1' && !has_ipv6();

        my $node = start_cluster_node(bind => $host);
        $node->cli('CLUSTER', 'ADDSLOTS', 0 .. 16383);
        wait_until { $node->cli('CLUSTER', 'INFO') =~ /cluster_state:ok/ } 30, 'the node';

        my $sender = start_sender();
        order($sender, "MOVED 1 $in_order:" . $node->port);
        my $nginx = nginx_for(sender_url($sender), workers => 1, resolver => $resolver, more => 'connections=2');

        exactly_five_pass($nginx, 'there');
        is $node->cli('ZCARD', 'rate_limit:count:{there}'), 5, 'counted there';
        cmp_ok tally($sender), '<=', 8, 'the other one is not asked for ever';
        is alarming($nginx), '';
    };
}

# A node that has all slots.
sub start_whole_node {
    my $node = start_cluster_node(@_);
    $node->cli('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    wait_until { $node->cli('CLUSTER', 'INFO') =~ /cluster_state:ok/ } 30, 'the node';
    return $node;
}

subtest 'several connections to a node that has a name: each looks it up for itself' => sub {
    my $node = start_whole_node();
    my $nginx = nginx_for('cluster://node.test:' . $node->port, resolver => $resolver, more => 'connections=3');
    my @workers = $nginx->workers;

    counts($nginx, "named$_") for 1 .. 5;
    exactly_five_pass($nginx, 'several');
    is_deeply [$nginx->workers], \@workers, 'no crash';
    is $nginx->error_log =~ /is down/, '', 'nothing to tell';

    # and when all of them connect anew
    $node->cli('CLIENT', 'KILL', 'TYPE', 'normal');
    counts($nginx, "named$_") for 1 .. 5;
    is_deeply [$nginx->workers], \@workers, 'no crash';
    is $nginx->quit, 0;
    is alarming($nginx), '';
};

subtest 'a node to begin with is not forgotten, however its name is written' => sub {
    my $node = start_whole_node();
    my $nowhere = sub { $node->cli('CONFIG', 'SET', 'cluster-announce-ip', $_[0]) };
    $nowhere->('127.0.0.2');
    my $nginx = nginx_for('cluster://Node.TEST:' . $node->port, resolver => $resolver, timeout => '500ms');

    wait_until { $nginx->error_log =~ /at 127\.0\.0\.2:\d+" is down/ } 30, 'the address that it gives to be tried';
    sleep 3;
    $nowhere->('127.0.0.1');
    counts($nginx, 'remembered');
    exactly_five_pass($nginx, 'remembered');
    is alarming($nginx), '';
};

subtest 'nodes that announce the same name and port are told apart by their addresses' => sub {
    my $start = sub {
        my ($host, %with) = @_;
        return start_cluster_node(bind => $host, %with,
            args => ['--cluster-announce-ip', $host, '--cluster-announce-hostname', 'service.test']);
    };
    my $first = $start->('127.0.0.1');
    my $second = $start->('127.0.0.2', port => $first->port);
    my $bus = $second->cli('CONFIG', 'GET', 'cluster-port') =~ /(\d+)$/ ? $1 : die;
    $first->cli('CLUSTER', 'SET-CONFIG-EPOCH', 1);
    $first->cli('CLUSTER', 'ADDSLOTSRANGE', 0, 8191);
    $second->cli('CLUSTER', 'ADDSLOTSRANGE', 8192, 16383);
    $first->cli('CLUSTER', 'MEET', '127.0.0.2', $second->port, $bus);
    for my $node ($first, $second) {
        wait_until { $node->cli('CLUSTER', 'INFO') =~ /cluster_state:ok/ } 60, 'the nodes to agree';
    }
    my @announced = $first->cli('CLUSTER', 'NODES') =~ /,service\.test/g;
    is @announced, 2, 'they have the same name';

    my $nginx = nginx_for('cluster://127.0.0.1:' . $first->port);
    my @keys = map { "apart$_" } 1 .. 20;
    counts($nginx, $_) for @keys[0, 1];

    # maps that are learned again and again must not mix them up
    my $moved = sub {
        my $sum = 0;
        $sum += $_ for map { $_->cli('INFO', 'errorstats') =~ /^errorstat_MOVED:count=(\d+)/m } $first, $second;
        return $sum;
    };
    sleep 1.5;
    my $before = $moved->();
    for (1 .. 8) {
        $_->cli('CLIENT', 'KILL', 'TYPE', 'normal') for $first, $second;
        sleep 0.7;
        status_of($nginx, "/load?k=$_") for @keys;
    }
    is $moved->() - $before, 0, 'calls go to the right one at once';
    is alarming($nginx), '';
};

subtest 'nodes that have names are known by them, and are not taken for others' => sub {
    my $cluster = start_cluster(primaries => 3, args => ['--cluster-announce-hostname', 'node.test',
        '--cluster-preferred-endpoint-type', 'hostname']);
    my ($from, $to) = my @nodes = $cluster->nodes;
    my $nginx = nginx_for('cluster://node.test:' . $from->port, resolver => $resolver);
    my ($key) = $cluster->keys_of($from, 1, 'moves');

    counts($nginx, $_) for map { $cluster->keys_of($_, 1, 'named') } @nodes;
    $cluster->reshard(5461, $from, $to);
    exactly_five_pass($nginx, $key);
    is $cluster->count('count', $key), 5, 'counted where the slot is now';
    is $nginx->error_log =~ /is down/, '', 'nothing to tell';
    is alarming($nginx), '';
};

done_testing;
