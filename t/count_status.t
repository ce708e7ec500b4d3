# count_status: only requests that are answered so stay counted. The others get
# their entry back, exactly theirs, whatever becomes of the client.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET;
use SlidingLimit::Servers qw(begin_request free_port get request start_nginx start_redis wait_until);
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $other = start_redis();
my $h2_port = free_port();

# The application: answers with the status it is asked for, when it is asked to.
my $app = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 256) or die $!;

my $limits = 'sliding_limit zone=login max=3 window=60s key=$arg_k fallback=none count_status=401,403,5xx;';

my $nginx = start_nginx(<<"END", slots => 4096,
    listen 127.0.0.1:$h2_port http2;
    keepalive_requests 100000;
    add_header X-Status \$sliding_limit_status always;

    location /gif { $limits empty_gif; }
    location /forbidden { $limits deny all; }
    location /missing { $limits log_not_found off; try_files /nowhere =404; }
    location /broken { $limits proxy_pass http://127.0.0.1:1/; }
    location /page {
        $limits
        error_page 404 = /page_404;
        log_not_found off;
        try_files /nowhere =404;
    }
    location /page_404 { internal; deny all; }
    location /app { $limits proxy_pass http://127.0.0.1:${\ $app->sockport}; proxy_buffering off; }
    location /patient {
        $limits
        proxy_pass http://127.0.0.1:${\ $app->sockport};
        proxy_ignore_client_abort on;
    }
    location /hung_up {
        sliding_limit zone=hung_up max=9 window=60s key=\$arg_k fallback=none count_status=401,499;
        proxy_pass http://127.0.0.1:${\ $app->sockport};
    }
    location /cost {
        sliding_limit zone=cost max=100 window=60s key=\$arg_k fallback=none cost=\$arg_cost count_status=4xx;
        try_files /nowhere /cost_\$arg_as;
        log_not_found off;
    }
    location /cost_gif { empty_gif; }
    location /cost_403 { deny all; }
    location /look { sliding_limit_metrics; sliding_limit off; }
    location /buckets {
        sliding_limit zone=buckets max=3 window=60s key=\$arg_k fallback=none algorithm=buckets count_status=403;
        try_files /nowhere /cost_\$arg_as;
    }
    location /two {
        sliding_limit zone=attempts max=100 window=60s key=\$arg_k fallback=none;
        sliding_limit zone=failures max=100 window=60s key=\$arg_k fallback=none count_status=403;
        sliding_limit zone=failures_there max=100 window=60s key=\$arg_k fallback=none count_status=403 store=other;
        try_files /nowhere /cost_\$arg_as;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;'
        . 'sliding_limit_redis redis://127.0.0.1:' . $other->port . ' name=other timeout=10s connect_timeout=5s;');
my ($worker) = $nginx->workers;

sub count { my ($zone, $key, $in) = @_; return ($in || $redis)->cli('ZCARD', "rate_limit:$zone:$key") }

sub comes_to {
    my ($number, $zone, $key) = @_;
    eval { wait_until { count($zone, $key) == $number } 10 };
    is count($zone, $key), $number, "$zone comes to $number";
}

sub still_fine {
    is join(',', $nginx->workers), $worker, 'the worker lives';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

# Reads the request that has come to the application.
sub arrived {
    my $c = $app->accept or die $!;
    my $text = '';
    sysread $c, $text, 4096, length $text until $text =~ /\r\n\r\n/;
    return $c;
}

subtest 'a request that is answered otherwise is not counted' => sub {
    is_deeply [$nginx->try('/gif?k=good', qw(X-Status X-RateLimit-Remaining X-RateLimit-Reset))],
        [200, 'PASSED', 3, ''], 'all is left, every time' for 1 .. 10;
    comes_to(0, 'login', 'good');
};

for my $case (['forbidden', 403], ['broken', 502]) {
    my ($path, $status) = @$case;
    subtest "a request that is answered with $status is counted, up to the limit" => sub {
        is_deeply [$nginx->try("/$path?k=$path")], [$status] for 1 .. 3;
        is_deeply [$nginx->try("/$path?k=$path", 'X-Status')], [429, 'REJECTED'];
        is_deeply [$nginx->try("/gif?k=$path", 'X-Status')], [429, 'REJECTED'], 'and whatever else it tries';
        is count('login', $path), 3;
    };
}

subtest 'the status that counts is the one that is sent' => sub {
    $nginx->try('/missing?k=404');
    comes_to(0, 'login', '404');
    is_deeply [$nginx->try('/page?k=page')], [403], 'a 404 whose error page is forbidden';
    is count('login', 'page'), 1;
};

subtest 'good and bad ones mixed: only the bad ones stay' => sub {
    $nginx->try("/$_?k=mixed") for qw(gif forbidden gif gif forbidden missing gif);
    comes_to(2, 'login', 'mixed');
    is_deeply [$nginx->try('/forbidden?k=mixed')], [403];
    is_deeply [$nginx->try('/gif?k=mixed')], [429];
};

subtest 'exactly that entry is taken back' => sub {
    my $first = begin_request($nginx->port, "GET /app?k=exact HTTP/1.1\r\nHost: test\r\n\r\n");
    my $c1 = arrived();
    my $second = begin_request($nginx->port, "GET /app?k=exact HTTP/1.1\r\nHost: test\r\n\r\n");
    my $c2 = arrived();
    my @entries = split /\n/, $redis->cli('ZRANGE', 'rate_limit:login:exact', 0, -1);
    is @entries, 2, 'both are counted while they run';
    print $c1 "HTTP/1.0 204 No Content\r\n\r\n";
    close $c1;
    comes_to(1, 'login', 'exact');
    is $redis->cli('ZRANGE', 'rate_limit:login:exact', 0, -1), $entries[1], 'the second is left';
    print $c2 "HTTP/1.0 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    close $c2;
    like scalar(<$second>), qr/401/;
    is $redis->cli('ZRANGE', 'rate_limit:login:exact', 0, -1), $entries[1], 'and stays';
};

subtest 'it is taken back before the client can have read the answer to its end' => sub {
    # the next request of a client is never refused because of the last one
    my $key = 'prompt';
    $nginx->try("/forbidden?k=$key") for 1 .. 2;
    my @answers = map { ($nginx->try("/gif?k=$key"))[0] } 1 .. 200;
    is_deeply [grep { $_ != 200 } @answers], [], 'with room for one, 200 requests in a row pass';
};

subtest 'several limits: those with count_status, and only those' => sub {
    $nginx->try("/two?k=a&as=$_") for qw(gif gif 403 gif);
    comes_to(1, 'failures', 'a');
    is count('attempts', 'a'), 4;
    is count('failures_there', 'a', $other), 1, 'in another store, too';
};

subtest 'costs are given back as a whole' => sub {
    $nginx->try("/cost?k=a&cost=$_->[0]&as=$_->[1]") for [5, 'gif'], [7, '403'], [1, 'gif'], [30, 'gif'], [1, '403'];
    eval { wait_until { count('cost', 'a') == 8 } 10 };
    like $redis->cli('ZRANGE', 'rate_limit:cost:a', 0, -1), qr/^([-0-9a-f]{36})\n(?:\1:\d\n){6}[-0-9a-f]{36}$/;
    is_deeply [$nginx->try('/cost?k=a&cost=0&as=gif', 'X-RateLimit-Remaining')], [200, 92];
};

subtest 'buckets give back, too' => sub {
    $nginx->try("/buckets?k=a&as=$_") for qw(gif 403 gif gif 403 gif);
    my $used = sub { return ((get($nginx->port, '/look?zone=buckets&key=a'))[2] =~ /"used":(\d+)/)[0] };
    eval { wait_until { $used->() == 2 } 10 };
    is $used->(), 2;
    $nginx->try('/buckets?k=b&as=gif');
    eval { wait_until { $redis->cli('EXISTS', 'rate_limit:buckets:b') eq '0' } 10 };
    is $redis->cli('EXISTS', 'rate_limit:buckets:b'), 0, 'to the last';
};

# Clients that leave, at every stage of a login.
for my $reset (0, 1) {
    my $how = $reset ? 'reset' : 'close';
    my $leave = sub {
        my ($c) = @_;
        setsockopt $c, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $reset;
        close $c;
    };

    subtest "a client that leaves during the check ($how): nothing stays" => sub {
        my $calls = $redis->calls('evalsha');
        $redis->pause;
        my @clients = map {
            begin_request($nginx->port, "GET /gif?k=check$how HTTP/1.1\r\nHost: test\r\n\r\n") } 1 .. 3;
        sleep 0.3;
        $leave->($_) for splice @clients;
        sleep 0.3;
        $redis->resume;
        wait_until { $redis->calls('evalsha') == $calls + 6 } 10, 'three checks, taken back';
        comes_to(0, 'login', "check$how");
        still_fine();
    };

    subtest "a client that leaves while the application works ($how)" => sub {
        my $c = begin_request($nginx->port, "GET /app?k=app$how HTTP/1.1\r\nHost: test\r\n\r\n");
        my $request = arrived();
        is count('login', "app$how"), 1, 'counted while it runs';
        $leave->($c);
        comes_to(0, 'login', "app$how");
        close $request;
        still_fine();
    };

    subtest "a client that has left when the application answers ($how)" => sub {
        for my $answer ([204, 0], [401, 1]) {
            my ($status, $stays) = @$answer;
            my $key = "patient$how$status";
            my $c = begin_request($nginx->port, "GET /patient?k=$key HTTP/1.1\r\nHost: test\r\n\r\n");
            my $request = arrived();
            $leave->($c);
            sleep 0.2;
            is count('login', $key), 1, 'counted while it runs';
            print $request "HTTP/1.0 $status Whatever\r\nContent-Length: 0\r\n\r\n";
            close $request;
            comes_to($stays, 'login', $key);
        }
        still_fine();
    };

    subtest "a client that leaves in the middle of the answer ($how)" => sub {
        for my $answer ([200, 0], [401, 1]) {
            my ($status, $stays) = @$answer;
            my $key = "middle$how$status";
            my $c = begin_request($nginx->port, "GET /app?k=$key HTTP/1.1\r\nHost: test\r\n\r\n");
            my $request = arrived();
            print $request "HTTP/1.0 $status Whatever\r\nContent-Length: 1000\r\n\r\nbegun";
            $request->flush;
            like scalar(<$c>), qr/$status/, 'the answer has begun';
            comes_to($stays, 'login', $key);
            $leave->($c);
            sleep 0.1;
            close $request;
            is count('login', $key), $stays, 'and that is how it stays';
        }
        still_fine();
    };
}

subtest 'a client that hangs up stays counted where 499 is listed, also during the check' => sub {
    $redis->pause;
    my $gone = begin_request($nginx->port, "GET /hung_up?k=check HTTP/1.1\r\nHost: test\r\n\r\n");
    sleep 0.3;
    close $gone;
    sleep 0.3;
    $redis->resume;
    comes_to(1, 'hung_up', 'check');

    my $c = begin_request($nginx->port, "GET /hung_up?k=a HTTP/1.1\r\nHost: test\r\n\r\n");
    my $request = arrived();
    close $c;
    # nginx lets go of the application when it has noticed
    is sysread($request, my $text, 1), 0, 'the request has ended';
    my $passed = begin_request($nginx->port, "GET /hung_up?k=a HTTP/1.1\r\nHost: test\r\n\r\n");
    $request = arrived();
    print $request "HTTP/1.0 204 No Content\r\n\r\n";
    close $request;
    like scalar(<$passed>), qr/204/;
    comes_to(1, 'hung_up', 'a');
};

subtest 'HTTP/2 streams that are reset while the application works' => sub {
    my $pid = fork // die $!;
    if (!$pid) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>&', \*STDOUT;
        exec 'h2load', '-n', 3, '-c', 1, '-m', 3, "http://127.0.0.1:$h2_port/app?k=h2";
    }
    my @requests = map { arrived() } 1 .. 3;
    is count('login', 'h2'), 3;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    comes_to(0, 'login', 'h2');
    still_fine();
};

subtest 'many logins at once: as many stay as have failed' => sub {
    my @pids = map {
        my $pid = fork // die $!;
        if (!$pid) {
            get($nginx->port, '/two?k=many&as=' . ($_ % 4 ? 'gif' : '403')) for 1 .. 12;
            POSIX::_exit(0);
        }
        $pid;
    } 1 .. 8;
    waitpid $_, 0 for @pids;
    comes_to(24, 'failures', 'many');
    is count('attempts', 'many'), 96;
    still_fine();
};

subtest 'a reload while a login is under way' => sub {
    my $c = begin_request($nginx->port, "GET /app?k=reload HTTP/1.1\r\nHost: test\r\n\r\n");
    my $request = arrived();
    $nginx->reload;
    wait_until { my @w = $nginx->workers; grep { $_ != $worker } @w } 10, 'a new worker';
    is count('login', 'reload'), 1;
    print $request "HTTP/1.0 204 No Content\r\n\r\n";
    close $request;
    like scalar(<$c>), qr/204/;
    comes_to(0, 'login', 'reload');
    wait_until { my @w = $nginx->workers; !grep { $_ == $worker } @w } 20, 'the old worker to leave';
    ($worker) = $nginx->workers;
    still_fine();
};

subtest 'a check that was answered too late is taken back when its answer comes' => sub {
    my $slow = start_nginx(<<"END",
        add_header X-Status \$sliding_limit_status always;
        location /log {
            sliding_limit zone=late max=9 window=60s key=\$arg_k fallback=none count_status=403;
            deny all;
        }
        location /buckets {
            sliding_limit zone=late_buckets max=9 window=60s key=\$arg_k fallback=none algorithm=buckets count_status=403;
            deny all;
        }
        location /final {
            sliding_limit zone=late_final max=9 window=60s key=\$arg_k fallback=none;
            deny all;
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=700ms connect_timeout=5s;');
    wait_until { ($slow->try('/log?k=warm', 'X-Status'))[1] eq 'PASSED' } 10, 'a connection';

    $redis->pause;
    my @answers = map {
        begin_request($slow->port, "GET /$_?k=a HTTP/1.0\r\n\r\n") } qw(log buckets final);
    my @status = map { my $c = $_; (join '', <$c>) =~ /X-Status: (\S+)/ ? $1 : '' } @answers;
    $redis->resume;
    is_deeply \@status, [('FAILED_OPEN') x 3], 'they went on without an answer';
    comes_to(1, 'late_final', 'a');
    comes_to(0, 'late', 'a');
    comes_to(0, 'late_buckets', 'a');
    is $slow->bad_lines, '', 'nothing alarming in the log';
};

subtest 'logins during a pause of Redis that is too long for the connection' => sub {
    my $slow = start_nginx(<<"END",
        add_header X-Status \$sliding_limit_status always;
        location / {
            sliding_limit zone=stall max=3 window=60s key=\$arg_k fallback=none count_status=401;
            empty_gif;
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=300ms connect_timeout=5s;');
    wait_until { ($slow->try('/?k=warm', 'X-Status'))[1] eq 'PASSED' } 10, 'a connection';

    $redis->pause;
    is_deeply [$slow->try('/?k=a', 'X-Status')], [200, 'FAILED_OPEN'] for 1 .. 4;
    like $slow->error_log, qr/is down: it does not reply/, 'the connection was given up';
    $redis->resume;
    wait_until { ($slow->try('/?k=warm', 'X-Status'))[1] eq 'PASSED' } 10, 'a connection again';
    comes_to(0, 'stall', 'a');
    is $slow->bad_lines, '', 'nothing alarming in the log';
};

subtest 'a login that ends while Redis is away is taken back when it is back' => sub {
    my $durable = start_redis(args => ['--appendonly', 'yes', '--appendfsync', 'always']);
    my $away = start_nginx(<<"END",
        add_header X-Status \$sliding_limit_status always;
        location / {
            sliding_limit zone=away max=3 window=60s key=\$arg_k fallback=none count_status=401;
            proxy_pass http://127.0.0.1:${\ $app->sockport};
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $durable->port . ' timeout=10s connect_timeout=5s;');

    my %client = map { $_ => begin_request($away->port, "GET /?k=$_ HTTP/1.1\r\nHost: test\r\n\r\n") } 204;
    my $request = arrived();
    $client{401} = begin_request($away->port, "GET /?k=401 HTTP/1.1\r\nHost: test\r\n\r\n");
    my $other_request = arrived();

    $durable->kill9;
    print $request "HTTP/1.0 204 No Content\r\n\r\n";
    print $other_request "HTTP/1.0 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    close $_ for $request, $other_request;
    for my $status (204, 401) {
        my $c = $client{$status};
        like scalar(<$c>), qr/$status/, "the client gets its $status";
    }

    $durable->start;
    wait_until { count('away', 204, $durable) == 0 } 10, 'the count to be taken back';
    is count('away', 401, $durable), 1, 'what has failed stays';
    is $away->bad_lines, '', 'nothing alarming in the log';
};

# Whoever has used up the limit of an error page must not be able to go on guessing.
subtest 'a refused error page does not wipe out what it is the page of' => sub {
    my $site = start_nginx(<<"END",
        sliding_limit zone=site max=2 window=60s key=all;
        proxy_intercept_errors on;

        location = /auth { internal; proxy_pass http://127.0.0.1:\$server_port/always_401; }
        location /always_401 { sliding_limit off; return 401; }
        location /sends { sliding_limit off; add_header X-Accel-Redirect /page; return 200 x; }
        location / { empty_gif; }

        location /intercepted {
            sliding_limit zone=intercepted max=5 window=60s key=all;
            error_page 401 /page;
            proxy_pass http://127.0.0.1:\$server_port/always_401;
        }
        location /overwritten {
            recursive_error_pages on;
            sliding_limit zone=overwritten max=5 window=60s key=all count_status=401;
            error_page 401 = /page;
            proxy_pass http://127.0.0.1:\$server_port/always_401;
        }
        location /asked {
            sliding_limit zone=asked max=5 window=60s key=all;
            auth_request /auth;
            error_page 401 = \@page;
            empty_gif;
        }
        location \@page { empty_gif; }
        location /sent {
            sliding_limit zone=sent max=5 window=60s key=all;
            proxy_pass http://127.0.0.1:\$server_port/sends;
        }
        location /chain {
            sliding_limit zone=chain max=5 window=60s key=all count_status=401;
            recursive_error_pages on;
            error_page 401 /chained;
            proxy_pass http://127.0.0.1:\$server_port/always_401;
        }
        location /chained { sliding_limit off; proxy_pass http://127.0.0.1:\$server_port/sends; }
        location /after_all {
            sliding_limit zone=after_all max=5 window=60s key=all;
            post_action /;
            empty_gif;
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

    $site->try('/') for 1 .. 2;

    for my $zone (qw(intercepted overwritten asked sent chain)) {
        is +($site->try("/$zone"))[0], 429, "$zone: the page is refused" for 1 .. 7;
        is count($zone, 'all'), 5, 'and what led to it was counted, up to its own limit';
    }

    my @status = map { ($site->try('/after_all'))[0] } 1 .. 7;
    is_deeply \@status, [(200) x 5, 429, 429], 'nor does a refused post_action';
    is $site->bad_lines, '', 'nothing alarming in the log';
};

subtest 'what a post_action has counted is settled, too' => sub {
    my $post = start_nginx(<<"END",
        location / { post_action /after; empty_gif; }
        location /after {
            sliding_limit zone=after max=2 window=60s key=all count_status=401;
            proxy_pass http://127.0.0.1:\$server_port/fine;
        }
        location /fine { return 204; }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');
    $post->try('/') for 1 .. 5;
    comes_to(0, 'after', 'all');
};

subtest 'what Redis refuses to take back is taken back when it can' => sub {
    my $weak = start_redis();
    my $front = start_nginx(<<"END",
        location / {
            sliding_limit zone=weak max=9 window=60s key=\$arg_k fallback=none count_status=401;
            sliding_limit zone=weak_buckets max=9 window=60s key=\$arg_k fallback=none count_status=401 algorithm=buckets;
            proxy_pass http://127.0.0.1:${\ $app->sockport};
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $weak->port . ' timeout=10s connect_timeout=5s;');
    my @clients = map { begin_request($front->port, "GET /?k=a HTTP/1.1\r\nHost: test\r\n\r\n") } 1 .. 3;
    my @requests = map { arrived() } 1 .. 3;

    is count('weak', 'a', $weak), 3, 'three are under way';
    $weak->cli('REPLICAOF', '127.0.0.1', '1');
    for my $request (@requests) {
        print $request "HTTP/1.0 204 No Content\r\n\r\n";
        close $request;
    }
    like scalar(<$_>), qr/204/ for @clients;
    wait_until { $front->error_log =~ /is down: READONLY/ } 10, 'Redis to be found a replica';
    is count('weak', 'a', $weak), 3, 'Redis is a replica and changes nothing';
    $weak->cli('REPLICAOF', 'NO', 'ONE');
    wait_until { count('weak', 'a', $weak) == 0 } 15, 'the counts to be taken back';
    pass 'it is none any more, and they are taken back, although a bucket stood beside them';
    is $front->bad_lines, '', 'nothing alarming in the log';
};

# The status of a range is known only after the filter that cuts it out.
for my $store (['Redis', ''], ['memory', 'store=memory']) {
    my ($name, $where) = @$store;
    my $counted = sub {
        my ($zone, $statuses) = @_;
        return "sliding_limit zone=$zone max=3 window=60s key=\$arg_k fallback=none count_status=$statuses $where;";
    };
    my $files = start_nginx(<<"END",
        log_not_found off;

        location /none { }
        location /partial { ${\ $counted->('partial', '206')} }
        location /beyond { ${\ $counted->('beyond', '416')} }
        location /either { ${\ $counted->('either', '206,416')} }
        location /whole { ${\ $counted->('whole', '200')} }
        location /denied { ${\ $counted->('denied', '401,403')} }
        location /page {
            ${\ $counted->('page', '206')}
            error_page 404 =200 /none/file;
            try_files /nowhere =404;
        }
        location /passed_on {
            ${\ $counted->('passed_on', '206,416')}
            proxy_pass http://127.0.0.1:\$server_port/none/file;
        }
        location /cut {
            ${\ $counted->('cut', '206,416')}
            proxy_force_ranges on;
            proxy_set_header Range '';
            proxy_pass http://127.0.0.1:\$server_port/none/file;
        }
END
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');
    for my $path (qw(none partial beyond either whole denied)) {
        mkdir $files->dir . "/html/$path";
        open my $file, '>', $files->dir . "/html/$path/file" or die $!;
        print $file '0123456789';
        close $file;
    }

    # 'status left' of a request for these bytes, or for all of them
    my $ask = sub {
        my ($zone, $key, $range) = @_;
        my $wanted = $range ? "Range: bytes=$range\r\n" : '';
        my ($status, $headers) = request($files->port,
            "GET /$zone/file?k=$name$key HTTP/1.1\r\nHost: test\r\nConnection: close\r\n$wanted\r\n");
        return "$status $headers->{'x-ratelimit-remaining'}";
    };

    subtest "$name: a range (206) is counted where it is listed, up to the limit" => sub {
        for my $zone (qw(partial either passed_on cut page)) {
            is_deeply [map { $ask->($zone, 'a', $_) } '0-3', '4-5', '5-', '0-3'],
                ['206 2', '206 1', '206 0', '429 0'], $zone;
            is $ask->($zone, 'a'), '429 0', 'and whatever else is asked for';
        }
    };

    subtest "$name: a range that is not there (416) is counted where it is listed, up to the limit" => sub {
        for my $zone (qw(beyond either passed_on cut)) {
            is_deeply [map { $ask->($zone, 'b', '99-') } 1 .. 4],
                ['416 2', '416 1', '416 0', '429 0'], $zone;
        }
    };

    subtest "$name: where another status is listed, neither is counted" => sub {
        is $ask->('beyond', 'c', '0-3'), '206 3', '206 is not 416' for 1 .. 5;
        is $ask->('partial', 'c', '99-'), '416 3', '416 is not 206' for 1 .. 5;
        is $ask->($_->[0], 'c', $_->[1]), "$_->[2] 3", "neither is in the list of $_->[0]"
            for (['whole', '0-3', 206], ['whole', '99-', 416], ['denied', '0-3', 206], ['denied', '99-', 416]) x 5;
        is $ask->('partial', 'd'), '200 3', 'all of it (200) is not 206' for 1 .. 5;
        is $ask->('whole', 'd'), "200 $_", 'and is counted as such' for 2, 1, 0;
    };

    subtest "$name: ranges and whole files mixed: only the ranges stay" => sub {
        is_deeply [map { $ask->('partial', 'e', $_) } undef, '0-3', undef, '99-', '2-3,5-6', '99-', undef, '4-5', undef],
            ['200 3', '206 2', '200 2', '416 2', '206 1', '416 1', '200 1', '206 0', '429 0'];
    };

    is $files->bad_lines, '', "$name: nothing alarming in the log";
}

done_testing;
