# What CONTRIBUTING.md and the files in .github tell people and machines to do can be done:
# the targets of make and the files that they name exist.

use strict;
use warnings;
use lib 't/lib';

use File::Find qw(find);
use SlidingLimit::Pages qw(contents);
use Test::More;

my %targets = map { $_ => 1 } contents('Makefile') =~ /^([a-z-]+):.*## /mg;
my @files = ('CONTRIBUTING.md', 'SECURITY.md');
find(sub { push @files, $File::Find::name if -f }, '.github');
cmp_ok scalar(@files), '>=', 7, scalar(@files) . ' files';

for my $file (@files) {
    my $text = contents($file);
    is join(' ', grep { !$targets{$_} } $text =~ /\bmake ([a-z-]+)\b(?= *[`\],]| +(?:SUITES=|#))/g), '', "$file: targets of make";
    is join(' ', grep { !-e } $text =~ m{`((?:\.ci|docs|scripts|src|t)/[\w./-]+)`}g), '', "$file: files";
}

my ($commands) = contents('.github/workflows/ci.yml') =~ /^        command: \[(.*)\]$/m;
is $commands, 'make lint, make test, make sanitize, make deb', 'what GitHub is to run';

done_testing;
