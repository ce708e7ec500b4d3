# Reload, exit, upgrade, crashes of workers: no request is lost, nothing is left
# open, and what was counted stays counted.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request free_port start_redis start_nginx get wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $HTTP = 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=5s connect_timeout=5s;';
my $CONFIG = <<'END';
    add_header X-Status $sliding_limit_status always;
    location /count { sliding_limit zone=count max=5 window=600s key=$arg_k; empty_gif; }
    location /load { sliding_limit zone=load max=1000000 window=60s key=$arg_k; empty_gif; }
END

sub status_of { (get($_[0]->port, $_[1]))[1]{'x-status'} // 'no answer' }

sub connections {
    my @clients = grep { !/cmd=client/ } split /\n/, $redis->cli('CLIENT', 'LIST');
    return scalar @clients;
}

subtest '50 reloads under load' => sub {
    my $nginx = start_nginx($CONFIG, http => $HTTP, workers => 2);
    is status_of($nginx, '/count?k=kept'), 'PASSED' for 1 .. 3;

    my $load = start_load(clients => 6, seconds => 12, ports => [ $nginx->port ],
        path => sub { "/load?k=r$_[0]" }, pause => 0.001);
    for (1 .. 50) {
        $nginx->reload;
        sleep 0.2;
    }
    my @answers = $load->finish;

    is summary(grep { $_->{status} != 200 } @answers), '', 'no failed request: ' . summary(@answers);
    is scalar(grep { $_->{remaining} eq '-' } @answers), 0, 'none uncounted';
    my $counted = 0;
    $counted += $redis->cli('ZCARD', "rate_limit:load:r$_") for 1 .. 6;
    is $counted, scalar @answers, 'each counted once';

    my @status = map { status_of($nginx, '/count?k=kept') } 1 .. 3;
    is "@status", 'PASSED PASSED REJECTED', 'counts are kept';

    wait_until { $nginx->workers == 2 } 10, 'the last old workers to leave';
    wait_until { connections() == 2 } 10, 'their connections to be closed';
    is $nginx->quit, 0, 'exits cleanly';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
    is connections(), 0, 'and leaves no connection behind';
};

subtest 'a worker that quits answers the checks it has begun' => sub {
    my $own = start_redis();
    my $nginx = start_nginx($CONFIG, http => 'sliding_limit_redis redis://127.0.0.1:' . $own->port . ' timeout=5s connect_timeout=5s;');
    is status_of($nginx, '/load?k=q'), 'PASSED';

    $own->pause;
    my $load = start_load(clients => 5, seconds => 0.3, ports => [ $nginx->port ], path => '/load?k=q');
    sleep 0.5;
    $nginx->signal('QUIT');
    sleep 0.5;
    ok kill(0, $nginx->workers), 'still there while they wait';
    $own->resume;

    my @answers = $load->finish;
    is summary(@answers), '200:5', 'all five answered';
    is scalar(grep { $_->{remaining} eq '-' } @answers), 0, 'and counted';
    is $nginx->reap(10), 0, 'then it exits';
    is $nginx->bad_lines, '';
};

subtest 'worker_shutdown_timeout with checks that never end' => sub {
    my $own = start_redis();
    my $nginx = start_nginx($CONFIG, main => 'worker_shutdown_timeout 300ms;',
        http => 'sliding_limit_redis redis://127.0.0.1:' . $own->port . ' timeout=60s connect_timeout=5s;');
    is status_of($nginx, '/load?k=w'), 'PASSED';

    $own->pause;
    my $load = start_load(clients => 5, seconds => 0.3, ports => [ $nginx->port ], path => '/load?k=w');
    sleep 0.5;
    $nginx->signal('QUIT');
    is $nginx->reap(10), 0, 'exits all the same';
    is $nginx->bad_lines, '', 'without an alert';
    $load->finish;
};

# A server whose queue is full: the kernel drops what else wants to connect.
sub unreachable_port {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die $!;
    my @waiting = map {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $listener->sockport, Blocking => 0)
    } 1 .. 4;
    return ($listener->sockport, $listener, @waiting);
}

subtest 'worker_shutdown_timeout while it is still connecting' => sub {
    my ($port, @held) = unreachable_port();
    my ($silent, @silent) = unreachable_port();
    my $nginx = start_nginx("$CONFIG location /slow { proxy_pass http://127.0.0.1:$silent; }",
        main => 'worker_shutdown_timeout 300ms;',
        http => "sliding_limit_redis redis://127.0.0.1:$port timeout=100ms connect_timeout=60s;");

    is status_of($nginx, '/load?k=s'), 'FAILED_OPEN', 'Redis does not answer';
    my $load = start_load(clients => 1, seconds => 0.3, ports => [ $nginx->port ], path => '/slow');
    sleep 0.5;
    $nginx->signal('QUIT');
    is $nginx->reap(10), 0, 'exits when the time is over';
    is $nginx->bad_lines, '', 'without an alert';
    $load->finish;
};

subtest 'time that was spent on the configuration is not taken off connect_timeout' => sub {
    my $map = File::Temp->new;
    print $map "key$_ value$_;\n" for 1 .. 300_000;
    $map->flush;
    my $nginx = start_nginx($CONFIG, http => <<"END");
    map_hash_max_size 1000000;
    map \$arg_m \$mapped { include $map; }
    sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=5s connect_timeout=150ms;
END
    is status_of($nginx, '/load?k=config'), 'PASSED';
    unlike $nginx->error_log, qr/is down/, 'Redis was there in time';
    is $nginx->quit, 0;
};

subtest 'a fast exit with checks under way' => sub {
    my $own = start_redis();
    my $nginx = start_nginx($CONFIG, http => 'sliding_limit_redis redis://127.0.0.1:' . $own->port . ' timeout=60s connect_timeout=5s;');
    is status_of($nginx, '/load?k=f'), 'PASSED';

    $own->pause;
    my $load = start_load(clients => 5, seconds => 0.3, ports => [ $nginx->port ], path => '/load?k=f');
    sleep 0.5;
    is $nginx->stop, 0, 'exits';
    is $nginx->bad_lines, '';
    $load->finish;
};

subtest 'master_process off' => sub {
    my $nginx = start_nginx($CONFIG, main => 'master_process off;', http => $HTTP);
    my @status = map { status_of($nginx, '/count?k=single') } 1 .. 6;
    is "@status", 'PASSED PASSED PASSED PASSED PASSED REJECTED';
    is $nginx->quit, 0;
    is $nginx->bad_lines, '';
};

subtest 'cache helper processes do not connect' => sub {
    my $dir = File::Temp->newdir;
    my $nginx = start_nginx($CONFIG, workers => 2,
        http => "$HTTP proxy_cache_path $dir keys_zone=c:1m loader_sleep=1000ms;");
    wait_until { $nginx->workers == 4 } 10, 'cache manager and loader beside two workers';
    wait_until { connections() == 2 } 10, 'one connection a worker';
    sleep 0.3;
    is connections(), 2, 'and no more';
    is $nginx->quit, 0;
    is $nginx->bad_lines, '';
};

subtest 'killed workers are replaced and go on counting' => sub {
    my $nginx = start_nginx($CONFIG, http => $HTTP, workers => 2);
    is status_of($nginx, '/count?k=killed'), 'PASSED' for 1 .. 3;
    my @old = $nginx->workers;
    kill 'KILL', @old;
    wait_until { my %now = map { $_ => 1 } $nginx->workers; keys %now == 2 && !grep { $now{$_} } @old } 10, 'new workers';

    my @status = map { status_of($nginx, '/count?k=killed') } 1 .. 3;
    is "@status", 'PASSED PASSED REJECTED';
    is $nginx->quit, 0;
};

subtest 'binary upgrade under load' => sub {
    my $nginx = start_nginx($CONFIG, http => $HTTP, workers => 2);
    my ($dir, $binary) = ($nginx->dir, SlidingLimit::Servers::nginx_binary());
    my $pid_in = sub { open my $file, '<', "$dir/$_[0]" or return 0; return <$file> + 0 };

    # only a daemon lets itself be replaced
    $nginx->quit;
    system 'sed', '-i', 's/daemon off;//', "$dir/nginx.conf";
    is system($binary, '-p', $dir, '-c', "$dir/nginx.conf"), 0, 'started';
    wait_until { $pid_in->('nginx.pid') && (get($nginx->port, '/load?k=u'))[0] == 200 } 10, 'the daemon';
    my $old = $pid_in->('nginx.pid');

    my $load = start_load(clients => 4, seconds => 4, ports => [ $nginx->port ],
        path => sub { "/load?k=u$_[0]" }, pause => 0.001);
    kill 'USR2', $old;
    wait_until { $pid_in->('nginx.pid.oldbin') && $pid_in->('nginx.pid') } 10, 'the new master';
    my $new = $pid_in->('nginx.pid');
    sleep 1;
    kill 'QUIT', $old;
    wait_until { !kill 0, $old } 20, 'the old master to leave';

    my @answers = $load->finish;
    kill 'QUIT', $new;
    wait_until { !kill 0, $new } 20, 'the new one to leave';

    isnt $new, $old, 'another process served the last ones';
    is summary(grep { $_->{status} != 200 } @answers), '', 'no failed request: ' . summary(@answers);
    is scalar(grep { $_->{remaining} eq '-' } @answers), 0, 'none uncounted';
    is $nginx->bad_lines, '';
};

subtest 'no free worker_connections for Redis: requests pass' => sub {
    local $SIG{PIPE} = 'IGNORE';
    my $port = free_port();
    my $slots = 16;
    my $nginx = start_nginx($CONFIG, main => 'master_process off;', slots => $slots,
        http => "sliding_limit_redis redis://127.0.0.1:$port;");

    # clients that are about to ask take every slot, the first ones for sure; and
    # Redis appears when there is none left
    my @clients;
    for (1 .. 2) {
        push @clients, map {
            begin_request($nginx->port, "GET /load?k=full HTTP/1.1\r\nConnection: close\r\n")
        } 1 .. 2 * $slots;
        sleep 0.3;
    }
    like $nginx->error_log, qr/worker_connections are not enough/, 'the slots are used up';
    my $own = start_redis(port => $port);
    sleep 1.5;

    my $one = shift @clients;
    syswrite $one, "Host: test\r\n\r\n";
    my $answer = do { local $/; <$one> };
    like $answer, qr{^HTTP/1\.1 200 OK\r\n.*^X-Status: FAILED_OPEN\r$}ms, 'passes, uncounted';

    undef $_ for $one, @clients;
    wait_until { status_of($nginx, '/load?k=full') eq 'PASSED' } 10, 'counting to begin when there is room';
    is $nginx->quit, 0;
};

done_testing;
