# TLS to Redis: what is needed for it, who is believed, and what the log says where
# nobody is. Without a hiredis that has it, only that nginx -t says so.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::Certificates qw(new_ca);
use SlidingLimit::FakeRedis qw(start_fake_redis);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(begin_request free_port get module nginx_binary start_nginx start_redis
    wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

# Never the reason for a failure, however busy the machine is.
my $PATIENT = 'timeout=10s connect_timeout=20s';

# Scheduling noise of a busy machine, on top of a timeout of 100 ms.
my $NOISE = 1.5;

my $temp = File::Temp->newdir();

# What nginx -t says of a sliding_limit_redis line; '' if it accepts it.
sub refusal_of {
    my ($line) = @_;
    my $load = module() ? 'load_module ' . module() . ';' : '';

    open my $conf, '>', "$temp/nginx.conf" or die $!;
    print $conf "$load pid $temp/nginx.pid; events {} http { sliding_limit_redis $line; }\n";
    close $conf or die $!;

    # without a terminal: nobody is to be asked for a passphrase
    my $said = `'@{[nginx_binary()]}' -t -p $temp -c $temp/nginx.conf -e $temp/error.log 2>&1 < /dev/null`;
    return $? ? $said || 'something' : '';
}

if (refusal_of('rediss://127.0.0.1') =~ /needs hiredis/) {
    for (['rediss://127.0.0.1', 'rediss://'], ['redis://127.0.0.1 tls=on', 'tls=on'],
        ['sentinel://127.0.0.1/mymaster tls=on', 'tls=on'], ['cluster://127.0.0.1 tls=on', 'tls=on'])
    {
        my ($line, $what) = @$_;
        like refusal_of($line),
            qr/\Q$what\E needs hiredis 1\.0 or later with TLS; this module was built with hiredis \d+\.\d+\.\d+/,
            "nginx -t: $line";
    }
    is refusal_of('redis://127.0.0.1 tls=off'), '', 'tls=off is not TLS';
    note 'this module was built without TLS: the rest is not tried';
    done_testing;
    exit;
}

my $ca = new_ca('the CA of the tests');
my $server = $ca->issue('redis.test', names => 'DNS:redis.test,DNS:localhost,IP:127.0.0.1');
my $client = $ca->issue('nginx.test');
my $other_ca = new_ca('another CA');

# A Redis that speaks only TLS. $with{certificate}: its own; $with{args}: more arguments.
sub start_tls_redis {
    my (%with) = @_;
    my $port = $with{port} || free_port();
    my $own = $with{certificate} || $server;

    return start_redis(port => $port,
        args => ['--port', 0, '--tls-port', $port, '--tls-cert-file', $own->{cert}, '--tls-key-file',
            $own->{key}, '--tls-ca-cert-file', $ca->cert, '--tls-auth-clients', 'no', @{ $with{args} || [] }],
        cli_args => ['--tls', '--insecure', '--cert', $client->{cert}, '--key', $client->{key},
            '--cacert', $ca->cert]);
}

sub nginx_for {
    my ($redis_line, %with) = @_;

    return start_nginx(<<'END', http => "sliding_limit_redis $redis_line;", %with);
        add_header X-Status $sliding_limit_status always;
        location /count { sliding_limit zone=count max=5 window=600s key=$arg_k; empty_gif; }
        location /load { sliding_limit zone=load max=1000000 window=600s key=$arg_k; empty_gif; }
END
}

sub status_of { (get($_[0]->port, $_[1], 30))[1]{'x-status'} // 'no answer' }

sub counts_again {
    my ($nginx) = @_;
    my $in_a_row = 0;
    wait_until {
        $in_a_row = status_of($nginx, '/load?k=again') eq 'PASSED' ? $in_a_row + 1 : 0;
        $in_a_row >= 10;
    } 30, 'counting to return: ' . $nginx->error_log;
}

sub exactly_five_pass {
    my ($nginx, $key) = @_;
    my @status = map { status_of($nginx, "/count?k=$key") } 1 .. 7;
    is "@status", join(' ', ('PASSED') x 5, ('REJECTED') x 2), "counting is right ($key)";
}

# Requests are counted over this line, and nothing is to tell.
sub counts {
    my ($name, $redis, $redis_line) = @_;

    subtest "counts: $name" => sub {
        $redis->cli('FLUSHALL');
        my $nginx = nginx_for("$redis_line $PATIENT");

        exactly_five_pass($nginx, 'somebody');
        is $redis->cli('ZCARD', 'rate_limit:count:somebody'), 5, 'in this Redis';
        unlike $nginx->error_log, qr/sliding_limit: redis/, 'nothing to tell about Redis';
        is $nginx->bad_lines, '';
    };
}

# The site stays up, requests wait for nothing, and the log says why.
sub fails {
    my ($name, $redis_line, $reason) = @_;

    subtest "fails: $name" => sub {
        my $nginx = nginx_for("$redis_line timeout=100ms connect_timeout=2s", workers => 2);
        my $began = time;

        is status_of($nginx, '/count?k=first'), 'FAILED_OPEN', 'the first request passes';
        cmp_ok time - $began, '<', 0.1 + $NOISE, 'in time';

        wait_until { $nginx->error_log =~ /sliding_limit: redis "[^"]+" is down: / } 20, 'a line in the log';
        my ($said) = $nginx->error_log =~ /is down: ([^\n]*)/;
        like $said, $reason, 'the log says why';

        $began = time;
        is status_of($nginx, '/count?k=down'), 'FAILED_OPEN' for 1 .. 20;
        cmp_ok time - $began, '<', 20 * 0.1, 'twenty more did not wait';

        is scalar(() = $nginx->error_log =~ /is down: /g), 1, 'one line, not one per worker or request';
        is $nginx->bad_lines, '';
        is $nginx->quit, 0, 'nginx ends';
    };
}

my $redis = start_tls_redis();
my $at = '127.0.0.1:' . $redis->port;
my $trusting = 'tls_ca=' . $ca->cert;

# ---- whom nginx believes

counts('rediss:// and an address', $redis, "rediss://$at $trusting");
counts('rediss:// and a name', $redis, 'rediss://localhost:' . $redis->port . " $trusting");
counts('redis:// and tls=on', $redis, "redis://$at tls=on $trusting");
counts('tls_name=', $redis, "rediss://$at $trusting tls_name=redis.test");
counts('tls_name= that is an address', $redis, "rediss://$at $trusting tls_name=127.0.0.1");
counts('tls_verify=off and no CA', $redis, "rediss://$at tls_verify=off");
counts('tls_verify=off and another name', $redis, "rediss://$at tls_verify=off tls_name=wrong.test");
counts('tls_min_version=1.3', $redis, "rediss://$at $trusting tls_min_version=1.3");

fails("a CA that the system does not know", "rediss://$at",
    qr/^TLS: its certificate is not accepted: (?:unable to get local issuer|self-signed) certificate/);
fails('another CA', "rediss://$at tls_ca=" . $other_ca->cert,
    qr/^TLS: its certificate is not accepted: (?:unable to get local issuer|self-signed) certificate/);
fails('another name', "rediss://$at $trusting tls_name=wrong.test",
    qr/^TLS: its certificate is not accepted: hostname mismatch, it is not for wrong\.test/i);
fails('another address', "rediss://$at $trusting tls_name=127.0.0.2",
    qr/^TLS: its certificate is not accepted: IP address mismatch, it is not for 127\.0\.0\.2/i);

{
    my $expired = start_tls_redis(certificate => $ca->issue('redis.test', names => 'IP:127.0.0.1', expired => 1));
    my $line = 'rediss://127.0.0.1:' . $expired->port;

    fails('a certificate that has expired', "$line $trusting",
        qr/^TLS: its certificate is not accepted: certificate has expired/);
    counts('a certificate that has expired, with tls_verify=off', $expired, "$line tls_verify=off");
}

{
    my $named = start_tls_redis(certificate => $ca->issue('redis.test', type => 'rsa'));
    my $line = 'rediss://127.0.0.1:' . $named->port . " $trusting";

    fails('a certificate for a name where an address is expected', $line, qr/IP address mismatch/i);
    counts('the same with tls_name=, and an RSA key', $named, "$line tls_name=redis.test");
}

# ---- versions

{
    my $old = start_tls_redis(args => ['--tls-protocols', 'TLSv1.2']);
    my $line = 'rediss://127.0.0.1:' . $old->port . " $trusting";

    counts('TLS 1.2', $old, $line);
    counts('tls_min_version=1.2', $old, "$line tls_min_version=1.2");
    fails('tls_min_version=1.3 and a server that has only 1.2', "$line tls_min_version=1.3",
        qr/^TLS: .*alert protocol version/);
}

# ---- who nginx is

for my $protocol ('TLSv1.2', 'TLSv1.3') {
    my $strict = start_tls_redis(args => ['--tls-auth-clients', 'yes', '--tls-protocols', $protocol]);
    my $line = 'rediss://127.0.0.1:' . $strict->port . " $trusting";
    my $stranger = $other_ca->issue('stranger.test');

    counts("a client's certificate, $protocol", $strict,
        "$line tls_cert=$client->{cert} tls_key=$client->{key}");
    # in TLS 1.3 the server says it after its handshake, and may be too quick for it
    # to be read
    my $reset = qr/^connection reset before the first answer; does it accept the certificate of this nginx/;

    fails("no client's certificate, $protocol", $line,
        $protocol eq 'TLSv1.2' ? qr/^TLS: .*alert handshake failure/ : qr/^TLS: .*alert certificate required|$reset/);
    fails("a client's certificate of another CA, $protocol",
        "$line tls_cert=$stranger->{cert} tls_key=$stranger->{key}", qr/^TLS: .*alert unknown ca|$reset/);
}

# ---- one of the two does not speak TLS

{
    my $plain = start_redis();

    fails('a Redis without TLS behind rediss://', 'rediss://127.0.0.1:' . $plain->port . " $trusting",
        qr/TLS.*does it speak TLS at this port\?/);

    my $talking = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        print $socket "-ERR who are you?\r\n";
        1 while sysread $socket, my $text, 4096;
    });
    fails('a server that answers in plain text', 'rediss://127.0.0.1:' . $talking->port . " $trusting",
        qr/^TLS: .+; does it speak TLS at this port\?/);

    my $closing = start_fake_redis(undef, on_connect => sub { sysread $_[0], my $hello, 65536 });
    fails('a server that closes the connection', 'rediss://127.0.0.1:' . $closing->port . " $trusting",
        qr/^TLS: (?:it closed the connection during the handshake|unexpected eof.*); does it speak TLS at this port\?/);
}

fails('a Redis with TLS behind redis://', "redis://$at", qr/^connection reset before the first answer; does it expect TLS/);
fails('nobody there', 'rediss://127.0.0.1:' . free_port() . " $trusting", qr/^Connection refused/);

# ---- under load, and through failures

subtest 'requests that come together are counted together' => sub {
    $redis->cli('FLUSHALL');
    my $nginx = nginx_for("rediss://$at $trusting $PATIENT");
    is status_of($nginx, '/load?k=warm'), 'PASSED';

    my $get = "GET /load?k=crowd HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    my @sockets = map { begin_request($nginx->port, $get) } 1 .. 200;
    my $passed = grep { my $socket = $_; local $/; (<$socket> // '') =~ /^X-Status: PASSED/m } @sockets;

    is $passed, 200, 'all have passed';
    is $redis->cli('ZCARD', 'rate_limit:load:crowd'), 200, 'each is counted once';

    my $load = start_load(clients => 8, seconds => 3, ports => [ $nginx->port ], path => '/load?k=steady');
    my @answers = $load->finish;
    is summary(grep { $_->{status} != 200 } @answers), '', 'nothing but 200: ' . summary(@answers);
    is $redis->cli('ZCARD', 'rate_limit:load:steady'), scalar @answers, 'and so is each of them';
    unlike $nginx->error_log, qr/sliding_limit: redis/, 'nothing to tell about Redis';
    is $nginx->bad_lines, '';
};

subtest 'kill -9, restart, SIGSTOP, and connections that Redis closes' => sub {
    my $mortal = start_tls_redis();
    my $nginx = nginx_for('rediss://127.0.0.1:' . $mortal->port . " $trusting timeout=100ms connect_timeout=2s",
        workers => 2);

    counts_again($nginx);
    my $load = start_load(clients => 8, seconds => 6, ports => [ $nginx->port ],
        path => sub { "/load?k=$_[0]" }, pause => 0.001);
    sleep 0.5;
    $mortal->kill9;
    sleep 1;
    $mortal->start;
    sleep 1;
    $mortal->pause;
    sleep 1;
    $mortal->resume;
    my @answers = $load->finish;
    my ($slowest) = sort { $b <=> $a } map { $_->{took} } @answers;

    is summary(grep { $_->{status} != 200 } @answers), '', 'nothing but 200: ' . summary(@answers);
    cmp_ok $slowest, '<', 0.1 + $NOISE, sprintf 'the slowest took %.3f s', $slowest;
    counts_again($nginx);
    exactly_five_pass($nginx, 'restarted');

    # those that are old enough are replaced at once
    sleep 1.2;
    $mortal->cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    counts_again($nginx);
    exactly_five_pass($nginx, 'closed');
    is $nginx->bad_lines, '';
    is $nginx->quit, 0, 'nginx ends';
};

subtest 'a reload changes the CA that is believed' => sub {
    my $nginx = nginx_for("rediss://$at connect_timeout=20s tls_ca=" . $other_ca->cert);
    wait_until { $nginx->error_log =~ /is down: TLS/ } 20, 'a line in the log';

    my $conf = do { local (@ARGV, $/) = $nginx->dir . '/nginx.conf'; <> };
    $conf =~ s{connect_timeout=20s tls_ca=\S+}{"$trusting $PATIENT;"}e;
    open my $file, '>', $nginx->dir . '/nginx.conf' or die $!;
    print $file $conf;
    close $file or die $!;
    $nginx->reload;

    counts_again($nginx);
    $nginx->reload for 1 .. 3;
    sleep 0.5;
    counts_again($nginx);
    is $nginx->bad_lines, '';
    is $nginx->quit, 0, 'nginx ends';
};

# ---- several servers

subtest 'Sentinel and the primary that it names, all over TLS' => sub {
    my $port = free_port();
    my $dir = File::Temp->newdir();

    open my $conf, '>', "$dir/sentinel.conf" or die $!;
    print $conf <<"END";
sentinel monitor mymaster 127.0.0.1 ${\ $redis->port } 1
tls-replication yes
END
    close $conf or die $!;

    # the first argument is a file
    my $sentinel = bless {
        port => $port, dir => $dir, owner => $$, cli_args => $redis->{cli_args},
    }, 'SlidingLimit::Servers::Redis';
    $sentinel->launch("$dir/log", 'redis-server', "$dir/sentinel.conf", '--sentinel', '--port', 0,
        '--tls-port', $port, '--dir', "$dir", '--tls-cert-file', $server->{cert}, '--tls-key-file', $server->{key},
        '--tls-ca-cert-file', $ca->cert, '--tls-auth-clients', 'no');
    wait_until { $sentinel->cli('PING') =~ /PONG/ } 20, 'the Sentinel';

    my $url = "sentinel://127.0.0.1:$port/mymaster";
    counts('sentinel:// and tls=on', $redis, "$url tls=on $trusting");
    counts('sentinel:// and tls_name=', $redis, "$url tls=on $trusting tls_name=redis.test");
    fails('Sentinels of another name', "$url tls=on $trusting tls_name=wrong.test",
        qr/Sentinel 127\.0\.0\.1:$port: TLS: its certificate is not accepted: hostname mismatch/i);
    fails('Sentinels with TLS behind tls=off', "$url tls=off", qr/Sentinel 127\.0\.0\.1:$port: .*does it expect TLS/);
};

subtest 'a cluster over TLS' => sub {
    my @nodes = map {
        start_tls_redis(args => ['--cluster-enabled', 'yes', '--cluster-node-timeout', 2000, '--tls-cluster', 'yes',
            '--cluster-port', free_port()])
    } 1 .. 3;
    my @addresses = map { '127.0.0.1:' . $_->port } @nodes;
    my $cli = join ' ', @{ $nodes[0]{cli_args} };
    my $said = `redis-cli $cli --cluster create @addresses --cluster-yes 2>&1`;
    is $?, 0, 'there is a cluster' or diag $said;
    for my $node (@nodes) {
        wait_until { $node->cli('CLUSTER', 'INFO') =~ /cluster_state:ok/ } 60, 'the nodes to agree';
    }

    my $nginx = nginx_for("cluster://$addresses[0] tls=on $trusting $PATIENT");
    exactly_five_pass($nginx, $_) for 'a' .. 'f';
    my @sets = map { scalar(() = $_->cli('KEYS', 'rate_limit:count:*') =~ /rate_limit/g) } @nodes;
    is eval { join '+', @sets } && $sets[0] + $sets[1] + $sets[2], 6, "six counts, @sets of them in each node";
    cmp_ok scalar(grep { $_ > 0 } @sets), '>', 1, 'in more than one';
    unlike $nginx->error_log, qr/is down/, 'nothing is down';
    is $nginx->bad_lines, '';
};

# ---- files

{
    my $mine = "tls_cert=$client->{cert} tls_key=$client->{key}";
    my $key_of_another = $server->{key};
    my $garbage = "$temp/garbage";
    my $locked = "$temp/locked.key";

    open my $file, '>', $garbage or die $!;
    print $file "no certificate\n" x 100;
    close $file or die $!;
    system "openssl ec -aes128 -passout pass:secret -in $client->{key} -out $locked 2> /dev/null";

    is refusal_of("rediss://127.0.0.1 $_"), '', "nginx -t accepts $_"
        for $trusting, $mine, "$trusting $mine tls_verify=off tls_name=a.b_c-d.example";

    for (["tls_ca=$temp/none", qr/cannot open tls_ca "\Q$temp\E\/none".*No such file/],
        ['tls_ca=none', qr/cannot open tls_ca "\Q$temp\E\/none".*No such file/],
        ["tls_ca=$temp", qr/cannot use tls_ca "\Q$temp\E": it is not a file/],
        ["tls_ca=$garbage", qr/cannot use tls_ca "\Q$garbage\E": no (?:certificate or crl found|start line)/i],
        ["tls_ca=$client->{key}", qr/cannot use tls_ca "\Q$client->{key}\E": no certificate or crl found/],
        ["tls_ca=$client->{cert}", qr/cannot use tls_ca "\Q$client->{cert}\E": it has no certificate of a CA/],
        ["tls_cert=$temp/none tls_key=$client->{key}", qr/cannot open tls_cert "\Q$temp\E\/none".*No such file/],
        ["tls_cert=$client->{cert} tls_key=$temp/none", qr/cannot open tls_key "\Q$temp\E\/none".*No such file/],
        ["tls_cert=$garbage tls_key=$client->{key}", qr/cannot use tls_cert "\Q$garbage\E": no start line/],
        ["tls_cert=$client->{cert} tls_key=$garbage", qr/cannot use tls_key "\Q$garbage\E": \S/],
        ["tls_cert=$client->{cert} tls_key=$key_of_another",
            qr/cannot use tls_key "\Q$key_of_another\E": key values mismatch/],
        ["tls_cert=$client->{cert} tls_key=$locked", qr/cannot use tls_key "\Q$locked\E": \S/])
    {
        my ($parameters, $message) = @$_;
        like refusal_of("rediss://127.0.0.1 $parameters"), qr/\[emerg\].*sliding_limit: $message/,
            "nginx -t refuses $parameters";
    }
}

done_testing;
