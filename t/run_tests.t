# scripts/run-tests: what is wrong is loud, all else is quiet, and it can be relied upon.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::Servers qw(module nginx_binary);
use Test::More;

my $dir = File::Temp->newdir;

# As "make test SUITES=..." would run suites of this text; (exit status, output).
sub run_tests {
    my (%text) = @_;

    for my $name (keys %text) {
        open my $suite, '>', "$dir/$name.t" or die $!;
        print $suite "use strict; use warnings; use Test::More;\n$text{$name}\ndone_testing;\n";
        close $suite;
    }

    my $suites = join ' ', map { "$dir/$_.t" } sort keys %text;
    my $output = `scripts/run-tests '${\ nginx_binary()}' '${\ module()}' build/unit $suites 2>&1`;
    return ($? >> 8, $output);
}

my $passing = 'warn "nginx: [warn] a passing suite\'s warning\n"; diag "and its remark"; ok 1 for 1 .. 3;';

{
    my ($status, $output) = run_tests(first => $passing, second => $passing);
    is $status, 0, 'suites pass';
    unlike $output, qr/warning|remark/, 'nothing of what they say is shown';
    is scalar(() = $output =~ /^\[.*\] \S+\.t \.+ ok /mg), 2, 'but a line for each';
    like $output, qr/^All tests successful\.\nFiles=2, Tests=6, .*\nResult: PASS\n\z/m, 'and how many tests there were';
}

{
    my ($status, $output) = run_tests(
        passes => $passing,
        fails => 'warn "nginx: [warn] a failing suite\'s warning\n"; is "one", "two", "they are alike";',
        dies => 'ok 1; die "out of luck\n";',
    );
    isnt $status, 0, 'suites fail, and so does the run';
    unlike $output, qr/passing suite/, 'nothing of what passed is shown';
    like $output, qr/^==== \S+fails\.t\nnginx: \[warn\] a failing suite's warning\n\n?(?:#.*\n)*#\s+got: 'one'\n/m,
        'all that a failed suite has to say is';
    like $output, qr/^==== \S+dies\.t\nout of luck\n/m, 'and why one died';
    like $output, qr/^==== .*^Test Summary Report\n.*^Files=3, Tests=5, .*\nResult: FAIL\n\z/ms,
        'just before the summary';
}

{
    # the third begins when the second has ended, whatever the first one is waiting for
    local $ENV{TEST_JOBS} = 2;
    my ($status, $output) = run_tests(
        a_waits => "for (1 .. 600) { last if -e '$dir/begun'; select undef, undef, undef, 0.1 } ok -e '$dir/begun';",
        b_ends => 'ok 1;',
        c_begins => "open my \$file, '>', '$dir/begun' or die \$!; ok 1;",
    );
    is $status, 0, 'a suite that is silent keeps no other from its turn' or diag $output;
}

done_testing;
