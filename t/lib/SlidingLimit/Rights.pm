package SlidingLimit::Rights;

# What README.md says that a user of Redis needs.

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(acl_line rights);

sub acl_line {
    open my $readme, '<', 'README.md' or die "README.md: $!";
    my ($line) = grep { /^ACL SETUSER nginx / } <$readme>;
    chomp $line;
    return $line;
}

# The commands alone, as ACL SETUSER wants them.
sub rights { return grep { /^\+/ } split ' ', acl_line() }

1;
