# How "make test" looks: a line for every suite and prove's summary; before that
# what suites that failed had to say, which scripts/run-suite has kept.

package SlidingLimit::Report;

use strict;
use warnings;

use File::Basename qw(basename);
use parent 'TAP::Formatter::File';

sub summary {
    my ($self, $aggregate, @more) = @_;

    for my $suite ($aggregate->descriptions) {
        my ($parser) = $aggregate->parsers($suite);
        next unless $parser->has_problems;

        open my $log, '<', "$ENV{SLIDING_LIMIT_LOGS}/" . basename($suite) . '.log' or next;
        $self->_output("\n==== $suite\n", <$log>);
    }

    return $self->SUPER::summary($aggregate, @more);
}

1;
