# A scripted Redis, for faults that a real one will not produce. It sets up
# connections as a Redis would; what it answers to a check is up to the test:
#
#   my $fake = start_fake_redis(sub { my ($socket, $n, @words) = @_; print $socket "..." });
#
# is called for every check, in a process of its own for each connection, with
# the number of the check on that connection and what follows its EVALSHA. Returning
# false closes it.
#
#   on_connect => sub { my ($socket) = @_; ... }   instead of the usual set-up
#
#   my ($node, $other) = start_fake_cluster();
#
# are two servers that admit everybody. The first says that it has all slots but the last,
# and yet sends keys that begin with MOVED or ASK on to the other one, in that way.

package SlidingLimit::FakeRedis;

use strict;
use warnings;

use Exporter 'import';
use IO::Socket::INET ();
use POSIX ();
use SlidingLimit::Cluster ();
use SlidingLimit::Servers qw(free_port);

our @EXPORT_OK = qw(numbers read_command start_fake_cluster start_fake_redis);

# What the script returns: whole numbers in one string.
sub numbers {
    my $text = pack 'q<*', @_;
    return '$' . length($text) . "\r\n$text\r\n";
}

use constant ADMITTED => numbers(2, 1, 60_000_000, 1_790_000_000_000_000);
use constant ANSWER_ABOUT_NOTHING => numbers(1_790_000_000_000_000);

sub start_fake_redis {
    my ($answer, %with) = @_;

    my $listener = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => free_port(), Listen => 64, ReuseAddr => 1) or die $!;
    my $self = bless { port => $listener->sockport, owner => $$ }, __PACKAGE__;

    $self->{pid} = fork // die "fork: $!";
    return $self if $self->{pid};

    setpgrp;
    local $SIG{CHLD} = 'IGNORE';
    local $SIG{PIPE} = 'IGNORE';

    while (1) {
        my $socket = $listener->accept or next;
        next if fork;
        $socket->autoflush(1);
        if ($with{on_connect}) {
            $with{on_connect}->($socket);
        }
        else {
            serve($socket, $answer);
        }
        POSIX::_exit(0);
    }
}

sub start_fake_cluster {
    my $other = start_fake_redis(sub { my ($socket) = @_; print $socket ADMITTED });
    my $to = '127.0.0.1:' . $other->port;

    my $node = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;
        my $map = '0 127.0.0.1:' . $socket->sockport . "\@1 myself,master - 0 0 1 connected 0-16382\n"
            . "1 $to\@1 master - 0 0 1 connected 16383\n";

        while (my ($command, @words) = read_command($socket)) {
            my ($key, $way) = "@words" =~ /\{((MOVED|ASK)[^}]*)/;
            print $socket $way ? "-$way " . SlidingLimit::Cluster::slot($key) . " $to\r\n"
                : $command eq 'CLUSTER' ? '$' . length($map) . "\r\n$map\r\n"
                : $command eq 'EVALSHA' && $words[1] eq '0' ? ANSWER_ABOUT_NOTHING
                : $command eq 'EVALSHA' ? ADMITTED
                : "+OK\r\n";
        }
    });

    return ($node, $other);
}

sub port { $_[0]{port} }

sub read_command {
    my ($socket) = @_;
    my $line = <$socket> // return;
    my ($count) = $line =~ /^\*(\d+)/ or return;

    return map {
        my ($size) = (<$socket> // return) =~ /^\$(\d+)/ or return;
        read $socket, my $text, $size + 2;
        substr $text, 0, $size;
    } 1 .. $count;
}

sub serve {
    my ($socket, $answer) = @_;
    my $checks = 0;

    while (my ($command, @args) = read_command($socket)) {
        if ($command eq 'SCRIPT') {
            print $socket '$40' . "\r\n" . 'a' x 40 . "\r\n";
        }
        elsif ($command eq 'EVALSHA' && $args[1] eq '0') {
            print $socket ANSWER_ABOUT_NOTHING;
        }
        elsif ($command eq 'EVALSHA' && $args[2] =~ /^rate_limit::/) {
            print $socket ADMITTED;
        }
        elsif ($command eq 'EVALSHA') {
            return unless $answer->($socket, ++$checks, @args);
        }
        else {
            print $socket "+OK\r\n";
        }
    }
}

sub DESTROY {
    my ($self) = @_;
    return unless $self->{owner} == $$;
    local ($?, $!);
    kill 'KILL', -$self->{pid};
    waitpid $self->{pid}, 0;
}

1;
