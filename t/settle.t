# settle: what a request costs is known when it ends. What was reserved for it on arrival
# becomes that: what is less is given back, what is more counts from then on, beyond max, too.

use strict;
use warnings;
use lib 't/lib';

use IO::Select ();
use IO::Socket::INET;
use POSIX ();
use SlidingLimit::Servers qw(begin_request free_port get request start_nginx start_redis wait_until);
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

my ($nginx, $worker);
my $redis = start_redis();

# The application: answers at once what it is asked for, as X-Tokens and otherwise. Trailers need HTTP/2.
my $h2_port = free_port();
my $refusing_port = free_port();
my $application = start_nginx("listen 127.0.0.1:$h2_port http2; listen 127.0.0.1:$refusing_port;" . <<"PORT" . <<'END');
    if (\$server_port = $refusing_port) { return 503; }
PORT
    location / {
        add_header X-Tokens $arg_tokens always;
        add_header X-Accel-Redirect $arg_accel always;
        if ($arg_status = 500) { return 500; }
        return 200 "0123456789";
    }
    location /old/ {
        add_header X-Tokens $arg_tokens always;
        if_modified_since before;
        try_files /ten =404;
    }
    location /nine { add_header X-Tokens 9; return 200; }
    location /trailer/ { add_trailer X-Tokens $arg_tokens; return 200 "0123456789"; }
    location /dead/ { return 444; }
END

ten_bytes($application);

# The same, when it is told to.
my $app = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 256) or die $!;

sub arrived {
    my $c = $app->accept or die $!;
    my $text = '';
    sysread $c, $text, 4096, length $text until $text =~ /\r\n\r\n/;
    return $c;
}

sub ten_bytes {
    open my $file, '>', $_[0]->dir . '/html/ten' or die $!;
    print $file '0123456789';
}

# Beside them there are those that look after the cache.
sub workers {
    return grep { `cat /proc/$_/cmdline 2>/dev/null` =~ /worker process/ } $nginx->workers;
}

# A location for each way of counting, and what stands in all of them.
my @ways = map { my $store = $_; map { "${store}_$_" } qw(log packed buckets) } qw(redis memory);

sub limit {
    my ($way, $rest, $max) = @_;
    my ($store, $algorithm) = split /_/, $way;

    return "sliding_limit zone=$way max=" . ($max || 100) . ' window=600s key=$arg_k fallback=none'
        . " algorithm=$algorithm" . ($store eq 'memory' ? ' store=memory' : '') . " $rest;";
}

# What a limit of 100 counts of a request: in a log no more than max beyond what was reserved.
sub entered {
    my ($way, $reserved, $cost) = @_;
    my $most = $reserved + 100;

    return $way =~ /buckets/ || $cost < $most ? $cost : $most;
}

my $plain = 'cost=$arg_reserve settle=$upstream_http_x_tokens';
my $upstream = "http://127.0.0.1:${\ $application->port}";
my $held = "http://127.0.0.1:${\ $app->sockport}";

my $config = join '', map {
    my $limit = limit($_, $plain);
    <<"END";
    location /$_/ { $limit proxy_pass $upstream/; }
    location /held/$_/ { $limit proxy_pass $held/; proxy_buffering off; }
    location /dead/$_/ { $limit proxy_pass $upstream/dead/; proxy_next_upstream off; }
    location /old/$_/ { $limit proxy_pass $upstream/old/; }
    location /cached/$_/ { $limit proxy_pass $upstream/; proxy_cache one; proxy_cache_valid 1h;
        proxy_cache_key \$uri\$arg_k; }
    location /error/$_/ { $limit proxy_pass $upstream/; proxy_intercept_errors on; error_page 500 /error_page/$_; }
    location /error_page/$_ { $limit try_files /ten =404; }
    location /accel/$_/ { $limit proxy_pass $upstream/; }
    location /accelerated/$_ { internal; $limit proxy_pass $upstream/nine; }
    location /strict/$_ { internal; sliding_limit zone=strict_$_ max=1 window=600s key=\$arg_k fallback=none; try_files /ten =404; }
    location /bytes/$_/ { ${\ limit($_, 'cost=$arg_reserve settle=$body_bytes_sent', 1000)} try_files /ten =404; }
    location /sent/$_/ { ${\ limit($_, 'cost=$arg_reserve settle=$bytes_sent', 1000)} try_files /ten =404; }
    location /length/$_/ { ${\ limit($_, 'cost=$arg_reserve settle=$upstream_response_length')} proxy_pass $upstream/; }
    location /retried/$_/ { ${\ limit($_, 'cost=$arg_reserve settle=$upstream_response_length')} proxy_pass http://retried/;
        proxy_next_upstream http_503; }
    location /after/$_/ { ${\ limit($_, 'cost=$arg_reserve settle=$upstream_response_length')} proxy_pass $upstream/; post_action /afterwards/$_; }
    location /afterwards/$_ { ${\ (limit($_, 'count_status=401') =~ s/zone=/zone=after_/r)} proxy_pass $upstream/nine; }
    location /left/$_/ { ${\ limit($_, $plain)} ${\ (limit($_, 'count_status=200,204') =~ s/zone=/zone=left_/r)}
        ${\ (limit($_, 'count_status=499') =~ s/zone=/zone=left_499_/r)} proxy_pass $held/;
        location /left/$_/asked { proxy_pass $held/; post_action /account/asked; }
        location /left/$_/returned { proxy_pass $held/; post_action /account/returned; } }
    location /noted/$_/ { $limit proxy_pass $upstream/; post_action /account/returned; }
    location /unnoted/$_/ { $limit proxy_pass $upstream/; post_action /account/refused; }
    location /trailer/$_/ { ${\ limit($_, 'cost=$arg_reserve settle=$upstream_trailer_x_tokens')} grpc_pass grpc://127.0.0.1:$h2_port; }
    location /short/$_/ { ${\ ($limit =~ s/zone=/zone=short_/r =~ s/600s/10s/r)} proxy_pass $upstream/; }
    location /if/$_/ { ${\ limit($_, "$plain if=\$arg_if")} proxy_pass $upstream/; }
    location /status/$_/ { ${\ limit($_, "$plain count_status=200")} proxy_pass $upstream/; }
    location /denied/$_/ { ${\ limit($_ , "$plain dry_run")} proxy_pass $upstream/; }
END
} @ways;

$nginx = start_nginx(<<"END", slots => 4096, http => <<"HTTP");
    add_header X-Status \$sliding_limit_status always;
    access_log logs/ended.log ended;
    $config
    location /two/ {
        sliding_limit zone=requests max=3 window=600s key=\$arg_k fallback=none;
        sliding_limit zone=tokens max=100 window=600s key=\$arg_k fallback=none cost=\$arg_reserve settle=\$upstream_http_x_tokens;
        sliding_limit zone=tokens_packed max=100 window=600s key=\$arg_k fallback=none algorithm=packed cost=\$arg_reserve settle=\$upstream_http_x_tokens;
        sliding_limit zone=tokens_day max=1000 window=1d key=\$arg_k fallback=none algorithm=buckets buckets=24 cost=\$arg_reserve settle=\$upstream_http_x_tokens;
        proxy_pass $upstream/;
    }
    location /page/ {
        sliding_limit zone=page_requests max=1 window=600s key=\$arg_k fallback=none;
        sliding_limit zone=page_bytes max=1000 window=600s key=\$arg_k fallback=none cost=0 settle=\$body_bytes_sent;
        error_page 429 /refused_page;
        proxy_pass $upstream/;
    }
    location /refused_page {
        sliding_limit zone=refused_page max=100 window=600s key=\$arg_k fallback=none;
        try_files /ten =404;
    }
    location /hung_up/ {
        sliding_limit zone=hung_up max=100 window=600s key=\$arg_k fallback=none count_status=499;
        sliding_limit zone=hung_up_tokens max=100 window=600s key=\$arg_k fallback=none cost=20 settle=\$upstream_http_x_tokens;
        proxy_pass $upstream/;
    }
    location /account/asked { proxy_pass $upstream/nine; }
    location /account/returned { return 204; }
    location /account/refused { limit_req zone=notes; proxy_pass $upstream/nine; }
    location /busy/ {
        sliding_limit zone=busy max=100 window=600s key=\$arg_k fallback=none settle=\$upstream_response_length;
        proxy_pass $held/;
        proxy_cache one;
        proxy_cache_valid 1h;
    }
    location /look { sliding_limit_metrics; sliding_limit off; }
    location /change { sliding_limit_metrics admin; sliding_limit off; allow 127.0.0.1; deny all; }
END
    proxy_cache_path cache keys_zone=one:1m;
    # as good as none
    limit_req_zone all zone=notes:64k rate=1r/m;
    log_format ended '\$request_uri';
    # the first one answers 503
    upstream retried { server 127.0.0.1:$refusing_port; server 127.0.0.1:${\ $application->port} backup; }
    sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=10s connect_timeout=5s;
HTTP
ten_bytes($nginx);
($worker) = workers();

sub used {
    my ($zone, $key, $from) = @_;
    my $answer = (get(($from || $nginx)->port, "/look?zone=$zone&key=$key"))[2];
    return $answer =~ /"used":(\d+)/ ? $1 : "unknown: $answer";
}

sub comes_to {
    my ($number, $zone, $key, $what) = @_;
    eval { wait_until { used($zone, $key) eq $number } 5 };
    is used($zone, $key), $number, $what || "$zone comes to $number";
}

sub still_fine {
    is join(',', workers()), $worker, 'the worker lives';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

for my $way (@ways) {
    subtest "$way: what was reserved becomes what it has cost" => sub {
        is_deeply [$nginx->try("/$way/?k=less&reserve=60&tokens=7", 'X-RateLimit-Remaining')], [200, 40], 'reserved';
        comes_to(7, $way, 'less', 'less: the rest is given back');
        is_deeply [$nginx->try("/$way/?k=less&reserve=93&tokens=93")], [200], 'all that is left can be had';
        comes_to(100, $way, 'less', 'as much as was reserved');

        $nginx->try("/$way/?k=none&reserve=50&tokens=0");
        comes_to(0, $way, 'none', '0: all of it is given back');
        is_deeply [$nginx->try("/$way/?k=none&reserve=100&tokens=")], [200];
        sleep 0.2;
        is used($way, 'none'), 100, 'empty: it stands';

        is_deeply [$nginx->try("/$way/?k=more&reserve=1&tokens=250")], [200];
        my $more = entered($way, 1, 250);
        comes_to($more, $way, 'more', 'more: the rest is entered, beyond max');
        is_deeply [$nginx->try("/$way/?k=more&reserve=1&tokens=0", 'X-Status')], [429, 'REJECTED'], 'so the next waits';
        is used($way, 'more'), $more, 'and settles nothing';

        $nginx->try("/$way/?k=default&tokens=5");
        comes_to(5, $way, 'default', 'without a cost one is reserved');
        $nginx->try("/$way/?k=default&tokens=1");
        comes_to(6, $way, 'default');
        $nginx->try("/$way/?k=default&tokens=0");
        comes_to(6, $way, 'default', 'and can be given back');
    };

    subtest "$way: only a look reserves nothing, and is settled as others are" => sub {
        $nginx->try("/$way/?k=look&reserve=0&tokens=30");
        comes_to(30, $way, 'look');
        $nginx->try("/$way/?k=look&reserve=0&tokens=0");
        $nginx->try("/$way/?k=look&reserve=0&tokens=");
        sleep 0.2;
        is used($way, 'look'), 30;
    };

    subtest "$way: what is not a whole number leaves the reservation, and is logged" => sub {
        for my $tokens ('abc', '1.5', '-1', '1,2', '1000000000000001') {
            my $key = "bad$tokens" =~ s/\W/_/gr;
            $nginx->try("/$way/?k=$key&reserve=4&tokens=$tokens");
            wait_until { $nginx->error_log =~ /settle of zone "$way" is "\Q$tokens\E", must be a whole number from 0 to 1000000000000000, or empty; what was reserved stands/ } 10, "a line about $tokens";
            is used($way, $key), 4;
        }
    };

    subtest "$way: bytes, of answers of this nginx" => sub {
        $nginx->try("/bytes/$way/?k=bytes&reserve=1");
        comes_to(10, $way, 'bytes');
        request($nginx->port, "HEAD /bytes/$way/?k=head&reserve=3 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        comes_to(0, $way, 'head', 'HEAD');
        my $all = begin_request($nginx->port, "GET /sent/$way/?k=sent&reserve=1 HTTP/1.0\r\nHost: test\r\n\r\n");
        comes_to(length join('', <$all>), $way, 'sent', 'with the header');
    };

    subtest "$way: a post_action has no part in what the answer before it has cost" => sub {
        for my $key ('after', 'after_again') {
            is_deeply [$nginx->try("/after/$way/?k=$key&reserve=1")], [200];
            comes_to(10, $way, $key, 'the length of the answer, not of what post_action was told');
            sleep 0.2;
            comes_to(0, "after_$way", 'none', 'what post_action has counted is taken back when that has ended');
        }
    };

    subtest "$way: nor in what a request has cost whose client leaves before the answer" => sub {
        for my $how ('asked', 'returned') {
            my $c = begin_request($nginx->port, "GET /left/$way/$how?k=$how&reserve=50 HTTP/1.1\r\nHost: test\r\n\r\n");
            my $request = arrived();
            close $c;
            is sysread($request, my $text, 1), 0, 'the request has ended';
            comes_to(0, "left_$way", $how, 'it does not count where the answer of post_action would');
            is used("left_499_$way", $how), 1, 'it counts where that of a client that leaves does';
            sleep 0.2;
            is used($way, $how), 50, 'what was reserved stands';
        }
        still_fine();
    };

    subtest "$way: what is known only when the last byte has come" => sub {
        $nginx->try("/length/$way/?k=length&reserve=1");
        comes_to(10, $way, 'length', 'how much the application has sent');
        is_deeply [$nginx->try("/retried/$way/?k=retried&reserve=1")], [200];
        comes_to(10, $way, 'retried', 'how much the last of two servers has sent');
        $nginx->try("/trailer/$way/?k=trailer&reserve=50&tokens=13");
        comes_to(13, $way, 'trailer', 'a trailer');
    };

    subtest "$way: whatever becomes of the answer, it is settled once" => sub {
        is_deeply [$nginx->try("/dead/$way/?k=dead&reserve=5&tokens=1")], [502];
        sleep 0.1;
        is used($way, 'dead'), 5, 'a dead upstream says nothing: it stands';

        is_deeply [$nginx->try("/error/$way/?k=error&reserve=5&tokens=2&status=500")], [500];
        sleep 0.2;
        is used($way, 'error'), 2, 'an error page, which has the same limit: with what its request has cost';

        is_deeply [$nginx->try("/accel/$way/?k=accel&reserve=5&accel=/accelerated/$way")], [200];
        comes_to(9, $way, 'accel', 'X-Accel-Redirect: what is known at the end');

        $nginx->try("/cached/$way/?k=cached&reserve=5&tokens=3") for 1 .. 3;
        comes_to(9, $way, 'cached', 'cached answers have cost what they say');

        my ($status) = request($nginx->port, "GET /old/$way/?k=304&reserve=5&tokens=2 HTTP/1.1\r\nHost: test\r\n"
            . "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\nConnection: close\r\n\r\n");
        is $status, 304;
        comes_to(2, $way, '304');

        request($nginx->port, "HEAD /$way/?k=head2&reserve=5&tokens=2 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        comes_to(2, $way, 'head2', 'HEAD');
    };

    subtest "$way: if=, count_status= and dry runs work as elsewhere" => sub {
        $nginx->try("/if/$way/?k=if&reserve=5&tokens=9&if=0");
        is_deeply [$nginx->try("/if/$way/?k=if&reserve=5&tokens=9&if=1", 'X-RateLimit-Remaining')], [200, 95];
        comes_to(9, $way, 'if');

        $nginx->try("/status/$way/?k=status&reserve=5&tokens=9&status=500");
        comes_to(0, $way, 'status', 'a status that does not count');
        $nginx->try("/status/$way/?k=status&reserve=5&tokens=9");
        comes_to(9, $way, 'status');

        $nginx->try("/denied/$way/?k=dry&reserve=5&tokens=500");
        my $all = entered($way, 5, 500);
        comes_to($all, $way, 'dry');
        is_deeply [$nginx->try("/denied/$way/?k=dry&reserve=5&tokens=500", 'X-Status')], [200, 'REJECTED_DRY_RUN'];
        sleep 0.1;
        is used($way, 'dry'), $all, 'what a dry run would refuse settles nothing';
    };

    subtest "$way: a client that leaves in the middle of the answer" => sub {
        for my $reset (0, 1) {
            my $key = "leaves$reset";
            my $c = begin_request($nginx->port, "GET /held/$way/?k=$key&reserve=50 HTTP/1.1\r\nHost: test\r\n\r\n");
            my $request = arrived();
            is used($way, $key), 50, 'reserved while it runs';
            print $request "HTTP/1.0 200 OK\r\nX-Tokens: 8\r\n\r\nbegun";
            $request->flush;
            like scalar(<$c>), qr/200/, 'the answer has begun';
            is used($way, $key), 50, 'reserved while the answer passes';
            setsockopt $c, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $reset;
            close $c;
            comes_to(8, $way, $key, 'settled with what is known');
            close $request;
        }
        still_fine();
    };

    # Five streams of 20 tokens fit into 100.
    subtest "$way: 50 streams at once" => sub {
        for my $case ([20, 5, 100], [1, 50, 1000]) {
            my ($estimate, $pass, $used) = @$case;
            my $key = "streams$estimate";
            my @clients = map {
                begin_request($nginx->port, "GET /held/$way/?k=$key&reserve=$estimate HTTP/1.0\r\nHost: test\r\n\r\n")
            } 1 .. 50;
            my @streams = map { arrived() } 1 .. $pass;

            is used($way, $key), $pass * $estimate, "$pass are under way";
            # tokens one by one, of all streams
            print $_ "HTTP/1.0 200 OK\r\nX-Tokens: 20\r\n\r\n" for @streams;
            for my $n (1 .. 20) {
                print $_ "token$n " and $_->flush for @streams;
            }
            close $_ for splice @streams;

            my %statuses;
            $statuses{ (join '', <$_>) =~ m{^HTTP/1\.1 (\d+)} ? $1 : 0 }++ for @clients;
            is_deeply \%statuses, { 200 => $pass, $pass < 50 ? (429 => 50 - $pass) : () },
                "exactly $pass pass with an estimate of $estimate";
            ok !IO::Select->new($app)->can_read(0), 'no other came to the application';
            comes_to($used, $way, $key, 'the overshoot is what was underestimated');
            is_deeply [$nginx->try("/$way/?k=$key&reserve=1&tokens=1", 'X-Status')], [429, 'REJECTED'],
                'the next is refused';
        }
    };
}

# nginx keeps a connection for lingering_time, 30 s, while its client goes on sending: each request
# has one byte too many, or too few. Returns the answer, and a connection that is still open.
sub lingering {
    my ($request, $whole) = @_;
    my $c = begin_request($nginx->port, "$request HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
        . ($request =~ /^POST/ ? "Content-Length: 9\r\n\r\nx" : "\r\nx"));
    my $text = '';
    while ($text !~ $whole) {
        sysread $c, $text, 4096, length $text or die "the answer ends with: $text";
    }
    return ($text, $c);
}

# The requests that nginx has logged.
sub ended {
    open my $file, '<', $nginx->dir . '/logs/ended.log' or die $!;
    return join '', <$file>;
}

for my $way (@ways) {
    subtest "$way: a client that goes on sending does not put off what it owes" => sub {
        my @cases = (
            ['one more byte', "GET /$way/?k=linger1_$way&reserve=1&tokens=60", qr/0123456789$/, sub { 60 }],
            ['a head alone', "HEAD /$way/?k=linger2_$way&reserve=1&tokens=60", qr/\r\n\r\n$/, sub { 60 }],
            ['a body that is not read', "POST /bytes/$way/?k=linger3_$way&reserve=1", qr/<\/html>\s+$/, sub { length $_[0] =~ s/.*?\r\n\r\n//sr }],
            ['a post_action that returns', "GET /noted/$way/?k=linger5_$way&reserve=1&tokens=60", qr/0123456789$/, sub { 60 }],
            ['one that is refused', "GET /unnoted/$way/?k=linger6_$way&reserve=1&tokens=60", qr/0123456789$/, sub { 60 }],
        );

        for (@cases) {
            my ($what, $request, $whole, $cost) = @$_;
            my ($text, $c) = lingering($request, $whole);
            my ($key) = $request =~ /k=(\w+)/;
            comes_to($cost->($text), $way, $key, $what);
            unlike ended(), qr/k=$key&/, 'before nginx ends the request';
        }

        my (@statuses, @open);
        for (1 .. 4) {
            my ($text, $c) = lingering("GET /$way/?k=linger4_$way&reserve=1&tokens=60", qr/0123456789$|exceeded"\}$/);
            push @statuses, $text =~ m{^HTTP/1\.1 (\d+)};
            push @open, $c;
        }
        is_deeply \@statuses, [200, 200, 429, 429], 'two answers of 60 pass a limit of 100, one after the other';
    };
}

subtest 'a head alone is settled when the answer behind it has ended' => sub {
    my ($c, $request);
    my $begin = sub {
        $c = begin_request($nginx->port, "HEAD /busy/?k=busy HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\nx");
        $request = arrived();
        print $request "HTTP/1.0 200 OK\r\nContent-Length: 20\r\n\r\n0123456789";
        $request->flush;
    };
    $begin->();
    like scalar(<$c>), qr/200/, 'the head is there';
    sleep 1.2;
    is used('busy', 'busy'), 1, 'reserved while the answer is written to the cache';
    print $request '0123456789';
    close $request;
    comes_to(20, 'busy', 'busy', 'its length');
    unlike ended(), qr/k=busy$/m, 'before nginx ends the request';
};

subtest 'a client that leaves during the check has cost nothing' => sub {
    for my $way (grep { /redis/ } @ways) {
        my $calls = $redis->calls('evalsha');
        $redis->pause;
        my @clients = map {
            begin_request($nginx->port, "GET /$way/?k=early&reserve=9&tokens=9 HTTP/1.1\r\nHost: test\r\n\r\n") } 1 .. 3;
        sleep 0.3;
        close $_ for splice @clients;
        sleep 0.3;
        $redis->resume;
        wait_until { $redis->calls('evalsha') >= $calls + 6 } 10, 'three checks, taken back';
        comes_to(0, $way, 'early');
    }
    still_fine();
};

# An operator may have given the client another max: if that is the larger one, it counts.
subtest 'in a log no more than max is entered beyond what was reserved' => sub {
    my $change = sub {
        my ($zone, $key, $max) = @_;
        my $body = qq({"max":$max,"for":"1h"});
        my ($status) = request($nginx->port, "PUT /change?zone=$zone&key=$key HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body");
        is $status, 200, "another max: $max";
    };

    for my $way (@ways) {
        for my $cost (100, 101, 102, 1000000000000000) {
            is_deeply [$nginx->try("/$way/?k=most$cost&reserve=1&tokens=$cost")], [200];
            comes_to(entered($way, 1, $cost), $way, "most$cost");
        }
        is_deeply [$nginx->try("/$way/?k=most_look&reserve=0&tokens=500")], [200];
        comes_to(entered($way, 0, 500), $way, 'most_look', 'also where nothing was reserved');

        $change->($way, 'most_larger', 300);
        is_deeply [$nginx->try("/$way/?k=most_larger&reserve=1&tokens=500", 'X-RateLimit-Limit')], [200, 300];
        comes_to($way =~ /buckets/ ? 500 : 301, $way, 'most_larger');
        $change->($way, 'most_smaller', 10);
        is_deeply [$nginx->try("/$way/?k=most_smaller&reserve=1&tokens=500", 'X-RateLimit-Limit')], [200, 10];
        comes_to(entered($way, 1, 500), $way, 'most_smaller', 'its own max comes back');
    }
};

subtest 'a debt holds until it has left the window, and no longer' => sub {
    for my $way (@ways) {
        my $zone = "short_$way";
        is_deeply [$nginx->try("/short/$way/?k=debt&reserve=1&tokens=300")], [200];
        comes_to(entered($way, 1, 300), $zone, 'debt');
        my ($status, $wait) = $nginx->try("/short/$way/?k=debt&reserve=1&tokens=0", 'Retry-After');
        is $status, 429, 'refused';
        cmp_ok $wait, '<=', 10 * 7 / 6 + 1, 'for no longer than it takes to leave';
    }
    for my $way (@ways) {
        wait_until { ($nginx->try("/short/$way/?k=debt&reserve=100&tokens=100"))[0] == 200 } 15, 'the debt to leave';
        pass 'then all of max can be had again';
    }
};

subtest 'what a request has cost counts, also if another location refuses it afterwards' => sub {
    for my $way (@ways) {
        for my $reserve (0, 5) {
            my $key = "elsewhere$reserve";
            my $uri = "/accel/$way/?k=$key&reserve=$reserve&tokens=40&accel=/strict/$way?k=$key";
            is_deeply [map { ($nginx->try($uri))[0] } 1, 2], [200, 429];
            comes_to(80, $way, $key);
        }
    }
};

subtest 'a request that is refused settles nothing, also if its error page has limits of its own' => sub {
    is_deeply [map { ($nginx->try('/page/?k=a'))[0] } 1 .. 3], [200, 429, 429];
    comes_to(10, 'page_bytes', 'a', 'only what has passed counts');
    sleep 0.2;
    is used('page_bytes', 'a'), 10;
};

subtest 'who hangs up during the check keeps what counts with that, and nothing else' => sub {
    my $calls = $redis->calls('evalsha');
    $redis->pause;
    my $c = begin_request($nginx->port, "GET /hung_up/?k=a HTTP/1.1\r\nHost: test\r\n\r\n");
    sleep 0.3;
    close $c;
    sleep 0.3;
    $redis->resume;
    wait_until { $redis->calls('evalsha') >= $calls + 2 } 10, 'a check, and what takes back';
    comes_to(0, 'hung_up_tokens', 'a');
    is used('hung_up', 'a'), 1;
};

subtest 'several limits are settled in one call, those without settle= are not' => sub {
    my $calls = sub { $redis->calls('evalsha') };
    my $before = $calls->();
    my $seen = sub { my $n = $calls->() - $before; $before += $n; return $n };

    $nginx->try('/two/?k=a&reserve=20&tokens=5');
    wait_until { $calls->() >= $before + 2 } 10;
    sleep 0.1;
    is $seen->(), 2, 'a check, and one call to settle';
    is used($_, 'a'), 5, $_ for qw(tokens tokens_packed tokens_day);
    is used('requests', 'a'), 1, 'requests';

    $nginx->try('/two/?k=a&reserve=20&tokens=95');
    comes_to(100, $_, 'a') for qw(tokens tokens_packed tokens_day);
    is $seen->(), 2, 'also to enter more';

    $nginx->try('/two/?k=b&reserve=20&tokens=20');
    sleep 0.2;
    is $seen->(), 1, 'nothing has to be told if it was estimated well';

    is_deeply [$nginx->try('/two/?k=a&reserve=1&tokens=1')], [429], 'one of them refuses';
    is used('requests', 'a'), 2, 'so none is charged';
};

subtest 'a reload while a stream is under way' => sub {
    my ($old) = workers();
    my $c = begin_request($nginx->port, "GET /held/redis_log/?k=reload&reserve=50 HTTP/1.0\r\nHost: test\r\n\r\n");
    my $request = arrived();
    $nginx->reload;
    wait_until { grep { $_ != $old } workers() } 10, 'a new worker';
    print $request "HTTP/1.0 200 OK\r\nX-Tokens: 3\r\n\r\n";
    close $request;
    like scalar(<$c>), qr/200/;
    comes_to(3, 'redis_log', 'reload', 'the old worker settles it');
    wait_until { !grep { $_ == $old } workers() } 20, 'the old worker to leave';
    ($worker) = workers();
    still_fine();
};

subtest 'a worker that is killed leaves the reservation' => sub {
    my $c = begin_request($nginx->port, "GET /held/redis_log/?k=killed&reserve=50 HTTP/1.0\r\nHost: test\r\n\r\n");
    my $request = arrived();
    kill 'KILL', $worker;
    wait_until { my @w = workers(); @w == 1 && $w[0] != $worker } 10, 'another worker';
    close $request;
    comes_to(50, 'redis_log', 'killed', 'strict, not lax');
    like $nginx->bad_lines, qr/exited on signal 9/, 'it was killed';
};

subtest 'the metrics tell what was reserved, and what became of it' => sub {
    my $other = start_nginx(<<"END", http => "sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=10s connect_timeout=5s;");
        location /settled/ { ${\ limit('redis_log', $plain)} proxy_pass $upstream/; }
        location /plain/ { sliding_limit zone=plain max=9 window=60s key=\$remote_addr; proxy_pass $upstream/; }
        location /look { sliding_limit_metrics; sliding_limit off; }
END
    # down by 15, even, nothing said, up by 100: of 240 the log enters no more than max beyond the 10
    $other->try("/settled/?k=metrics&reserve=$_->[0]&tokens=$_->[1]") for [20, 5], [7, 7], [3, ''], [10, 240];
    $other->try("/settled/?k=metrics&reserve=99&tokens=1");
    $other->try('/plain/');

    my $json = (get($other->port, '/look?format=json'))[2];
    my ($settled) = $json =~ /"settled":(\{.*?\}\})/;
    my $buckets = join ',', '[0,0]', '[1,0]', '[10,3]', '[100,3]', map { '[1' . '0' x $_ . ',4]' } 3 .. 12;
    is $settled, '{"requests":{"up":1,"down":1,"even":1,"stood":1},"reserved":40,"entered":100,"given_back":15,'
        . qq("cost":{"buckets":[$buckets],"count":4,"sum":125}});
    is scalar(() = $json =~ /"settled"/g), 1, 'of zones that settle';

    my $text = (get($other->port, '/look?format=prometheus'))[2];
    my %expected = ('zone_settlements_total{zone="redis_log",direction="up"}' => 1,
        'zone_settlements_total{zone="redis_log",direction="down"}' => 1,
        'zone_settlements_total{zone="redis_log",direction="even"}' => 1,
        'zone_settlements_total{zone="redis_log",direction="stood"}' => 1,
        'zone_reserved_units_total{zone="redis_log"}' => 40,
        'zone_entered_units_total{zone="redis_log"}' => 100,
        'zone_given_back_units_total{zone="redis_log"}' => 15,
        'zone_request_cost_bucket{zone="redis_log",le="10"}' => 3,
        'zone_request_cost_bucket{zone="redis_log",le="+Inf"}' => 4,
        'zone_request_cost_sum{zone="redis_log"}' => 125,
        'zone_request_cost_count{zone="redis_log"}' => 4);
    like $text, qr/^nginx_sliding_limit_\Q$_ $expected{$_}\E$/m, $_ for sort keys %expected;
};

subtest 'worker_shutdown_timeout: what the streams have cost that it cuts off is not lost' => sub {
    my $short = start_nginx(<<"END", main => 'worker_shutdown_timeout 300ms;', http => "sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=10s connect_timeout=5s;");
        location / { ${\ limit('redis_log', $plain)} proxy_pass $held/; proxy_buffering off; }
END
    my $c = begin_request($short->port, "GET /?k=cut&reserve=10 HTTP/1.1\r\nHost: test\r\n\r\n");
    my $request = arrived();
    print $request "HTTP/1.0 200 OK\r\nX-Tokens: 70\r\n\r\nbegun";
    $request->flush;
    like scalar(<$c>), qr/200/;
    comes_to(10, 'redis_log', 'cut');
    is $short->signal('QUIT')->reap(20), 0;
    comes_to(70, 'redis_log', 'cut');
    is $short->bad_lines, '';
};

# ---- Redis is away when the request ends

subtest 'what cannot be delivered waits until Redis is back' => sub {
    my $restless = start_redis(args => ['--appendonly', 'yes', '--appendfsync', 'always']);
    my $waiting = start_nginx(join('', map { "location /$_/ { " . limit("redis_$_", $plain) . " proxy_pass $held/; }" } qw(log packed buckets))
        . 'location /look { sliding_limit_metrics; sliding_limit off; } add_header X-Status $sliding_limit_status always;',
        http => 'sliding_limit_redis redis://127.0.0.1:' . $restless->port . ' timeout=10s connect_timeout=5s;');
    my $is_back = sub { wait_until { used('redis_log', 'nobody', $waiting) eq '0' } 20, 'a connection' };

    # A full Redis has changed nothing: it is told again also what it was to take from a bucket, which
    # is what it is told first here.
    my %troubles = (
        stopped => [sub { $restless->stop }, sub { $restless->start }],
        full => [
            sub { $restless->cli('CONFIG', 'SET', 'maxmemory', 1) },
            sub {
                wait_until { $waiting->error_log =~ /is down: .*OOM/ } 10, 'nginx to notice';
                $restless->cli('CONFIG', 'SET', 'maxmemory', 0);
            },
        ],
    );

    for my $trouble (sort keys %troubles) {
        my ($begin, $end) = @{ $troubles{$trouble} };
        my @streams;
        $is_back->();

        for my $algorithm (qw(buckets log packed)) {
            for my $tokens (2, 30) {
                my $c = begin_request($waiting->port, "GET /$algorithm/?k=$trouble$tokens&reserve=9 HTTP/1.0\r\nHost: test\r\n\r\n");
                push @streams, [$algorithm, $tokens, $c, arrived()];
            }
        }

        $begin->();
        for (@streams) {
            my ($algorithm, $tokens, $c, $request) = @$_;
            print $request "HTTP/1.0 200 OK\r\nX-Tokens: $tokens\r\n\r\n";
            close $request;
            like join('', <$c>), qr/200/;
        }
        $end->();

        for (@streams) {
            my ($algorithm, $tokens) = @$_;
            eval { wait_until { used("redis_$algorithm", "$trouble$tokens", $waiting) eq $tokens } 20 };
            is used("redis_$algorithm", "$trouble$tokens", $waiting), $tokens, "$trouble: $algorithm comes to $tokens";
        }
    }
    is $waiting->bad_lines, '';
};

subtest 'what has waited for longer than a window is not settled there any more' => sub {
    my $restless = start_redis(args => ['--appendonly', 'yes', '--appendfsync', 'always']);
    my $waiting = start_nginx(<<"END", http => 'sliding_limit_redis redis://127.0.0.1:' . $restless->port . ' timeout=10s connect_timeout=5s;');
        location / {
            sliding_limit zone=seconds max=100 window=5s key=\$arg_k cost=9 settle=\$upstream_http_x_tokens;
            sliding_limit zone=minutes max=100 window=600s key=\$arg_k cost=9 settle=\$upstream_http_x_tokens;
            proxy_pass $held/;
        }
        location /look { sliding_limit_metrics; sliding_limit off; }
END
    wait_until { used('seconds', 'a', $waiting) eq '0' } 20, 'a connection';
    my $c = begin_request($waiting->port, "GET /?k=a HTTP/1.0\r\nHost: test\r\n\r\n");
    my $request = arrived();
    $restless->stop;
    print $request "HTTP/1.0 200 OK\r\nX-Tokens: 70\r\n\r\n";
    close $request;
    like join('', <$c>), qr/200/;
    sleep 6;
    $restless->start;
    eval { wait_until { used('minutes', 'a', $waiting) eq '70' } 20 };
    my $seconds = used('seconds', 'a', $waiting);
    is used('minutes', 'a', $waiting), 70, 'a long window still has it';
    is $seconds, 0, 'a short one had left it behind';
};

subtest 'who passes without an answer has reserved nothing, and settles nothing' => sub {
    my $down = start_nginx(<<"END", http => 'sliding_limit_redis redis://127.0.0.1:1 timeout=300ms;');
        add_header X-Status \$sliding_limit_status always;
        location /pass/ { ${\ limit('redis_log', $plain)} proxy_pass $upstream/; }
        location /local/ { sliding_limit_on_error local; ${\ limit('redis_packed', $plain)} proxy_pass $upstream/; }
        location /look { sliding_limit_metrics; sliding_limit off; }
END
    is_deeply [$down->try('/pass/?k=a&reserve=5&tokens=9', 'X-Status')], [200, 'FAILED_OPEN'];

    is_deeply [$down->try('/local/?k=a&reserve=5&tokens=97', 'X-Status')], [200, 'PASSED'], 'counted in this nginx';
    is_deeply [$down->try('/local/?k=a&reserve=5&tokens=9', 'X-Status')], [429, 'REJECTED'], 'and settled there';
    is_deeply [$down->try('/local/?k=a&reserve=3&tokens=1', 'X-Status')], [200, 'PASSED'], 'exactly';
    is_deeply [$down->try('/local/?k=a&reserve=2&tokens=2', 'X-Status')], [200, 'PASSED'];
    is_deeply [$down->try('/local/?k=a&reserve=1&tokens=2', 'X-Status')], [429, 'REJECTED'];
    is $down->bad_lines, '';
};

done_testing();
