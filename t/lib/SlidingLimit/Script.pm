# The script that Redis runs, its time steered, and a connection to try it on.

package SlidingLimit::Script;

use strict;
use warnings;

use Exporter 'import';
use IO::Socket::INET;

our @EXPORT_OK = qw(script steered_script connect_redis uuid);

sub script { return scalar `sh lua/assemble` }

# With the line that asks Redis for the time replaced: it is the last word then, as 'SECONDS:MICROSECONDS'.
sub steered_script {
    my $steered = script();
    $steered =~ s/^local time = call\('TIME'\)$/local time = { string.match(table.remove(ARGV), '(%d+):(%d+)') }/m
        or die 'the line that asks for the time is not where it was';
    return $steered;
}

sub read_reply {
    my ($socket) = @_;
    my $line = <$socket>;
    $line =~ s/\r\n//;
    my ($type, $rest) = $line =~ /^(.)(.*)/;
    return $rest if $type eq ':' || $type eq '+';
    return "error: $rest" if $type eq '-';
    return [ map { read_reply($socket) } 1 .. $rest ] if $type eq '*';
    return undef if $rest < 0;
    read $socket, my $text, $rest + 2;
    return substr $text, 0, $rest;
}

# A function that sends the words of a command, and returns the reply.
sub connect_redis {
    my ($port) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die $!;

    return sub {
        # in one piece: the rest of it would wait for an acknowledgement
        my $words = join '', '*' . @_ . "\r\n", map { '$' . length($_) . "\r\n$_\r\n" } @_;
        for (my $sent = 0; $sent < length $words;) {
            $sent += syswrite($socket, $words, length($words) - $sent, $sent) // die $!;
        }
        return read_reply($socket);
    };
}

sub uuid { return sprintf '01a1e1f6-bc22-7184-818c-%012x', $_[0] }

1;
