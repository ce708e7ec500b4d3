# The usage that the module finds in a body, piece by piece, is what a parser of others finds in
# all of it: Node's, on random documents with keys that are there twice, escapes and long numbers.
# SLIDING_LIMIT_USAGE_SEED=N makes other ones.

use strict;
use warnings;

use JSON::PP qw(decode_json);
use Test::More;

# next to the unit tests
my ($dir) = map { s{/unit/?$}{/model}r } $ENV{SLIDING_LIMIT_UNIT_DIR} || 'build/unit';

plan skip_all => "there is nothing in $dir, \"make test\" builds it" unless -x "$dir/usage_judge";

my $bodies = 70_000;
my $seed = $ENV{SLIDING_LIMIT_USAGE_SEED} // 1;

open my $out, '-|', 'node', 't/js/usage.mjs', "$dir/usage_judge", $bodies, $seed or die "node: $!";
my $result = decode_json(do { local $/; <$out> } || '{}');
close $out;

is($?, 0, 'it ends well');

# or the bodies would not be worth a look
cmp_ok($result->{documents}, '>', 100_000, 'a hundred thousand documents are compared');
cmp_ok($result->{found}, '>', $bodies / 10, 'many bodies tell of a usage');
cmp_ok($result->{none}, '>', $bodies / 10, 'many do not');
cmp_ok($result->{spoilt}, '>', $bodies / 10, 'and many are cut off or no JSON');

is_deeply($result->{differences}, [], 'both find the same') or diag("with the seed $seed");

done_testing();
