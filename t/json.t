# What the module takes for JSON, and what it writes into JSON, is judged alike by a
# parser of others: Node's, on random texts that are JSON or nearly.
# SLIDING_LIMIT_JSON_SEED=N makes the same ones again.

use strict;
use warnings;

use JSON::PP qw(decode_json);
use Test::More;

# next to the unit tests
my ($dir) = map { s{/unit/?$}{/model}r } $ENV{SLIDING_LIMIT_UNIT_DIR} || 'build/unit';

plan skip_all => "there is nothing in $dir, \"make test\" builds it" unless -x "$dir/json_judge";

my $texts = 20_000;
my $seed = $ENV{SLIDING_LIMIT_JSON_SEED} // int rand 2**32;

open my $out, '-|', 'node', 't/js/json.mjs', "$dir/json_judge", $texts, $seed or die "node: $!";
my $result = decode_json(do { local $/; <$out> } // '{}');
close $out;

is($?, 0, 'it ends well');

# or the texts would not be worth judging
cmp_ok($result->{json}, '>', $texts / 10, 'many texts are JSON');
cmp_ok($result->{json}, '<', $texts * 9 / 10, 'and many are not');
cmp_ok($result->{numbers}, '>', 100, 'some are numbers');

is_deeply($result->{differences}, [], 'both judge alike') or diag("with the seed $seed");

done_testing();
