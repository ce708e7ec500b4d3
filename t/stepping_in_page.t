# The live page's part about one client: where it stands is shown as the server says it,
# changes are made only where they are allowed and confirmed, and whatever a key is made of
# stays text.

use strict;
use utf8;
use warnings;
use lib 't/lib';

use JSON::PP ();
use SlidingLimit::Browser qw(browser has_no_overflow is_quiet page_when start_browser);
use SlidingLimit::Servers qw(get start_nginx start_redis);
use Test::More;
use Time::HiRes qw(sleep time);

start_browser('t/js/stepping_in_page.mjs');

my $TRUE = JSON::PP::true;
my $FALSE = JSON::PP::false;
my $NBSP = "\x{a0}";

# ---- What a server could answer, and what the page makes of it

my $nginx = start_nginx(<<'END');
    location = /limits { sliding_limit_metrics keys=plain; }
    location = /login { sliding_limit zone=login max=10 window=60s key=$arg_key fallback=none; empty_gif; }
    location = /api { sliding_limit zone=api max=100 window=1d key=$arg_key fallback=none; empty_gif; }
END
my $url = 'http://127.0.0.1:' . $nginx->port . '/limits';

my $UUID = '01a1e1f6-bc22-7184-818c-6eee8752ecc7';

# A request that was counted so many seconds ago.
sub counted {
    my ($ago, %with) = @_;
    return { time => time - $ago, id => $UUID, cost => 1, %with };
}

sub standing {
    my (%with) = @_;
    my %standing = (
        zone => 'login', key => 'alice', masked => 'al...#1a2b3c4d', stored_as => 'rate_limit:login:alice',
        store => 'redis', server => '127.0.0.1:6379', now => time, window => 60, max => 10, unit => 'requests', used => 3,
        remaining => 7, reset => 12.3, ban => undef, override => undef, counted => 3,
        requests => [counted(2), counted(15), counted(47.7)], %with,
    );
    return { json => \%standing };
}

sub error { my ($status, $words) = @_; return { status => $status, json => { error => $words } } }

# Opens the page with an answer about every client.
sub open_with {
    my ($answer, %with) = @_;
    my $numbers = { admin => $TRUE, %{ delete $with{numbers} // {} } };
    return browser('open', url => $url, answer => $answer, numbers => $numbers, %with);
}

sub asked { return @{ browser('asked')->{asked} } }

sub fits {
    my ($page) = @_;
    has_no_overflow($page);
    is_deeply $page->{tooWide}, [], 'and nothing is wider than what it stands in';
}

subtest 'a search says where the client stands' => sub {
    my $page = open_with(standing());
    is_deeply $page->{zones}, ['login', 'api'], 'the zones are those that there are';
    is $page->{standing}, $FALSE, 'nobody is looked at';
    is $page->{unlabelled}, 0, 'every field has a label';
    is_deeply [asked()], [], 'and nothing was asked';

    $page = browser('search', zone => 'login', client => 'alice');
    my $standing = $page->{standing};
    is $standing->{key}, 'alice';
    is $standing->{zone}, "in zone login, window 60${NBSP}s";
    is $standing->{verdict}, 'Within its limit: 7 of 10 are left.';
    is $standing->{look}, 'good';
    like $page->{announced}, qr/^Client "alice", zone "login"\. Within its limit/, 'it is read out';
    is_deeply [map { [$_, $standing->{facts}{$_}] } sort keys %{ $standing->{facts} }], [
        ['Ban', 'none'], ['More room', "in 13${NBSP}s"], ['Override', 'none'], ['Remaining', '7'], ['Used', '3 of 10'],
    ], 'in numbers';
    is $standing->{about}{'In the lists as'}, 'al...#1a2b3c4d';
    is $standing->{about}{'Stored as'}, 'rate_limit:login:alice';
    like $standing->{about}{'Answered by'}, qr/^redis 127\.0\.0\.1:6379, \d\d:\d\d:\d\d$/;
    is $page->{focus}, 'search-client', 'Enter asks again';
    is +(asked())[0]{query}, '?zone=login&key=alice';
    is_quiet($url, 'zone=login&key=alice');

    browser('answer', answer => standing(key => 'bob', used => 10, remaining => 0));
    $page = browser('search', zone => 'login', client => 'bob & co+1');
    like +(grep { /bob/ } map { $_->{query} } asked())[0], qr/^\?zone=login&key=bob%20%26%20co%2B1$/,
        'whatever is in a key reaches the server';
    $page = page_when { $_->{standing} && $_->{standing}{key} eq 'bob & co+1' } 'another one is shown';
    is $page->{standing}{verdict}, 'At its limit, 10 of 10: what comes now is refused.';
    is $page->{standing}{look}, 'bad';

    browser('answer', answer => standing(used => 0, remaining => 10, reset => undef, counted => 0, requests => [],
        key => 'carl '));
    browser('search', zone => 'login', client => 'carl ');
    $page = page_when { $_->{standing} && $_->{standing}{verdict} =~ /^Nothing is counted/ } 'nobody has seen this one';
    like $page->{standing}{verdict}, qr/ or its key is another\. This one begins or ends with a blank\.$/,
        'which may be a mistake';
    is $page->{standing}{facts}{'More room'}, '–, nothing is counted';
    is $page->{standing}{timeline}, "In the last 60${NBSP}s nothing was counted.";

    is browser('click', name => 'Close')->{standing}, $FALSE, 'it can be closed';
    browser('asked');
    sleep 5;
    is_deeply [asked()], [], 'and nothing more is asked';
    is browser('read')->{focus}, 'search-client', 'the next search can begin';
};

subtest 'what a limit counts is said unless it is requests' => sub {
    open_with(standing(unit => 'tokens', max => 200000, used => 1500, remaining => 198500));
    my $page = browser('search', zone => 'login', client => 'alice');
    is $page->{standing}{facts}{Used}, "1,500 of 200,000${NBSP}tokens";
    is $page->{standing}{verdict}, "Within its limit: 198,500 of 200,000${NBSP}tokens are left.";

    browser('answer', answer => standing(unit => 'tokens', max => 'varies', used => 1500, remaining => undef));
    $page = page_when { $_->{standing}{facts}{Remaining} eq '–' } 'a max that varies';
    is $page->{standing}{facts}{Used}, "1,500${NBSP}tokens, max varies";
};

subtest 'bans, overrides, varying limits, this nginx' => sub {
    my $now = time;
    open_with(standing(ban => { until => $now + 890 }, used => 10, remaining => 0));
    my $page = browser('search', zone => 'login', client => 'alice');
    like $page->{standing}{verdict}, qr/^Banned until \d\d:\d\d:\d\d: every request is refused\.$/;
    like $page->{standing}{facts}{Ban}, qr/^for 14${NBSP}min \d\d?${NBSP}s, until \d\d:\d\d:\d\d$/;
    is $page->{standing}{look}, 'bad';

    browser('answer', answer => standing(override => { max => 5000, until => $now + 86000 }, used => 1234,
        remaining => 3766));
    $page = page_when { $_->{standing}{facts}{Used} =~ /^1,234/ } 'an override';
    is $page->{standing}{facts}{Used}, '1,234 of 5,000, instead of 10';
    is $page->{standing}{facts}{Remaining}, '3,766';
    like $page->{standing}{facts}{Override}, qr/^max 5,000, until \d+ \w{3}, \d\d:\d\d$/;

    browser('answer', answer => standing(used => 30, remaining => 0));
    $page = page_when { $_->{standing}{facts}{Used} eq '30 of 10' } 'more than is allowed, after an override';
    like $page->{standing}{facts}{'More room'}, qr/^after /, 'what leaves first is not enough';

    browser('answer', answer => standing(max => 'varies', remaining => undef, store => 'memory', server => '',
        stored_as => ''));
    $page = page_when { $_->{standing}{facts}{Remaining} eq '–' } 'a max that varies';
    is $page->{standing}{facts}{Used}, '3, max varies';
    is $page->{standing}{verdict}, '3 used; how much it may use varies from request to request.';
    like $page->{standing}{about}{'Answered by'}, qr/^this nginx, /;
    ok !exists $page->{standing}{about}{'Stored as'}, 'memory has no names for it';
    is_quiet($url, 'zone=login&key=alice');
};

subtest 'the timeline' => sub {
    open_with(standing(used => 8, counted => 8, requests => [
        counted(0), counted(15, cost => 4), counted(30, cost => 2), counted(60),
    ]));
    my $page = browser('search', zone => 'login', client => 'alice');
    my @ticks = @{ $page->{standing}{ticks} };
    is join(' ', map { $_->{look} } @ticks), 'passed passed passed passed', 'one for each request';
    my @place = (1, 0.75, 0.5, 0);
    ok abs($ticks[$_]{at} - $place[$_]) < 0.05, "$_: where its time is" for 0 .. 3;
    cmp_ok $ticks[1]{height}, '>', 3 * $ticks[0]{height}, 'what costs more is higher';
    like $page->{standing}{timeline},
        qr/^Counted in the last 60${NBSP}s: 4 requests; the newest .* ago, the oldest .* ago\.$/;
    is $page->{standing}{legend}, 'counted|the taller, the more it cost';

    is $page->{standing}{requests}, undef, 'the table is closed';
    is $page->{standing}{summary}, '4 counted requests';
    my @rows = @{ browser('openRequests')->{standing}{requests} };
    is_deeply [map { [@$_{qw(Id Cost)}] } @rows], [[$UUID, 1], [$UUID, 4], [$UUID, 2], [$UUID, 1]];
    like $rows[0]{Time}, qr/^\d\d:\d\d:\d\d\.\d{3}$/;

    browser('answer', answer => standing(used => 500, counted => 500, max => 1000,
        requests => [map { counted($_ / 2, id => '') } 1 .. 100]));
    $page = page_when { @{ $_->{standing}{ticks} } == 100 } 'the newest hundred';
    is $page->{standing}{summary}, 'The newest 100 counted requests';
    like $page->{standing}{legend}, qr/^counted\|the newest 100$/;
    is join(' ', sort keys %{ $page->{standing}{requests}[0] }), 'Cost Time', 'no column for what is not there';
    is_quiet($url, 'zone=login&key=alice');
};

subtest 'the result is kept up to date, and counts down' => sub {
    open_with(standing(reset => 40));
    browser('search', zone => 'login', client => 'alice');
    browser('answer', answer => standing(used => 4, remaining => 6, reset => 30));
    my $page = page_when { $_->{standing}{facts}{Used} eq '4 of 10' } 'news come by themselves';
    my ($before) = $page->{standing}{facts}{'More room'} =~ /(\d+)/;
    browser('answer', answer => error(503, 'redis "default" cannot be asked: it is down'));
    $page = page_when { defined $_->{error} } 'the store fails';
    is $page->{error}, 'redis "default" cannot be asked: it is down', 'in its own words';
    is $page->{standing}{facts}{Used}, '4 of 10', 'what is known stays';
    page_when { ($_->{standing}{facts}{'More room'} =~ /(\d+)/)[0] < $before - 2 } 'and time passes';
    browser('answer', answer => standing(used => 5));
    $page = page_when { !defined $_->{error} } 'it is back';
    is $page->{standing}{facts}{Used}, '5 of 10';
};

subtest 'what the server objects to' => sub {
    my %answers = (
        'no zone "<b>x</b>"; there are login, api' => error(400, 'no zone "<b>x</b>"; there are login, api'),
        'The server answered 403.' => { status => 403, text => '<html>403 Forbidden</html>' },
        'only GET and HEAD are allowed here' => error(405, 'only GET and HEAD are allowed here'),
        'the body is longer than 1024 bytes' => error(413, 'the body is longer than 1024 bytes'),
        'no JSON' => error(415, 'no JSON'),
        'The server answered 200, but not with JSON.' => { status => 200, text => '<html>' },
        'redis: no reply within the timeout' => error(503, 'redis: no reply within the timeout'),
        'turned \u{202e}around' => error(400, "turned \x{202e}around"),
    );
    open_with(standing());
    for my $words (sort keys %answers) {
        browser('click', name => 'Close') if browser('read')->{standing};
        browser('answer', answer => $answers{$words});
        my $page = browser('search', zone => 'api', client => 'x');
        $page = page_when { ($_->{error} // '') eq $words } $words;
        is $page->{standing}, $FALSE, 'nothing is shown in its place';
        is $page->{intruders}, 0;
    }
    browser('answer', answer => error(400, 'no'));
    browser('search', zone => 'api', client => 'x');
    page_when { ($_->{error} // '') eq 'no' } 'what is wrong';
    browser('asked');
    sleep 5;
    is_deeply [asked()], [], 'is not asked again and again';
};

subtest 'without admin nothing offers changes' => sub {
    for my $admin ($FALSE, undef) {
        open_with(standing(ban => { until => time + 60 }, override => { max => 5, until => time + 60 }),
            numbers => { admin => $admin });
        my $page = browser('search', zone => 'login', client => 'alice');
        is $page->{changes}, 0, 'no button is there';
        is_deeply $page->{buttons}, ['Look', 'Bans and overrides', 'Close'];
    }
};

# What is asked about clients but for looks.
sub changes { return grep { $_->{method} ne 'GET' } asked() }

subtest 'a change is made that was asked for while the page may not look any more' => sub {
    open_with(standing());
    browser('search', zone => 'login', client => 'alice');
    browser('click', name => 'Ban…');
    browser('answer', answer => error(403, 'not now'));
    page_when { ($_->{error} // '') ne '' } 'the page is refused a look';
    browser('answer', answer => standing(ban => { until => time + 900 }));
    browser('click', name => 'Ban');
    my $page = page_when { !defined $_->{dialog} } 'done';
    like $page->{told}, qr/^Client "alice" is refused by zone "login" until /;
    ok $page->{standing}, 'and the client is shown again';
};

subtest 'changes are confirmed first' => sub {
    open_with(standing());
    my $page = browser('search', zone => 'login', client => 'alice');
    is_deeply $page->{buttons}, ['Look', 'Bans and overrides', 'Close', 'Reset…', 'Ban…', 'Give more…'],
        'nothing can be lifted yet';

    for my $cancel ('Cancel', 'Escape') {
        browser('click', name => 'Ban…');
        $page = $cancel eq 'Escape' ? browser('keys', keys => ['Escape']) : browser('click', name => 'Cancel');
        is $page->{dialog}, undef, "$cancel: the question is gone";
        is $page->{focus}, 'Ban…', 'the focus is where it was';
    }
    is_deeply [changes()], [], 'and nothing has changed';

    $page = browser('click', name => 'Reset…');
    is $page->{dialog}{words}, 'All that zone "login" has counted for client "alice" will be forgotten on all servers: '
        . '3 of 10 used now, none afterwards.';
    browser('answer', answer => standing(used => 0, remaining => 10, reset => undef, counted => 0, requests => []));
    browser('click', name => 'Reset');
    $page = page_when { !defined $_->{dialog} } 'done';
    is $page->{told}, 'Zone "login" has forgotten what it had counted for client "alice".';
    is $page->{standing}{facts}{Used}, '0 of 10', 'and this is where the client stands then';
    is_deeply [changes()], [{ method => 'DELETE', query => '?zone=login&key=alice', type => undef, with => 'fetch',
        body => undef }];

    $page = browser('click', name => 'Ban…');
    is $page->{dialog}{words}, 'Client "alice" will be refused by zone "login" on all servers for 15 minutes, '
        . 'from its next request on. Nothing that was counted is lost.';
    like browser('fill', fields => [['1 day']])->{dialog}{words}, qr/ for 1 day, /;
    like browser('fill', fields => [['other'], ['Number', '3'], ['Unit', 'd']])->{dialog}{words}, qr/ for 3 days, /;
    browser('answer', answer => error(400, '"ban" must be from 1s to 366d'));
    browser('click', name => 'Ban');
    $page = page_when { $_->{dialog}{problem} ne '' } 'the server objects';
    is $page->{dialog}{problem}, '"ban" must be from 1s to 366d';
    browser('answer', answer => standing(ban => { until => time + 3 * 86400 }));
    browser('click', name => 'Ban');
    $page = page_when { !defined $_->{dialog} } 'and then does not';
    like $page->{told}, qr/^Client "alice" is refused by zone "login" until \d+ \w{3}, \d\d:\d\d\.$/;
    my @changes = changes();
    is @changes, 2;
    is_deeply $changes[1], { method => 'PUT', query => '?zone=login&key=alice', type => 'application/json',
        with => 'fetch', body => '{"ban":"3d"}' };

    like browser('click', name => 'Reset…')->{dialog}{words}, qr/ The ban ends, too\.$/;
    browser('keys', keys => ['Escape']);
    $page = browser('click', name => 'Lift ban…');
    like $page->{dialog}{words}, qr/^Client "alice" will no longer be banned by zone "login" on all servers, from its /;
    browser('answer', answer => standing());
    browser('click', name => 'Lift ban');
    $page = page_when { !defined $_->{dialog} } 'lifted';
    is $page->{told}, 'Client "alice" is no longer banned by zone "login".';
    page_when { $_->{focus} eq 'standing-title' } 'its button is gone: the focus is near';
    is +(changes())[0]{body}, '{"ban":null}';

    $page = browser('click', name => 'Give more…');
    is $page->{dialog}{words}, "Client \"alice\" may use 20 in any 60${NBSP}s in zone \"login\" for 15 minutes, "
        . 'on all servers, from its next request on, instead of 10. What was counted stays counted: 3.';
    browser('fill', fields => [['Max', '']]);
    browser('click', name => 'Give');
    is_deeply [changes()], [], 'without a number nothing is asked';
    browser('fill', fields => [['Max', '500'], ['1 day']]);
    browser('answer', answer => standing(override => { max => 500, until => time + 86400 }, remaining => 497));
    browser('click', name => 'Give');
    $page = page_when { !defined $_->{dialog} } 'given';
    like $page->{told}, qr/^Client "alice" has max 500 in zone "login" until /;
    is +(changes())[0]{body}, '{"max":500,"for":"1d"}';
    like browser('click', name => 'Lift override…')->{dialog}{words},
        qr/ will have the max of zone "login" again \(10 instead of 500\) on all servers, .* counted: 3 of 10\.$/;
    browser('answer', answer => standing(store => 'memory'));
    browser('click', name => 'Lift override');
    $page = page_when { !defined $_->{dialog} } 'and taken';
    is +(changes())[0]{body}, '{"max":null}';
    like browser('click', name => 'Ban…')->{dialog}{words}, qr/ on this server for /, 'memory is this server\'s';

    my @other = grep { !/status of 400/ } @{ browser('events')->{complaints} };
    is_deeply \@other, [], 'the browser has nothing else to complain of';
};

subtest 'by keyboard alone' => sub {
    open_with(standing());
    my $page = browser('keys', keys => ['Tab']);
    is $page->{focus}, 'search-zone', 'the search comes first';
    browser('keys', keys => ['Tab', 'alice', 'Enter']);
    page_when { $_->{standing} } 'searched';

    # through the buttons, and each shows that it has the focus
    my @way;
    for (1 .. 4) {
        $page = browser('keys', keys => ['Tab']);
        push @way, $page->{focus};
        ok $page->{hasOutline}, "$page->{focus}: can be seen";
    }
    is_deeply \@way, ['Look', 'list-rulings', 'close-standing', 'Reset…'], 'in their order';

    browser('keys', keys => ['Tab', 'Enter']);
    $page = page_when { defined $_->{dialog} } 'a question';
    $page = browser('keys', keys => ['ArrowRight']);
    like $page->{dialog}{words}, qr/ for 1 hour, /, 'arrows choose';
    browser('answer', answer => standing(ban => { until => time + 3600 }));
    browser('keys', keys => ['Enter']);
    $page = page_when { !defined $_->{dialog} } 'Enter confirms';
    is +(changes())[0]{body}, '{"ban":"1h"}';
    is $page->{focus}, 'Ban…';
};

subtest 'bans and overrides of a zone' => sub {
    my $now = time;
    my @first = (
        { key => 'alice', ban => { until => $now + 600 }, override => undef },
        { key => 'bob', ban => undef, override => { max => 500, until => $now + 90000 } },
    );
    open_with({ json => { zone => 'api', clients => [], cursor => '17' } });
    browser('answer', answer => { json => { zone => 'login', clients => \@first, cursor => '42 a' } });
    browser('click', name => 'Bans and overrides');
    my $page = page_when { defined $_->{rulings} } 'the list';
    is $page->{rulings}{title}, 'Bans and overrides in zone login';
    is $page->{focus}, 'rulings-title';
    is_deeply [map { [@$_{qw(Client Max)}] } @{ $page->{rulings}{rows} }], [['alice', '–'], ['bob', '500']];
    like $page->{rulings}{rows}[0]{'Banned until'}, qr/^\d\d:\d\d:\d\d$/;
    like $page->{rulings}{rows}[1]{Until}, qr/^\d+ \w{3}, \d\d:\d\d$/;
    is $page->{rulings}{note}, '2 clients so far.';
    is_deeply [map { $_->{query} } asked()], ['?zone=login&overrides'];

    browser('answer', answer => { json => { zone => 'login',
        clients => [{ key => undef, ban => { until => $now + 60 }, override => undef },
            { key => '#' . 'a' x 64, ban => { until => $now + 60 }, override => undef }], cursor => undef } });
    browser('click', name => 'More');
    $page = page_when { @{ $_->{rulings}{rows} } == 4 } 'more of them';
    is_deeply [map { $_->{query} } asked()], ['?zone=login&overrides&cursor=42%20a'];
    is $page->{rulings}{rows}[2]{Client}, 'not shown (keys=off)';
    ok !$page->{rulings}{hasMore}, 'these are all';
    is $page->{rulings}{note}, '4 clients.';

    browser('answer', answer => standing(key => 'bob'));
    browser('look', at => 'bob');
    $page = page_when { $_->{standing} } 'one of them can be looked at';
    is $page->{standing}{key}, 'bob';
    is $page->{client}, 'bob';

    browser('answer', answer => { json => { zone => 'login', clients => [], cursor => undef } });
    browser('click', name => 'Bans and overrides');
    $page = page_when { @{ $_->{rulings}{rows} } == 0 } 'nobody';
    is $page->{rulings}{note}, 'Nobody is banned, and nobody has an override.';
};

subtest 'the lists of the page show the same client' => sub {
    my @clients = map { +{ key => $_, count => 3, missed_at_most => 0, first => time - 60, last => time } }
        'al...#1a2b3c4d', 'bo...#5e6f7a8b';
    open_with(standing(), numbers => { keys => 'masked' }, zone => { top_rejected => \@clients });
    is_deeply browser('read')->{marked}, [];
    my $page = browser('search', zone => 'login', client => 'alice');
    is_deeply $page->{marked}, ['al...#1a2b3c4d'], 'it is marked there';
    is_deeply browser('click', name => 'Close')->{marked}, [], 'as long as it is shown';

    open_with(standing(), zone => { top_rejected => [{ %{ $clients[0] }, key => 'alice' }] });
    browser('look', at => 'alice');
    $page = page_when { $_->{standing} } 'a key that is shown plainly can be looked at';
    is_deeply $page->{marked}, ['alice'];
    is $page->{focus}, 'standing-title';
};

subtest 'a link can name a client' => sub {
    open_with(standing(), url => "$url#zone=login&client=alice%20b");
    my $page = page_when { $_->{standing} } 'it is looked at';
    is $page->{client}, 'alice b';
    is $page->{pageZone}, 'login';
    is +(asked())[0]{query}, '?zone=login&key=alice%20b';
    browser('go', hash => '#zone=api&client=bob');
    $page = page_when { $_->{client} eq 'bob' && $_->{standing}{key} eq 'bob' } 'another one';
    is $page->{zone}, 'api';

    browser('search', zone => 'login', client => 'secret');
    page_when { $_->{standing} && $_->{standing}{key} eq 'secret' && $_->{pageZone} eq 'login' } 'who is searched for';
    unlike browser('read')->{address}, qr/secret|client/, 'does not come into the address by itself';
};

my %hostile = (
    image => q{<img src=x onerror="window.ran='image'">},
    script => q{"><script>window.ran='script'</script>},
    quotes => q{' " ` \\ ${window.ran='quotes'} &lt;&#60; \u003c},
    override => "invoice\x{202e}gnp.exe \x{5d0}\x{5d1}",
    lines => "a\nb\rc\x{2028}d\x{0}",
    long => 'x' x 4096,
    wide => ('M' x 59) . "\x{6f22}" x 1000,
);

for my $scheme (qw(light dark)) {
    subtest "hostile keys on a phone, $scheme" => sub {
        for my $name (sort keys %hostile) {
            my $key = $hostile{$name};
            my %client = (key => $key, ban => { until => time + 900 }, override => { max => 5000, until => time + 9000 });
            open_with(standing(%client, masked => $key, stored_as => "rate_limit:login:$key", server => $key,
                    requests => [map { counted($_, id => $key) } 1 .. 3]),
                width => 360, height => 740, scheme => $scheme);
            my $page = browser('search', zone => 'login', client => $key);
            fits(browser('openRequests'));
            is_deeply browser('faint'), [], 'all text has enough contrast';

            for my $change (qw(Reset Ban), 'Lift ban', 'Give more', 'Lift override') {
                $page = browser('click', name => "$change…");
                fits($page);
                is $page->{intruders}, 0, "$name, $change: nothing became an element";
                is_deeply browser('faint'), [], 'and it can be read' if $name eq 'image';
                browser('keys', keys => ['Escape']);
            }

            browser('answer', answer => { json => { zone => 'login', clients => [\%client], cursor => 'x' } });
            browser('click', name => 'Bans and overrides');
            $page = page_when { defined $_->{rulings} } "$name, in the list";
            fits($page);
            is $page->{intruders}, 0, 'nothing became an element';
            is $page->{ran}, undef, 'and nothing ran';
            is_deeply browser('faint'), [], 'and it can be read' if $name eq 'image';
            last if $scheme eq 'dark' && $name eq 'lines';
        }
    };
}

is $nginx->bad_lines, '', 'nothing alarming in the log';

# ---- With a server that does what it is told

my $redis = start_redis();
my $real = start_nginx(<<'END', workers => 2, http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s;');
    sliding_limit_deny_cache off;
    location = /limits { sliding_limit_metrics keys=plain admin; }
    location = /masked { sliding_limit_metrics; }
    location = /guarded { sliding_limit_metrics admin; limit_except GET HEAD { deny all; } }
    location = /redis { sliding_limit zone=redis max=3 window=1h key=$arg_key fallback=none; empty_gif; }
    location = /memory { sliding_limit zone=memory max=3 window=1h key=$arg_key fallback=none store=memory; empty_gif; }
END
my $real_url = 'http://127.0.0.1:' . $real->port;

# What requests of this client are answered with.
sub visit {
    my ($path, $times) = @_;
    return join ' ', map { (get($real->port, $path))[0] } 1 .. $times;
}

# Has a change made on the page, with these fields filled in.
sub change {
    my ($name, $confirm, @fields) = @_;
    browser('click', name => "$name…");
    browser('fill', fields => \@fields) if @fields;
    browser('click', name => $confirm);
    return page_when { !defined $_->{dialog} } "$name: done";
}

for my $store (qw(redis memory)) {
    subtest "looking and stepping in, counted in $store" => sub {
        is visit("/$store?key=alice", 5), '200 200 200 429 429', 'a client is at its limit';

        browser('open', url => "$real_url/limits");
        my $page = browser('search', zone => $store, client => 'alice');
        is $page->{standing}{facts}{Used}, '3 of 3';
        like $page->{standing}{facts}{'More room'}, qr/^in (?:1${NBSP}h|59${NBSP}min)/;
        is @{ $page->{standing}{ticks} }, 3, 'one tick each';
        is $page->{standing}{look}, 'bad';
        $page = page_when { @{ $_->{marked} } == 2 } 'both lists have it';
        my %about = %{ $page->{standing}{about} };
        like $about{'Answered by'}, $store eq 'redis' ? qr/^redis 127\.0\.0\.1:\d+, / : qr/^this nginx, /;
        my @ids = map { $_->{Id} // '' } @{ browser('openRequests')->{standing}{requests} };
        is scalar(grep { $store eq 'redis' ? /^[-0-9a-f]{36}$/ : $_ eq '' } @ids), 3, 'which requests these were';

        $page = change('Give more', 'Give', ['Max', '5'], ['1 hour']);
        is $page->{standing}{facts}{Used}, '3 of 5, instead of 3';
        is visit("/$store?key=alice", 3), '200 200 429', 'two more pass';
        page_when { $_->{standing}{facts}{Used} =~ /^5 of 5/ } 'the page sees them';

        change('Ban', 'Ban');
        change('Reset', 'Reset');
        $page = browser('read');
        is $page->{standing}{facts}{Ban}, 'none', 'a reset ends a ban';
        like $page->{standing}{facts}{Override}, qr/^max 5, /, 'but no override';
        is visit("/$store?key=alice", 1), '200', 'and lets the client in';

        change('Ban', 'Ban', ['other'], ['Number', '2'], ['Unit', 'd']);
        isnt visit("/$store?key=alice", 1), '200', 'banned';
        is visit("/$store?key=bob", 1), '200', 'but nobody else';
        browser('click', name => 'Bans and overrides');
        $page = page_when { $_->{rulings} && @{ $_->{rulings}{rows} } } 'the list has it';
        is $page->{rulings}{rows}[0]{Client}, 'alice';
        is $page->{rulings}{rows}[0]{Max}, '5';

        change('Lift ban', 'Lift ban');
        is visit("/$store?key=alice", 1), '200', 'no longer';
        change('Lift override', 'Lift override');
        $page = page_when { $_->{rulings} && !@{ $_->{rulings}{rows} } } 'nothing is left in the list';
        is $page->{standing}{facts}{Used}, '2 of 3';
        my $complaints = browser('events')->{complaints};
        is_deeply $complaints, [], 'the browser has nothing to complain of';
    };
}

subtest 'whatever a key is made of, the server knows the same one' => sub {
    browser('open', url => "$real_url/limits");
    for my $name (sort grep { $_ ne 'lines' && $_ ne 'wide' } keys %hostile) {
        browser('click', name => 'Close') if browser('read')->{standing};
        browser('search', zone => 'memory', client => $hostile{$name});
        my $page = page_when { $_->{standing} } $name;
        like $page->{standing}{verdict}, qr/^Nothing is counted/;
        is $page->{error}, undef;
        change('Ban', 'Ban');
        like $page->{ran} // '', qr/^$/, 'nothing ran';
    }
};

subtest 'what the server does not allow' => sub {
    my $page = browser('open', url => "$real_url/masked");
    $page = browser('search', zone => 'redis', client => 'alice');
    is $page->{changes}, 0, 'no changes without admin';
    is_deeply $page->{marked}, [($page->{standing}{about}{'In the lists as'}) x 2], 'found by its masked form';

    browser('open', url => "$real_url/guarded");
    browser('search', zone => 'redis', client => 'alice');
    browser('click', name => 'Reset…');
    browser('click', name => 'Reset');
    $page = page_when { $_->{dialog}{problem} ne '' } 'limit_except keeps changes from being made';
    is $page->{dialog}{problem}, 'The server answered 403.';
    is $page->{standing}{facts}{Used}, '2 of 3', 'all is as it was';

    browser('open', url => "$real_url/limits");
    $redis->stop;
    browser('search', zone => 'redis', client => 'alice');
    $page = page_when { defined $_->{error} } 'Redis is down';
    like $page->{error}, qr/^the store "default" gave no answer, .*down/, 'in the words of the server';
    $redis->start;
    page_when { $_->{standing} } 'it is back, and the page has gone on asking';
};

done_testing;
