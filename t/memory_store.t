# The embedded store: the same limits without any Redis, in memory that nginx's
# workers share. (t/model.t compares its decisions with a model.)

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET;
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $app = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die $!;

my $config = <<"END";
    keepalive_requests 100000;
    add_header X-Status \$sliding_limit_status always;
    add_header X-Store \$sliding_limit_store always;
    add_header X-Zone \$sliding_limit_zone always;

    location /plain { sliding_limit zone=plain max=3 window=60s key=\$arg_k fallback=none; empty_gif; }
    location /short { sliding_limit zone=short max=20 window=2s key=\$arg_k fallback=none; empty_gif; }
    location /thousand { sliding_limit zone=thousand max=1000 window=1h key=\$arg_k fallback=none; empty_gif; }
    location /both {
        sliding_limit zone=minute max=2 window=60s key=\$arg_k fallback=none;
        sliding_limit zone=hour max=100 window=1h key=\$arg_k fallback=none;
        empty_gif;
    }
    location /hour { sliding_limit zone=hour max=100 window=1h key=\$arg_k fallback=none cost=0; empty_gif; }
    location /cost { sliding_limit zone=cost max=10 window=60s key=\$arg_k fallback=none cost=\$arg_cost; empty_gif; }
    location /buckets { sliding_limit zone=buckets max=3 window=60s key=\$arg_k fallback=none algorithm=buckets; empty_gif; }
    location /denied { sliding_limit zone=denied max=2 window=3s key=\$arg_k fallback=none count=denied; empty_gif; }
    location /dry { sliding_limit zone=dry max=1 window=60s key=\$arg_k fallback=none dry_run; empty_gif; }
    location /login {
        sliding_limit zone=login max=3 window=60s key=\$arg_k fallback=none count_status=401;
        proxy_pass http://127.0.0.1:${\ $app->sockport};
    }
    location /ok { sliding_limit zone=login max=3 window=60s key=\$arg_k fallback=none count_status=401; empty_gif; }
    location /phases {
        sliding_limit zone=early max=5 window=60s key=\$arg_k fallback=none;
        sliding_limit zone=late max=2 window=60s key=\$arg_k fallback=none phase=precontent;
        empty_gif;
    }
    location /early { sliding_limit zone=early max=5 window=60s key=\$arg_k fallback=none cost=0; empty_gif; }
END

my $nginx = start_nginx($config, workers => 4, slots => 4096);

subtest 'one line is enough' => sub {
    my @names = qw(X-Status X-Store X-RateLimit-Limit X-RateLimit-Remaining);
    is_deeply [$nginx->try('/plain?k=a', @names)], [200, 'PASSED', 'memory', 3, 3 - $_] for 1 .. 3;
    my ($status, @values) = $nginx->try('/plain?k=a', @names, qw(X-RateLimit-Reset Retry-After));
    is_deeply [$status, @values[0 .. 3]], [429, 'REJECTED', 'memory', 3, 0];
    is $values[4], $values[5], 'Reset and Retry-After agree';
    like $values[5], qr/^(5\d|60)$/;
    is_deeply [$nginx->try('/plain?k=b', 'X-RateLimit-Remaining')], [200, 2], 'another client has its own count';
};

subtest 'exactly max pass, however many workers and clients' => sub {
    my $load = start_load(clients => 8, seconds => 3, ports => [$nginx->port], path => '/thousand?k=load');
    my @answers = $load->finish;
    cmp_ok @answers, '>', 1500, scalar(@answers) . ' requests';
    is scalar(grep { $_->{status} == 200 } @answers), 1000, 'passed';
    my %seen = map { $_->{remaining} => 1 } grep { $_->{status} == 200 } @answers;
    is scalar(keys %seen), 1000, 'each was told another number';
};

subtest 'the window slides' => sub {
    my $load = start_load(clients => 4, seconds => 7, ports => [$nginx->port], path => '/short?k=load', pause => 0.002);
    my @passed = grep { $_->{status} == 200 } $load->finish;
    cmp_ok @passed, '>=', 60, scalar(@passed) . ' passed';
    my $most = 0;
    for my $first (@passed) {
        my $n = grep { $_->{at} >= $first->{at} && $_->{at} + $_->{took} < $first->{at} + 2 } @passed;
        $most = $n if $n > $most;
    }
    cmp_ok $most, '<=', 20, "at most $most within 2 seconds";
};

subtest 'several limits: all or nothing' => sub {
    is_deeply [$nginx->try('/both?k=a')], [200] for 1 .. 2;
    is_deeply [$nginx->try('/both?k=a', 'X-Zone')], [429, 'minute'] for 1 .. 3;
    is_deeply [$nginx->try('/hour?k=a', 'X-RateLimit-Remaining')], [200, 98], 'the hour has not moved';

    is_deeply [$nginx->try('/phases?k=a')], [200] for 1 .. 2;
    is_deeply [$nginx->try('/phases?k=a', 'X-Zone')], [429, 'late'] for 1 .. 3;
    is_deeply [$nginx->try('/early?k=a', 'X-RateLimit-Remaining')], [200, 3], 'also over two phases';
};

subtest 'costs' => sub {
    is_deeply [$nginx->try('/cost?k=a&cost=7', 'X-RateLimit-Remaining')], [200, 3];
    is_deeply [$nginx->try('/cost?k=a&cost=4', 'X-RateLimit-Remaining')], [429, 3];
    is_deeply [$nginx->try('/cost?k=a&cost=0', 'X-RateLimit-Remaining')], [200, 3];
    is_deeply [$nginx->try('/cost?k=a&cost=3', 'X-RateLimit-Remaining')], [200, 0];
    is_deeply [$nginx->try('/cost?k=a&cost=11')], [429];
};

subtest 'buckets' => sub {
    is_deeply [$nginx->try('/buckets?k=a', 'X-RateLimit-Remaining')], [200, 3 - $_] for 1 .. 3;
    my ($status, $retry) = $nginx->try('/buckets?k=a', 'Retry-After');
    is $status, 429;
    cmp_ok $retry, '>=', 55;
    cmp_ok $retry, '<=', 70;
};

subtest 'refused requests that count' => sub {
    $nginx->try('/denied?k=a') for 1 .. 2;
    my $end = time + 5;
    my $passed = 0;
    while (time < $end) {
        $passed++ if ($nginx->try('/denied?k=a'))[0] == 200;
        sleep 0.1;
    }
    is $passed, 0, 'hammering keeps the door shut';
    sleep 3.2;
    is_deeply [$nginx->try('/denied?k=a')], [200], 'silence opens it';
};

subtest 'a dry run' => sub {
    is_deeply [$nginx->try('/dry?k=a', 'X-Status')], [200, 'PASSED'];
    is_deeply [$nginx->try('/dry?k=a', 'X-Status')], [200, 'REJECTED_DRY_RUN'];
};

subtest 'failed logins only' => sub {
    is_deeply [$nginx->try('/ok?k=a', 'X-RateLimit-Remaining')], [200, 3] for 1 .. 10;
    for my $status (401, 204, 401) {
        my $c = begin_request($nginx->port, "GET /login?k=a HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        my $request = $app->accept;
        print $request "HTTP/1.0 $status Whatever\r\nContent-Length: 0\r\n\r\n";
        close $request;
        like scalar(<$c>), qr/$status/;
    }
    my $c = begin_request($nginx->port, "GET /login?k=a HTTP/1.1\r\nHost: test\r\n\r\n");
    my $request = $app->accept;
    is_deeply [$nginx->try('/ok?k=a')], [429], 'two have failed, and one is under way';
    close $c;
    wait_until { ($nginx->try('/ok?k=a'))[0] == 200 } 10, 'the client that has left to be noticed';
    pass 'that one is taken back';
};

subtest 'counts survive a reload' => sub {
    is_deeply [$nginx->try('/plain?k=reload')], [200] for 1 .. 2;
    my %old = map { $_ => 1 } $nginx->workers;
    $nginx->reload;
    wait_until { !grep { $old{$_} } $nginx->workers } 20, 'new workers';
    is_deeply [$nginx->try('/plain?k=reload', 'X-RateLimit-Remaining')], [200, 0];
    is_deeply [$nginx->try('/plain?k=reload')], [429];
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

subtest 'beside a Redis, by name' => sub {
    my $redis = start_redis();
    my $mixed = start_nginx(<<'END',
        add_header X-Store $sliding_limit_store always;
        location /redis { sliding_limit zone=a max=3 window=60s key=k; empty_gif; }
        location /memory { sliding_limit zone=b max=3 window=60s key=k store=memory; empty_gif; }
        location /both {
            sliding_limit zone=c max=3 window=60s key=k store=memory;
            sliding_limit zone=d max=1 window=60s key=k;
            empty_gif;
        }
        location /look { sliding_limit zone=c max=3 window=60s key=k store=memory cost=0; empty_gif; }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');
    is_deeply [$mixed->try('/redis', 'X-Store')], [200, 'redis'];
    is_deeply [$mixed->try('/memory', 'X-Store')], [200, 'memory'];
    is_deeply [$mixed->try('/both')], [200];
    is_deeply [$mixed->try('/both')], [429];
    is_deeply [$mixed->try('/look', 'X-RateLimit-Remaining')], [200, 2], 'what Redis refuses is not charged here';
};

done_testing;
