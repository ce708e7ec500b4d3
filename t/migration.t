# What docs/migration.md says: every "after" limits as it says, with a real nginx and Redis; and
# nginx's own limit_req, before and beside it, does what the page says of it.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::PageExamples qw(answers ask start_example);
use SlidingLimit::Pages qw(blocks contents section);
use SlidingLimit::Servers qw(start_nginx start_redis wait_until);
use Test::More;

my $PAGE = 'docs/migration.md';
my %migrations = (
    'From limit_req' => \&limit_req,
    'From APISIX limit-count' => \&apisix,
    'From Kong rate-limiting' => \&kong,
    'From express-rate-limit' => \&express,
    'From lua-resty-limit-traffic' => \&lua,
    'From Envoy ratelimit' => \&envoy,
    'Side by side with a gateway or an application' => \&side_by_side,
);

is_deeply [sort grep { blocks(section($PAGE, $_), 'nginx') } contents($PAGE) =~ /^## (.*)$/mg],
    [sort keys %migrations], 'every migration of the page is tried here';

# The application, which refuses something by itself, too.
my $application = start_nginx(<<'END');
    location = /login { if ($arg_password != right) { return 401; } return 200; }
    location = /refused { add_header X-RateLimit-Limit old always; return 429; }
    location / { return 200; }
END
my $redis = start_redis();
my $nginx;

for my $name (sort keys %migrations) {
    subtest $name => sub {
        $redis->cli('FLUSHALL');
        $migrations{$name}->(blocks(section($PAGE, $name), 'nginx'));
        is $nginx->bad_lines, '', 'nothing alarming in the log';
        undef $nginx;
    };
}

done_testing;

sub try {
    my ($text, %with) = @_;

    return $nginx = start_example($text, application => $application->port, redis => $redis->port, %with);
}

# The counts of a zone's keys, as "alice:3 bob:1".
sub counts {
    my ($zone, $prefix) = @_;
    my $start = ($prefix // 'rate_limit') . ":$zone:";

    return join ' ', map { s/^\Q$start\E//r . ':' . $redis->cli('ZCARD', $_) } sort split /\n/, $redis->cli('KEYS', "$start*");
}

# What the page's command makes of the log, without its leading spaces.
sub compared {
    my ($lines) = @_;
    my $log = $nginx->dir . '/logs/compare.log';
    my ($command) = section($PAGE, 'Side by side') =~ /^\$ (cut .*)$/m;

    $command =~ s{/var/log/nginx/compare.log}{$log} or die;
    wait_until { -e $log && (() = contents($log) =~ /\n/g) >= $lines } 10, 'the log';
    return `$command`;
}

sub limit_req {
    my ($before, $after, $beside) = @_;

    # one a minute instead of ten, so that a busy test has the time to ask
    my %slower = ('rate=10r/m' => 'rate=1r/m');

    try($before, change => \%slower);
    is answers($nginx, 8, 'GET /login?password=right'), '200:6 503:2', 'before: 6 at once, then 503';
    like $nginx->error_log, qr/limiting requests, excess: [56]\.\d+ by zone "login", client: /, 'which is logged so';

    try($before, change => { %slower, ' burst=5 nodelay' => '' });
    is answers($nginx, 2, 'GET /login?password=right'), '200:1 503:1', 'without burst the second of two is refused';

    try($after);
    is answers($nginx, 12, 'GET /login?password=right'), '200:10 429:2', 'after: 10 at once, then 429';
    like $nginx->error_log, qr/sliding_limit: refused by zone "login", max 10 in 60000 ms, .*, client: /, 'which is logged so';
    ok +(ask($nginx, 'GET /login'))[1]{'retry-after'}, 'and told when to come back';

    # or faster, so that it need not wait for a minute
    $redis->cli('FLUSHALL');
    try($beside, change => { 'rate=10r/m' => 'rate=300r/m' });
    my $asked = 0;
    for (1 .. 12) {
        wait_until { $asked++; (ask($nginx, 'GET /login?password=right'))[0] == 200 } 10, 'limit_req';
    }
    is compared($asked) =~ s/^.*old=REJECTED .*\n//mr, shown('PASSED'), 'side by side, the log tells what the new limit would refuse';

    $redis->cli('FLUSHALL');
    try($beside, change => \%slower);
    answers($nginx, 9, 'GET /login?password=right');
    is compared(9) =~ s/^.*old=PASSED.*\n//mr, shown('REJECTED'), 'and what only the old one refuses';

    $redis->cli('FLUSHALL');
    try($beside, change => { 'rate=10r/m' => 'rate=20r/m', ' nodelay' => '' });
    is answers($nginx, 2, 'GET /login?password=right'), '200:2', 'a limit_req that delays';
    like compared(2), qr/old=DELAYED new=PASSED/, 'works beside the new one, too';

    # the other way round
    $redis->cli('FLUSHALL');
    try($beside, change => { %slower, ' dry_run' => '', 'nodelay;' => 'nodelay; limit_req_dry_run on;' });
    is answers($nginx, 12, 'GET /login?password=right'), '200:10 429:2', 'then the new one decides';
    like compared(12), qr/^ *4 old=REJECTED_DRY_RUN new=PASSED\n *2 old=REJECTED_DRY_RUN new=REJECTED$/m,
        'and the old one only notes';
}

# The lines of the page's comparison for what the old limit did.
sub shown {
    my ($old) = @_;
    return join '', section($PAGE, 'Side by side') =~ /^( +\d+ old=$old new=.*\n)/mg;
}

sub apisix {
    my ($after) = @_;

    try($after);
    is answers($nginx, 202, 'GET /api/'), '200:200 429:2', '200 pass';
    is counts('api'), '127.0.0.1:200', 'for each address';
    is +(ask($nginx, 'GET /api/', from => '127.0.0.2'))[1]{'x-ratelimit-remaining'}, 199, 'and clients are told';

    $redis->stop;
    is answers($nginx, 1, 'GET /api/', from => '127.0.0.3'), '503:1', 'without Redis nobody passes';
    $redis->start;
}

sub kong {
    my ($after) = @_;
    my %team = (headers => ['X-Team: red']);

    # the whole second must not pass while the test asks
    try($after, change => { 'window=1s' => 'window=1m' });
    is answers($nginx, 6, 'GET /api/', %team), '200:5 429:1', 'five a second';
    is join(' / ', counts('api_second'), counts('api_hour')), 'red:5 / red:5', 'for each team, and a refused one counts in neither limit';
    my ($status, $headers, $body) = ask($nginx, 'GET /api/', %team);
    is "$headers->{'content-type'} $body", 'application/json {"message":"Slow down"}', 'in the old words';
    is answers($nginx, 6, 'GET /api/', from => '127.0.0.2'), '200:5 429:1', 'who has no team is counted by address';

    try($after);
    my ($now) = split ' ', $redis->cli('TIME');
    $redis->cli('ZADD', 'rate_limit:api_hour:blue', map { (($now - 60) * 1e6 + $_, "earlier-$_") } 1 .. 999);
    is answers($nginx, 2, 'GET /api/', headers => ['X-Team: blue']), '200:1 429:1', 'a thousand an hour';

    $redis->stop;
    is answers($nginx, 1, 'GET /api/', from => '127.0.0.3'), '200:1', 'without Redis all pass';
    $redis->start;
}

sub express {
    my ($after) = @_;

    try($after);
    is answers($nginx, 102, 'GET /api/'), '200:100 429:2', '100 pass';
    my ($status, $headers, $body) = ask($nginx, 'GET /api/');
    is $headers->{'ratelimit-policy'}, '"api";q=100;w=900', 'with the headers of the draft';
    ok !defined $headers->{'x-ratelimit-limit'}, 'and no others';
    is $body, '{"error":"Too many requests, please try again later."}', 'in the old words';

    is answers($nginx, 20, 'POST /login?password=right'), '200:20', 'successful logins do not count';
    is answers($nginx, 7, 'POST /login?password=wrong'), '401:5 429:2', 'failed ones do';
}

sub lua {
    my ($after) = @_;

    try($after, change => { 'max=5000' => 'max=3' });
    is answers($nginx, 4, 'GET /api/', headers => ['Authorization: Bearer a']), '200:3 503:1', 'each has its limit';
    is answers($nginx, 4, 'GET /api/'), '200:3 503:1', 'by address without a name';
    try($after);
    is +(ask($nginx, 'GET /api/', from => '127.0.0.2'))[1]{'x-ratelimit-limit'}, 5000, 'of 5000';
}

sub envoy {
    my ($after) = @_;

    try($after);
    is answers($nginx, 11, 'GET /login?password=right'), '200:10 429:1', '10 logins';
    is answers($nginx, 92, 'GET /'), '200:90 429:2', 'which count among the 100';
    is join(' / ', counts('all', 'shop'), counts('login', 'shop')), '127.0.0.1:100 / 127.0.0.1:10', 'under the prefix';

    # the whole second must not pass while the test asks
    try($after, change => { 'window=1s' => 'window=1m' });
    is answers($nginx, 25, 'GET /search', from => '127.0.0.2'), '200:25', 'searches are only watched';
    is scalar(() = $nginx->error_log =~ /would be refused by zone "search"/g), 5, 'five would be refused';
}

sub side_by_side {
    my ($beside) = @_;

    try($beside, change => { 'max=200' => 'max=3' });
    is answers($nginx, 4, 'GET /'), '200:4', 'the new limit refuses nobody';
    my ($status, $headers) = ask($nginx, 'GET /refused', from => '127.0.0.2');
    is "$status $headers->{'x-ratelimit-limit'}", '429 old', 'the old one refuses, in its own words';
    is compared(5) =~ s/^ *//mgr, "3 old=200 new=PASSED\n1 old=200 new=REJECTED_DRY_RUN\n1 old=429 new=PASSED\n",
        'the log tells who refuses what';
}
