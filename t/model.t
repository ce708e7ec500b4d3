# What counts, against a brute-force model, on millions of random requests; t/model
# says how. SLIDING_LIMIT_MODEL_REQUESTS=N makes fewer.

use strict;
use warnings;
use lib 't/lib';

use POSIX ();
use SlidingLimit::Servers qw(start_redis);
use TAP::Parser;
use Test::More;

# next to the unit tests
my ($dir) = map { s{/unit/?$}{/model}r } $ENV{SLIDING_LIMIT_UNIT_DIR} || 'build/unit';

plan skip_all => "there is nothing in $dir, \"make test\" builds it" unless -x "$dir/redis_script";

# This keeps a processor busy for a minute: suites beside it, in which time matters, come first.
POSIX::nice(10);

# Runs the program, whose tests are this one's.
sub run {
    my ($program, @args) = @_;

    open my $out, '-|', "$dir/$program", @args or die "$program: $!";
    my $tap = do { local $/; <$out> } // '';
    close $out;
    my $end = $? & 127 ? 'signal ' . ($? & 127) : 'exit ' . ($? >> 8);

    my $parser = TAP::Parser->new({ tap => "$tap\n" });

    while (my $line = $parser->next) {
        ok($line->is_ok, $line->description =~ s/^- //r) if $line->is_test;
    }

    my @missing = $parser->tests_run ? $parser->parse_errors : 'all of them';

    is("@missing", '', 'no test is missing');
    is($end, 'exit 0', 'it ends well');

    # how to get the same again, and what led to a difference
    my $notes = join "\n", $tap =~ /^(?:# |(?=Bail))(.*)/mg;
    Test::More->builder->is_passing ? note($notes) : diag($notes);
}

subtest 'the embedded store' => sub { run('memory_table') };

subtest 'processes that are killed while they count' => sub { run('memory_kills') };

subtest 'remembered refusals' => sub { run('deny_cache') };

subtest 'the Lua script in a real Redis' => sub {
    my $redis = start_redis();
    run('redis_script', $redis->port, 'lua/assemble');
};

done_testing();
