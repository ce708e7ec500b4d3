# The judge of "make chaos" sees every kind of violation, and nothing else: journals made up
# by hand, most of them twice, once with what is allowed at most and once with a little more.

use strict;
use warnings;

use File::Temp ();
use JSON::PP;
use Test::More;

plan skip_all => 'there is no python3' if system 'python3 -c "" 2> /dev/null';

my $SECOND = 1_000_000;
my $BEGIN = 100 * $SECOND;      # of the first request

my @setup = (
    { kind => 'setup', topology => 'single', seed => 1, seconds => 20, servers => 1,
        timeout => 250_000, connect_timeout => 250_000,
        zones => {
            log => { window => $SECOND, buckets => 0, store => 'redis' },
            buckets => { window => 3 * $SECOND, buckets => 6, store => 'redis' },
            embedded => { window => $SECOND, buckets => 0, store => 'memory' },
            site => { window => $SECOND, buckets => 0, store => 'redis' },
        },
        locations => {
            log => { limits => [['log', 0]], on_error => 'pass' },
            buckets => { limits => [['buckets', 0]], on_error => 'pass' },
            closed => { limits => [['log', 0]], on_error => 'deny' },
            local => { limits => [['log', 0]], on_error => 'local' },
            embedded => { limits => [['embedded', 0]], on_error => 'pass' },
            cross => { limits => [['log', 0], ['site', 1]], on_error => 'pass' },
        } },
    limits(0, 0, 0, 3),
);

sub limits {
    my ($server, $begin, $end, $max) = @_;
    return { kind => 'limits', server => $server, begin => at($begin), end => at($end),
        max => { map { $_ => $max } qw(log buckets embedded site) } };
}

# In seconds from the beginning.
sub at { return $BEGIN + int($_[0] * $SECOND) }

sub event {
    my ($kind, %fields) = @_;
    return { kind => $kind, map { $_ => /^(?:begin|end|at)$/ ? at($fields{$_}) : $fields{$_} } keys %fields };
}

sub fault { my ($begin, $end) = @_; return event('fault', name => 'stopped', begin => $begin, end => $end, detail => '') }

# A line of the journal: sent at `send`, answered 1 ms later.
sub request {
    my ($send, %with) = @_;
    my %it = (server => 0, location => 'log', key => 'k', recv => $send + 0.001, http => 200,
        status => 'PASSED', store => 'redis', zone => 'log', took => 500, end => 'answered', %with);
    return join "\t", @it{qw(server location key)}, at($send), at($it{recv}),
        @it{qw(http status store zone took end)};
}

sub refused { my ($send, %with) = @_; return request($send, http => 429, status => 'REJECTED', %with) }
sub open_at { my ($send, %with) = @_; return request($send, status => 'FAILED_OPEN', store => 'none', %with) }

# All of them are judged at once, when they are known.
my $dir = File::Temp->newdir();
my @cases;

sub is_judged {
    my ($name, $violations, $exceptions, @lines) = @_;
    my $path = sprintf '%s/%03d.journal', $dir, scalar @cases;

    open my $file, '>', $path or die "$path: $!";
    print $file map { (ref $_ ? encode_json($_) : $_) . "\n" } @lines, @setup;     # the first setup counts
    close $file or die "$path: $!";
    push @cases, { name => $name, path => $path, violations => $violations, exceptions => $exceptions };
}

sub is_good { my ($name, @lines) = @_; is_judged($name, {}, undef, @lines) }
sub is_bad { my ($name, $violations, @lines) = @_; is_judged($name, $violations, undef, @lines) }

# ---- over max

my @three = map { request($_ / 100) } 0 .. 2;

is_good 'max requests in a window', @three, request(1.01);
is_bad 'one more', { 'over max' => 1 }, @three, request(0.9);
is_good 'one more that may have been counted a window later', @three, request(0.99, recv => 1.001);
is_good 'one more of another key', @three, request(0.9, key => 'other');
is_good 'one more that failed open', @three, fault(0.8, 1), open_at(0.9);
is_bad 'one more of another location with the same zone', { 'over max' => 1 }, @three,
    request(0.9, location => 'closed');
is_bad 'one more of a second limit', { 'over max' => 1 },
    map { request($_ / 100, location => 'cross', key => "k$_|same") } 0 .. 3;
is_bad 'one more in the embedded store', { 'over max' => 1 },
    request(2), map { request($_ / 100, location => 'embedded', zone => 'embedded', store => 'memory') } 0 .. 3;

my @moments = (0, 0.01, 0.5, 0.6, 0.61, 0.62);
my @emptied = map { request($_) } @moments;
my %lost = (store => 'redis', why => 'FLUSHALL');

is_bad 'too many are', { 'over max' => 3 }, @emptied;
is_judged 'too many, but some were lost, which is counted', {}, { 'over max: FLUSHALL' => 1 },
    event('lost', %lost, begin => 0.55, end => 0.56), @emptied;
is_bad 'too many after the others were lost', { 'over max' => 3 },
    event('lost', %lost, begin => 0.1, end => 0.2), @emptied;
is_bad 'too many, and others were lost: those of the embedded store', { 'over max' => 3 },
    event('lost', %lost, store => 'memory', server => 0, begin => 0.55, end => 0.56), @emptied;
is_good 'too many, but the clock was set forwards',
    event('clock', who => 'redis', step => $SECOND, begin => 0.55, end => 0.56), @emptied;
is_bad 'too many, and the clock was set backwards', { 'over max' => 3 },
    event('clock', who => 'redis', step => -$SECOND, begin => 0.55, end => 0.56), @emptied;
is_bad "too many, and nginx's clock was set forwards", { 'over max' => 3 },
    event('clock', who => 'nginx0', step => $SECOND, begin => 0.55, end => 0.56), @emptied;

is_good 'a limit that is raised meanwhile', limits(0, 0.5, 0.6, 4), @three, request(0.55);
is_bad 'a limit that is raised later', { 'over max' => 1 }, limits(0, 0.95, 0.96, 4), @three, request(0.9);

# ---- refused with room

is_good 'refused in a full window', @three, refused(0.5);
is_bad 'refused with room', { 'refused with room' => 1 }, @three[0, 1], refused(0.5);
is_bad 'refused with room by the deny cache', { 'refused with room' => 1 }, @three[0, 1],
    refused(0.5, store => 'deny_cache', took => 0);
is_good 'refused at the last moment of a full window', @three, refused(0.999);
is_bad 'refused when one had left', { 'refused with room' => 1 }, @three, refused(1.005);
is_good 'refused, after one that failed open', fault(0.3, 0.4), @three[0, 1], open_at(0.35), refused(0.5);
is_good 'refused, after one that was aborted', @three[0, 1],
    request(0.35, http => 0, status => '?', end => 'aborted'), refused(0.5);
is_good 'refused, after one whose call was executed late', fault(0.2, 1.4), @three[0, 1],
    open_at(0.25, recv => 0.5), request(1.2), request(1.21), refused(1.5);
is_bad 'refused long after one that failed open', { 'refused with room' => 1 },
    fault(0.3, 0.4), open_at(0.35), request(3), request(3.01), refused(3.5);
is_good 'refused by buckets, which are longer', map({ request($_, location => 'buckets', zone => 'buckets') } 0, 0.01, 0.02),
    refused(3.4, location => 'buckets', zone => 'buckets');
is_bad 'refused by buckets after that', { 'refused with room' => 1 },
    map({ request($_, location => 'buckets', zone => 'buckets') } 0, 0.01, 0.02),
    refused(3.6, location => 'buckets', zone => 'buckets');
is_good 'refused by a limit that is lowered meanwhile', limits(0, 0.4, 0.6, 2), @three[0, 1], refused(0.5);
is_bad 'refused by a limit that is lowered later', { 'refused with room' => 1 }, limits(0, 0.6, 0.7, 2),
    @three[0, 1], refused(0.5);
is_good 'refused after the clock was set back', event('clock', who => 'redis', step => -$SECOND, begin => 0.9, end => 0.91),
    @three, refused(1.5);
is_bad 'refused long after that', { 'refused with room' => 1 },
    event('clock', who => 'redis', step => -$SECOND, begin => 0.9, end => 0.91), @three, refused(4.5);
is_bad "refused after nginx's clock was set back", { 'refused with room' => 1 },
    event('clock', who => 'nginx0', step => -$SECOND, begin => 0.9, end => 0.91), @three, refused(1.5);
is_bad 'refused by the embedded store of another server', { 'refused with room' => 1 },
    limits(1, 0, 0, 3), request(1.5), map({ request($_ / 100, location => 'embedded', zone => 'embedded', store => 'memory') } 0 .. 2),
    refused(0.5, server => 1, location => 'embedded', zone => 'embedded', store => 'memory');

# ---- answers

is_bad 'a server error', { '5xx' => 1 }, request(0, http => 500, status => 'PASSED');
is_bad '503 where that was not asked for', { '5xx' => 1 }, fault(0, 1), request(0.5, http => 503, status => 'FAILED_OPEN', store => 'none');
is_good '503 where it was', fault(0, 1), request(0.5, location => 'closed', http => 503, status => 'FAILED_CLOSED', store => 'none');
is_bad 'let through where 503 was asked for', { 'wrong on_error' => 1 }, fault(0, 1), open_at(0.5, location => 'closed');
is_bad 'not checked at all', { 'wrong status' => 1 }, request(0, status => '-', store => '-');
is_bad 'refused and let through', { 'wrong status' => 1 }, @three, refused(0.5, http => 200);
is_bad 'a server error over HTTP/2', { 'wrong status' => 1 }, request(0), request(0, status => '?', http => 502);
is_bad 'no answer', { unanswered => 1 }, request(0), request(0.9, http => 0, status => '?', end => 'unanswered');
is_good 'no answer of a worker that was killed', event('worker_killed', server => 0, pid => 7, at => 0.9005),
    request(0), request(0.9, http => 0, status => '?', end => 'unanswered');
is_bad 'no answer, and another server\'s worker was killed', { unanswered => 1 },
    event('worker_killed', server => 1, pid => 7, at => 0.9005),
    request(0), request(0.9, http => 0, status => '?', end => 'unanswered');

# ---- waits

is_good 'a wait as long as the timeout', fault(0, 1), open_at(0.1, recv => 0.4, took => 251_000);
is_bad 'a longer one', { late => 1 }, fault(0, 1), open_at(0.1, recv => 0.5, took => 320_000);
is_good 'a longer one on a machine that had no time', fault(0, 1), open_at(0.1, recv => 0.5, took => 320_000),
    event('starved', who => 'process 1', begin => 0.2, end => 0.4, us => 90_000);
is_good 'a longer one on a machine that had no time for long', fault(0, 6), open_at(5.1, recv => 5.5, took => 320_000),
    event('starved', who => 'process 1', begin => 1, end => 6, us => 5_000_000);
is_bad 'a longer one, long after that', { late => 1 }, fault(0, 3), open_at(2.1, recv => 2.5, took => 320_000),
    event('starved', who => 'process 1', begin => 0.2, end => 0.4, us => 90_000);

# ---- counted again

is_good 'uncounted shortly after a fault', fault(0, 1), open_at(2), request(5);
is_bad 'uncounted two seconds after it', { 'not counted again' => 1 }, fault(0, 1), open_at(3), request(5);
is_bad 'uncounted without any fault', { 'not counted again' => 1 }, request(0), open_at(3), request(5);
is_bad 'decided locally', { 'not counted again' => 1 }, fault(0, 1), request(3, location => 'local', store => 'memory'), request(5);
is_good 'uncounted while there is another fault', fault(0, 1), fault(2, 4), open_at(3), request(10);
is_bad 'nothing counted by one of the servers', { 'not counted again' => 1 }, { %{ $setup[0] }, servers => 2 },
    fault(0, 1), limits(1, 0, 0, 3),
    map { (request($_), $_ < 3 ? request($_, server => 1, key => 'other') : ()) } 2 .. 9;
is_good 'uncounted on a machine that had no time', fault(0, 1), open_at(3), request(5),
    event('starved', who => 'process 1', begin => 2.5, end => 3, us => 300_000);

# ---- what is left behind

my $killed = '2026/11/17 11:00:00 [alert] 1#1: worker process 7 exited on signal 9';

is_bad 'an alert', { 'alarming log line' => 1 }, request(0), event('log', server => 0, line => '[alert] open socket #3 left in connection 4');
is_bad 'a worker that died', { 'alarming log line' => 1 }, request(0), event('log', server => 0, line => $killed);
is_good 'a worker that was killed', request(0), event('log', server => 0, line => $killed),
    event('worker_killed', server => 0, pid => 7, at => 0.5);
is_bad 'a worker that died, not the one that was killed', { 'alarming log line' => 1 }, request(0),
    event('log', server => 0, line => $killed), event('worker_killed', server => 0, pid => 77, at => 0.5);
is_bad 'trouble of the run itself', { trouble => 1 }, request(0), event('trouble', text => 'a thread died');

sub resources { my ($when, %with) = @_; return event('resources', when => $when, server => 0, role => 'worker', pid => 7, memory => 2000, descriptors => 11, %with) }

is_good 'a worker that stays as it is', request(0), resources('before'), resources('after', memory => 3000, descriptors => 12);
is_bad 'one that grows', { 'memory grow' => 1 }, request(0), resources('before'), resources('after', memory => 6000);
is_bad 'one that leaves descriptors open', { 'descriptors grow' => 1 }, request(0), resources('before'), resources('after', descriptors => 15);
is_bad 'a new one that is larger than those before', { 'memory grow' => 1 }, request(0), resources('before'),
    resources('after', pid => 8, memory => 6000);
is_good 'as many connections as there are workers', request(0), event('connections', server => 0, least => 6, most => 6, found => 6);
is_bad 'one more connection', { connections => 1 }, request(0), event('connections', server => 0, least => 6, most => 6, found => 7);
is_bad 'one connection less', { connections => 1 }, request(0), event('connections', server => 0, least => 6, most => 6, found => 5);
is_bad 'a journal without requests', { 'nothing to judge' => 1 };

# ---- what the judge says to all that

my $said = `python3 t/chaos/check --json $dir/*.journal`;
is $? >> 8, 1, 'violations are a failure';
my @verdicts = @{ decode_json($said) };
is @verdicts, @cases, 'everything is judged';

for my $i (0 .. $#cases) {
    my ($case, $verdict) = ($cases[$i], $verdicts[$i]);
    is_deeply $verdict->{violations}, $case->{violations}, $case->{name} or diag explain $verdict->{examples};
    is_deeply $verdict->{exceptions}, $case->{exceptions}, "$case->{name}: exceptions" if $case->{exceptions};
}

my ($good) = map { $_->{path} } grep { !%{ $_->{violations} } } @cases;
like `python3 t/chaos/check $good`, qr/^GOOD: 0 violations$/m, 'a good journal is called good';
is $?, 0, 'and no failure';

# ---- and a run can be repeated

# The first faults that a seed leads to.
sub plan_of {
    my ($seed, $topology) = @_;
    my $print = 'import itertools, schedule, sys; print(list(itertools.islice(schedule.groups(*sys.argv[1:3]), 30)))';
    return `PYTHONPATH=t/chaos python3 -c "$print" $seed $topology`;
}

my $plan = plan_of(7, 'cluster');
like $plan, qr/slots_moved/, 'a seed leads to faults';
is plan_of(7, 'cluster'), $plan, 'always to the same ones';
isnt plan_of(8, 'cluster'), $plan, 'and another one to others';

done_testing;
