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
            settled => { window => 3 * $SECOND, buckets => 0, store => 'redis', cost => 2, true_cost => 1 },
            debts => { window => 3 * $SECOND, buckets => 0, store => 'redis', cost => 1, true_cost => 2 },
        },
        locations => {
            log => { limits => [['log', 0]], on_error => 'pass' },
            buckets => { limits => [['buckets', 0]], on_error => 'pass' },
            closed => { limits => [['log', 0]], on_error => 'deny' },
            local => { limits => [['log', 0]], on_error => 'local' },
            embedded => { limits => [['embedded', 0]], on_error => 'pass' },
            cross => { limits => [['log', 0], ['site', 1]], on_error => 'pass' },
            settled => { limits => [['settled', 0]], on_error => 'pass' },
            debts => { limits => [['debts', 0]], on_error => 'pass' },
        } },
    limits(0, 0, 0, 3),
);

sub limits {
    my ($server, $begin, $end, $max) = @_;
    return { kind => 'limits', server => $server, begin => at($begin), end => at($end),
        max => { map { $_ => $max } qw(log buckets embedded site settled debts) } };
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
sub banned { my ($send, %with) = @_; return request($send, http => 429, status => 'BANNED', %with) }
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

# ---- costs that are settled

# 2 are reserved, which become 1
sub settled { my ($send, %with) = @_; return request($send, location => 'settled', zone => 'settled', %with) }
my @no_room = (http => 429, status => 'REJECTED');

is_good 'as many as cost max in the end', map { settled($_) } 0, 1.1, 2.2;
is_bad 'one more than cost max in the end', { 'over max' => 1 }, map { settled($_) } 0, 1.1, 2.2, 2.9;
is_good 'refused while another may not have given back the rest', settled(0), settled(0.5, @no_room);
is_bad 'refused when it must have', { 'refused with room' => 1 }, settled(0), settled(1.5, @no_room);
is_good 'refused while what one without an answer has reserved stands',
    settled(0, status => 'FAILED_OPEN', store => 'none'), settled(1.5, @no_room);
is_good 'refused when it must have, but for a fault', fault(0.5, 0.6), settled(0), settled(1.5, @no_room);
is_good "refused when it must have, but for Redis's clock", settled(10), settled(11.5, @no_room),
    event('clock', who => 'redis', step => -6 * $SECOND, begin => 1, end => 1.1);
is_bad "refused when it must have, long after Redis's clock was set", { 'refused with room' => 1 },
    settled(20), settled(21.5, @no_room), event('clock', who => 'redis', step => -6 * $SECOND, begin => 1, end => 1.1);

# 1 is reserved, which becomes 2
sub debt { my ($send, %with) = @_; return request($send, location => 'debts', zone => 'debts', %with) }

is_good 'as many at once as could be reserved', map { debt($_) } 0, 0.01, 0.02;
is_bad 'one more than could be reserved', { 'over max' => 1 }, map { debt($_) } 0, 0.01, 0.02, 0.03;
is_good 'one more that may not have found what others have cost', map { debt($_) } 0, 0.01, 0.9;
is_bad 'one more that must have', { 'over max' => 1 }, map { debt($_) } 0, 0.01, 1.5;
is_good 'one more that must have, but for a fault', fault(0.5, 0.6), map { debt($_) } 0, 0.01, 1.5;
is_good 'one more, when what others have cost was lost', event('lost', %lost, begin => 1.1, end => 1.2),
    map { debt($_) } 0, 0.01, 1.5;
is_good 'refused because of what others cost', map({ debt($_) } 0, 0.01), debt(0.5, @no_room);
is_bad 'refused although there is room beside what another costs', { 'refused with room' => 1 },
    debt(0), debt(0.5, @no_room);
is_good 'refused when others have left, but not what they cost more', map({ debt($_) } 0, 0.01, 0.02), debt(3.5, @no_room);
is_bad 'refused when that has left, too', { 'refused with room' => 1 }, map({ debt($_) } 0, 0.01, 0.02),
    debt(4.1, @no_room);
is_good 'refused because of what could be told only after a fault', fault(0.5, 3), map({ debt($_) } 0, 0.01, 0.02),
    debt(6, @no_room);

# ---- bans

# A change of an operator about the client "k": sent at `begin`, answered 1 ms later.
sub change {
    my ($begin, $act, %with) = @_;
    my %told = $act =~ /^(?:ban|lift|forget)$/ ? (ban => $act eq 'ban' ? JSON::PP::true : JSON::PP::false, max => undef)
        : (ban => JSON::PP::false, max => $with{max});
    my $seconds = delete $with{seconds} // ($act =~ /^(?:ban|override)$/ ? 3600 : 0);
    return event('change', server => 0, zone => 'log', key => 'k', act => $act, us => $seconds * $SECOND, max => undef,
        begin => $begin, end => $begin + 0.001, status => 200, told => \%told, %with);
}

sub unanswered_change {
    my ($begin, $act, %with) = @_;
    return change($begin, $act, status => 503, told => 'no reply', %with);
}

my %embedded = (location => 'embedded', zone => 'embedded', store => 'memory');
my %remembered = (store => 'deny_cache', took => 0);
my @others = map { request($_, key => 'other') } 0, 0.5;     # so that Redis has something to do, too
my @both_servers = (limits(1, 0, 0, 3));

is_good 'banned during a ban', change(1, 'ban'), banned(2), banned(9);
is_bad 'let through during a ban', { 'not banned' => 1 }, change(1, 'ban'), banned(2), request(3);
is_bad 'refused for want of room during a ban', { 'not banned' => 1 }, change(1, 'ban'), map({ request($_ / 1000) } 997 .. 999), refused(1.5);
is_good 'let through before the ban', request(0.9), change(1, 'ban');
is_good 'let through while it is being banned', change(1, 'ban', end => 1.1), request(1.05), banned(1.06), request(0.9, recv => 1.12);
is_good 'let through without an answer during a ban', fault(1.5, 2.5), change(1, 'ban'), open_at(2);
is_good 'another client is let through', change(1, 'ban', key => 'other'), request(2);
is_good 'another zone lets it through', change(1, 'ban', zone => 'site'), request(2);
is_bad 'let through by the second limit that bans it', { 'not banned' => 1 }, change(1, 'ban', zone => 'site', key => 'same'),
    request(2, location => 'cross', key => 'k|same');
is_bad 'let through on another server', { 'not banned' => 1 }, @both_servers, change(1, 'ban'), request(2, server => 1);
is_bad 'let through by the embedded store', { 'not banned' => 1 }, @others,
    change(1, 'ban', zone => 'embedded'), request(2, %embedded);
is_good 'let through by the embedded store of another server', @both_servers, @others,
    change(1, 'ban', zone => 'embedded'), request(2, %embedded, server => 1);

is_bad 'banned before the ban', { 'banned without a ban' => 1 }, banned(0.9), change(1, 'ban');
is_bad 'banned, and nobody ever was', { 'banned without a ban' => 1 }, banned(0.9);
is_good 'banned before the lifting', change(1, 'ban'), change(2, 'lift'), banned(1.9), request(3);
is_good 'banned while it is being lifted', change(1, 'ban'), change(2, 'lift', end => 2.2), banned(2.1), request(2.15);
is_bad 'banned after it was lifted', { 'banned without a ban' => 1 }, change(1, 'ban'), change(2, 'lift'), banned(2.1);
is_bad 'banned after it was forgotten', { 'banned without a ban' => 1 }, change(1, 'ban'), change(2, 'forget'), banned(2.1);
is_bad 'let through, banned again', { 'not banned' => 1 }, change(1, 'ban'), change(2, 'lift'), change(3, 'ban'), request(2.5), request(3.5);
is_bad 'banned by the embedded store of another server', { 'banned without a ban' => 1 }, @both_servers, @others,
    change(1, 'ban', zone => 'embedded'), banned(2, %embedded, server => 1);
is_bad 'refused with room by a limit that has lifted a ban', { 'refused with room' => 1 }, change(1, 'ban'), change(2, 'lift'), refused(2.1);
is_bad 'refused with room, as banned requests are not counted', { 'refused with room' => 1 },
    change(1, 'ban'), map({ banned(1 + $_ / 10) } 1 .. 5), change(1.6, 'lift'), refused(1.7);

is_good 'a ban that ends', change(1, 'ban', seconds => 2), banned(2.9), request(3.1);
is_bad 'let through before it ends', { 'not banned' => 1 }, change(1, 'ban', seconds => 2), request(2.9);
is_bad 'banned after it has ended', { 'banned without a ban' => 1 }, change(1, 'ban', seconds => 2), banned(3.1);
is_good 'a longer ban follows a shorter one', change(1, 'ban', seconds => 1), change(1.5, 'ban', seconds => 5), banned(3);
is_bad 'which is as good as another', { 'not banned' => 1 }, change(1, 'ban', seconds => 1), change(1.5, 'ban', seconds => 5), request(3);
is_judged 'a ban that ends early, as the clock was set forwards', {}, { "not banned: Redis's clock set forwards" => 1 },
    event('clock', who => 'redis', step => $SECOND, begin => 1.5, end => 1.51), change(1, 'ban', seconds => 2), request(2.5);
is_bad 'one that does so when the clock was set forwards by less', { 'not banned' => 1 },
    event('clock', who => 'redis', step => 300_000, begin => 1.5, end => 1.51), change(1, 'ban', seconds => 2), request(2.5);
is_bad 'one that does so in the embedded store', { 'not banned' => 1 }, @others,
    event('clock', who => 'redis', step => $SECOND, begin => 1.5, end => 1.51),
    change(1, 'ban', seconds => 2, zone => 'embedded'), request(2.5, %embedded);
is_judged 'a ban that ends late, as the clock was set backwards', {}, { "banned: Redis's clock set backwards" => 1 },
    event('clock', who => 'redis', step => -$SECOND, begin => 1.5, end => 1.51), change(1, 'ban', seconds => 2), banned(3.5);
is_bad 'one that ends later than that', { 'banned without a ban' => 1 },
    event('clock', who => 'redis', step => -$SECOND, begin => 1.5, end => 1.51), change(1, 'ban', seconds => 2), banned(4.5);

is_good 'a ban whose answer is lost: both are right', fault(0.9, 1.5), unanswered_change(1, 'ban'), request(2), banned(2.1), request(5), banned(6);
is_good 'a lifting whose answer is lost: both are right', fault(1.9, 2.5), change(1, 'ban'), unanswered_change(2, 'lift'), request(3), banned(3.1);
is_bad 'one that was lost after another: not until the next one', { 'not banned' => 1 },
    fault(1.9, 2.5), change(1, 'ban'), unanswered_change(2, 'lift'), change(6, 'ban'), request(7);
is_good 'a call on its way overtakes the next one', fault(0.9, 2.5), change(0.5, 'lift'), unanswered_change(1, 'ban'), change(2, 'lift'), banned(3);
is_bad 'but not for long', { 'banned without a ban' => 1 }, fault(0.9, 2.5), unanswered_change(1, 'ban'), change(2, 'lift'), change(5, 'lift'), banned(6);

is_judged 'a ban that is lost', {}, { 'not banned: FLUSHALL' => 1 }, change(1, 'ban'), event('lost', %lost, begin => 2, end => 2.1), request(3);
is_bad 'a ban after that', { 'not banned' => 1 }, change(1, 'ban'), event('lost', %lost, begin => 2, end => 2.1), change(3, 'ban'), request(4);
is_bad 'FLUSHALL bans nobody', { 'banned without a ban' => 1 }, change(1, 'ban'), change(1.5, 'lift'), event('lost', %lost, begin => 2, end => 2.1), banned(3);
is_judged 'a failover brings a ban back', {}, { 'banned: failover' => 1 }, change(1, 'ban'), change(1.5, 'lift'),
    event('lost', %lost, why => 'failover', begin => 2, end => 2.1), banned(3);
is_judged 'a failover loses a ban', {}, { 'not banned: failover' => 1 }, change(1, 'ban'),
    event('lost', %lost, why => 'failover', begin => 2, end => 2.1), request(3);
is_bad 'but not one that came after it', { 'not banned' => 1 }, event('lost', %lost, why => 'failover', begin => 0.5, end => 0.9),
    change(1, 'ban'), request(3);
is_bad 'a full memory loses no ban', { 'not banned' => 1 }, @others, change(1, 'ban', zone => 'embedded'),
    event('lost', store => 'memory', server => 0, why => 'memory full', begin => 2, end => 2.1), request(3, %embedded);
is_judged 'a restart does', {}, { 'not banned: restart' => 1 }, @others, change(1, 'ban', zone => 'embedded'),
    event('lost', store => 'memory', server => 0, why => 'restart', begin => 2, end => 2.1), request(3, %embedded);
is_bad 'one of another server does not', { 'not banned' => 1 }, @both_servers, @others, change(1, 'ban', zone => 'embedded'),
    event('lost', store => 'memory', server => 1, why => 'restart', begin => 2, end => 2.1), request(3, %embedded);

is_good 'another server remembers a ban for a while', @both_servers, change(1, 'ban'), change(4, 'lift'), banned(5.2, server => 1, %remembered);
is_bad 'but not for longer', { 'banned without a ban' => 1 }, @both_servers, change(1, 'ban'), change(4, 'lift'),
    banned(5.4, server => 1, %remembered);
is_good 'as long as Redis cannot be asked it does', @both_servers, fault(4.5, 6), change(1, 'ban'), change(4, 'lift'),
    banned(5.4, server => 1, %remembered);
is_bad 'the server that lifts a ban does not remember it', { 'banned without a ban' => 1 }, change(1, 'ban'), change(4, 'lift'), banned(4.1, %remembered);
is_bad 'not even if Redis cannot be asked', { 'banned without a ban' => 1 }, fault(4.05, 6), change(1, 'ban'), change(4, 'lift'), banned(4.1, %remembered);
is_good 'a ban that is remembered too long on a machine that had no time', @both_servers, change(1, 'ban'), change(4, 'lift'),
    banned(5.4, server => 1, %remembered), event('starved', who => 'process 1', begin => 5, end => 5.4, us => 300_000);

# ---- overrides

my @five = map { request(5 + $_ / 100) } 0 .. 4;

is_good 'as many as an override allows', change(1, 'override', max => 5), @five;
is_bad 'one more than an override allows', { 'over max' => 1 }, change(1, 'override', max => 4), @five;
is_bad 'one more than a lower one allows', { 'over max' => 1 }, change(1, 'override', max => 2), map { request(5 + $_ / 100) } 0 .. 2;
is_good 'what another client is allowed', change(1, 'override', max => 2, key => 'other'), map { request(5 + $_ / 100) } 0 .. 2;
is_bad 'what another client is allowed in its place', { 'over max' => 2 }, change(1, 'override', max => 5, key => 'other'), @five;
is_good 'an override that begins meanwhile', change(5.02, 'override', max => 1), map { request(5 + $_ / 100) } 0 .. 2;
is_good 'an override that ends meanwhile', change(1, 'override', max => 2), change(5.01, 'own max'), map { request(5 + $_ / 100) } 0 .. 2;
is_bad 'too many after it was lifted', { 'over max' => 2 }, change(1, 'override', max => 5), change(2, 'own max'), @five;
is_bad 'too many after it was over', { 'over max' => 2 }, change(1, 'override', max => 5, seconds => 2), @five;
is_bad 'too many before it is over', { 'over max' => 1 }, change(1, 'override', max => 2, seconds => 9), map { request(5 + $_ / 100) } 0 .. 2;
is_good 'one whose answer is lost: both are right', fault(0.9, 1.5), unanswered_change(1, 'override', max => 5), @five;
is_bad 'but no more than that', { 'over max' => 1 }, fault(0.9, 1.5), unanswered_change(1, 'override', max => 4), @five;
is_good 'a lower one that is lost', event('lost', %lost, begin => 2, end => 2.1), change(1, 'override', max => 2), map { request(5 + $_ / 100) } 0 .. 2;
is_bad 'one more than an override allows in the embedded store', { 'over max' => 1 }, @others,
    change(1, 'override', max => 2, zone => 'embedded'), map { request(5 + $_ / 100, %embedded) } 0 .. 2;
is_good 'refused in a window that a lower one has made full', change(1, 'override', max => 2), request(5), request(5.1), refused(5.2);
is_bad 'refused with room in a window that a higher one has made larger', { 'refused with room' => 1 },
    change(1, 'override', max => 4), map({ request(5 + $_ / 100) } 0 .. 2), refused(5.2);
is_good 'refused by memory of a lower one', @both_servers, change(1, 'override', max => 2), request(5), request(5.1), change(5.2, 'own max'),
    refused(5.3, server => 1, %remembered);
is_bad 'refused by Redis, which knows better', { 'refused with room' => 1 }, @both_servers, change(1, 'override', max => 2),
    request(5), request(5.1), change(5.2, 'own max'), refused(5.3, server => 1);

# ---- answers to operators

is_bad 'a server error for an operator', { 'change answered wrongly' => 1 }, request(0), change(1, 'ban', status => 500, told => '');
is_bad 'an operator who is misunderstood', { 'change answered wrongly' => 1 }, request(0), change(1, 'ban', status => 400, told => '');
is_good 'a store that cannot be asked for an operator', request(0), fault(0.5, 1), unanswered_change(1.5, 'ban');
is_bad 'one that could be', { 'change failed' => 1 }, request(0), fault(0.5, 1), unanswered_change(4.5, 'ban');
is_good 'one that could not, on a machine that had no time', request(0), unanswered_change(4.5, 'ban'),
    event('starved', who => 'process 1', begin => 4.2, end => 4.5, us => 300_000);
is_bad 'an embedded store that cannot be asked', { 'change failed' => 1 }, request(0), fault(0.5, 2), unanswered_change(1, 'ban', zone => 'embedded');
is_bad 'an operator without an answer', { 'change unanswered' => 1 }, request(0), change(1, 'ban', status => 0, told => undef);
is_good 'one whose worker was killed', request(0), change(1, 'ban', status => 0, told => undef),
    event('worker_killed', server => 0, pid => 7, at => 1.0005);
is_bad 'one who is told that nothing was changed', { 'change not made' => 1 }, request(0),
    change(1, 'ban', told => { ban => JSON::PP::false, max => undef });
is_bad 'one who is told of another max', { 'change not made' => 1 }, request(0),
    change(1, 'override', max => 5, told => { ban => JSON::PP::false, max => 6 });
is_bad 'one who waits for long', { 'change answered too late' => 1 }, request(0), fault(0.5, 9), change(1, 'ban', end => 4.1);
is_good 'one who waits for long on a machine that had no time', request(0), fault(0.5, 9), change(1, 'ban', end => 4.1),
    event('starved', who => 'process 1', begin => 2, end => 4, us => 300_000);

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
