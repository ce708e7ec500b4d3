# What docs/recipes.md says: its configurations do what it says of them, with a real nginx and
# Redis, and its clients heed what they are told.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET ();
use JSON::PP qw(decode_json);
use SlidingLimit::PageExamples qw(answers ask start_example);
use SlidingLimit::Pages qw(blocks contents section);
use SlidingLimit::Servers qw(begin_request request start_nginx start_redis wait_until);
use SlidingLimit::Streams qw(start_streams);
use Test::More;
use Time::HiRes qw(sleep time);

my $PAGE = 'docs/recipes.md';
my %recipes = (
    'AI gateway' => \&ai_gateway,
    'API keys' => \&api_keys,
    'Behind a CDN' => \&behind_a_cdn,
    'Bytes per day' => \&bytes_per_day,
    'Crawlers' => \&crawlers,
    'Gradual enforcement' => \&gradual_enforcement,
    'JSON access log' => \&json_access_log,
    'Login' => \&login,
    'OpenTelemetry' => \&opentelemetry,
    'Slow queries' => \&slow_queries,
    'Tiers' => \&tiers,
    'WebSocket' => \&websocket,
    'fail2ban' => sub { ok -e 't/fail2ban.t', 'has a suite of its own' },
);

# "conf" is what needs a module that is not here
sub configurations { my ($name) = @_; return blocks(section($PAGE, $name), '(?:nginx|conf)') }

is_deeply [sort grep { configurations($_) } contents($PAGE) =~ /^## (.*)$/mg], [sort keys %recipes],
    'every configuration of the page is tried here';

my $application = start_nginx(<<'END');
    location /login { if ($arg_password != right) { return 401; } return 200; }
    location / { return 200 "hello"; }
END
my $streams = start_streams();
my $redis = start_redis();
my $nginx;

for my $name (sort keys %recipes) {
    subtest $name => sub {
        $redis->cli('FLUSHALL');
        $recipes{$name}->(configurations($name));
        is $nginx->bad_lines, '', 'nothing alarming in the log' if $nginx;
        undef $nginx;
    };
}

# The recipe, with more around it if it needs that.
sub try {
    my ($text, %with) = @_;

    return $nginx = start_example($text, application => $application->port, redis => $redis->port, %with);
}

sub keys_in_redis { return join ' ', sort grep { !/^rate_limit::/ } split /\n/, $redis->cli('KEYS', '*') }

sub login {
    try(@_);
    is answers($nginx, 20, 'POST /login?password=right'), '200:20', 'who logs in is not limited';
    is answers($nginx, 12, 'POST /login?password=wrong'), '401:10 429:2', 'who guesses is';
}

sub api_keys {
    try($_[0], change => { 'max=600' => 'max=3' });
    my %alice = (headers => ['X-Api-Key: 6f1c0a52d7e94b3b9c5e2f8a41d07b36']);

    is answers($nginx, 4, 'GET /api/', %alice), '200:3 429:1', 'a key has its limit';
    is answers($nginx, 1, 'GET /api/', from => '127.0.0.2', %alice), '429:1', 'from all addresses together';
    is join(' ', map { answers($nginx, 1, 'GET /api/', from => '127.0.0.3', headers => ["X-Api-Key: $_"]) } 1 .. 4),
        '200:1 200:1 200:1 429:1', 'made-up keys share that of the address';
    is keys_in_redis(), 'rate_limit:api:127.0.0.3 rate_limit:api:alice', 'no key stands in Redis';
}

sub tiers {
    try(@_);
    my $limit = sub { (ask($nginx, 'GET /api/', headers => ["X-Api-Key: $_[0]"]))[1]{'x-ratelimit-limit'} };

    is $limit->('6f1c0a52d7e94b3b9c5e2f8a41d07b36'), 600, 'gold';
    is $limit->('b93e7d10c6f845a28d4a0e59f7c3126e'), 60, 'silver';
    is $limit->($_), 10, "'$_'" for '', 'made-up', 'another';
    like keys_in_redis(), qr/^rate_limit:plans:address:127\.0\.0\.1 /, 'who has no key is counted by address';
    is $redis->cli('ZCARD', 'rate_limit:plans:address:127.0.0.1'), 3, 'also with made-up ones';
}

sub crawlers {
    my ($by_prefix, $by_asn) = @_;
    my $test = sub {
        my ($crawler) = @_;
        is answers($nginx, 3, 'GET /', $crawler->(1)) . ', ' . answers($nginx, 3, 'GET /', $crawler->(2)),
            '200:3, 200:2 429:1', 'the machines of a crawler share a limit';
        is answers($nginx, 4, 'GET /', from => '127.0.0.2'), '200:3 429:1', 'a visitor has one';
        is answers($nginx, 1, 'GET /', from => '127.0.0.3'), '200:1', 'of its own';
        is answers($nginx, 1, 'GET /', from => '127.0.0.2', headers => ['User-Agent: first-crawler']), '429:1',
            'whatever it calls itself';
        is keys_in_redis(), join(' ', 'rate_limit:crawlers:first-crawler', map { "rate_limit:visitors:127.0.0.$_" } 2, 3),
            'nobody is counted twice';
    };
    my %lower = ('max=300' => 'max=5', 'max=100' => 'max=3');

    try($by_prefix, change => { %lower, '192.0.2.0/24' => '127.2.0.0/16' });
    $test->(sub { return from => "127.2.0.$_[0]" });

    # a header says what geoip2 would find in its database
    $redis->cli('FLUSHALL');
    $by_asn =~ s/^geoip2 .*?^\}/map \$http_x_asn \$asn {\n    default \$http_x_asn;\n}/ms or die;
    try($by_prefix =~ s/^geo .*?^\}/$by_asn/msr, change => \%lower);
    $test->(sub { return from => "127.4.0.$_[0]", headers => ['X-Asn: 64496'] });
    is answers($nginx, 1, 'GET /', headers => ['X-Asn: 64497']), '200:1', 'another network has another limit';
    is answers($nginx, 4, 'GET /', from => '127.0.0.5', headers => ['X-Asn: 64511']), '200:3 429:1',
        'one that is not listed has visitors';
}

# With answers that take their time, and a place to look at what has been counted.
sub try_streams {
    my ($text, %with) = @_;
    return try("$text\nlocation = /look { sliding_limit_metrics; sliding_limit off; }\n", application => $streams->port, %with);
}

sub used {
    my ($zone, $key) = @_;
    return (ask($nginx, "GET /look?zone=$zone&key=$key"))[2] =~ /"used":(\d+)/ ? $1 : 'unknown';
}

# What a request has cost is told to Redis after its answer.
sub comes_to {
    my ($number, $zone, $key, $what) = @_;
    eval { wait_until { used($zone, $key) eq $number } 5 };
    is used($zone, $key), $number, $what;
}

sub ai_gateway {
    my %alice = (headers => ['Authorization: Bearer 6f1c0a52d7e94b3b9c5e2f8a41d07b36']);
    my $chat = 'POST /v1/chat/completions?stream=1&pieces=5&pause=0.05';
    my $text = "$chat&tokens=350 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n$alice{headers}[0]\r\n\r\n";
    try_streams(@_);

    my @clients = map { begin_request($nginx->port, $text) } 1 .. 55;
    my %count;
    $count{ (join '', <$_>) =~ m{^HTTP/1\.1 (\d+)} ? $1 : 0 }++ for @clients;
    is_deeply \%count, { 200 => 50, 429 => 5 }, 'no more run at once than their estimates leave room for';
    comes_to(50 * 350, 'ai_tokens', 'alice', 'then what they have cost counts');
    is used('ai_requests', 'alice'), 50, 'refused requests are charged to no limit';

    $redis->cli('FLUSHALL');
    is answers($nginx, 1, "$chat&tokens=120000", %alice), '200:1', 'a request that costs far more';
    comes_to(120_000, 'ai_tokens', 'alice', 'is entered');
    is answers($nginx, 1, "$chat&tokens=1", %alice), '429:1', 'and the next one waits';
    is answers($nginx, 1, "$chat&tokens=1&status=500"), '500:1', 'others do not';
    comes_to(0, 'ai_tokens', '127.0.0.1', 'an error costs no tokens');
    answers($nginx, 1, "$chat&tokens=350&usage=0");
    sleep 0.3;
    is used('ai_tokens', '127.0.0.1'), 2000, 'who does not say costs the estimate';
}

sub bytes_per_day {
    try_streams($_[0], change => { 'max=1000000000' => 'max=30000' });
    for my $number (1, 2) {
        is answers($nginx, 1, 'GET /files/a?size=5000&pieces=4&pause=0.02'), '200:1', "download $number";
        wait_until { used('bytes_day', '127.0.0.1') > 20_000 * $number } 10, 'its bytes';
    }
    is answers($nginx, 1, 'GET /files/a?size=1'), '429:1', 'then it is enough';
    is answers($nginx, 1, 'GET /files/a?size=1', from => '127.0.0.2'), '200:1', 'for this address';
}

sub slow_queries {
    try_streams($_[0], change => { 'max=10000' => 'max=1000' });
    is answers($nginx, 5, 'GET /search'), '200:5', 'quick ones cost next to nothing';
    is answers($nginx, 1, 'GET /search?wait=1.2'), '200:1', 'a slow one';
    wait_until { used('search_ms', '127.0.0.1') >= 1190 } 10, 'its milliseconds';
    is answers($nginx, 1, 'GET /search'), '429:1', 'is enough';
    unlike $nginx->error_log, qr/settle of zone/, 'times are numbers without their point';
}

sub gradual_enforcement {
    # longer than the test takes
    my %change = ('max=100' => 'max=1', 'window=1m' => 'window=1h');
    try($_[0], change => \%change);
    my (@enforced, $watched);

    for my $number (1 .. 250) {
        my $from = "127.5.0.$number";
        my $said = answers($nginx, 2, 'GET /', from => $from);
        $said eq '200:1 429:1' ? push @enforced, $from : $said eq '200:2' ? $watched++ : fail "$from: $said";
    }
    # 25 are expected, and always the same
    cmp_ok scalar(@enforced), '>=', 10, 'for some clients it is enforced';
    cmp_ok scalar(@enforced), '<=', 50, 'about a tenth';
    my $would = () = $nginx->error_log =~ /would be refused by zone "site"/g;
    is $would, $watched, 'for the others the log says what it would refuse';

    my $other = start_example($_[0], application => $application->port, redis => $redis->port,
        change => \%change);
    is answers($other, 1, 'GET /', from => $enforced[0]), '429:1', 'another server enforces it for the same ones';
}

sub json_access_log {
    my ($log_format) = @_;
    try("$log_format\nlocation / { sliding_limit zone=a max=1 window=1m key=a; empty_gif; }\nlocation /free { empty_gif; }\n");
    my $hostile = 'a"b\\c\t{"status":"PASSED"}';

    ask($nginx, 'GET /one');
    ask($nginx, 'GET /two?"},{"', headers => ["User-Agent: $hostile"]);
    ask($nginx, 'GET /free?%22');
    my $path = $nginx->dir . '/logs/limits.json';
    wait_until { -e $path && (() = contents($path) =~ /\n/g) == 3 } 10, 'the log';

    my @lines = map { decode_json($_) } split /\n/, contents($path);
    is $lines[0]{limit}{status}, 'PASSED', 'one passed';
    is join(' ', @{ $lines[1]{limit} }{qw(status zone max remaining)}), 'REJECTED a 1 0', 'another was refused';
    is $lines[1]{request}, 'GET /two?"},{" HTTP/1.1', 'whatever it asked for';
    is join('|', $lines[2]{status}, @{ $lines[2]{limit} }{qw(status zone max)}), '200|||',
        'where there is no limit, there is nothing to say';
    like $lines[1]{limit}{id}, qr/^[0-9a-f-]{36}$/, 'each has its id';
}

sub opentelemetry {
    my ($attributes) = @_;
    $attributes =~ s/^otel_span_attr (\S+) (\S+);$/'add_header X-' . ($1 =~ tr{.}{-}r) . " $2 always;"/meg;
    try("$attributes\nlocation / { sliding_limit zone=a max=1 window=1m key=a; empty_gif; }\n");

    ask($nginx, 'GET /');
    my $headers = (ask($nginx, 'GET /'))[1];
    is join(' ', map { $headers->{"x-sliding_limit-$_"} // '-' } qw(status zone limit remaining store)),
        'REJECTED a 1 0 redis', 'a span is told of a refusal';
    like $headers->{'x-sliding_limit-seconds'}, qr/^\d+\.\d{6}$/, 'and how long it took to decide';
}

sub behind_a_cdn {
    try($_[0], change => { '192.0.2.0/24' => '127.6.0.0/16', 'max=100' => 'max=2' });
    my $through = sub { return from => '127.6.0.1', headers => ["X-Forwarded-For: $_[0]"] };

    is answers($nginx, 3, 'GET /', $through->('203.0.113.5')), '200:2 429:1', 'a client of the CDN has its limit';
    is answers($nginx, 1, 'GET /', $through->('203.0.113.6')), '200:1', 'another one its own';
    is answers($nginx, 1, 'GET /', $through->('1.2.3.4, 203.0.113.5')), '429:1', 'what it claims to be itself does not matter';
    is answers($nginx, 3, 'GET /', from => '127.0.0.9', headers => ['X-Forwarded-For: 203.0.113.7']), '200:2 429:1',
        'who comes directly';
    is keys_in_redis(), join(' ', map { "rate_limit:site:$_" } '127.0.0.9', '203.0.113.5', '203.0.113.6'),
        'is counted by its own address';
    is +(ask($nginx, 'GET /', from => '127.0.0.9'))[1]{'cache-control'}, 'no-store', 'no cache keeps a refusal';
}

sub websocket {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16, Timeout => 20) or die $!;
    my $handshake = "GET /socket HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        . "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    try($_[0], application => $listener->sockport, change => { 'max=30' => 'max=2' });

    my $read = sub {
        my ($socket, $until) = @_;
        my $text = '';
        local $SIG{ALRM} = sub { die "no answer\n" };
        alarm 20;
        sysread $socket, $text, 65536, length $text or last until $text =~ $until;
        alarm 0;
        return $text;
    };

    for my $number (1, 2) {
        my $client = begin_request($nginx->port, $handshake);
        my $server = $listener->accept or die 'no handshake';
        like $read->($server, qr/\r\n\r\n/), qr/^Upgrade: websocket\r$/m, "handshake $number reaches the application";
        syswrite $server, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
        like $read->($client, qr/\r\n\r\n/), qr{^HTTP/1.1 101 .*^X-RateLimit-Remaining: ${\ (2 - $number)}\r$}ms, 'is counted';
        for (1 .. 20) {
            syswrite $client, 'ping';
            $read->($server, qr/ping$/);
            syswrite $server, 'pong';
            $read->($client, qr/pong$/);
        }
        is $redis->cli('ZCARD', 'rate_limit:sockets:127.0.0.1'), $number, 'its messages are not';
    }

    my ($status, $headers) = request($nginx->port, $handshake =~ s/\r\n\r\n$/\r\nX: y\r\n\r\n/r, 10);
    is $status, 429, 'a third handshake is refused';
    ok $headers->{'retry-after'}, 'and told when to come back';
}

# ---- Clients

my %clients = (
    python => { file => 'examples/clients/limited.py', run => ['python3'] },
    js => { file => 'examples/clients/limited.mjs', run => ['node'] },
);

for my $language (sort keys %clients) {
    my ($file, @run) = ($clients{$language}{file}, @{ $clients{$language}{run} });
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16, Timeout => 60) or die $!;
    my $api = start_nginx(<<'END' =~ s/LISTENER/$listener->sockport/er, http => <<"HTTP");
    access_log logs/access.log s;
    location = /api { sliding_limit zone=api max=4 window=1s key=a; empty_gif; }
    location = /others { sliding_limit zone=api max=4 window=1s key=a cost=4; access_log off; empty_gif; }
    location = /limits { sliding_limit_metrics; access_log off; }
    location = /long { sliding_limit zone=long max=1 window=1h key=a; empty_gif; }
    location = /plain { empty_gif; }
    location = /down { proxy_pass http://127.0.0.1:LISTENER; }
END
    sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=60s;
    log_format s '\$status \$msec';
HTTP
    my $log = $api->dir . '/logs/access.log';

    # What comes of this call: statuses that the client gets, and those that nginx has sent it
    # on the way. `meanwhile` is done once it has been started.
    my $call = sub {
        my ($arguments, $got, $sent, $name, $meanwhile) = @_;
        truncate $log, 0;
        open my $output, '-|', "@run $file http://127.0.0.1:${\ $api->port}$arguments" or die $!;
        $meanwhile->() if $meanwhile;
        my @printed = <$output>;
        close $output;
        is $?, 0, "$name: it ends well";
        is join(' ', map { /^(\d+)/ } @printed), $got, $name;
        eval { wait_until { (() = contents($log) =~ /\n/g) >= split ' ', $sent } 3 };
        is join(' ', contents($log) =~ /^(\d+)/mg), $sent, '... as nginx sees it';
        my @times = contents($log) =~ / (\S+)$/mg;
        return map { $times[$_] - $times[ $_ - 1 ] } 1 .. $#times;
    };

    subtest "a client in $language" => sub {
        my ($shown) = blocks(section($PAGE, 'Calling an API with limits'), $language);
        is $shown, contents($file), 'the page shows it';

        my $start = time;
        $call->('/api 10', (join ' ', (200) x 10) x 2, 'its calls succeed, and none is refused on the way');
        cmp_ok time - $start, '>=', 2, 'as it waited';

        # however long the client takes to start, Redis hears of the others first
        $redis->cli('FLUSHALL');
        $redis->pause;
        my $others = begin_request($api->port, "GET /others HTTP/1.1\r\nHost: test\r\n\r\n");
        my $wait_for = sub { my ($checks) = @_; wait_until { (ask($api, 'GET /limits'))[2] =~ /checks_in_flight $checks$/m } 20 };
        $wait_for->(1);
        $call->('/api 2', '200 200', '429 200 200', 'where others have used all up, they succeed after one refusal',
            sub { $wait_for->(2); $redis->resume });

        # it would be patient for a minute, and an hour is too long
        my ($between) = $call->('/long 2', ('200 429') x 2, 'a wait that is too long is not begun');
        cmp_ok $between, '<', 50, '... indeed';
        $call->('/plain 3', ('200 200 200') x 2, 'where there are no limits, it gets through');

        for my $retry_after ('', "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n") {
            my $answer = sub {
                my ($status, $headers) = @_;
                my $connection = $listener->accept or die 'no call';
                sysread $connection, my $call, 65536;
                print $connection "HTTP/1.1 $status X\r\n${headers}Content-Length: 0\r\nConnection: close\r\n\r\n";
            };
            ($between) = $call->('/down 1', '200', '503 200', 'where it is not told how long to wait',
                sub { $answer->(503, $retry_after); $answer->(200, '') });
            cmp_ok $between, '>=', 1.9, 'it takes its time';
        }
    };
    is $api->bad_lines, '', 'nothing alarming in the log';
}

done_testing;
