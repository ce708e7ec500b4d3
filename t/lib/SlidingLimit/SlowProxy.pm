# A Redis far away: a TCP proxy that passes everything on, in order, but late.
#
#   my $proxy = start_slow_proxy($port_of_redis);
#   $proxy->delay(0.3);   seconds, in each direction, from now on
#   $proxy->forget;       all connections there are: nothing passes any more, and
#                         nobody is told; new ones work

package SlidingLimit::SlowProxy;

use strict;
use warnings;

use Exporter 'import';
use IO::Select ();
use IO::Socket::INET ();
use SlidingLimit::Servers qw(free_port);
use Time::HiRes qw(time);
use parent 'SlidingLimit::Child';

our @EXPORT_OK = qw(start_slow_proxy);

sub start_slow_proxy {
    my ($to_port) = @_;

    my $listener = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => free_port(), Listen => 64, ReuseAddr => 1) or die $!;
    pipe my $orders, my $control or die $!;

    return __PACKAGE__->start({ port => $listener->sockport, control => $control }, sub {
        close $control;
        local $SIG{PIPE} = 'IGNORE';
        serve($listener, $orders, $to_port);
    });
}

sub delay {
    my ($self, $seconds) = @_;
    syswrite $self->{control}, pack 'd', $seconds;
}

sub forget { syswrite $_[0]{control}, pack 'd', -1 }

sub serve {
    my ($listener, $orders, $to_port) = @_;
    my $readable = IO::Select->new($listener, $orders);
    my $delay = 0;
    my %other_end;
    my @forgotten;

    # [when, where from, what]: one queue, so that nothing overtakes what came
    # before it when the delay becomes shorter
    my @under_way;

    while (1) {
        my $wait = @under_way ? $under_way[0][0] - time : undef;
        $wait = 0 if defined $wait && $wait < 0;

        for my $from ($readable->can_read($wait)) {
            if ($from == $orders) {
                # with the test its proxy ends, too
                sysread($orders, my $order, 8) or return;
                my $seconds = unpack 'd', $order;

                if ($seconds >= 0) {
                    $delay = $seconds;
                    next;
                }

                # they stay open
                push @forgotten, values %other_end;
                $readable->remove(values %other_end);
                %other_end = @under_way = ();
            }
            elsif ($from == $listener) {
                my $client = $listener->accept or next;
                my $server = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to_port") or next;
                @other_end{ $client, $server } = ($server, $client);
                $readable->add($client, $server);
            }
            else {
                my $got = sysread $from, my $text, 65536;
                $readable->remove($from) unless $got;
                push @under_way, [time + $delay, $from, $got ? $text : ''];
            }
        }

        while (@under_way && $under_way[0][0] <= time) {
            my (undef, $from, $text) = @{ shift @under_way };
            my $to = $other_end{$from} or next;
            next if length $text && syswrite $to, $text;

            # one end has closed it, or does not read any more
            $readable->remove($from, $to);
            delete @other_end{ $from, $to };
            close $_ for $from, $to;
        }
    }
}

1;
