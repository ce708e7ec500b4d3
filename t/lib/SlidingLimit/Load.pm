# Many clients at once, each a process with keep-alive connections.
#
#   my $load = start_load(clients => 8, seconds => 3, ports => [...], path => '/');
#   ...break something meanwhile...
#   my @answers = $load->finish;    or, before its time: $load->stop->finish
#
# A path may be a sub: it is given the client's number and the request's. With
# requests => N each client sends so many, however long that takes.
#
# One answer: { at, took (seconds), port, status, remaining, store, key }. Status 0
# means no answer at all; store and key are what headers X-Store and X-Key say.

package SlidingLimit::Load;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();
use IO::Socket::INET ();
use POSIX ();
use Time::HiRes qw(time sleep);

our @EXPORT_OK = qw(start_load summary);

sub start_load {
    my (%with) = @_;
    my $self = bless { dir => File::Temp->newdir(), pids => [], owner => $$ }, __PACKAGE__;
    my $end = time + ($with{seconds} || 0);
    my $goes_on = $with{requests}
        ? sub { $_[0] < $with{requests} }
        : sub { time < $end && !-e "$self->{dir}/.stop" };

    for my $n (1 .. $with{clients}) {
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            my $port = $with{ports}[$n % @{ $with{ports} }];
            my $path = ref $with{path} ? $with{path} : sub { $with{path} };
            eval { client("$self->{dir}/$n", $port, sub { $path->($n, @_) }, $goes_on,
                $with{pause} || 0) };
            POSIX::_exit($@ ? 1 : 0);
        }
        push @{ $self->{pids} }, $pid;
    }

    return $self;
}

sub client {
    my ($file, $port, $path, $goes_on, $pause) = @_;
    my ($socket, $log);

    open $log, '>', $file or die $!;
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{ALRM} = sub { die "timeout\n" };

    for (my $i = 0; $goes_on->($i); $i++) {
        my $get = $path->($i);
        my $start = time;
        my $answer = '';
        my $closed;

        $socket ||= IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");

        eval {
            Time::HiRes::alarm(10);
            die "no connection\n" unless $socket;
            syswrite $socket, "GET $get HTTP/1.1\r\nHost: load\r\n\r\n" or die "closed\n";
            until ($answer =~ /\r\n\r\n/
                && length $answer >= $+[0] + ($answer =~ /^Content-Length: (\d+)/mi ? $1 : 0))
            {
                sysread $socket, $answer, 65536, length $answer or die "closed\n";
            }
        };
        my $error = $@;
        Time::HiRes::alarm(0);
        $closed = $error || $answer =~ /^Connection: close/mi;

        # nginx may close an idle keep-alive connection while it reloads: only
        # that is not a failure, and the request goes out once more
        if ($error eq "closed\n" && $answer eq '') {
            undef $socket;
            next;
        }

        my $status = $answer =~ m{^HTTP/1\.1 (\d+)} ? $1 : 0;
        my $remaining = $answer =~ /^X-RateLimit-Remaining: (\d+)/mi ? $1 : '-';
        my $store = $answer =~ /^X-Store: (\S+)/mi ? $1 : '-';
        my $key = $answer =~ /^X-Key: (\S+)/mi ? $1 : '-';
        printf $log "%.6f %.6f %d %d %s %s %s\n",
            $start, time - $start, $port, $status, $remaining, $store, $key;

        undef $socket if $closed;
        sleep $pause if $pause;
    }
}

sub stop {
    my ($self) = @_;

    open my $file, '>', "$self->{dir}/.stop" or die $!;

    return $self;
}

sub finish {
    my ($self) = @_;
    my @answers;

    for my $pid (@{ $self->{pids} }) {
        waitpid $pid, 0;
        die "a client failed" if $?;
    }
    $self->{pids} = [];

    for my $file (glob "$self->{dir}/*") {
        open my $log, '<', $file or die $!;
        while (<$log>) {
            my %answer;
            @answer{qw(at took port status remaining store key)} = split;
            push @answers, \%answer;
        }
    }

    return sort { $a->{at} <=> $b->{at} } @answers;
}

# How many answers of each status, as "200:17 429:3".
sub summary {
    my %count;
    $count{ $_->{status} }++ for @_;
    return join ' ', map { "$_:$count{$_}" } sort keys %count;
}

sub DESTROY {
    my ($self) = @_;
    return unless $self->{owner} == $$;
    local ($?, $!);
    for my $pid (@{ $self->{pids} }) {
        kill 'KILL', $pid;
        waitpid $pid, 0;
    }
}

1;
