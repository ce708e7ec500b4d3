# The demo serves, does what it and README.md tell people to try, and leaves nothing behind
# when it ends.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use POSIX qw(WNOHANG);
use SlidingLimit::Pages qw(blocks section);
use SlidingLimit::Servers qw(free_port get module request wait_until);
use Test::More;

plan skip_all => 'the demo loads the dynamic module' unless module();

my $temp = File::Temp->newdir;
chmod 0755, $temp;
my $port = free_port();

sub start_demo {
    unlink "$temp.out";
    my $pid = fork // die $!;
    if (!$pid) {
        setpgrp;
        # as in a terminal, also if these tests themselves run in the background
        $SIG{$_} = 'DEFAULT' for 'INT', 'TERM';
        $ENV{TMPDIR} = "$temp";
        open STDOUT, '>', "$temp.out";
        open STDERR, '>&', \*STDOUT;
        exec 'scripts/demo', module(), $port;
    }
    return $pid;
}

sub output { open my $file, '<', "$temp.out" or return ''; local $/; return <$file> }

# A command that it prints to be tried.
sub try_command {
    my ($pattern) = @_;

    my ($command) = output() =~ /^    ($pattern.*)$/m or die "the demo does not say: $pattern";
    return system('bash', '-c', "$command > $temp.tried 2>&1") == 0;
}

# Statuses of requests by a client with this address.
sub statuses {
    my ($from, $path, $times) = @_;

    my $get = "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    return join ' ', map { (request($port, $get, 10, $from))[0] } 1 .. $times;
}

sub metric {
    my ($name) = @_;

    return (get($port, '/limits'))[2] =~ /^nginx_sliding_limit_\Q$name\E (\S+)$/m ? $1 : undef;
}

sub requests_of_demo {
    return metric('zone_requests_total{zone="demo",result="passed"}')
        + metric('zone_requests_total{zone="demo",result="rejected"}');
}

# What differs from one time to another, and from one machine to another.
sub without_details {
    my ($text) = @_;
    return $text =~ s/\r//gr =~ s{^Server: nginx/[\d.]+$}{Server: nginx}mr =~ s/^Date: .*/Date:/mr
        =~ s/^(X-RateLimit-Reset|Retry-After): \d+$/$1:/mgr =~ s/\s+\z//r;
}

# What README.md shows, command by command.
sub try_readme {
    my ($shown) = grep { /curl -i/ } blocks(section('README.md', 'What it is'), 'console');
    my @steps = $shown =~ /^\$ (.*)\n((?:(?!\$ ).*\n)*)/mg;
    is @steps, 2 * 2, 'README.md shows two commands';

    while (my ($command, $said) = splice @steps, 0, 2) {
        my $mine = $command =~ s/:8080/:$port/r;
        is without_details(scalar `$mine 2>/dev/null`), without_details($said), "README.md: $command";
    }
}

sub redis_pid { return (output() =~ /\(process (\d+)\)/)[0] }

for my $signal ('INT', 'TERM') {
    my $demo = start_demo();
    wait_until { output() =~ /Ctrl-C ends the demo/ } 20, 'the demo';

    if ($signal eq 'INT') {
        try_readme();

        my $second = fork // die $!;
        if (!$second) {
            open STDERR, '>', "$temp.err";
            exec 'scripts/demo', module(), $port;
        }
        waitpid $second, 0;
        isnt $?, 0, 'a second one on the same port does not start';
        open my $err, '<', "$temp.err" or die $!;
        like join('', <$err>), qr/listens on 127\.0\.0\.1:$port already/, 'and says why';

        is statuses('127.0.0.2', '/login', 4), '200 200 200 429', 'another limit for /login';

        is statuses('127.0.0.1', '/limits', 10), join(' ', (200) x 10), 'none for the live page';
        my $html = "GET /limits HTTP/1.1\r\nHost: test\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
        like +(request($port, $html))[1]{'content-type'}, qr{^text/html}, 'which is one, for a browser';
        is metric('zone_requests_total{zone="login",result="passed"}'), 3, 'and numbers for Prometheus';

        my $seen = requests_of_demo();
        ok try_command('for i in \{1'), 'visitors come';
        # which are counted when their answers have left
        eval { wait_until { requests_of_demo() - $seen >= 300 } 5 };
        is requests_of_demo() - $seen, 300, 'and are seen there';

        ok try_command('redis-cli .* shutdown'), 'Redis is stopped';
        is statuses('127.0.0.3', '/', 8), join(' ', (200) x 8), 'then all pass';
        is statuses('127.0.0.3', '/login', 4), '200 200 200 429', 'but at /login';
        wait_until { metric('store_breakers_open{store="default"}') == 1 } 20, 'the breaker';
        pass 'which can be seen';

        ok try_command('redis-server '), 'Redis is started again';
        wait_until { metric('store_breakers_open{store="default"}') == 0 } 20, 'Redis';
        # until both workers have connected
        my $client = 4;
        wait_until { statuses('127.0.0.' . $client++, '/', 6) eq '200 200 200 200 200 429' } 20, 'it to count';
        pass 'and counts again';
    }
    else {
        my @status = map { (get($port, '/'))[0] } 1 .. 6;
        is "@status", '200 200 200 200 200 429', 'five pass, the sixth does not';
        ok kill('STOP', redis_pid()), 'Redis is paused';
    }

    kill $signal, -$demo;
    wait_until { waitpid($demo, WNOHANG) == $demo } 20, 'its end';
    is $?, 0, "ends well on SIG$signal";
    is +(get($port, '/', 1))[0], 0, 'serves no more';
    my @running = grep { (readlink "$_/cwd" // '') =~ /^\Q$temp\E/ } glob '/proc/[0-9]*';
    is "@running", '', 'nor does Redis run';
    is join(' ', glob "$temp/*"), '', 'no file is left';
}

unlink "$temp.out", "$temp.err", "$temp.tried";

done_testing;
