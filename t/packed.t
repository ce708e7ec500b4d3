# algorithm=packed in nginx, and what Redis is told of limits of each kind; the script itself is
# covered by the model. A packed log keeps no ids: what is taken back it finds by when it was counted.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::FakeRedis qw(numbers read_command start_fake_redis);
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
                : numbers((2, 1, 60_000_000) x $keys, 1_790_000_000_000_000);
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
        is_deeply [grep { !/^':settle'/ } $told->()], \@expected, '… and what Redis was told';
    }
    is $nginx->bad_lines, '';
}

subtest 'the kinds of the limits, two numbers for each, and an id where a log is' => sub {
    my ($fake, $told) = start_scribe();
    my $limit = q('60000000' '10');

    is_told('redis://127.0.0.1:' . $fake->port, $told,
        ['a log', 'LIMIT;', "'l' $limit ID"],
        ['a packed one', 'LIMIT algorithm=packed;', "'p' $limit"],
        ['buckets', 'LIMIT algorithm=buckets;', "'b6' $limit"],
        ['several that are decided about together', 'LIMIT algorithm=packed; LIMIT algorithm=packed;', "'p/p' $limit $limit"],
        ['of each kind', 'LIMIT algorithm=buckets buckets=100; LIMIT; LIMIT algorithm=packed;',
            "'b100/l/p' $limit $limit $limit ID"],
        ['other keys, in one Redis', 'LIMIT key=b; LIMIT algorithm=packed;', "'l/p' $limit $limit ID"],
        ['count_status', 'LIMIT algorithm=packed count_status=2xx;', "'p' $limit"],
        ['… of a log', 'LIMIT count_status=2xx;', "'l' $limit ID"],
        ['another store', 'LIMIT algorithm=packed; LIMIT store=memory;', "'p' $limit"],
        ['another phase', 'LIMIT algorithm=packed; LIMIT phase=precontent;', "'p' $limit", "'l' $limit ID"],
        ['another cost', 'LIMIT algorithm=packed cost=2;', "'p*2' $limit"],
        ['a dry run', 'LIMIT algorithm=packed dry_run;', "'pn' $limit"],
        ['refused ones count', 'LIMIT algorithm=packed count=denied;', "'pd' $limit"],
        ['all of that', 'LIMIT algorithm=packed cost=2 dry_run count=denied count_status=2xx;', "'p*2dn' $limit"],
        ['… in a log', 'LIMIT cost=2 dry_run count=denied count_status=2xx;', "'l*2dn' $limit ID"],
        ['… in buckets', 'LIMIT algorithm=buckets cost=2 dry_run count=denied count_status=2xx;', "'b6*2dn' $limit"],
        ['sixteen', 'LIMIT algorithm=packed;' x 16, "'" . join('/', ('p') x 16) . "'" . " $limit" x 16],
    );
};

subtest 'on a cluster the keys decide what is asked together' => sub {
    my ($fake, $told) = start_scribe();
    my $limit = q('60000000' '10');

    is_told('cluster://127.0.0.1:' . $fake->port, $told,
        ['two of the same key', 'LIMIT algorithm=packed; LIMIT;', "'p/l' $limit $limit ID"],
        ['two of different keys', 'LIMIT key=b algorithm=packed; LIMIT;', "'p' $limit", "'l' $limit ID"],
    );
};

subtest 'behind a proxy that decides one by one' => sub {
    my ($fake, $told) = start_scribe(one_slot => 1);
    my $limit = q('60000000' '10');

    is_told('redis://127.0.0.1:' . $fake->port, $told,
        ['one', 'LIMIT algorithm=packed;', "'p' $limit"],
        ['two', 'LIMIT algorithm=packed; LIMIT;', "'p' $limit", "'l' $limit ID"],
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

subtest 'operators see when each was counted, and no ids' => sub {
    like standing('plain', 'a'), qr/"counted":3,"requests":\[\{"time":[\d.]+,"id":"","cost":1\}/;
    like standing('early', 'a'), qr/"counted":1,"requests":\[\{"time":[\d.]+,"id":"","cost":1\}/;
};

subtest 'eight bytes for each' => sub {
    my $load = start_load(clients => 4, seconds => 2, ports => [$nginx->port], path => '/many?k=load');
    my $requests = grep { $_->{status} == 200 } $load->finish;
    is used('many', 'load'), $requests, "$requests are counted";
    cmp_ok $redis->cli('STRLEN', 'rate_limit:many!p:load'), '<=', 2 * 8 * $requests + 1000, 'in little room';
};

# Redis executes it when the request has its answer already, and nobody knows when it was counted.
for (['deny', '503 503'], ['local', '200 429']) {
    my ($on_error, $answers) = @$_;

    subtest "on_error $on_error: who is refused for want of an answer is counted later" => sub {
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
        like $standing, qr/"used":1,/, 'as far as there is room';
        is $hasty->bad_lines, '';
    };
}

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
