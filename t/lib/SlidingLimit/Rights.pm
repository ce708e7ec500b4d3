package SlidingLimit::Rights;

# What docs/operations.md says that a user of Redis needs.

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(acl_line rules rights);

sub acl_line {
    my $page = 'docs/operations.md';
    open my $file, '<', $page or die "$page: $!";
    my ($line) = grep { /^ACL SETUSER nginx / } <$file>;
    chomp $line;
    return $line;
}

# Its keys and commands, as ACL SETUSER wants them.
sub rules { return grep { /^[~+]/ } split ' ', acl_line() }

# The commands alone.
sub rights { return grep { /^\+/ } rules() }

1;
