# The live page of sliding_limit_metrics in a real browser: what it shows is what
# happened, it keeps itself up to date, and whatever clients send stays text.

use strict;
use utf8;
use warnings;
use lib 't/lib';

use JSON::PP ();
use SlidingLimit::Browser qw(browser has_no_overflow is_quiet page_when start_browser);
use SlidingLimit::Servers qw(get request start_nginx start_redis);
use Sys::Hostname qw(hostname);
use Test::More;

start_browser('t/js/metrics_page.mjs');

sub zone_of {
    my ($page, $name) = @_;
    my ($zone) = grep { $_->{Zone} eq $name } @{ $page->{zones} };
    return $zone || {};
}

my $redis = start_redis();
my $address = 'redis://127.0.0.1:' . $redis->port;
my $use_redis = "sliding_limit_redis $address timeout=2s connect_timeout=1s;";
my $nginx = start_nginx(<<'END', workers => 2, http => $use_redis);
    location = /limits { sliding_limit_metrics keys=plain; }
    location = /masked { sliding_limit_metrics; }
    location = /off { sliding_limit_metrics keys=off; }

    location = /hostile {
        sliding_limit zone=hostile max=1000 window=60s key=$http_x_key store=memory fallback=none if=$http_x_key;
        sliding_limit zone=hostile max=2 window=60s key=none store=memory;
        empty_gif;
    }
    location = /login {
        sliding_limit zone=login max=5 window=1h key=$arg_key fallback=none;
        empty_gif;
    }
END
my $url = 'http://127.0.0.1:' . $nginx->port;

sub login {
    my ($key, $times) = @_;
    return join ' ', map { (get($nginx->port, "/login?key=$key"))[0] } 1 .. $times;
}

subtest 'before any request' => sub {
    my $page = browser('open', url => "$url/limits");

    like $page->{health}, qr/^All well: /;
    is $page->{healthLook}, 'good';
    is $page->{outage}, undef;
    is $page->{heading}, 'Rate limits on ' . lc hostname(), 'it says which host this is';
    is $page->{title}, $page->{heading};
    like $page->{about}, qr/counting since .* nginx \d+\.\d+\.\d+ · hiredis /;
    is join(' ', map { $_->{Zone} } @{ $page->{zones} }), 'hostile login', 'all zones are there';
    is zone_of($page, 'login')->{$_}, '0', "$_ 0" for qw(Passed Refused);
    is_deeply $page->{topRefused}, [];
    is $page->{topRefusedNote}, 'Nobody has been refused yet.';
    is $page->{chartLabels}[0], 'Requests in the last hour: 0 passed, 0 refused, 0 failed.';
    like $page->{memory}, qr/^\d+\x{a0}KiB of [\d.]+\x{a0}MiB used, [\d.]+\x{a0}MiB free; 0 clients$/;
    is $page->{headers}, 0, 'every table header says what it is the header of';
    is_deeply [map { [@$_{qw(Store Address State)}] } @{ $page->{stores} }],
        [['default', $address, 'up'], ['memory', 'this nginx', 'up']], 'where counts live';
    is browser('choose', zone => 'login')->{zoneAbout}, "max 5, window 1\x{a0}h, counted in redis default";
    is browser('choose', zone => 'hostile')->{zoneAbout}, "max varies, window 60\x{a0}s, counted in this nginx";

    for (['varies', "varies, in\x{a0}tokens"], [200000, "200,000\x{a0}tokens"]) {
        my ($max, $said) = @$_;
        browser('pretend', zone => { max => $max, unit => 'tokens' });
        my $shown = page_when { $_->{zoneAbout} =~ /^max \Q$said\E,/ } "max $said";
        is $shown->{zoneAbout}, "max $said, window 60\x{a0}s, counted in this nginx";
    }
    browser('pretend', zone => {});
    has_no_overflow($page);
    is_quiet("$url/limits");
};

subtest 'the numbers are those of what happened, and come by themselves' => sub {
    browser('open', url => "$url/limits");
    browser('choose', zone => 'login');
    is login('anna', 7), '200 200 200 200 200 429 429';

    my $page = page_when { zone_of($_, 'login')->{Refused} eq '2' } 'the refusals appear';
    is zone_of($page, 'login')->{Passed}, '5', 'and what has passed';
    is zone_of($page, 'login')->{'Refused share'}, "28.6\x{a0}%";
    like $page->{chartLabels}[0],
        qr/^Requests in the last hour: 5 passed, 2 refused, 0 failed; peak \d\d:\d\d, \d requests?\.$/;
    like $page->{chartLabels}[1], qr/; peak \d\d:\d\d, 1 client\.$/;
    is_deeply [map { [@$_{qw(Client Refused)}] } @{ $page->{topRefused} }], [['anna', '2']];
    is_deeply [map { [@$_{qw(Client Requests)}] } @{ $page->{topClients} }], [['anna', '7']];
    is $page->{foundUsed}{words} =~ tr/\x{a0}/ /r,
        '50 % of requests find less than 70 % of max used (4 of 5); 28.6 % are refused.', 'what they found';
    my ($store) = grep { $_->{Store} eq 'default' } @{ $page->{stores} };
    is $store->{State}, 'up';
    is $store->{'Without an answer'}, 'none';
    like $store->{$_}, qr/^[\d.]+\x{a0}(?:µs|ms)$/, "$_ of Redis" for qw(p50 p99);

    # what the visitor is at stays
    my $held = browser('hold', zone => 'login');
    is $held->{selection}, 'anna';
    is login('bert', 6), '200 200 200 200 200 429';
    login('anna', 1) for 1 .. 2;
    $page = page_when { zone_of($_, 'login')->{Refused} eq '5' } 'more of them appear, without a reload';
    is zone_of($page, 'login')->{Passed}, '10';
    is_deeply [map { $_->{Client} } @{ $page->{topRefused} }], ['anna', 'bert'], 'the one refused most often first';
    is $page->{focus}, 'login', 'the focus stays where it was';
    is $page->{selection}, 'anna', 'and so does the selection';
    is_quiet("$url/limits");
};

subtest 'the charts answer to mouse and keys' => sub {
    browser('choose', range => '7d');
    my $page = browser('hover');
    like $page->{tooltip}[0], qr/^\w{3} \d\d:\d\d, so far$/, 'the hour that is running';
    is $page->{readout}, '', 'is not read out with every move of the mouse';
    is browser('leave')->{tooltip}, undef, 'gone with the mouse';

    # the running hour, and the one before if it has just begun
    my ($passed, $refused) = (0, 0);
    for my $keys (['End'], ['ArrowLeft']) {
        $page = browser('keys', keys => $keys);
        like $page->{readout}, qr/^\w{3} \d\d:\d\d.*, passed \d+, refused \d+, failed 0, clients, about \d+, /;
        $page->{readout} =~ /passed (\d+), refused (\d+)/ and ($passed, $refused) = ($passed + $1, $refused + $2);
    }
    is "$passed $refused", '10 5', 'the hours have it all';
    is browser('keys', keys => ['Escape'])->{tooltip}, undef;

    like browser('choose', range => '6h')->{chartLabels}[0], qr/^Requests in the last 6 hours: 10 passed, 5 refused/;
    is browser('click', zone => 'hostile')->{zone}, 'hostile', 'the names in the table choose a zone';
    is_quiet("$url/limits");
};

# A zone as foundUsedWords() wants it. Those who are refused are so by `how`.
sub found {
    my ($max, $found, $how) = @_;
    my %requests = (rejected => 0, banned => 0, rejected_dry_run => 0, $how ? %$how : (rejected => $found->[10]));

    return { max => $max, found_used => $found, requests => \%requests };
}

# Whether the sentence is true: as many find less than it says, and are refused, as it says.
sub is_true {
    my ($words, $zone) = @_;
    my ($who, $tenths, $share) = $words =~ /^(.*) find less than (\d)0 % of max used(?: \(.*\))?; (.*) are refused\.$/
        or return 0;
    my ($all, $below) = (0, 0);

    for (0 .. 10) {
        $all += $zone->{found_used}[$_];
        $below += $zone->{found_used}[$_] if $_ < $tenths;
    }
    my $refused = 100 * $zone->{found_used}[10] / $all;
    my $is_refused = $share eq 'none' ? $refused == 0
        : $share eq 'less than 0.1 %' ? $refused > 0 && $refused < 0.1
        : $share eq 'more than 99.9 %' ? $refused < 100 && $refused > 99.9
        : $share =~ /^([\d.]+) %$/ && abs($refused - $1) < 0.0501;

    return $is_refused && ($who eq 'All requests' ? $below == $all
        : $who eq 'Not even half of all requests' ? $below < $all / 2
        : $who =~ /^(\d+) % of requests$/ && $below < $all && 100 * $below >= $1 * $all);
}

subtest 'how much of max requests find used, in words' => sub {
    browser('open', url => "$url/limits");

    my @cases = (
        ['', 100, [(0) x 11]],
        ['All requests find less than 10 % of max used (10 of 100); none are refused.', 100, [7, (0) x 10]],
        ['All requests find less than 10 % of max used; none are refused.', 'varies', [7, (0) x 10]],
        ['99 % of requests find less than 40 % of max used (40 of 100); 0.2 % are refused.',
            100, [500, 300, 100, 95, 2, 0, 0, 1, 0, 0, 2]],
        # exactly 99 %, and one less
        ['99 % of requests find less than 10 % of max used (100 of 1,000); none are refused.', 1000, [99, 1, (0) x 9]],
        ['All requests find less than 20 % of max used (200 of 1,000); none are refused.', 1000, [989, 11, (0) x 9]],
        # who is refused finds nothing less than anything
        ['99 % of requests find less than 10 % of max used; 1 % are refused.', 'varies', [99, (0) x 9, 1]],
        ['90 % of requests find less than 10 % of max used; 1.1 % are refused.', 'varies', [989, (0) x 9, 11]],
        ['50 % of requests find less than 10 % of max used; 10.1 % are refused.', 'varies', [899, (0) x 9, 101]],
        ['50 % of requests find less than 90 % of max used (9 of 10); none are refused.', 10, [(1) x 4, 0, 0, 0, 0, 2, 4, 0]],
        ['Not even half of all requests find less than 90 % of max used (9 of 10); 90 % are refused.', 10, [10, (0) x 9, 90]],
        ['Not even half of all requests find less than 90 % of max used (9 of 10); none are refused.', 10, [(0) x 9, 5, 0]],
        ['All requests are refused.', 0, [(0) x 10, 3]],
        # what is rounded is not nothing, and not all
        ['99 % of requests find less than 10 % of max used; less than 0.1 % are refused.', 'varies', [9999, (0) x 9, 1]],
        ['Not even half of all requests find less than 90 % of max used; more than 99.9 % are refused.',
            'varies', [1, (0) x 9, 9999]],
        # a bound of whole requests: less than 2.1 is less than 3
        ['All requests find less than 30 % of max used (3 of 7); none are refused.', 7, [1, 0, 1, (0) x 8]],
        ['All requests find less than 90 % of max used (900,000,000,000,000 of 1,000,000,000,000,000); none are refused.',
            1e15, [(0) x 8, 1, 0, 0]],
        # a dry run refuses nobody
        ['90 % of requests find less than 10 % of max used; 10 % would be refused.',
            'varies', [90, (0) x 9, 10], { rejected_dry_run => 10 }],
        ['90 % of requests find less than 10 % of max used; 10 % are refused, or would be but for a dry run.',
            'varies', [90, (0) x 9, 10], { rejected_dry_run => 9, banned => 1 }],
        ['All requests would be refused.', 1, [(0) x 10, 2], { rejected_dry_run => 2 }],
        ['90 % of requests find less than 10 % of max used; 10 % are refused.', 'varies', [90, (0) x 9, 10], { banned => 10 }],
    );
    my $said = browser('foundUsedWords', zones => [map { found(@$_[1 .. 3]) } @cases]);
    is $said->[$_] =~ tr/\x{a0}/ /r, $cases[$_][0], "@{ $cases[$_][2] } of $cases[$_][1]" for 0 .. $#cases;

    # any others, small and large
    srand 1;
    my @zones = map {
        my $size = 10 ** int rand 7;
        found(rand() < 0.5 ? 'varies' : 1 + int rand 1e6, [1 + int rand $size, map { rand() < 0.5 ? 0 : int rand $size } 1 .. 10]);
    } 1 .. 500;
    my $words = browser('foundUsedWords', zones => \@zones);
    my @wrong = grep { !is_true($words->[$_] =~ tr/\x{a0}/ /r, $zones[$_]) } 0 .. $#zones;
    is_deeply [map { "$words->[$_]: @{ $zones[$_]{found_used} }" } @wrong], [], 'true of any numbers';
};

subtest 'how much of max requests find used, as bars' => sub {
    for my $width (1280, 360) {
        is browser('open', url => "$url/limits#zone=hostile", width => $width)->{foundUsed}, undef,
            'nothing before there are requests';
        browser('pretend', zone => { found_used => [1000, 500, 0, 0, 1, 0, 0, 0, 0, 0, 250] });
        my $page = page_when { $_->{foundUsed} } "$width pixels wide";
        my @bars = @{ $page->{foundUsed}{bars} };

        is $page->{foundUsed}{words} =~ tr/\x{a0}/ /r,
            '50 % of requests find less than 10 % of max used; 14.3 % are refused.', 'the sentence';
        cmp_ok abs($bars[0] - 2 * $bars[1]), '<=', 1, 'half as many, half as high';
        cmp_ok abs($bars[0] - 4 * $bars[10]), '<=', 3, 'as are those who are refused';
        cmp_ok $bars[4], '>=', 1, 'a single one can be seen';
        is $bars[2], 0, 'and where there is none, there is no bar';
        is $page->{foundUsed}{titles}[4] =~ tr/\x{a0}/ /r, '40 to 50 %: 1 request', 'what a bar says to a mouse';
        is $page->{chartLabels}[2] =~ tr/\x{a0}/ /r, 'Requests by how much of max they found used: '
            . '0 to 10 %: 1,000 requests, 10 to 20 %: 500 requests, 40 to 50 %: 1 request, refused: 250 requests.',
            'and all of them to who does not see them';
        has_no_overflow($page);
        is_deeply browser('faint'), [], 'all text has enough contrast';
        is_quiet("$url/limits");
    }
};

# What the JSON of a zone says of settled requests; `costs`: how many in each bucket.
sub settled {
    my ($requests, $units, $costs) = @_;
    my ($below, %settled) = (0);

    @{ $settled{requests} }{qw(up down even stood)} = @$requests;
    @settled{qw(reserved entered given_back)} = @$units;
    my @buckets = map { [$_ ? 10 ** ($_ - 1) : 0, $below += $costs->[$_] // 0] } 0 .. 13;
    $settled{cost} = { buckets => \@buckets, count => $below + ($costs->[14] // 0),
        sum => $units->[0] + $units->[1] - $units->[2] };

    return \%settled;
}

subtest 'what requests cost in the end, in words' => sub {
    browser('open', url => "$url/limits");

    my @cases = (
        ['', settled([(0) x 4], [0, 0, 0], [])],
        ['1,000 reserved, 400 given back, 0 entered later: 60 each on average. Of 10 requests all cost less.',
            settled([0, 10, 0, 0], [1000, 0, 400], [0, 0, 0, 10])],
        ['1 reserved, 0 given back, 0 entered later: 1 each on average. Of 1 request all cost just that.',
            settled([0, 0, 1, 0], [1, 0, 0], [0, 1])],
        ['4,000 reserved, 500 given back, 25,000 entered later: 712.5 each on average. '
            . 'Of 40 requests 25 % cost less, 50 % cost more, 12.5 % cost just that, '
            . '12.5 % cost an unknown amount, so the reservation stood.',
            settled([20, 10, 5, 5], [4000, 25000, 500], [0, 0, 0, 20, 20])],
        ['1,000,000,000,000,000 reserved, 0 given back, 0 entered later: 500T each on average. '
            . 'Of 2 requests all cost just that.', settled([0, 0, 2, 0], [1e15, 0, 0], [(0) x 14, 2])],
    );
    my $said = browser('settledWords', settled => [map { $_->[1] } @cases]);
    is $said->[$_] =~ tr/\x{a0}/ /r, $cases[$_][0], $cases[$_][0] || 'nothing to say' for 0 .. $#cases;
};

subtest 'what requests cost in the end, as bars' => sub {
    for my $width (1280, 360) {
        is browser('open', url => "$url/limits#zone=hostile", width => $width)->{settled}, undef,
            'nothing where nothing is settled';
        browser('pretend', zone => { settled => settled([20, 10, 5, 5], [4000, 25000, 500], [0, 0, 1, 0, 20, 10]) });
        my $page = page_when { $_->{settled} } "$width pixels wide";
        my $shown = $page->{settled};

        is_deeply [map { tr/\x{a0}/ /r } @{ $shown->{labels} }], ['≤ 0', '≤ 1', '≤ 10', '≤ 100', '≤ 1K', '≤ 10K'],
            'no more bars than needed, but some';
        is_deeply $shown->{titles}, ['0: 0 requests', '1: 0 requests', '2 to 10: 1 request', '11 to 100: 0 requests',
            '101 to 1K: 20 requests', '1K to 10K: 10 requests'], 'what they say to a mouse';
        cmp_ok abs($shown->{bars}[4] - 2 * $shown->{bars}[5]), '<=', 1, 'half as many, half as high';
        cmp_ok $shown->{bars}[2], '>=', 1, 'a single one can be seen';
        is $shown->{bars}[3], 0, 'and where there is none, there is no bar';
        is $page->{chartLabels}[3], 'Requests by what they cost in the end: 2 to 10: 1 request, '
            . '101 to 1K: 20 requests, 1K to 10K: 10 requests.', 'and all of them to who does not see them';
        has_no_overflow($page);
        is_deeply browser('faint'), [], 'all text has enough contrast';

        # everywhere, and then less again
        browser('pretend', zone => { settled => settled([15, 0, 0, 0], [0, 1e13, 0], [(1) x 15]) });
        $page = page_when { @{ $_->{settled}{bars} } == 15 } 'all there are';
        is $page->{settled}{titles}[14] =~ tr/\x{a0}/ /r, '> 1T: 1 request';
        has_no_overflow($page);
        browser('pretend', zone => { settled => settled([1, 0, 0, 0], [0, 1e13, 0], [(0) x 14, 1]) });
        $page = page_when { @{ $_->{settled}{bars} } == 6 } 'as few again';
        is_deeply [map { tr/\x{a0}/ /r } @{ $page->{settled}{labels} }],
            ['≤ 100M', '≤ 1B', '≤ 10B', '≤ 100B', '≤ 1T', '> 1T'];
        is_quiet("$url/limits");
    }
};

subtest 'the last full minute, and the peak' => sub {
    my $now = 1_700_000_030;        # half a minute
    my $minute = $now - $now % 60;

    browser('open', url => "$url/limits#zone=hostile");
    browser('pretend', numbers => { now => $now }, zone => {
        minutes => [
            [$minute - 7200, 9000, 0, 0, 0, 9, 0],
            [$minute - 600, 1200, 30, 0, 4, 100, 7],
            [$minute - 60, 800, 199, 50, 1, 250, 20],
            [$minute, 77, 0, 0, 0, 7, 0],
        ],
    });
    my $page = page_when { $_->{tiles}{Passed} eq '800' } 'what has passed in it';

    is_deeply $page->{tiles}, {
        Passed => '800', Refused => '199', Failed => '1', 'Refused share' => "19.9\x{a0}%",
        'Clients, about' => '250', 'Requests per client' => '4',
    }, 'and all the rest';
    is zone_of($page, 'hostile')->{'Last minute'}, '1,000';
    like $page->{minute}, qr/; a dry run would have refused 50 of those that passed$/;
    like $page->{chartLabels}[0], qr/: 2,077 passed, 229 refused, 5 failed; peak \d\d:\d\d, 1,234 requests\.$/;
    like $page->{chartLabels}[1], qr/; peak \d\d:\d\d, 250 clients\.$/;
    like browser('choose', range => '6h')->{chartLabels}[0], qr/ 11,077 passed, .* 9,000 requests\.$/;
    is_quiet("$url/limits");

    browser('open', url => "$url/limits#zone=login");
};

subtest 'bans are refusals of their own' => sub {
    browser('open', url => "$url/limits#zone=hostile");
    browser('pretend', zone => { requests => {
        (map { $_ => 0 } qw(rejected_dry_run rejected_elsewhere failed_open failed_closed exempt aborted)),
        passed => 60, rejected => 10, banned => 30,
    } });
    my $page = page_when { zone_of($_, 'hostile')->{Banned} } 'a column for them';
    is_deeply [@{ zone_of($page, 'hostile') }{qw(Passed Refused Banned), 'Refused share'}], [60, 10, 30, "40\x{a0}%"];
    is_quiet("$url/limits");

    browser('open', url => "$url/limits#zone=login");
};

subtest 'in the first minute it is the one that runs' => sub {
    my $now = 1_700_000_030;
    my $minute = $now - $now % 60;
    my $show = sub {
        my ($since, @minutes) = @_;
        browser('open', url => "$url/limits#zone=hostile");
        browser('pretend', numbers => { now => $now, since => $since }, zone => { minutes => \@minutes });
        return page_when { $_->{chartLabels}[0] =~ /: 7\d passed/ } 'the numbers are there';
    };

    my $page = $show->($minute + 5, [$minute, 77, 22, 11, 1, 4, 3]);
    is_deeply $page->{tiles}, {
        Passed => '77', Refused => '22', Failed => '1', 'Refused share' => "22\x{a0}%",
        'Clients, about' => '4', 'Requests per client' => '25',
    }, 'no full minute yet: the one that runs';
    like $page->{minute}, qr/^In the first minute so far, since \d\d:\d\d:05; a dry run would have refused 11 /;
    is zone_of($page, 'hostile')->{'Last minute'}, '100';

    $page = $show->($minute - 5, [$minute, 70, 0, 0, 0, 7, 0]);
    is $page->{tiles}{Passed}, '70', 'it began late in the last minute, and nobody came in it';

    $page = $show->($minute - 5, [$minute - 60, 3, 0, 0, 0, 1, 0], [$minute, 70, 0, 0, 0, 7, 0]);
    is $page->{tiles}{Passed}, '3', 'somebody came in it';
    like $page->{minute}, qr/^In the last full minute, /;

    $page = $show->($minute - 60, [$minute, 70, 0, 0, 0, 7, 0]);
    is $page->{tiles}{Passed}, '0', 'nobody came in a full minute';

    browser('open', url => "$url/limits#zone=login");
};

subtest 'who looks away asks for nothing' => sub {
    browser('turn', away => JSON::PP::true);
    sleep 1;
    browser('events');
    sleep 5;
    is_deeply browser('events')->{requested}, [], 'not once in 5 seconds';
    login('clara', 1);
    browser('turn', away => JSON::PP::false);
    page_when { zone_of($_, 'login')->{Passed} eq '11' } 'there again, it is up to date';
    is_quiet("$url/limits");
};

my %hostile = (
    image => q{<img src=x onerror="window.ran='image'">},
    script => q{"><script>window.ran='script'</script>},
    end => q{</script><script>window.ran='end'</script>},
    quotes => q{' " ` \\ ${window.ran='quotes'} &lt;&#60; \u003c},
    link => q{<a href="javascript:window.ran='link'">x</a>},
    umlaut => "M\xc3\xbcller \xe6\xbc\xa2",
    latin => "caf\xe9 \xff\xfe",
    override => "invoice\xe2\x80\xaegnp.exe",
    long => 'x' x 4096,
);

subtest 'what clients send is text' => sub {
    for my $key (values %hostile) {
        my $text = "GET /hostile HTTP/1.1\r\nHost: test\r\nX-Key: $key\r\nConnection: close\r\n\r\n";
        is +(request($nginx->port, $text))[0], 200;
    }

    my $page = browser('open', url => "$url/limits#zone=hostile&range=1h");
    is $page->{zone}, 'hostile', 'the address says which zone';
    is @{ $page->{topClients} }, keys %hostile, 'all are there';

    my %shown = map { $_->{Client} => 1 } @{ $page->{topClients} };
    ok $shown{ $hostile{$_} }, "as it is: $_" for qw(image script end quotes link);
    ok $shown{"M\x{fc}ller \x{6f22}"}, 'as it is: other languages';
    ok $shown{'invoice\u{202e}gnp.exe'}, 'what would turn the text around is written out';
    is scalar(grep { /^caf/ } keys %shown), 1, 'what is no UTF-8 does no harm';
    is scalar(grep { /^x{50}/ && length() < 300 } keys %shown), 1, 'a very long one is cut';

    is $page->{intruders}, 0, 'nothing of it became an element';
    is $page->{scripts}, 1, 'there is one script, the page\'s own';
    is $page->{ran}, undef, 'and nothing else ran';
    has_no_overflow($page);
    is_quiet("$url/limits");

    # what nginx lets into no key today
    my @clients = map { +{ key => $_, count => 3, missed_at_most => 0, first => time - 7200, last => time } }
        "a\x{0}b", "\x{2066}\x{200b}\r\n\t", '', 'same', 'same', "\x{10ffff}", 'y' x 4096, "a\x{300}" x 50;
    $clients[3]{missed_at_most} = 2;
    browser('pretend', zone => { top_clients => \@clients, top_rejected => \@clients });
    $page = page_when { @{ $_->{topClients} } == @clients } 'these are shown';
    for (1 .. 2) {
        is_deeply [map { $_->{Client} } @{ $page->{topClients} }[0 .. 5]],
            ['a\u{0}b', '\u{2066}\u{200b}\u{d}\u{a}\u{9}', '(empty)', 'same', 'same', '\u{10ffff}'], 'as escapes';
        like $page->{topClients}[6]{Client}, qr/^y{160}… 4,096 characters$/, 'cut';
        is $page->{topClients}[3]{Requests}, '≥ 3', 'what may be more';
        is $page->{topClients}[4]{Requests}, '3', 'and what is exact';
        is $page->{topClients}[0]{First}, "2\x{a0}h ago";
        sleep 3;
        $page = browser('read');
    }
    is @{ $page->{topClients} }, @clients, 'clients that look the same stay as many as they are';
    is $page->{ran}, undef;
};

subtest 'keys=masked and keys=off' => sub {
    my $page = browser('open', url => "$url/masked#zone=login");
    is @{ $page->{topClients} }, 3, 'as many clients';
    is scalar(grep { $_->{Client} =~ /anna|bert|clara/ } @{ $page->{topClients} }), 0, 'but not their keys';
    like $page->{topClientsNote}, qr/^Keys are masked/;

    $page = browser('open', url => "$url/off#zone=login");
    is_deeply $page->{$_}, [], $_ for qw(topClients topRefused);
    like $page->{"${_}Note"}, qr/lists of clients are off/ for qw(topClients topRefused);
    is zone_of($page, 'login')->{Passed}, '11', 'the numbers are there';
    is_quiet("$url/off");
};

subtest 'what servers say is text, too' => sub {
    my $reason = q{<img src=x onerror="window.ran='reason'"> } . "\x{202e}\x{7}" . 'x' x 200;
    my $long = 'cluster://' . join ',', map { "redis-$_.example.internal:6379" } 1 .. 9;
    my $since = time;
    my @down = map { +{ server => "10.0.0.$_:6379", since => $since - $_, reason => $reason } } 1 .. 3;

    for my $width (1280, 360) {
        browser('open', url => "$url/limits#zone=login", width => $width, height => 740);
        browser('pretend', numbers => { host => '<b>host</b>' . 'x' x 200 },
            store => { breakers_open => 3, address => $long, down => \@down });
        my $page = page_when { $_->{healthLook} eq 'bad' } "an outage, $width pixels wide";

        like $page->{stores}[0]{State},
            qr/^down \(3 servers\) since \d\d:\d\d:\d\d \(10\.0\.0\.3:6379: <img src=x .*> \\u\{202e\}\\u\{7\}x{200}\)$/,
            'it tells of the longest';
        is $page->{stores}[0]{Address}, $long;
        like $page->{title}, qr/^\(!\) Rate limits on <b>host<\/b>x/;
        is $page->{intruders}, 0, 'nothing of it became an element';
        is $page->{ran}, undef, 'and nothing ran';
        has_no_overflow($page);
        is_deeply browser('faint'), [], 'all text has enough contrast';
        is_quiet("$url/limits");
    }
};

for my $scheme (qw(light dark)) {
    subtest "on a phone, $scheme" => sub {
        my $page = browser('open', url => "$url/limits#zone=hostile", width => 360, height => 740, scheme => $scheme);
        has_no_overflow($page);
        has_no_overflow(browser('choose', range => $_)) for qw(6h 7d);
        has_no_overflow(browser('hover'));
        is_deeply browser('faint'), [], 'all text has enough contrast';
        is_quiet("$url/limits");
    };
}

subtest 'fifty zones' => sub {
    my $many = start_nginx(join "\n", 'location = /limits { sliding_limit_metrics; }', map { <<"END" } 1 .. 50);
        location = /$_ {
            sliding_limit zone=zone-with-a-rather-long-name-$_ max=5 window=60s key=\$remote_addr;
            empty_gif;
        }
END
    get($many->port, '/17') for 1 .. 2;

    my $page = browser('open', url => 'http://127.0.0.1:' . $many->port . '/limits', width => 360, height => 740);
    is @{ $page->{zones} }, 50;
    is $page->{zone}, 'zone-with-a-rather-long-name-17', 'the busiest is shown first';
    like $page->{health}, qr/^All well: everything is counted in this nginx$/, 'there is no Redis';
    has_no_overflow($page);
    is $many->bad_lines, '';
};

subtest 'Redis goes and comes' => sub {
    browser('open', url => "$url/limits#zone=login");
    $redis->stop;
    is login('dora', 3), '200 200 200', 'nobody is turned away';

    my $page = page_when { $_->{healthLook} eq 'bad' && (zone_of($_, 'login')->{'Failed, let through'} // '') eq '3' }
        'the page notices, and knows how many it were';
    my $reason = ($nginx->error_log =~ /redis "\Q$address\E" is down: (.*)/g)[-1];
    like $page->{health},
        qr/^redis default is down since \d\d:\d\d:\d\d \(\Q$reason\E\): 3 requests let through unchecked$/;
    is $page->{title}, '(!) Rate limits on ' . lc hostname();
    my ($store) = grep { $_->{Store} eq 'default' } @{ $page->{stores} };
    like $store->{State}, qr/^down since \d\d:\d\d:\d\d \(\Q$reason\E\)$/, 'since when and why';
    like $store->{'Without an answer'}, qr/(?:connection|down)\x{a0}\d/;
    is_deeply browser('faint'), [], 'all text has enough contrast';

    $redis->start;
    $page = page_when { login('dora', 1); $_->{healthLook} ne 'bad' } 'it is back';
    like $page->{health}, qr/^redis default is up, with failures lately: \d+ requests let through unchecked$/,
        'but the page has not forgotten';
    is_quiet("$url/limits");
};

subtest 'nginx goes and comes' => sub {
    my $before = browser('read');
    $nginx->stop;

    my $page = page_when { defined $_->{outage} } 'the page notices';
    like $page->{outage}, qr/^No data since \d\d:\d\d:\d\d, trying again\.$/;
    is zone_of($page, 'login')->{Refused}, zone_of($before, 'login')->{Refused}, 'the last numbers stay';
    is $page->{healthLook}, '', 'but no more does it say that all is well';

    $nginx->start;
    $page = page_when { !defined $_->{outage} } 'it is back';
    is zone_of($page, 'login')->{Passed}, '0', 'with new numbers';
    my @other = grep { !/net::ERR_(?:CONNECTION_REFUSED|EMPTY_RESPONSE|CONNECTION_RESET)/ }
        @{ browser('events')->{complaints} };
    is_deeply \@other, [], 'the browser complained of nothing else';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
