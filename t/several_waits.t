# A request that asks Redis several times waits no longer than one that asks once.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use SlidingLimit::SlowProxy qw(start_slow_proxy);
use Test::More;

my $redis = start_redis();
my $proxy = start_slow_proxy($redis->port);
my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $proxy->port . ' timeout=3s connect_timeout=9s;');
    add_header X-Status $sliding_limit_status always;
    add_header X-Time $sliding_limit_time always;
    location = /one { sliding_limit zone=one max=100 window=600s key=$arg_k; empty_gif; }
    location = /two {
        sliding_limit zone=early max=100 window=600s key=$arg_k;
        sliding_limit zone=late max=100 window=600s key=$arg_k phase=precontent;
        empty_gif;
    }
END

# (status, seconds that the check took)
sub ask {
    my (undef, $headers) = get($nginx->port, $_[0], 30);
    return @$headers{qw(x-status x-time)};
}

sub seen { return $redis->cli('ZCARD', "rate_limit:$_[0]:k") }

wait_until { (ask('/one?k=warm'))[0] eq 'PASSED' } 30, 'counting';

is((ask('/two?k=k'))[0], 'PASSED', 'two questions that are answered at once');
is join(' ', seen('early'), seen('late')), '1 1', 'are counted both';

$proxy->delay(1);       # there, and as much back

my ($status, $time) = ask('/one?k=k');
is $status, 'PASSED', "one question that is answered in two seconds ($time)";

($status, $time) = ask('/two?k=k');
is $status, 'FAILED_OPEN', 'two are too many';
cmp_ok $time, '<', 3.9, "for which nobody waits longer than the timeout ($time)";
wait_until { seen('late') == 2 } 30, 'the second one to be counted late';

is((ask('/one?k=k'))[0], 'PASSED', 'Redis is not blamed');
unlike $nginx->error_log, qr/is down|no reply/, 'nor in the log';
is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
