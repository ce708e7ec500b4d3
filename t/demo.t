# The demo serves, and leaves nothing behind when it ends.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use POSIX qw(WNOHANG);
use SlidingLimit::Servers qw(free_port get module wait_until);
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

for my $signal ('INT', 'TERM') {
    my $demo = start_demo();
    wait_until { output() =~ /Ctrl-C ends the demo/ } 20, 'the demo';

    my @status = map { (get($port, '/'))[0] } 1 .. 6;
    is "@status", '200 200 200 200 200 429', 'five pass, the sixth does not';
    my ($status, $headers, $body) = get($port, '/');
    is $body, '{"status":429,"code":"rate_limit:exceeded"}';

    if ($signal eq 'INT') {
        my $second = fork // die $!;
        if (!$second) {
            open STDERR, '>', "$temp.err";
            exec 'scripts/demo', module(), $port;
        }
        waitpid $second, 0;
        isnt $?, 0, 'a second one on the same port does not start';
        open my $err, '<', "$temp.err" or die $!;
        like join('', <$err>), qr/listens on 127\.0\.0\.1:$port already/, 'and says why';
    }

    kill $signal, -$demo;
    wait_until { waitpid($demo, WNOHANG) == $demo } 20, 'its end';
    is $?, 0, "ends well on SIG$signal";
    is +(get($port, '/', 1))[0], 0, 'serves no more';
    is join(' ', glob "$temp/*"), '', 'no file is left';
}

unlink "$temp.out", "$temp.err";

done_testing;
