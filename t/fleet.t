# One limit for a fleet: two nginx servers with two workers each share one Redis,
# and 64 clients use one key as fast as they can.

use strict;
use warnings;
use lib 't/lib';

use List::Util qw(min);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Servers qw(start_redis start_nginx wait_until);
use Test::More;

my ($max, $window) = (100, 1.5);

my $redis = start_redis();
my @servers = map {
    start_nginx(<<"END", workers => 2, http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=5s connect_timeout=5s;');
    location / { sliding_limit zone=fleet max=$max window=1500ms key=one; empty_gif; }
END
} 1 .. 2;

wait_until { $redis->info('clients', 'connected_clients') >= 5 } 10, 'four workers';

# what Redis really did, with its own times
my $log = $redis->dir . '/monitor';
my $monitor = fork // die $!;
if (!$monitor) {
    open STDOUT, '>', $log;
    exec 'redis-cli', '-p', $redis->port, 'MONITOR';
}
wait_until { -s $log } 10, 'MONITOR';

my @answers = start_load(clients => 64, seconds => 6, ports => [ map { $_->port } @servers ],
    path => '/')->finish;

sleep 1;
kill 'TERM', $monitor;
waitpid $monitor, 0;

open my $file, '<', $log or die $!;
my @admitted = map { /"ZADD" "rate_limit:fleet:one" "(\d+)"/i ? $1 / 1e6 : () } <$file>;

my $passed = grep { $_->{status} == 200 } @answers;
my %by_server;
$by_server{ $_->{port} }++ for grep { $_->{status} == 200 } @answers;

like summary(@answers), qr/^200:\d+ 429:\d+$/, 'only 200 and 429: ' . summary(@answers);
is $passed, scalar @admitted, "all $passed that passed were counted";
cmp_ok $passed, '>=', 3 * $max, 'over at least three windows';
is scalar keys %by_server, 2, 'both servers let some through';

my $shortest = min map { $admitted[ $_ + $max ] - $admitted[$_] } 0 .. $#admitted - $max;
cmp_ok sprintf('%.6f', $shortest), '>=', $window, 'never more than max in any window';

# Whenever it was between question and answer that somebody was refused: so many were
# counted in the window that ended then. (nginx reckons with milliseconds.)
my $first = 0;
my @unjustified = grep {
    my ($asked, $answered) = ($_->{at} - 0.002, $_->{at} + $_->{took} + 0.002);
    $first++ while $first < $#admitted && $admitted[$first] <= $asked - $window;
    my $last = $first + $max - 1;
    $last > $#admitted || $admitted[$last] > $answered;
} sort { $a->{at} <=> $b->{at} } grep { $_->{status} == 429 } @answers;
is scalar @unjustified, 0, 'and nobody is refused while there is room';

is join('', map { $_->bad_lines } @servers), '', 'nothing alarming in the logs';

done_testing;
