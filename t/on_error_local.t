# sliding_limit_on_error local: while Redis is away, each server enforces its
# limits by itself. And whoever Redis has refused before stays refused.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request start_redis start_nginx wait_until free_port);
use Test::More;
use Time::HiRes qw(sleep time);

sub nginx_for {
    my ($redis_port, %with) = @_;
    my $timeout = delete $with{timeout} || '1s';
    my $app = free_port();
    my $dead = free_port();

    return start_nginx(<<"END", workers => 2,
    # every request on a connection of its own, so that both workers have some
    keepalive_requests 1;
    sliding_limit_on_error local;
    add_header X-Status \$sliding_limit_status always;
    add_header X-Store \$sliding_limit_store always;
    add_header X-Zone \$sliding_limit_zone always;

    location /load { sliding_limit zone=load max=1000000 window=600s key=\$arg_k; empty_gif; }
    location /five { sliding_limit zone=five max=5 window=600s key=\$arg_k; empty_gif; }
    location /hundred { sliding_limit zone=hundred max=100 window=600s key=\$arg_k; empty_gif; }
    location /both {
        sliding_limit zone=minute max=2 window=60s key=\$arg_k;
        sliding_limit zone=hour max=100 window=1h key=\$arg_k;
        empty_gif;
    }
    location /hour { sliding_limit zone=hour max=100 window=1h key=\$arg_k cost=0; empty_gif; }
    location /login {
        sliding_limit zone=login max=3 window=60s key=\$arg_k count_status=401;
        proxy_pass http://127.0.0.1:$app/\$arg_status;
    }
    location /two_stores {
        sliding_limit zone=counted max=100 window=60s key=\$arg_k;
        sliding_limit zone=lost max=2 window=60s key=\$arg_k store=dead;
        empty_gif;
    }
    location /pass { sliding_limit zone=five max=5 window=600s key=\$arg_k; sliding_limit_on_error pass; empty_gif; }
    location /deny { sliding_limit zone=five max=5 window=600s key=\$arg_k; sliding_limit_on_error deny; empty_gif; }
    location /forget {
        sliding_limit zone=five max=5 window=600s key=\$arg_k;
        sliding_limit_on_error pass;
        sliding_limit_deny_cache off;
        empty_gif;
    }
END
        http => <<"END", %with);
    sliding_limit_redis redis://127.0.0.1:$redis_port timeout=$timeout connect_timeout=$timeout;
    sliding_limit_redis redis://127.0.0.1:$dead name=dead;
    server {
        listen 127.0.0.1:$app;
        location /401 { return 401; }
        location /204 { return 204; }
    }
END
}

my @WHO = qw(X-Status X-Store);

# Until both workers count in this store; they take connections at random.
sub all_count_in {
    my ($nginx, $store, $seconds) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = ($nginx->try('/load?k=who', @WHO))[2] eq $store ? $in_a_row + 1 : 0;
        $in_a_row >= 20;
    } $seconds || 20, "both workers to count in $store";
}

# So many ask for it all at once.
sub rush {
    my ($nginx, $count, $path) = @_;
    my @clients = map { begin_request($nginx->port, "GET $path HTTP/1.1\r\nHost: test\r\n\r\n") } 1 .. $count;

    return map {
        my $client = $_;
        my $answer = do { local $/; <$client> } // '';
        my ($status) = $answer =~ m{^HTTP/1\.1 (\d+)};
        my ($store) = $answer =~ /^X-Store: (\S+)/m;
        { status => $status // 0, store => $store // '-' };
    } @clients;
}

subtest 'without any Redis: what passes and what does not' => sub {
    my $nginx = nginx_for(free_port());
    my @headers = qw(X-RateLimit-Limit X-RateLimit-Remaining);

    for (1 .. 5) {
        my ($status, @values) = $nginx->try('/five?k=a', @WHO, @headers, 'Retry-After');
        is_deeply [$status, @values], [200, 'PASSED', 'memory', 5, 5 - $_, ''], "request $_";
    }

    my ($status, @values) = $nginx->try('/five?k=a', @WHO, @headers, 'X-RateLimit-Reset', 'Retry-After');
    is_deeply [$status, @values[0 .. 3]], [429, 'REJECTED', 'memory', 5, 0], 'the next is refused';
    is $values[4], $values[5], 'Reset and Retry-After agree';
    cmp_ok $values[5], '<=', 600;
    cmp_ok $values[5], '>', 540;
    like $nginx->error_log,
        qr/sliding_limit: refused by zone "five", max 5 in 600000 ms, retry after \d+ s, store: memory, client:/,
        'the log says who refused';
    is_deeply [$nginx->try('/five?k=b', @WHO)], [200, 'PASSED', 'memory'], 'another client has its own count';

    is summary(rush($nginx, 300, '/hundred?k=a')), '200:100 429:200', 'exactly max pass, over both workers';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'without any Redis: what is taken back' => sub {
    my $nginx = nginx_for(free_port());

    for (1 .. 10) {
        my ($status, @who) = $nginx->try('/login?k=a&status=204', @WHO, 'X-RateLimit-Remaining');
        is_deeply [$status, @who], [204, 'PASSED', 'memory', 3], 'a good login does not count';
    }
    is_deeply [$nginx->try('/login?k=a&status=401', 'X-RateLimit-Remaining')], [401, 3 - $_], "failure $_" for 1 .. 3;
    is_deeply [$nginx->try('/login?k=a&status=204', @WHO)], [429, 'REJECTED', 'memory'], 'three failures do';

    is_deeply [$nginx->try('/both?k=a', @WHO)], [200, 'PASSED', 'memory'] for 1 .. 2;
    is_deeply [$nginx->try('/both?k=a', 'X-Zone', @WHO)], [429, 'minute', 'REJECTED', 'memory'] for 1 .. 3;
    is_deeply [$nginx->try('/hour?k=a', 'X-RateLimit-Remaining')], [200, 98], 'several limits: all or nothing';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'what one Redis has counted is taken back there if memory refuses for another' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);
    all_count_in($nginx, 'redis');

    is_deeply [$nginx->try('/two_stores?k=a', 'X-Status')], [200, 'PASSED'] for 1 .. 2;
    is_deeply [$nginx->try('/two_stores?k=a', 'X-Zone', 'X-Store')], [429, 'lost', 'memory'] for 1 .. 3;
    wait_until { $redis->cli('ZCARD', 'rate_limit:counted:a') == 2 } 10, 'all but two to be taken back';
    pass 'all but two';
};

subtest 'two servers enforce their own' => sub {
    my $port = free_port();
    my @nginx = map { nginx_for($port) } 1 .. 2;

    for my $nginx (@nginx) {
        is_deeply [$nginx->try('/five?k=a', @WHO)], [200, 'PASSED', 'memory'] for 1 .. 5;
        is_deeply [$nginx->try('/five?k=a', @WHO)], [429, 'REJECTED', 'memory'] for 1 .. 3;
    }
};

subtest 'kill -STOP and CONT under load' => sub {
    my $redis = start_redis();
    my $timeout = 0.3;
    my $nginx = nginx_for($redis->port, timeout => $timeout * 1000 . 'ms');
    all_count_in($nginx, 'redis');

    my $load = start_load(clients => 4, seconds => 7, ports => [ $nginx->port ],
        path => sub { "/load?k=$_[0]" }, pause => 0.002);
    sleep 0.5;
    $redis->pause;
    my $port = $redis->port;
    wait_until { $nginx->error_log =~ /:$port" is down/ } 10, 'the workers to notice';
    my $down = time;

    my @fresh = rush($nginx, 300, '/hundred?k=fresh');
    my %stores = map { $_->{store} => 1 } @fresh;
    is join(' ', keys %stores), 'memory', 'a client that comes now is counted in memory';
    is summary(@fresh), '200:100 429:200', 'exactly max pass';
    sleep 1;

    my $resumed = time;
    $redis->resume;
    my @answers = $load->finish;

    my ($back) = grep { $_->{at} > $resumed && $_->{store} eq 'redis' } @answers;
    # a few may be slow for other reasons, on a busy machine
    my ($slowest) = sort { $b <=> $a } map { $_->{took} } @answers;
    ok $back, 'counting returns to Redis';
    cmp_ok $back->{at} - $resumed, '<', 2 + $slowest, sprintf 'after %.3f s', $back->{at} - $resumed;
    all_count_in($nginx, 'redis');

    is summary(grep { $_->{status} != 200 } @answers), '', 'nothing but 200: ' . summary(@answers);
    is join(' ', grep { !/^(?:redis|memory)$/ } map { $_->{store} } @answers), '', 'nobody goes uncounted';
    my $too_slow = grep { $_->{took} > 2 * $timeout } @answers;
    cmp_ok $slowest, '<', 5, sprintf 'the slowest took %.3f s', $slowest;
    cmp_ok $too_slow, '<', @answers / 100, "nobody waits beyond the timeout: $too_slow slow of " . @answers;
    my @meanwhile = grep { $_->{at} > $down && $_->{at} < $resumed } @answers;
    my $slow = grep { $_->{took} > 0.9 * $timeout } @meanwhile;
    cmp_ok $slow, '<', @meanwhile / 10, "nor at all, once it is known to be down: $slow slow of " . @meanwhile;

    # what was under way when it stopped Redis may have counted, too late for us
    my $by_redis = grep { $_->{store} eq 'redis' } @answers;
    my $uncertain = grep {
        $_->{store} eq 'memory' && ($_->{at} < $down || $_->{took} > 0.9 * $timeout)
    } @answers;
    my $counted = 0;
    $counted += $redis->cli('ZCARD', "rate_limit:load:$_") for 1 .. 4;
    cmp_ok $counted, '>=', $by_redis, "$counted are counted in Redis: all $by_redis that it let pass";
    cmp_ok $counted, '<=', $by_redis + $uncertain, 'and none that memory let pass, but for ' . $uncertain;
    cmp_ok scalar(@meanwhile), '>', 2 * $uncertain, 'of ' . @meanwhile;

    is $redis->cli('ZCARD', 'rate_limit:hundred:fresh'), 0, 'nor anything of the client that came meanwhile';
    is_deeply [$nginx->try('/hundred?k=fresh', @WHO, 'X-RateLimit-Remaining')],
        [200, 'PASSED', 'redis', 100 - $_] for 1 .. 3;
    is $redis->cli('ZCARD', 'rate_limit:hundred:fresh'), 3, 'which is counted from now on';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'a known offender stays refused' => sub {
    my $redis = start_redis();
    my $nginx = nginx_for($redis->port);
    all_count_in($nginx, 'redis');

    $nginx->try('/five?k=offender') for 1 .. 5;
    my $refused = time;
    is_deeply [$nginx->try('/five?k=offender', @WHO)], [429, 'REJECTED', 'redis'], 'Redis refuses it';

    $redis->pause;
    all_count_in($nginx, 'memory');
    # longer than a refusal is remembered while Redis can be asked
    my $until = $refused + 1.5;
    sleep $until - time if $until > time;

    for my $path (qw(/five /pass /deny)) {
        for (1 .. 2) {
            my ($status, @values) = $nginx->try("$path?k=offender", @WHO, qw(X-RateLimit-Remaining Retry-After));
            is_deeply [$status, @values[0 .. 2]], [429, 'REJECTED', 'deny_cache', 0], "$path while Redis is away";
            cmp_ok $values[3], '<=', 599, 'until the same moment';
            cmp_ok $values[3], '>', 540;
        }
    }
    like $nginx->error_log, qr/sliding_limit: refused by zone "five", .* store: deny_cache, client:/;
    is_deeply [$nginx->try('/forget?k=offender', @WHO)], [200, 'FAILED_OPEN', 'none'], 'not with deny_cache off';

    is_deeply [$nginx->try('/five?k=other', @WHO)], [200, 'PASSED', 'memory'], 'others pass';
    is_deeply [$nginx->try('/pass?k=other', @WHO)], [200, 'FAILED_OPEN', 'none'];
    is_deeply [$nginx->try('/deny?k=other', @WHO)], [503, 'FAILED_CLOSED', 'none'];

    $redis->resume;
    all_count_in($nginx, 'redis');
    my %answers;
    wait_until { $answers{ join ' ', $nginx->try('/five?k=offender', @WHO) }++; $answers{'429 REJECTED redis'} } 10,
        'Redis to be asked about it again';
    delete $answers{'429 REJECTED deny_cache'};
    is join(', ', keys %answers), '429 REJECTED redis', 'Redis says the same';
    is $redis->cli('ZCARD', 'rate_limit:five:offender'), 5;
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

subtest 'memory that is too small as well: open, not closed' => sub {
    my $port = free_port();
    my $nginx = start_nginx(<<'END', slots => 2048,
    sliding_limit_on_error local;
    add_header X-Status $sliding_limit_status always;
    add_header X-Store $sliding_limit_store always;
    location / { sliding_limit zone=greedy max=1000000 window=1h key=all; empty_gif; }
END
        http => "sliding_limit_redis redis://127.0.0.1:$port; sliding_limit_memory 64k;");

    for (1 .. 20_000) {
        last if ($nginx->try('/', 'X-Status'))[1] ne 'PASSED';
    }
    is_deeply [$nginx->try('/', @WHO)], [200, 'FAILED_OPEN', 'none'];
    like $nginx->error_log, qr/sliding_limit_memory of 64k is too small: .*and one could not be counted/;
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

done_testing;
