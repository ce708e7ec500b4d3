# algorithm=packed in nginx; the script itself is covered by the model. A packed log keeps ids only
# of requests that may have to be taken back: those that the module says may be. And it says so
# wherever they are.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::FakeRedis qw(read_command start_fake_redis);
use SlidingLimit::Load qw(start_load);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use SlidingLimit::SlowProxy qw(start_slow_proxy);
use Test::More;

# ---- what the script is told

# Admits everybody, and notes what it was asked in which words. With `one_slot` it takes keys only
# one by one, as a proxy may.
sub start_scribe {
    my (%with) = @_;
    my $notes = File::Temp->new;

    my $fake = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        my $map = '0 127.0.0.1:' . $socket->sockport . "\@1 myself,master - 0 0 1 connected 0-16383\n";

        while (my ($command, @args) = read_command($socket)) {
            my (undef, $keys, $first) = @args;
            my $is_check = $command eq 'EVALSHA' && $keys > 0 && $first !~ /^rate_limit::/;

            if ($with{one_slot} && $command eq 'EVALSHA' && $keys > 1) {
                print $socket "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
                next;
            }
            if ($is_check) {
                open my $file, '>>', "$notes" or die $!;
                syswrite $file, join(' ', map { "'$_'" } @args[2 + $keys .. $#args]) . "\n";
            }
            print $socket $command eq 'CLUSTER' ? '$' . length($map) . "\r\n$map\r\n"
                : $command ne 'EVALSHA' ? "+OK\r\n"
                : '*' . (3 * $keys + 1) . "\r\n" . ":2\r\n:1\r\n:60000000\r\n" x $keys . ":1790000000000000\r\n";
        }
    });

    return ($fake, sub {
        open my $file, '<', "$notes" or die $!;
        my @lines = <$file>;
        truncate "$notes", 0;
        return map { s/'[0-9a-f]{8}-[-0-9a-f]{27}'/ID/r =~ s/\n//r } @lines;
    });
}

sub nginx_for {
    my ($url, $locations) = @_;
    my $nginx = start_nginx("add_header X-Status \$sliding_limit_status always;\n$locations",
        http => "sliding_limit_redis $url timeout=10s connect_timeout=10s;");
    wait_until { ($nginx->try('/up', 'X-Status'))[1] eq 'PASSED' } 30, 'counting';
    return $nginx;
}

my $UP = 'location /up { sliding_limit zone=up max=100 window=60s key=a; empty_gif; }';

# A location for each, and what its limits are called then, in each question.
sub is_told {
    my ($url, $told, @cases) = @_;
    my $locations = $UP;
    while (my ($i, $case) = each @cases) {
        my ($n, $lines) = (0, $case->[1]);
        $lines =~ s/LIMIT/"sliding_limit zone=z${i}_" . $n++ . ' max=10 window=60s'/ge;
        $lines =~ s/(window=60s)(?! key)([^;]*;)/$1 key=a$2/g;
        $locations .= "location /l$i { $lines empty_gif; }\n";
    }
    my $nginx = nginx_for($url, $locations);

    while (my ($i, $case) = each @cases) {
        my ($title, undef, @expected) = @$case;
        $told->();
        is +($nginx->try("/l$i", 'X-Status'))[1], 'PASSED', $title;
        # what is taken back begins with a time
        is_deeply [grep { !/^'\d/ } $told->()], \@expected, '… and what Redis was told';
    }
    is $nginx->bad_lines, '';
}

subtest 'ids are kept where requests may be taken back, and only there' => sub {
    my ($fake, $told) = start_scribe();
    my $limit = q('60000000' '10');

    is_told('redis://127.0.0.1:' . $fake->port, $told,
        ['a log', 'LIMIT;', "'/0' $limit ID"],
        ['a packed one', 'LIMIT algorithm=packed;', "'/p' $limit"],
        ['buckets', 'LIMIT algorithm=buckets;', "'/6' $limit"],
        ['several that are decided about together', 'LIMIT algorithm=packed; LIMIT algorithm=packed;', "'/p/p' $limit $limit"],
        ['of each kind', 'LIMIT algorithm=buckets buckets=100; LIMIT; LIMIT algorithm=packed;',
            "'/100/0/p' $limit $limit $limit ID"],
        ['other keys, in one Redis', 'LIMIT key=b algorithm=packed; LIMIT algorithm=packed;', "'/p/p' $limit $limit"],
        ['count_status', 'LIMIT algorithm=packed count_status=2xx;', "'/i' $limit ID"],
        ['… of one of two', 'LIMIT algorithm=packed; LIMIT algorithm=packed count_status=2xx;', "'/p/i' $limit $limit ID"],
        ['… of a log', 'LIMIT count_status=2xx;', "'/0' $limit ID"],
        ['… of buckets', 'LIMIT algorithm=buckets count_status=2xx;', "'/6' $limit"],
        ['another store', 'LIMIT algorithm=packed; LIMIT store=memory;', "'/i' $limit ID"],
        ['another phase', 'LIMIT algorithm=packed; LIMIT algorithm=packed phase=precontent;', "'/i' $limit ID", "'/i' $limit ID"],
        ['on_error deny', 'LIMIT algorithm=packed; sliding_limit_on_error deny;', "'/i' $limit ID"],
        ['on_error local', 'LIMIT algorithm=packed; sliding_limit_on_error local;', "'/i' $limit ID"],
        ['another cost', 'LIMIT algorithm=packed cost=2;', "'' ID $limit '2' 'p' ''"],
        ['a dry run', 'LIMIT algorithm=packed dry_run;', "'' ID $limit '1' 'p' 'n'"],
        ['refused ones count', 'LIMIT algorithm=packed count=denied;', "'' ID $limit '1' 'p' 'd'"],
        ['all of that', 'LIMIT algorithm=packed cost=2 dry_run count=denied count_status=2xx;', "'' ID $limit '2' 'p' 'dni'"],
        ['all of that but packed', 'LIMIT cost=2 dry_run count=denied count_status=2xx;', "'' ID $limit '2' '0' 'dn'"],
        ['… in buckets', 'LIMIT algorithm=buckets cost=2 dry_run count=denied count_status=2xx;', "'' ID $limit '2' '6' 'dn'"],
        ['sixteen', 'LIMIT algorithm=packed;' x 16, "'" . '/p' x 16 . "'" . " $limit" x 16],
    );
};

subtest 'on a cluster it depends on the keys' => sub {
    my ($fake, $told) = start_scribe();
    my $limit = q('60000000' '10');

    is_told('cluster://127.0.0.1:' . $fake->port, $told,
        ['one', 'LIMIT algorithm=packed;', "'/p' $limit"],
        ['two of the same key', 'LIMIT algorithm=packed; LIMIT algorithm=packed;', "'/p/p' $limit $limit"],
        ['two of different keys', 'LIMIT key=b algorithm=packed; LIMIT algorithm=packed;', "'/i' $limit ID", "'/i' $limit ID"],
    );
};

subtest 'behind a proxy that decides one by one' => sub {
    my ($fake, $told) = start_scribe(one_slot => 1);
    my $limit = q('60000000' '10');

    is_told('redis://127.0.0.1:' . $fake->port, $told,
        ['one', 'LIMIT algorithm=packed;', "'/p' $limit"],
        ['two', 'LIMIT algorithm=packed; LIMIT algorithm=packed;', "'/i' $limit ID", "'/i' $limit ID"],
    );
};

# ---- with Redis

my $redis = start_redis();
my $LIMIT = 'algorithm=packed max=3 window=600s key=$arg_k';
my $STORE = 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;';
my $nginx = start_nginx(<<"END", workers => 2, http => $STORE);
    sliding_limit_deny_cache off;
    location /plain { sliding_limit zone=plain $LIMIT; empty_gif; }
    location /login { sliding_limit zone=login $LIMIT count_status=401; error_page 404 =401 /none; empty_gif; }
    location /two {
        sliding_limit zone=first $LIMIT;
        sliding_limit zone=second store=memory max=1 window=600s key=\$arg_k;
        empty_gif;
    }
    location /phases {
        sliding_limit zone=early $LIMIT;
        sliding_limit zone=late algorithm=packed max=1 window=600s key=\$arg_k phase=precontent;
        empty_gif;
    }
    location /many { sliding_limit zone=many max=10000 window=600s algorithm=packed key=\$arg_k; empty_gif; }
    location /look { sliding_limit_metrics; sliding_limit off; }
END

# What is counted for the client, as operators see it.
sub standing { my ($zone, $key) = @_; return (get($nginx->port, "/look?zone=$zone&key=$key"))[2] }
sub used { return (standing(@_) =~ /"used":(\d+)/)[0] // -1 }

subtest 'the same headers as a log' => sub {
    my @names = qw(X-RateLimit-Limit X-RateLimit-Remaining);
    is_deeply [$nginx->try('/plain?k=a', @names)], [200, 3, 3 - $_] for 1 .. 3;
    my ($status, $limit, $left, $reset, $retry) = $nginx->try('/plain?k=a', @names, qw(X-RateLimit-Reset Retry-After));
    is_deeply [$status, $limit, $left], [429, 3, 0];
    is $reset, $retry, 'Reset and Retry-After agree';
    cmp_ok $retry, '<=', 600;
    cmp_ok $retry, '>=', 560;
    is used('plain', 'a'), 3, 'and operators see it';
};

subtest 'what does not count is taken back' => sub {
    is +(get($nginx->port, '/login?k=a'))[0], 200 for 1 .. 5;
    wait_until { used('login', 'a') == 0 } 10, 'it to be taken back';
    pass 'all of it';
};

subtest 'a refusal elsewhere takes back' => sub {
    is join(' ', map { (get($nginx->port, '/two?k=a'))[0] } 1 .. 5), '200 429 429 429 429', 'another store refuses';
    wait_until { used('first', 'a') == 1 } 10, 'what was counted to be taken back';
    is join(' ', map { (get($nginx->port, '/phases?k=a'))[0] } 1 .. 5), '200 429 429 429 429', 'another phase refuses';
    wait_until { used('early', 'a') == 1 } 10, 'what was counted to be taken back';
    pass 'but for what passed';
};

subtest 'operators see the ids that are kept' => sub {
    like standing('plain', 'a'), qr/"counted":3,"requests":\[\{"time":[\d.]+,"id":"","cost":1,"refused":false\},/, 'of none';
    like standing('early', 'a'), qr/"counted":1,"requests":\[\{"time":[\d.]+,"id":"[-0-9a-f]{36}","cost":1,"refused":false\}\]/,
        'of one that might have been taken back';
};

subtest 'eight bytes for each' => sub {
    my $load = start_load(clients => 4, seconds => 2, ports => [$nginx->port], path => '/many?k=load');
    my $requests = grep { $_->{status} == 200 } $load->finish;
    is used('many', 'load'), $requests, "$requests are counted";
    cmp_ok $redis->cli('STRLEN', 'rate_limit:many:load'), '<=', 2 * 8 * $requests + 1000, 'in little room';
};

# Redis executes it when the request has its answer already.
for (['deny', '503 503', 0], ['local', '200 429', 1]) {
    my ($on_error, $answers, $counted) = @$_;

    subtest "on_error $on_error: who is refused for want of an answer is not counted later" => sub {
        my $proxy = start_slow_proxy($redis->port);
        my $hasty = start_nginx(<<"END", http => 'sliding_limit_redis redis://127.0.0.1:' . $proxy->port . ' timeout=1s connect_timeout=10s;');
    sliding_limit_on_error $on_error;
    sliding_limit_deny_cache off;
    location / { sliding_limit zone=$on_error algorithm=packed max=1 window=600s key=\$arg_k; empty_gif; }
    location /look { sliding_limit_metrics; sliding_limit off; }
END
        my $is_counted = sub { (get($hasty->port, "/look?zone=$on_error&key=$_[0]"))[2] =~ /"used":1,/ };

        wait_until { $hasty->try('/?k=up'); $is_counted->('up') } 30, 'Redis to count';
        $proxy->delay(1.3);
        is join(' ', map { (get($hasty->port, '/?k=late'))[0] } 1 .. 2), $answers, 'no answer in time';
        $proxy->delay(0);
        wait_until { $hasty->try('/?k=after'); $is_counted->('after') } 30, 'Redis to count again';
        my $standing = (get($hasty->port, "/look?zone=$on_error&key=late"))[2];
        like $standing, qr/"used":$counted,/, "$counted counted";
        is $hasty->bad_lines, '';
    };
}

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
