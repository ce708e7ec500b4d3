# A name server for loopback that says what it is told to.
#
#   my $dns = start_name_server('redis.test' => '127.0.0.1');
#   resolver 127.0.0.1:PORT ...
#   $dns->set('redis.test' => '127.0.0.2');
#
# Names that it does not know do not exist; of 'silence' it says nothing at all.

package SlidingLimit::NameServer;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();
use IO::Socket::INET ();
use parent 'SlidingLimit::Child';

our @EXPORT_OK = qw(start_name_server);

sub start_name_server {
    my (%names) = @_;
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die "bind: $!";
    my $self = __PACKAGE__->start({ dir => File::Temp->newdir(), port => $socket->sockport },
        sub { $_[0]->serve($socket) });

    $self->set(%names);

    return $self;
}

# In a file, because the server is another process.
sub set {
    my ($self, %names) = @_;
    open my $file, '>', "$self->{dir}/new" or die $!;
    print {$file} map { "$_ $names{$_}\n" } keys %names;
    close $file;
    rename "$self->{dir}/new", "$self->{dir}/names" or die $!;
    return;
}

sub address_of {
    my ($self, $name) = @_;
    open my $file, '<', "$self->{dir}/names" or die $!;
    my %names = map { split } <$file>;
    return $names{$name};
}

sub serve {
    my ($self, $socket) = @_;

    while (1) {
        my $from = $socket->recv(my $query, 512) // next;
        my ($id, undef, undef) = unpack 'n3', $query;
        my ($name, $end) = ('', 12);

        while (my $size = ord substr $query, $end, 1) {
            $name .= ($name eq '' ? '' : '.') . substr $query, $end + 1, $size;
            $end += $size + 1;
        }

        my $question = substr $query, 12, $end + 5 - 12;
        my ($type) = unpack 'n', substr $query, $end + 1, 2;
        my $address = $self->address_of($name);

        next if ($address // '') eq 'silence';

        # an address (A) lives for no time; of another type (AAAA) there is none
        my $answer = $address && $type == 1
            ? pack('n n n N n C4', 0xc00c, 1, 1, 0, 4, split /\./, $address) : '';
        my $header = pack 'n6', $id, $address ? 0x8180 : 0x8183, 1, $answer ? 1 : 0, 0, 0;

        $socket->send($header . $question . $answer, 0, $from);
    }
}

1;
