# Gives every fuzz target its seeds, and the cases that fuzzing has found: what was
# mended once stays mended. `make fuzz` looks for more.

use strict;
use warnings;

use Test::More;

# next to the unit tests
my ($dir) = map { s{/unit/?$}{/replay}r } $ENV{SLIDING_LIMIT_UNIT_DIR} || 'build/unit';

my @targets = map { m{([^/]+)\.cpp$} } sort glob 't/fuzz/*.cpp';

plan skip_all => "there is nothing in $dir, \"make test\" builds it" unless -x "$dir/$targets[0]";

for my $target (@targets) {
    subtest $target => sub {
        my @files = glob "t/fuzz/{seeds,found}/$target/*";

        ok(scalar(@files), 'it has seeds');

        open my $out, '-|', "$dir/$target", @files or die "$dir/$target: $!";
        chomp(my @replayed = <$out>);
        close $out;

        is($?, 0, 'it ends well') or diag("with $replayed[-1]");
        is_deeply(\@replayed, \@files, 'every file was given to it');
    };
}

done_testing();
