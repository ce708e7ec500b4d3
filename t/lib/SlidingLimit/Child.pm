# A server that is written in Perl, in a process of its own, which ends with its object:
#
#   use parent 'SlidingLimit::Child';
#   my $self = __PACKAGE__->start({ port => ... }, sub { my ($self) = @_; ... });

package SlidingLimit::Child;

use strict;
use warnings;

use POSIX ();

# The function serves until it is killed, or has nothing more to do.
sub start {
    my ($class, $fields, $serve) = @_;
    my $self = bless { %$fields, owner => $$ }, $class;

    $self->{pid} = fork // die "fork: $!";
    return $self if $self->{pid};

    eval { $serve->($self) };
    POSIX::_exit($@ ? 1 : 0);
}

sub port { $_[0]{port} }

sub DESTROY {
    my ($self) = @_;
    return unless $self->{owner} == $$;
    local ($?, $!);
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
}

1;
