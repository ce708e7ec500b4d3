# Servers of a cluster that hang or leave at the worst moment: requests pass, and the log says
# what is wrong. They are fake ones: real ones do not do so on demand.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::Cluster ();
use SlidingLimit::FakeRedis qw(read_command start_fake_redis);
use SlidingLimit::Servers qw(begin_request free_port get start_nginx wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

# $on_map, $on_check: what it does when it is asked who has which slots, and about a request. They
# get the socket. Returning false closes the connection.
sub start_node {
    my ($on_map, $on_check) = @_;

    return start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;

        while (my ($command, @words) = read_command($socket)) {
            if ($command eq 'CLUSTER') {
                $on_map->($socket) or return;
            }
            elsif ($command eq 'EVALSHA' && ($words[2] // '') =~ /^rate_limit:[^:]/) {
                $on_check->($socket) or return;
            }
            else {
                print $socket $command eq 'EVALSHA' ? SlidingLimit::FakeRedis::ADMITTED : "+OK\r\n";
            }
        }
    });
}

# It has all slots itself.
sub tell_map {
    my ($socket) = @_;
    my $map = '0 127.0.0.1:' . $socket->sockport . "\@1 myself,master - 0 0 1 connected 0-16383\n";

    return print $socket '$' . length($map) . "\r\n$map\r\n";
}

sub admit { my ($socket) = @_; return print $socket SlidingLimit::FakeRedis::ADMITTED }

sub nginx_for {
    my (@ports) = @_;
    my $servers = join ',', map { "127.0.0.1:$_" } @ports;

    return start_nginx(<<'END', http => "sliding_limit_redis cluster://$servers timeout=2s connect_timeout=2s;");
    add_header X-Status $sliding_limit_status always;
    location / { sliding_limit zone=cluster max=100 window=60s key=$arg_k; empty_gif; }
END
}

sub status_of {
    my ($nginx) = @_;
    my ($status, $headers) = get($nginx->port, '/?k=a');
    return "$status " . ($headers->{'x-status'} // '-');
}

subtest 'a server that never says who has which slots is taken for one that hangs' => sub {
    my $node = start_node(sub { 1 }, \&admit);
    # one that is away: then servers are asked every second
    my $nginx = nginx_for($node->port, free_port());

    wait_until { $nginx->error_log =~ /at 127\.0\.0\.1:${\ $node->port}" is down: it does not reply/ } 30,
        'the log to say so';
    like status_of($nginx), qr/^200 /, 'requests pass';
    is $nginx->quit, 0, 'exits cleanly';
    is $nginx->bad_lines, '';
};

subtest 'a server that has left its cluster knows of nobody: it is asked again' => sub {
    my $left = "0 127.0.0.1:1\@1 myself,master - 0 0 1 connected\n";
    my $asked = 0;
    my $node = start_node(sub {
        my ($socket) = @_;
        return $asked++ ? tell_map($socket) : print $socket '$' . length($left) . "\r\n$left\r\n";
    }, \&admit);
    my $nginx = nginx_for($node->port);

    wait_until { status_of($nginx) eq '200 PASSED' } 30, 'requests to be counted';
    pass 'requests are counted';
    is $nginx->bad_lines, '';
};

# What follows ASKING is for the server to decide about, and nothing else is.
subtest 'a request is sent on to a server that nobody was connected to: ASKING goes before it' => sub {
    my $dir = File::Temp->newdir;
    my $to = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        sleep 0.3;
        while (my ($command, @words) = read_command($socket)) {
            open my $seen, '>>', "$dir/seen" or die $!;
            syswrite $seen, $command . (($words[2] // '') =~ /^rate_limit:[^:]/ ? ':check' : '') . ' ';
            print $socket $command eq 'EVALSHA' ? SlidingLimit::FakeRedis::ADMITTED : "+OK\r\n";
        }
    });
    my $port = $to->port;
    my $node = start_node(\&tell_map, sub {
        my ($socket) = @_;
        return print $socket '-ASK ' . SlidingLimit::Cluster::slot('a') . " 127.0.0.1:$port\r\n";
    });
    my $nginx = nginx_for($node->port);

    is status_of($nginx), '200 PASSED', 'it is counted';
    like do { local @ARGV = "$dir/seen"; <> }, qr/ASKING EVALSHA:check $/, 'after the set-up';
    is $nginx->bad_lines, '';
};

for my $error ('READONLY', 'CROSSSLOT') {
    subtest "a server that says $error, although it has the slots" => sub {
        my $node = start_node(\&tell_map, sub { my ($socket) = @_; print $socket "-$error not here\r\n" });
        my $nginx = nginx_for($node->port);

        wait_until { status_of($nginx) eq '200 FAILED_OPEN' && $nginx->error_log =~ /$error not here/ } 30,
            'the log to say so';
        is status_of($nginx), '200 FAILED_OPEN', 'requests pass';
        is $nginx->bad_lines, '';
    };
}

subtest 'a server that wants a request to be asked about again, and has gone then' => sub {
    my $node = start_node(\&tell_map, sub { my ($socket) = @_; print $socket "-TRYAGAIN in a moment\r\n"; 0 });
    my $nginx = nginx_for($node->port);

    my $seen = '';
    wait_until { ($seen = status_of($nginx)) =~ /FAILED_OPEN/ } 30, 'a request that nobody decides about';
    is $seen, '200 FAILED_OPEN', 'it passes';
    my $start = time;
    like status_of($nginx), qr/^200 /, 'so do others';
    cmp_ok time - $start, '<', 2, 'before their time is over';
    is $nginx->bad_lines, '';
};

subtest 'the end while a request waits for being asked about again' => sub {
    my $node = start_node(\&tell_map, sub { my ($socket) = @_; print $socket "-TRYAGAIN in a moment\r\n" });
    my $nginx = nginx_for($node->port);

    # each of them is tried again every few milliseconds until its time is over
    my @requests = map { begin_request($nginx->port, "GET /?k=$_ HTTP/1.1\r\nHost: test\r\n\r\n") } 1 .. 20;
    sleep 0.3;
    is $nginx->stop, 0, 'exits cleanly';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
};

done_testing;
