# Runs the unit tests: every program in $SLIDING_LIMIT_UNIT_DIR (build/unit), each
# a subtest. A program that crashes, or stops before its last test, fails.

use strict;
use warnings;

use TAP::Parser;
use Test::More;

my $dir = $ENV{SLIDING_LIMIT_UNIT_DIR} || 'build/unit';
my @programs = grep { -f && -x } sort glob "\Q$dir\E/*/*";

plan skip_all => "no programs in $dir, \"make test\" builds them" unless @programs;

# What the program writes to stdout, and how it ends.
sub run {
    my ($program) = @_;

    local $ENV{CMOCKA_MESSAGE_OUTPUT} = 'TAP';

    open my $out, '-|', "exec \Q$program" or return ('', "not started: $!");
    my $tap = do { local $/; <$out> } // '';
    close $out;

    my $end = $? & 127 ? 'signal ' . ($? & 127) : 'exit ' . ($? >> 8);
    return ($tap, $end);
}

for my $program (@programs) {
    my ($name) = $program =~ m{([^/]+/[^/]+)$};

    subtest $name => sub {
        my ($tap, $end) = run($program);

        # versions of TAP differ in nothing that is used here
        $tap =~ s/^TAP version.*\n//;
        my $parser = TAP::Parser->new({ tap => "$tap\n" });

        while (my $line = $parser->next) {
            if ($line->is_test) {
                (my $sentence = $line->description) =~ tr/_/ /;
                ok($line->is_ok, $sentence =~ s/^ *- //r);
            } elsif (!$line->is_plan && $line->as_string !~ /^(# ok.*)?$/) {
                diag($line->as_string =~ s/^# //r);
            }
        }

        my @missing = $parser->tests_run ? $parser->parse_errors : 'all of them';

        is("@missing", '', 'no test is missing');
        is($end, 'exit 0', 'it ends well');
    };
}

done_testing();
