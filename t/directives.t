# What nginx -t accepts, what it warns of and what it refuses, and that it says
# why: it quotes what was given, says what is allowed, and never shows a password.

use strict;
use warnings;

use lib 't/lib';
use File::Temp ();
use IO::Socket::IP ();
use SlidingLimit::Servers qw(free_port module nginx_binary);
use Test::More;

# Stands wherever a password does, whole or in two halves.
my $SECRET = 'Hunter2Swordfish';
my ($HALF1, $HALF2) = ('Hunter2', 'Swordfish');

my $temp = File::Temp->newdir();
my $dir = "$temp";
my $conf = "$dir/nginx.conf";

# Nobody listens there: nginx -t must not need a Redis.
my $redis = 'sliding_limit_redis redis://127.0.0.1:' . free_port() . ';';

sub write_file {
    my ($name, $content) = @_;

    open my $file, '>', $name or die "$name: $!";
    print $file $content;
    close $file or die "$name: $!";
}

sub config_text {
    my (%at) = @_;
    my $load = module();
    my $text = $load ? "load_module $load;\n" : '';

    return $text . "pid $dir/nginx.pid;\n"
        . ($at{main} // '') . "\n"
        . 'events { ' . ($at{events} // '') . " }\n"
        . "http {\n"
        . "access_log off;\n"
        . join('', map { "${_}_temp_path $dir/$_;\n" }
            qw(client_body proxy fastcgi uwsgi scgi))
        . ($at{http} // '') . "\n"
        . "server {\n"
        . "listen unix:$dir/nginx.sock;\n"
        . ($at{server} // '') . "\n"
        . "location / {\n" . ($at{location} // '') . "\n}\n"
        . "}\n}\n";
}

# Runs nginx -t; (whether it succeeded, its output and its log).
sub nginx_t {
    my $text = config_text(@_);

    write_file($conf, $text);
    unlink "$dir/error.log";

    my $output = `'@{[nginx_binary()]}' -t -p '$dir' -c '$conf' -e '$dir/error.log' 2>&1`;
    my $status = $?;

    if (open my $log, '<', "$dir/error.log") {
        local $/;
        $output .= <$log> // '';
    }

    # neither a crash nor a sanitizer's finding is a refusal
    $output .= "ended by signal $status" if $status & 127;

    return ($status == 0, $output, $text);
}

# Where the lines of a configuration stand that begin so.
sub line_numbers {
    my ($start, %config) = @_;
    my @lines = split /\n/, config_text(%config);

    return grep { $lines[$_ - 1] =~ /^\Q$start\E / } 1 .. @lines;
}

# One test per row: everything that is wrong with the outcome. $level: of the
# message that there has to be, and no graver one; undef for none at all.
sub outcome {
    my ($name, $config, $level, @needed) = @_;
    my ($succeeded, $output, $text) = nginx_t(%$config);
    my $succeeds = ($level // '') ne 'emerg';
    my %levels = map { $_ => 1 } $output =~ /\[(warn|error|crit|alert|emerg)\]/g;
    my @wrong;

    push @wrong, $succeeded ? 'it was accepted' : 'it was refused'
        if !!$succeeded != !!$succeeds;
    push @wrong, "there was no [$level]" if defined $level && !delete $levels{$level};
    push @wrong, map { "there was a message: [$_]" } sort keys %levels if $succeeds;
    push @wrong, map { "missing: $_" } grep { index($output, $_) < 0 } @needed;
    push @wrong, 'a password is shown' if $output =~ /\Q$HALF1\E|\Q$HALF2\E/;
    push @wrong, 'it went down' if $output =~ /ended by signal|Sanitizer|runtime error/;

    ok(!@wrong, $name) or diag(join "\n", @wrong, $output, $text);
}

sub accepted {
    my ($name, %config) = @_;

    outcome("accepted: $name", \%config, undef);
}

# Accepted, but not without a word; @needed as below.
sub warned {
    my ($name, $config, @needed) = @_;

    outcome("warned of: $name", $config, 'warn', "$conf:", @needed);
}

# @needed: what the message has to hold, beside the place in the file.
sub refused {
    my ($name, $config, @needed) = @_;

    outcome("refused: $name", $config, 'emerg', "$conf:", @needed);
}

# A sliding_limit line; undef leaves a parameter out.
sub limit {
    my %with = (zone => 'z', max => 1, window => '1s', key => 'k', @_);

    return 'sliding_limit '
        . join(' ', map { "\"$_=$with{$_}\"" } grep { defined $with{$_} } sort keys %with)
        . ";\n";
}

# The same with a flag, which has no value.
sub dry_limit { return limit(@_) =~ s/;$/ dry_run;/r }

sub with_limit { return (http => $redis, location => join '', @_) }

# For rows about sliding_limit_redis: one line, and a limit that uses it.
sub with_redis { return (http => "sliding_limit_redis $_[0];", location => limit()) }

my $MAX = 'a whole number from 0 to 1000000000000000, or a variable';
my $COST = 'a whole number from 0 to 1000000000000000, or a variable';
my $WINDOW = 'a time from 100ms to 31d';
my $ZONE = '1 to 64 letters, digits, "_", "." or "-"';
my $TIMEOUT = 'a time from 1ms to 60s';
my $STATUSES =
    'statuses from 100 to 599 or classes from 1xx to 5xx, separated by commas';
my $HEADERS = '"x", "ietf", both of them, or "off" alone';
my $BODY = 'json, problem, text or grpc, or a media type like text/html and a template';
my $PREFIX = 'a whole number of bits from 1 to 128';
my $NAME = $ZONE . ', and not "memory"';
my $DB = 'a number from 0 to 2147483647';
my $LOOKED_UP = 'it must be possible to look up the host now, or the http block must have a resolver';
my $ADDRESS = 'must be host or host:port with a port from 1 to 65535';
my $SOCKET = 'an absolute path shorter than 108 bytes';

# ---- sliding_limit: values

accepted("max=$_", with_limit(limit(max => $_)))
    for 0, 1, 2147483648, '1000000000000000', '$limit_rate', '${limit_rate}', '1$limit_rate';

refused("max=$_", { with_limit(limit(max => $_)) }, qq{invalid max "$_"}, $MAX)
    for -1, '1000000000000001', '99999999999999999999', '1.5', '1e3', '0x10', 'abc', '10r/s', '+1', ' 1',
    'unlimited';

accepted("window=$_", with_limit(limit(window => $_)))
    for '100ms', '1s', '60', '1m30s', '1h 30m', '1d', '4w', '31d', '2678400s', '2678400000ms';

refused("window=$_", { with_limit(limit(window => $_)) }, qq{invalid window "$_"}, $WINDOW)
    for '0', '0s', '99ms', '32d', '31d1s', '2678400001ms', '2678401s', '5w', '1M', '1y', '1.5s', '-1s',
    '1x', 's', 'abc', '99999999999999999999s';

accepted("zone=$_", with_limit(limit(zone => $_)))
    for 'a', '0', 'API-v1.login_2', '...', '-', '_', 'x' x 64;

refused("zone=$_", { with_limit(limit(zone => $_)) }, qq{invalid zone "$_"}, $ZONE)
    for 'x' x 65, 'a b', 'a:b', 'a/b', 'a{b}', 'a*', 'a,b', 'a=b', "caf\xc3\xa9", '$uri', '#';

accepted("key=$_", with_limit(limit(key => $_)))
    for 'all', '$remote_addr', '$remote_addr:$uri', 'a=b', 'user-${remote_user}', "\xff",
    'x' x 2000;

for (qw(key fallback max cost if)) {
    # nginx itself finds these, once all is read, and does not name the line
    outcome("refused: $_ of an unknown variable", { with_limit(limit($_ => '$no_such_thing')) },
        'emerg', 'unknown "no_such_thing" variable');

    refused("$_ with a bare \$", { with_limit(limit($_ => 'a$')) }, 'invalid variable name');
    refused("$_ with a brace that is not closed", { with_limit(limit($_ => '${uri')) },
        'the closing bracket in "uri" variable is missing');
}

accepted("fallback=$_", with_limit(limit(key => '$cookie_id', fallback => $_)))
    for '$remote_addr', 'none', 'a$uri';

accepted("cost=$_", with_limit(limit(max => '1000000000000000', cost => $_, algorithm => 'buckets')))
    for 0, 1, 2, 2147483648, '1000000000000000', '$limit_rate', '${limit_rate}';

refused("cost=$_", { with_limit(limit(cost => $_)) }, qq{invalid cost "$_"}, $COST)
    for -1, '1000000000000001', '99999999999999999999', '1.5', '1e3', '0x10', 'abc', '+1', ' 1';

accepted("if=$_", with_limit(limit(if => $_))) for '$arg_a', '${arg_a}', '$arg_a$cookie_b', '1$arg_a';

refused("if=$_", { with_limit(limit(if => $_)) },
    qq{invalid if "$_", must be a value with a variable; a limit without if= always applies})
    for '0', '1', 'on', 'is_limited';

accepted("algorithm=$_", with_limit(limit(algorithm => $_))) for qw(log packed buckets);

refused("algorithm=$_", { with_limit(limit(algorithm => $_)) },
    qq{invalid algorithm "$_", must be log, packed or buckets})
    for 'fixed', 'Log', 'Packed', 'pack', 'bucket', 'log ', '$uri';

accepted("buckets=$_", with_limit(limit(algorithm => 'buckets', buckets => $_)))
    for 1, 2, 6, 99, 100;

refused("buckets=$_", { with_limit(limit(algorithm => 'buckets', buckets => $_)) },
    qq{invalid buckets "$_", must be a whole number from 1 to 100})
    for 0, 101, -1, '1.5', 'abc', '4294967302', '99999999999999999999', '$uri';

refused('buckets= without algorithm=', { with_limit(limit(buckets => 6)) },
    'buckets=6 needs algorithm=buckets');
refused("buckets= with algorithm=$_", { with_limit(limit(algorithm => $_, buckets => 6)) },
    'buckets=6 needs algorithm=buckets')
    for qw(log packed);

# ---- sliding_limit: bounds of what a log keeps

accepted("algorithm=packed max=$_", with_limit(limit(algorithm => 'packed', max => $_))) for 0, 10000, '$limit_rate';
refused("algorithm=packed max=$_", { with_limit(limit(algorithm => 'packed', max => $_)) },
    qq{invalid max "$_", must be at most 10000 with algorithm=packed; for more, use algorithm=log or algorithm=buckets})
    for 10001, '1000000000000000';

for my $algorithm (undef, 'log', 'packed') {
    my $name = 'in ' . ($algorithm ? "algorithm=$algorithm" : 'the default algorithm');
    my @with = (algorithm => $algorithm);

    accepted("cost=$_ $name", with_limit(limit(max => 10000, cost => $_, @with))) for 1000, '$limit_rate';
    refused("cost=$_ $name", { with_limit(limit(max => 10000, cost => $_, @with)) },
        qq{invalid cost "$_", must be at most 1000 with algorithm=log or algorithm=packed; for more, use algorithm=buckets})
        for 1001, 10000, '1000000000000000';

    accepted("settle= and max=$_ $name", with_limit(limit(max => $_, settle => '$bytes_sent', @with))) for 0, 1000;
    refused("settle= and max=$_ $name", { with_limit(limit(max => $_, settle => '$bytes_sent', @with)) },
        qq{zone "z" has settle=\$bytes_sent and max=$_; with algorithm=log or algorithm=packed settle= needs a max that is }
            . 'a number of at most 1000, so use one or algorithm=buckets')
        for 1001, 10000, '$limit_rate';

    accepted("count=denied and a fixed max $name", with_limit(limit(max => 10000, count => 'denied', @with)));
    refused("count=denied and a variable max $name", { with_limit(limit(max => '$limit_rate', count => 'denied', @with)) },
        'zone "z" has count=denied and max=$limit_rate; with algorithm=log or algorithm=packed count=denied needs a max '
            . 'that is a number, so use one or algorithm=buckets');
    accepted("count=denied and the same max twice $name", http => $redis . limit(max => 7, count => 'denied', @with),
        location => limit(max => 7, cost => 2, count => 'denied', @with));
}

for my $with ({ max => 10001 }, { max => 10001, cost => 10001 }, { max => '$limit_rate', settle => '$bytes_sent' },
    { max => '1000000000000000', settle => '$bytes_sent' }, { max => '$limit_rate', count => 'denied' })
{
    accepted('in buckets: ' . join(' ', map { "$_=$with->{$_}" } sort keys %$with),
        with_limit(limit(algorithm => 'buckets', %$with)));
}

accepted('in buckets: count=denied and another max', http => $redis . limit(count => 'denied', algorithm => 'buckets'),
    location => limit(max => 2, count => 'denied', algorithm => 'buckets'));

accepted('count=denied', with_limit(limit(count => 'denied')));

refused("count=$_", { with_limit(limit(count => $_)) }, qq{invalid count "$_", must be denied})
    for 'all', 'Denied', 'denied ', 'passed', '$uri';

accepted("count_status=$_", with_limit(limit(count_status => $_)))
    for '401', '100', '599', '5xx', '1xx,2xx,3xx,4xx,5xx', '401,403,5xx', '404,404';

refused("count_status=$_", { with_limit(limit(count_status => $_)) },
    qq{invalid count_status "$_"}, $STATUSES)
    for '600', '99', '099', '4x', '401,', ',401', ',', '401,,403', '6xx', '0xx', '5XX', 'abc',
    '401 403', '401, 403', '401-403', '401,403,600', '4010', '$uri';

accepted("phase=$_", with_limit(limit(phase => $_))) for qw(access precontent);

refused("phase=$_", { with_limit(limit(phase => $_)) },
    qq{invalid phase "$_", must be access or precontent})
    for 'rewrite', 'content', 'Access', 'preaccess', '$uri';

accepted("unit=$_", with_limit(limit(unit => $_)))
    for 'requests', 'content-bytes', 'concurrent-requests', 'tokens', 'GB_h', 'v1.2', 'u', 'u' x 64;

refused("unit=$_", { with_limit(limit(unit => $_)) },
    qq{invalid unit "$_", must be 1 to 64 letters, digits, "_", "." or "-", for example tokens})
    for 'u' x 65, 'to kens', 'tokens;', 'to,kens', '$arg_unit', "t\xc3\xb6kens";

accepted('dry_run', with_limit(dry_limit()));
accepted('dry_run before the rest',
    with_limit('sliding_limit dry_run zone=z max=1 window=1s key=k;'));

accepted('every parameter at once', with_limit(dry_limit(max => '$limit_rate', cost => 2,
    fallback => '$remote_addr', if => '$arg_a', algorithm => 'buckets', buckets => 10,
    count => 'denied', count_status => '4xx', unit => 'pages', phase => 'precontent', store => 'default')));

# ---- sliding_limit: its parameters as such

for (qw(zone max window key)) {
    refused("no $_=", { with_limit(limit($_ => undef)) }, "$_= is missing");
}

for (qw(zone max window key fallback cost if algorithm buckets count count_status unit phase store)) {
    refused("$_= without value", { with_limit(limit($_ => '')) }, qq{"$_=" has no value});

    my $twice = limit($_ => 1);
    $twice =~ s/("$_=[^"]*")/$1 $1/;
    refused("$_= twice", { with_limit($twice) }, "$_= is given twice");
}

refused('dry_run twice', { with_limit(dry_limit() =~ s/;$/ dry_run;/r) },
    'dry_run is given twice');

my $KNOWN = 'must be one of: zone=, max=, window=, key=, fallback=, cost=, if=, algorithm=, buckets=, '
    . 'count=, count_status=, settle=, unit=, phase=, store=, dry_run';

for ('rate=5', 'Zone=z', ' zone=z', '=z', 'dry_run=on', 'dry_run=', 'costs=1', 'z==z') {
    my ($name) = /^(.*?=)/;
    refused("parameter '$_'",
        { with_limit("sliding_limit zone=z max=1 window=1s key=k \"$_\";") },
        qq{unknown parameter "$name"}, $KNOWN);
}

for ('nodelay', 'zone', 'cost', 'if', 'Dry_run', 'dry_run ', 'on', 'off', '') {
    refused("word '$_'",
        { with_limit("sliding_limit zone=z max=1 window=1s key=k \"$_\";") },
        qq{unknown parameter "$_"}, $KNOWN);
}

refused('"off" before parameters',
    { with_limit('sliding_limit off zone=z max=1 window=1s key=k;') },
    'unknown parameter "off"', $KNOWN);
refused('"on"', { with_limit('sliding_limit on;') }, 'unknown parameter "on"', $KNOWN);
refused('no arguments', { with_limit('sliding_limit;') },
    'invalid number of arguments in "sliding_limit"');
refused('values alone', { with_limit('sliding_limit z 1 1s k;') },
    'unknown parameter "z"', $KNOWN);

# ---- sliding_limit: several

accepted('16 limits at one level', with_limit(map { limit(zone => "z$_") } 1 .. 16));
refused('17 limits at one level', { with_limit(map { limit(zone => "z$_") } 1 .. 17) },
    'more than 16 limits at one level');
accepted('16 limits at each of three levels',
    http => $redis . join('', map { limit(zone => "h$_") } 1 .. 16),
    server => join('', map { limit(zone => "s$_") } 1 .. 16),
    location => join('', map { limit(zone => "l$_") } 1 .. 16));

accepted('the same zone at three levels',
    http => $redis . limit(), server => limit(max => 2), location => limit(max => 3));
accepted('the same window, written differently',
    http => $redis . limit(window => '60s'), location => limit(window => '1m'));
accepted('the same algorithm, written differently',
    http => $redis . limit(), location => limit(algorithm => 'log'));
accepted('the same unit, written differently',
    http => $redis . limit(), location => limit(unit => 'requests'));
accepted('algorithm=packed at two levels',
    http => $redis . limit(algorithm => 'packed'), location => limit(algorithm => 'packed'));
accepted('the same number of buckets, written differently',
    http => $redis . limit(algorithm => 'buckets'),
    location => limit(algorithm => 'buckets', buckets => 6));
accepted('the same store, written differently',
    http => $redis . limit(), location => limit(store => 'default'));
accepted('the same zone with all else different',
    http => $redis . limit(),
    location => dry_limit(max => 2, key => 'other', cost => 2, fallback => 'f', if => '$arg_a',
        count_status => '5xx', phase => 'precontent'));

# a request counts once per zone, so only a first one that may not apply leaves
# anything to do for a second
for (['', limit(), limit(key => 'other')],
    [', with if= at the second', limit(), limit(if => '$arg_a')],
    [', in different phases', limit(), limit(phase => 'precontent')],
    [', after one with if=', limit(if => '$arg_a'), limit(), limit(key => 'other')],
    [', with another zone between', limit(), limit(zone => 'y'), limit(key => 'other')])
{
    my ($name, @lines) = @$_;
    refused("the same zone twice at one level$name", { with_limit(@lines) },
        'zone "z" is used twice at one level', 'a name of its own', 'an if=');
}

accepted('the same zone twice at one level, with if= at the first',
    with_limit(limit(if => '$arg_a'), limit()));
accepted('the same zone three times at one level, with if= at all but the last',
    with_limit(limit(if => '$arg_a'), limit(if => '$arg_b', max => 2), limit(max => 3)));
accepted('the same zone twice at one level, with if= at both',
    with_limit(limit(if => '$arg_a'), limit(if => '$arg_b')));

my $other_redis = "$redis\n" . $redis =~ s/;$/ name=other;/r;

for (['window', 'zone "z" has a window of 2000 ms here, but 1000 ms in',
        limit(window => '1s'), limit(window => '2s')],
    ['algorithm', 'zone "z" has algorithm=log here, but algorithm=buckets buckets=6 in',
        limit(algorithm => 'buckets'), limit()],
    ['algorithm, the other way round',
        'zone "z" has algorithm=buckets buckets=6 here, but algorithm=log in',
        limit(), limit(algorithm => 'buckets')],
    ['algorithm, log and packed', 'zone "z" has algorithm=packed here, but algorithm=log in',
        limit(), limit(algorithm => 'packed')],
    ['algorithm, packed and log', 'zone "z" has algorithm=log here, but algorithm=packed in',
        limit(algorithm => 'packed'), limit(algorithm => 'log')],
    ['algorithm, packed and buckets',
        'zone "z" has algorithm=buckets buckets=6 here, but algorithm=packed in',
        limit(algorithm => 'packed'), limit(algorithm => 'buckets')],
    ['number of buckets',
        'zone "z" has algorithm=buckets buckets=7 here, but algorithm=buckets buckets=6 in',
        limit(algorithm => 'buckets'), limit(algorithm => 'buckets', buckets => 7)],
    ['count', 'zone "z" has no count=denied here, but count=denied in',
        limit(count => 'denied'), limit()],
    ['count, the other way round', 'zone "z" has count=denied here, but no count=denied in',
        limit(), limit(count => 'denied')],
    ['max and count=denied', 'zone "z" has max=3 here, but max=2 in',
        limit(max => 2, count => 'denied'), limit(max => 3, count => 'denied')],
    ['max and count=denied, packed', 'zone "z" has max=2 here, but max=3 in',
        limit(max => 3, count => 'denied', algorithm => 'packed'), limit(max => 2, count => 'denied', algorithm => 'packed')],
    ['unit', 'zone "z" has unit=bytes here, but unit=tokens in',
        limit(unit => 'tokens'), limit(unit => 'bytes')],
    ['unit, none and one', 'zone "z" has unit=tokens here, but unit=requests in',
        limit(), limit(unit => 'tokens')],
    ['unit, one and none', 'zone "z" has unit=requests here, but unit=tokens in',
        limit(unit => 'tokens'), limit()],
    ['store', 'zone "z" has store=other here, but store=default in',
        limit(), limit(store => 'other')],
    ['store, the other way round', 'zone "z" has store=default here, but store=other in',
        limit(store => 'other'), limit()])
{
    # both lines by number
    my ($what, $message, $server, $location) = @$_;
    my %config = (http => $other_redis, server => "# line of the comment\n$server",
        location => $location);
    my ($first, $second) = line_numbers('sliding_limit', %config);

    refused("the same zone with another $what, with both lines", \%config,
        "$message $conf:$first; one zone has one count", "in $conf:$second\n");
}

refused('a log with count=denied and another max, with the way out',
    { http => $redis . limit(count => 'denied'), location => limit(max => 2, count => 'denied') },
    'one zone has one count, which with count=denied needs one max, or algorithm=buckets');

refused('the same zone with another window, twice at one level',
    { with_limit(limit(if => '$arg_a'), limit(window => '2s')) }, 'has a window of 2000 ms here');

{
    write_file("$dir/included.conf", "\n\n" . limit(window => '5s'));

    refused('the same zone with another window, in another file',
        { http => "$redis include $dir/included.conf;", location => limit() },
        "but 5000 ms in $dir/included.conf:3;");
}

accepted('"off"', with_limit('sliding_limit off;'));
accepted('"off" without any Redis', location => 'sliding_limit off;');
accepted('"off" below a limit', http => $redis . limit(), location => 'sliding_limit off;');
accepted('a limit below "off"', http => "$redis sliding_limit off;", location => limit());

for (['"off" after a limit', limit(), 'sliding_limit off;'],
    ['"off" before a limit', 'sliding_limit off;', limit()],
    ['"off" twice', 'sliding_limit off;', 'sliding_limit off;'])
{
    my ($name, @lines) = @$_;
    refused($name, { with_limit(@lines) },
        '"sliding_limit" directive cannot be "off" beside other limits of the same level');
}

accepted('a limit without sliding_limit_redis', location => limit(zone => 'lonely'));
accepted('sliding_limit_redis after the limit',
    location => limit(), server => "}\n$redis\nserver { listen unix:$dir/second.sock;");
accepted('sliding_limit_redis without any limit', http => $redis);

# ---- sliding_limit: what nginx -t warns of

for ('$cookie_x', '$arg_x', '$http_x', '${arg_x}', '$arg_a$cookie_b', '${cookie_x}$http_y', '$Cookie_x',
    '${HTTP_X}', '$args', '$query_string', '$is_args$args', '$content_type', '$content_length', '$uid_got')
{
    my @needed = ('zone "z"', qq{"$_"}, 'fallback');

    warned("key=$_ without a fallback", { with_limit(limit(key => $_)) },
        @needed, 'for example fallback=$remote_addr');
    warned("key=$_ with a fallback that a client can leave out, too",
        { with_limit(limit(key => $_, fallback => '$http_x_user')) }, @needed);
    accepted("key=$_ with a fallback",
        with_limit(limit(key => $_, fallback => '$remote_addr')));
    accepted("key=$_ with a fallback that is never empty",
        with_limit(limit(key => $_, fallback => 'none:$arg_y')));
}

warned('such a key wherever it stands', { http => $redis . limit(key => '$arg_x') },
    'zone "z"', '"$arg_x"', 'fallback=$remote_addr');

accepted("key=$_", with_limit(limit(key => $_)))
    for '$remote_user', '$uri', '$uri$is_args', '$host$uri', '$request_method', '$request_length', '$sliding_limit_id',
    '$sliding_limit_addr', 'cookie_x', 'arg_x';

# ---- keys that are never empty, and another one with each request

for ('$request_uri', '$request', '${request_uri}', '$Request_Uri', '$remote_addr$request_uri', '$host:$request_uri',
    '$proxy_add_x_forwarded_for', '$cookie_x$remote_addr', '$remote_addr$cookie_x', 'user:$cookie_x', '$cookie_x-',
    '$arg_a:$arg_b', 'a$args', '$server_name$args', '$http_x/$uri', '$remote_addr$http_user_agent',
    '$sliding_limit_addr${arg_x}', '$remote_addr$uid_got')
{
    my %config = with_limit(limit(key => $_));
    my ($name) = /\$\{?((?:request|proxy|cookie|arg|http|uid)\w*)/i;
    my $made_up = qq{a client that sends another "\$$name" with each request has another key each time and is not limited; }
        . 'use $uri or $sliding_limit_addr instead, or add a limit with key=$sliding_limit_addr';

    warned("key=$_", \%config, qq{zone "z" in $conf:@{[line_numbers('sliding_limit', %config)]} has key=$_: $made_up});
    warned("key=$_ with a fallback, which is never used", { with_limit(limit(key => $_, fallback => '$remote_addr')) }, $made_up);
    warned("key=$_ beside one that the client makes up, too",
        { with_limit(limit(key => $_), limit(zone => 'y', key => '$cookie_x', fallback => '$remote_addr')) }, $made_up);
    warned("key=$_ beside one that the client makes up in part",
        { with_limit(limit(key => $_), limit(zone => 'y', key => '$remote_addr$arg_y')) }, $made_up);
    accepted("key=$_ beside a limit by address",
        with_limit(limit(key => $_), limit(zone => 'y', key => '$sliding_limit_addr')));
}

# ---- values that are not known yet when the limit is checked

for my $name (qw(status zone key limit remaining reset retry_after window store time usage)) {
    refused("$_=\$sliding_limit_$name", { with_limit(limit($_ => "\$sliding_limit_$name")) },
        qq{zone "z": "\$sliding_limit_$name" in $_=\$sliding_limit_$name is not known yet when the limit is checked, }
            . 'must be a variable of the request')
        for qw(key fallback max cost if);
}

refused("key=$_->[0]", { with_limit(limit(key => $_->[0])) }, qq{"\$$_->[1]" in key=$_->[0] is not known yet})
    for ['a-${sliding_limit_zone}', 'sliding_limit_zone'], ['$remote_addr$Sliding_Limit_Key', 'Sliding_Limit_Key'];
accepted("$_=\$sliding_limit_addr", with_limit(limit($_ => '$sliding_limit_addr'))) for qw(key fallback if);

for my $variable ('$status', '$bytes_sent', '$body_bytes_sent', '$request_time', '$sent_http_x', '$sent_trailer_x',
    '$upstream_http_x', '$upstream_status', '$upstream_cache_status', '$upstream_cache_last_modified', '$upstream_cache_etag',
    '${upstream_response_time}', '$request_body', '$request_body_file', '$gzip_ratio')
{
    my ($name) = $variable =~ /(\w+)/;

    warned("$_=$variable", { with_limit(limit($_ => $variable)) },
        qq{zone "z": "\$$name" in $_=$variable is not known yet when the limit is checked, only when the request is answered; }
            . 'count_status= and settle= wait for the response')
        for qw(key fallback max cost if);
}

accepted("key=$_ of a map", http => "$redis map \$uri $_ { default a; }", location => limit(key => $_))
    for '$upstream_pool', '$sliding_limit_tier', '$status_group';
accepted("settle=$_", with_limit(limit(settle => $_)))
    for '$bytes_sent', '$upstream_http_x_tokens', '$request_length', '$status';

refused("settle=\$sliding_limit_$_", { with_limit(limit(settle => "\$sliding_limit_$_")) },
    qq{"\$sliding_limit_$_" in settle=\$sliding_limit_$_ does not say what a request has cost, }
        . 'must be for example $sliding_limit_usage or $bytes_sent')
    for qw(status zone key limit remaining reset retry_after window store time id addr);

# ---- sliding_limit_usage

accepted("sliding_limit_usage $_", location => "sliding_limit_usage $_;")
    for 'off', 'usage.total_tokens', 'usage.off', 'a b off.c';
refused("sliding_limit_usage $_", { location => "sliding_limit_usage $_;" },
    'invalid usage "off", must be alone if nothing is to be read')
    for 'off off2', 'off off', 'usage.total_tokens off', 'off usage.total_tokens';

{
    my $settled = limit(settle => '$sliding_limit_usage');
    my $on = 'sliding_limit_usage usage.total_tokens;';
    my $off = 'sliding_limit_usage off;';
    my $unread = 'but no location with this limit has a sliding_limit_usage: the value is empty, unless an internal '
        . 'redirect leads to a location that has one; add where the number stands in responses, for example sliding_limit_usage usage.total_tokens;';

    # [name, configuration]; the limit is the only one
    for (['nowhere', location => $settled],
        ['turned off there', server => $on, location => "$settled $off"],
        ['read in other locations only', server => "location /other { $on }", location => $settled],
        ['turned off wherever a limit of http applies', http => $settled, server => $off],
        ['read in other servers only', http => "server { listen unix:$dir/other.sock; $on }", server => $settled])
    {
        my ($name, %config) = @$_;
        my ($line) = line_numbers('sliding_limit', %config);

        warned("settle=\$sliding_limit_usage, $name", \%config,
            qq{zone "z" in $conf:$line has settle=\$sliding_limit_usage, $unread});
    }

    for (['beside it', location => "$on $settled"], ['above it', http => $on, location => $settled],
        ['below it', server => $settled, location => $on],
        ['in one of two locations below it', server => "$settled location /health { $off }", location => $on],
        ['beside it, but turned off below', server => "$settled $on", location => $off],
        ['wherever it applies', server => "$settled", location => "$off sliding_limit off; } location /b { $on"])
    {
        my ($name, %config) = @$_;

        accepted("settle=\$sliding_limit_usage, read $name", %config);
    }
}

for my $name ('max', 'cost') {
    warned("$name=$_", { with_limit(limit($name => $_)) },
        qq{zone "z": a client chooses its own $name with what it sends as "$_"; use a map})
        for '$arg_x', '$cookie_x', '${http_x}';
    accepted("$name=$_", with_limit(limit($name => $_))) for '1$arg_x', '$limit_rate', '$content_length';
}

warned('a cost of more than max', { with_limit(limit(max => 10, cost => 11)) },
    'zone "z": cost=11 is more than max=10', 'every request is refused');

accepted('a cost of just max', with_limit(limit(max => 10, cost => 10)));
accepted('a cost where nothing is to pass anyway', with_limit(limit(max => 0, cost => 5)));
accepted('a cost above a max that is not known yet',
    with_limit(limit(max => '$limit_rate', cost => 5)));
accepted('a cost that is not known yet', with_limit(limit(max => 1, cost => '$limit_rate')));

# ---- sliding_limit: where it is counted

accepted('store= by its name', http => $other_redis, location => limit(store => 'other'));
accepted('store= by its name, later', location => limit(store => 'other'),
    server => "}\n$other_redis\nserver { listen unix:$dir/second.sock;");
accepted('store=default', with_limit(limit(store => 'default')));
accepted('store=default, by that name', http => $redis =~ s/;$/ name=default;/r,
    location => limit(store => 'default') . limit(zone => 'y'));
accepted('two zones in two stores', http => $other_redis,
    location => limit() . limit(zone => 'y', store => 'other'));

for ('nowhere', 'Other', 'a b', '$uri') {
    refused("store=$_, which is unknown",
        { http => $other_redis, location => limit(store => $_) },
        qq{zone "z" in $conf:}, "has store=$_, but", "no sliding_limit_redis with name=$_");
}

accepted('store=memory', with_limit(limit(store => 'memory')));
accepted('store=memory without any Redis', location => limit(store => 'memory'));
accepted('a limit without store= where every Redis has a name', http => $other_redis, location => limit());

# ---- sliding_limit_memory

accepted("sliding_limit_memory $_", http => "sliding_limit_memory $_;", location => limit())
    for '64k', '65536', '572k', '1260k', '1944k', '1m', '16M', '128m', '191m';
refused("sliding_limit_memory $_", { http => "sliding_limit_memory $_;", location => limit() },
    qq{invalid memory "$_", must be a size of at least 64k, for example 16m})
    for '0', '63k', '65535', '-1', 'abc', '16mb', '1.5m', '16x';

# ---- sliding_limit_deny_cache

accepted("sliding_limit_deny_cache $_", http => $redis, location => "sliding_limit_deny_cache $_;")
    for '1ms', '1s', '500ms', '"1m 30s"', '31d', 'off';
refused("sliding_limit_deny_cache $_", { http => $redis, location => "sliding_limit_deny_cache $_;" },
    qq{invalid deny_cache "$_", must be a time from 1ms to 31d, or "off"})
    for '0', '0s', '32d', '-1s', 'on', 'abc', '1.5s', '1y', '$uri', '99999999999999999999';

# ---- sliding_limit_metrics

my $METRICS = 'must be one of: keys=, admin, host=';

accepted("sliding_limit_metrics $_", location => "sliding_limit_metrics $_;")
    for '', 'keys=masked', 'keys=plain', 'keys=off', 'admin', 'keys=plain admin', 'admin keys=off',
    'admin host=limits', 'host=a.example,B-1.example,c_2 admin', 'keys=off admin host=a.example';
accepted('sliding_limit_metrics with limit_except',
    location => 'sliding_limit_metrics admin; limit_except GET HEAD { deny all; }');
accepted('sliding_limit_metrics beside limits', with_limit(limit(), 'sliding_limit_metrics;'));
accepted('sliding_limit_metrics twice, differently',
    server => 'location /a { sliding_limit_metrics; } location /b { sliding_limit_metrics keys=off; }');
refused("sliding_limit_metrics $_", { location => "sliding_limit_metrics \"$_\";" },
    qq{unknown parameter "@{[ /^(.*?=)/ ? $1 : $_ ]}", $METRICS})
    for '', 'keys', 'Keys=plain', 'plain', 'on', 'off', '$uri', 'Admin', 'admin=', 'admin=on', 'administrator', 'host';
refused("sliding_limit_metrics $_=", { location => "sliding_limit_metrics $_=;" }, qq{"$_=" has no value}) for qw(keys host);
refused("sliding_limit_metrics keys=$_", { location => "sliding_limit_metrics \"keys=$_\";" },
    qq{invalid keys "$_", must be masked, plain or off})
    for 'on', 'plain ', 'Off', 'admin', '$uri';
refused("sliding_limit_metrics admin host=$_", { location => "sliding_limit_metrics admin \"host=$_\";" },
    qq{invalid host "$_", must be host names without a port, separated by commas})
    for 'a.example:80', '*.example', '.example', 'a.example,', ',a.example', 'a,,b', 'a b', 'a..b', 'http://a.example', '[::1]', '$host';
refused('sliding_limit_metrics host= without admin', { location => 'sliding_limit_metrics host=a.example;' },
    'host=a.example needs admin: it says under which names changes are taken');
refused("sliding_limit_metrics $_->[0] ", { location => "sliding_limit_metrics $_->[0];" }, "$_->[1] is given twice")
    for ['keys=off keys=off', 'keys='], ['keys=off keys=plain', 'keys='], ['admin admin', 'admin'], ['admin host=a host=b', 'host='];
refused("sliding_limit_metrics $_ and nonsense", { location => "sliding_limit_metrics $_ nonsense;" },
    qq{unknown parameter "nonsense", $METRICS}) for 'keys=plain', 'admin';
refused('sliding_limit_metrics with four values', { location => 'sliding_limit_metrics keys=off admin host=a host=b;' },
    'invalid number of arguments in "sliding_limit_metrics"');
refused('sliding_limit_metrics twice in a location', { location => 'sliding_limit_metrics; sliding_limit_metrics;' },
    '"sliding_limit_metrics" directive is duplicate');
refused("sliding_limit_metrics in $_->[0]", $_->[1], '"sliding_limit_metrics" directive is not allowed here')
    for ['main', { main => 'sliding_limit_metrics;' }], ['http', { http => 'sliding_limit_metrics;' }],
    ['server', { server => 'sliding_limit_metrics;' }],
    ["location's if", { location => 'if ($arg_a) { sliding_limit_metrics; }' }];

# ---- sliding_limit_metrics: one directive answers the requests of a location

my $COMPANY = 'stands beside another directive that answers requests, such as proxy_pass; give it a location of its own';

for my $other ('proxy_pass http://127.0.0.1:1;', 'fastcgi_pass 127.0.0.1:1;', 'stub_status;', 'empty_gif;') {
    for my $lines ("$other\nsliding_limit_metrics ;", "sliding_limit_metrics ;\n$other") {
        my ($line) = line_numbers('sliding_limit_metrics', location => $lines);

        refused($lines =~ s/\n/ /r, { location => $lines }, "sliding_limit_metrics in $conf:$line $COMPANY");
    }
}

accepted('sliding_limit_metrics and another handler, each in its block',
    location => 'sliding_limit_metrics; if ($arg_a) { proxy_pass http://127.0.0.1:1; }');
accepted('sliding_limit_metrics and another handler for other methods',
    location => 'sliding_limit_metrics; limit_except GET { proxy_pass http://127.0.0.1:1; }');
accepted('sliding_limit_metrics and a location with another handler in it',
    location => 'sliding_limit_metrics; location /a { proxy_pass http://127.0.0.1:1; }');
accepted('sliding_limit_metrics inside a location with another handler',
    location => 'proxy_pass http://127.0.0.1:1; location /a { sliding_limit_metrics; }');
accepted('sliding_limit_metrics beside return', location => 'sliding_limit_metrics; if ($arg_a) { return 403; }');

# ---- sliding_limit_metrics admin: who may change something

{
    my $public = "listen @{[free_port()]};";
    my $has_ipv6 = IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1);
    my $admin = "sliding_limit_metrics admin;\n";
    my $password = 'auth_basic ops; auth_basic_user_file passwords;';
    my $allow = 'allow 10.0.0.0/8; deny all;';

    # [name, configuration]
    for (['without any rule', server => $public, location => $admin],
        ['with a rule elsewhere', server => "$public location /a { $allow }", location => $admin],
        ['with an "if" elsewhere', server => "$public location /a { if (\$arg_a) { return 403; } }", location => $admin],
        ['with a limit_except without rules', server => $public, location => "$admin limit_except GET { }"],
        ['with rules for all but changes', server => $public, location => "$admin limit_except PUT DELETE { $allow }"],
        ['with rules for one of the two changes', server => $public, location => "$admin limit_except GET DELETE { $allow }"],
        ['with a rule for a location in it', server => $public, location => "$admin location /a { $allow }"],
        ['with a password that is turned off', server => "$public $password", location => "$admin auth_basic off;"],
        ['with a realm without a file', server => $public, location => "$admin auth_basic ops;"],
        ['with changes that need no password', server => $public,
            location => "$admin limit_except GET HEAD { auth_basic off; auth_basic_user_file passwords; }"],
        ['with certificates that nobody is asked for', http => 'ssl_verify_client on;', server => "$public ssl_verify_client off;",
            location => $admin],
        ['without any rule, also on a loopback address', server => "listen 127.0.0.1:@{[free_port()]}; $public", location => $admin])
    {
        my ($name, %config) = @$_;
        my ($line) = line_numbers('sliding_limit_metrics', %config);

        warned("sliding_limit_metrics admin $name", \%config,
            "sliding_limit_metrics admin in $conf:$line lets every client change limits; "
                . 'add allow and deny, auth_basic or auth_request to the location, or to a limit_except GET HEAD in it');
    }

    for (['with allow and deny', location => "$admin $allow"], ['with one rule, for IPv6', location => "$admin deny 2001:db8::/32;"],
        ['with one rule, for Unix sockets', location => "$admin deny unix:;"],
        ['with a rule of http', http => $allow, location => $admin],
        ['with a rule of the server', server => $allow, location => $admin],
        ['with a rule of the location around it', server => "location /a { $allow location /a/b { $admin } }"],
        ['with a password', location => "$admin $password"],
        ['with a password of the server', server => $password, location => $admin],
        ['with a password for some', http => 'map $uri $realm { default off; }',
            location => "$admin auth_basic \$realm; auth_basic_user_file passwords;"],
        ['with auth_request', location => "$admin auth_request /auth;"],
        ['with rules for changes alone', location => "$admin limit_except GET HEAD { $allow }"],
        ['with a password for changes alone', location => "$admin limit_except GET HEAD { $password }"],
        ['with certificates', server => 'ssl_verify_client on;', location => $admin],
        ['that is internal', location => "$admin internal;"],
        ['with an "if"', location => "$admin if (\$arg_a) { return 403; }"],
        ['with an "if" of the server', server => 'if ($arg_a) { return 403; }', location => $admin])
    {
        my ($name, %config) = @$_;

        $config{server} = "$public " . ($config{server} // '');
        accepted("sliding_limit_metrics admin $name", %config);
    }

    accepted('sliding_limit_metrics without admin and without any rule', server => $public, location => 'sliding_limit_metrics;');
    accepted('sliding_limit_metrics admin where only this machine can connect',
        server => join(' ', map { "listen $_:@{[free_port()]};" } qw(127.0.0.1 127.1.2.3), $has_ipv6 ? '[::1]' : ()), location => $admin);
}

# what is too small says how much is enough, and that is
for my $limits (1, 3) {
    my $zones = join '', map { limit(zone => "z$_") } 1 .. $limits;
    my ($succeeded, $output) = nginx_t(http => 'sliding_limit_memory 64k;', location => "$zones sliding_limit_metrics;");
    my ($least) = $output =~ /\[emerg\].*sliding_limit_memory of 64k is too small for the metrics of $limits zones, must be at least (\d+)k/;
    ok !$succeeded && $least, "refused: 64k for the metrics of $limits zones";
    accepted("${least}k for the metrics of $limits zones", http => "sliding_limit_memory ${least}k;",
        location => "$zones sliding_limit_metrics;");
}

# ---- where directives may stand

my %good = (
    sliding_limit => limit(),
    sliding_limit_redis => $redis,
    sliding_limit_memory => 'sliding_limit_memory 1m;',
    sliding_limit_deny_cache => 'sliding_limit_deny_cache 2s;',
    sliding_limit_on_error => 'sliding_limit_on_error pass;',
    sliding_limit_status => 'sliding_limit_status 429;',
    sliding_limit_log_level => 'sliding_limit_log_level warn;',
    sliding_limit_reset => 'sliding_limit_reset delta;',
    sliding_limit_headers => 'sliding_limit_headers x ietf;',
    sliding_limit_body => 'sliding_limit_body text/plain "no";',
    sliding_limit_dry_run => 'sliding_limit_dry_run on;',
    sliding_limit_ipv6_prefix => 'sliding_limit_ipv6_prefix 56;',
);

for my $directive (sort keys %good) {
    my $line = $good{$directive};
    my $is_of_http = $directive =~ /_(?:redis|memory)$/;
    my $http = $directive eq 'sliding_limit_redis' ? '' : $redis;
    my $not_allowed = qq{"$directive" directive is not allowed here};

    accepted("$directive in http", http => "$http $line");

    for my $level (qw(server location)) {
        my %config = (http => $http, $level => $line);

        $is_of_http ? refused("$directive in $level", \%config, $not_allowed)
            : accepted("$directive in $level", %config);
    }

    refused("$directive in main", { main => $line }, $not_allowed);
    refused("$directive in events", { events => $line }, $not_allowed);
    refused("$directive in upstream", { http => "$http upstream u { $line }" }, $not_allowed);
    refused("$directive in server's if", { http => $http, server => "if (\$arg_a) { $line }" },
        $not_allowed);
    refused("$directive in location's if",
        { http => $http, location => "if (\$arg_a) { $line }" }, $not_allowed);

    next if $directive eq 'sliding_limit';

    refused("$directive without value", { http => "$http $directive;" },
        qq{invalid number of arguments in "$directive"});

    next if $directive eq 'sliding_limit_redis';

    for my $level ($is_of_http ? 'http' : qw(http server location)) {
        my %config = (http => $http);
        $config{$level} .= " $line $line";

        refused("$directive twice in $level", \%config, qq{"$directive" directive is duplicate});
    }

    next if $is_of_http;

    accepted("$directive at every level", http => "$http $line", server => $line,
        location => $line);
}

# ---- directives with one value

my %choices = (
    sliding_limit_on_error => [qw(pass deny local)],
    sliding_limit_log_level => [qw(info notice warn error)],
    sliding_limit_reset => [qw(delta epoch)],
);

for my $directive (sort keys %choices) {
    my @choices = @{ $choices{$directive} };

    accepted("$directive $_", http => $redis, location => "$directive $_;") for @choices;

    refused("$directive '$_'", { http => $redis, location => "$directive \"$_\";" },
        qq{invalid value "$_" in "$directive", must be one of: @{[join ', ', @choices]}})
        for 'nonsense', '', uc $choices[0], "$choices[0] ", substr($choices[0], 0, 2), '$uri';

    refused("$directive with two values",
        { http => $redis, location => "$directive @choices[0, 1];" },
        qq{invalid number of arguments in "$directive"});
}

accepted("sliding_limit_status $_", location => "sliding_limit_status $_;")
    for 400, 429, 503, 599;

refused("sliding_limit_status '$_'", { location => "sliding_limit_status \"$_\";" },
    qq{invalid status "$_"}, 'an HTTP status from 400 to 599')
    for 399, 600, 200, 0, -429, 'abc', '429.5', '429x', '', '4290', '99999999999999999999';

refused("sliding_limit_dry_run '$_'", { location => "sliding_limit_dry_run \"$_\";" },
    qq{invalid value "$_" in "sliding_limit_dry_run" directive, it must be "on" or "off"})
    for 'maybe', '', '1', 'true', '$uri';

accepted("sliding_limit_dry_run $_", location => "sliding_limit_dry_run $_;") for qw(on off);

refused('sliding_limit_dry_run with two values', { location => 'sliding_limit_dry_run on on;' },
    'invalid number of arguments in "sliding_limit_dry_run"');

accepted("sliding_limit_ipv6_prefix $_", location => "sliding_limit_ipv6_prefix $_;")
    for 1, 32, 56, 64, 127, 128;

refused("sliding_limit_ipv6_prefix '$_'", { location => "sliding_limit_ipv6_prefix \"$_\";" },
    qq{invalid ipv6_prefix "$_"}, $PREFIX)
    for 0, 129, -1, 'abc', '', '64.0', '/64', '64/', ' 64', '4294967360', '99999999999999999999',
    '$uri';

refused('sliding_limit_ipv6_prefix with two values',
    { location => 'sliding_limit_ipv6_prefix 48 64;' },
    'invalid number of arguments in "sliding_limit_ipv6_prefix"');

refused('sliding_limit_status with two values', { location => 'sliding_limit_status 429 503;' },
    'invalid number of arguments in "sliding_limit_status"');

# ---- sliding_limit_headers

accepted("sliding_limit_headers $_", location => "sliding_limit_headers $_;")
    for 'x', 'ietf', 'x ietf', 'ietf x', 'off';

# [what is given, what of it is wrong]
for (['off x', 'off'], ['x off', 'off'], ['ietf x off', 'off'], ['off off', 'off'],
    ['on', 'on'], ['X', 'X'], ['IETF', 'IETF'], ['x y', 'y'], ['y x', 'y'], ['x,ietf', 'x,ietf'],
    ['"x ietf"', 'x ietf'], ['""', ''], ['x ""', ''], ['$uri', '$uri'])
{
    my ($given, $wrong) = @$_;
    refused("sliding_limit_headers $given", { location => "sliding_limit_headers $given;" },
        qq{invalid headers "$wrong"}, $HEADERS);
}

refused("sliding_limit_headers $_->[0]", { location => "sliding_limit_headers $_->[0];" },
    qq{headers "$_->[1]" is given twice})
    for ['x x', 'x'], ['ietf ietf', 'ietf'], ['x ietf x', 'x'];

# ---- sliding_limit_body

accepted("sliding_limit_body $_", location => "sliding_limit_body $_;") for
    'json', 'problem', 'text', 'grpc',
    q{text/plain 'Come back in $sliding_limit_retry_after seconds.'},
    q{"text/html; charset=utf-8" '<p>${sliding_limit_zone}s</p>'},
    q{application/vnd.acme.error-v1+json '{}'}, q{image/svg+xml '<svg/>'},
    q{application/json '{"wait":$sliding_limit_retry_after,"uri":"$uri"}'},
    q{application/json '"$uri"'}, q{application/json '$uri'},
    q{text/plain ''}, q{text/plain '"'}, q{text/html '<p title="$uri'},
    q{TEXT/PLAIN x}, qq{text/plain 'two\nlines'}, q{text/plain '} . 'x' x 3000 . q{'};

refused("sliding_limit_body $_", { location => "sliding_limit_body $_;" },
    qq{invalid body "$_", must be $BODY})
    for 'html', 'JSON', 'xml', 'off', 'default', '$uri';

refused("sliding_limit_body $_ without a template", { location => "sliding_limit_body $_;" },
    qq{body "$_" has no template})
    for 'text/html', 'application/json';

refused("sliding_limit_body $_ with a template", { location => "sliding_limit_body $_ 'no';" },
    qq{body "$_" takes no template; a media type like text/plain does})
    for 'json', 'problem', 'text', 'grpc';

# types that are none
refused("sliding_limit_body '$_' with a template",
    { location => "sliding_limit_body \"$_\" 'no';" }, qq{invalid body "$_"}, $BODY)
    for '', 'html', 'text/', '/html', 'text//', 'a/b/c', '$arg_a/json', '/', 'text html', 'text/ht ml', ' text/html',
    'text/html ; a=b', "text/html\nX-Other: 1", "text/html;\ta=b", "t\xc3\xa9xt/html",
    "text/html; a=\xc3\xa9", 'text/(html)', 'text/html,text/plain';

refused('sliding_limit_body without a type', { location => "sliding_limit_body '<p>no</p>';" },
    'invalid body "<p>no</p>"', $BODY);
refused('sliding_limit_body with three values',
    { location => "sliding_limit_body text/html 'no' 'never';" },
    'invalid number of arguments in "sliding_limit_body"');

for my $type ('text/plain', 'application/json') {
    # [template, what is quoted of it]
    refused("$type '$_->[0]'", { location => "sliding_limit_body $type '$_->[0]';" },
        qq{invalid body template, no name follows the "\$": "$_->[1]"})
        for ['$', '$'], ['a$', '$'], ['a $ b', '$ b'], ['$$uri', '$$uri'], ['$-', '$-'],
        ['${}', '${}'], ['${-}', '${-}'], ['$uri$', '$'], ['{"a":"$"}', '$"}'], ['${', '${'];

    refused("$type '$_->[0]'", { location => "sliding_limit_body $type '$_->[0]';" },
        qq(invalid body template, no "}" follows the name: "$_->[1]"))
        for ['${unclosed', '${unclosed'], ['a ${uri b', '${uri b'], ['${uri', '${uri'],
        ['${uri-}', '${uri-}'], ['${uri' . ' ' x 2000, '${uri' . ' ' x 59 . '...'];

    # nginx itself finds these, once all is read, and does not name the line
    outcome("refused: $type '$_'", { location => "sliding_limit_body $type '$_';" }, 'emerg',
        'unknown "no_such_thing" variable')
        for '$no_such_thing', '{"a":"${no_such_thing}b"}';
}

for my $type ('application/json', 'text/json', 'application/problem+json', 'Application/JSON',
    'application/json; charset=utf-8')
{
    refused("$type with a quote that is not closed",
        { location => qq{sliding_limit_body "$type" '{"wait":"\$uri}';} },
        q(invalid body template, a quote is not closed: "{"wait":"$uri}"));
}

# Backslashes as the module sees them: nginx takes two for one.
sub json_template { return "sliding_limit_body application/json '" . $_[0] =~ s/\\/\\\\/gr . q{';} }

accepted("JSON $_", location => json_template($_))
    for '{"a":"\"$uri\""}', '{"a":"\\\\","b":"$uri"}', '{"a":"\\\\\""}', '"\u0022"';

refused("JSON $_", { location => json_template($_) },
    qq{invalid body template, a quote is not closed: "$_"})
    for '"', '{"a":"\"}', '{"a":"b\\\\\"}', '{"a":"b"}"';

# with a value for each variable it must be JSON, whatever they hold
refused("JSON $_", { location => json_template($_) },
    qq{invalid body template, it is not JSON, even with a value for each variable: "$_"})
    for '{"a":$uri$args}', '{"a":-$uri}', '{$uri:1}', '{"a":$uri', '{"a":1,}', '$uri $args', 'text', '[$uri,]';
accepted("JSON $_", location => json_template($_))
    for '[$uri,$args]', ' { "$uri" : $args } ', '{"a":"$uri$args-$uri"}', '[1,"${uri}2",{"b":[$uri]}]';

# what a variable holds must never complete an escape
refused("JSON $_", { location => json_template($_) },
    qq{invalid body template, an escape is not complete: "$_"})
    for '{"a":"\$uri"}', '"\u12$uri"', '"\u$uri"', '"a\\\\\$uri"';

# ---- sliding_limit_redis: several

{
    my $url = "redis://user:$SECRET\@127.0.0.1";

    accepted('several with different names', location => limit(),
        http => join '', map { "sliding_limit_redis $url$_;\n" }
            '', ' name=a', ' name=b', ' name=A');
    accepted('the same name as a zone', http => "sliding_limit_redis $url name=z;",
        location => limit(store => 'z'));

    for (['without a name', '', '', 'default'], ['of one name', ' name=a', ' name=a', 'a'],
        ['named like the one without a name', '', ' name=default', 'default'],
        ['without a name after one named so', ' name=default', '', 'default'])
    {
        my ($what, $first, $second, $name) = @$_;
        my %config = (http =>
            "sliding_limit_redis $url$first;\n# comment\nsliding_limit_redis $url/3$second;");
        my @lines = line_numbers('sliding_limit_redis', %config);

        refused("two $what", \%config,
            qq{there is already a redis named "$name" in $conf:$lines[0]}, 'name=', 'store=',
            "in $conf:$lines[1]\n");
    }
}

# ---- sliding_limit_redis: URLs

accepted($_, with_redis($_)) for
    'redis://127.0.0.1', 'redis://127.0.0.1:6379', 'redis://127.0.0.1:1', 'redis://127.0.0.1:65535',
    'redis://localhost', 'redis://localhost:6380', 'redis://127.0.0.1/', 'redis://127.0.0.1/0',
    'redis://127.0.0.1:6379/15', 'redis://127.0.0.1/2147483647',
    'redis://[::1]', 'redis://[::1]:6379', 'redis://[::1]:6379/3',
    "redis://:$SECRET\@127.0.0.1", "redis://user:$SECRET\@127.0.0.1:6379/3",
    "redis://user:$HALF1%2F%40%3a%25$HALF2\@127.0.0.1", "redis://us%3Aer:$SECRET\@[::1]:6379",
    "redis://user:$HALF1\@$HALF2\@127.0.0.1", "redis://user:$HALF1/$HALF2\@127.0.0.1/3",
    "redis://user:$HALF1:$HALF2\@127.0.0.1",
    'unix:/run/redis.sock', 'unix:/', 'unix:/a@b:c.sock', 'unix:/' . 'p' x 106;

for (
    ['""', 'invalid URL ""', 'must start with redis://'],
    ['127.0.0.1:6379', 'invalid URL "127.0.0.1:6379"', 'must start with redis://'],
    ['redis', 'invalid URL "redis"', 'must start with redis://'],
    ['redis:127.0.0.1', 'invalid URL "redis:127.0.0.1"', 'must start with redis://'],
    ['redis:/127.0.0.1', 'invalid URL "redis:/127.0.0.1"', 'must start with redis://'],
    ['REDIS://127.0.0.1', 'invalid URL "REDIS://127.0.0.1"', 'must start with redis://'],
    ['http://127.0.0.1', 'invalid URL "http://127.0.0.1"', 'must start with redis://'],
    ["http://user:$SECRET\@127.0.0.1", 'invalid URL "http://user:***@127.0.0.1"',
        'must start with redis://'],
    ['rediss:127.0.0.1', 'invalid URL "rediss:127.0.0.1"', 'must start with redis://, rediss://'],
    ['rediss://', 'invalid URL "rediss://"', 'it has no host, as in rediss://127.0.0.1:6379'],
    ["rediss://user:$SECRET\@127.0.0.1:0", 'invalid port in "127.0.0.1:0"', $ADDRESS],
    ["redis:/user:$SECRET\@127.0.0.1", 'invalid URL "***@127.0.0.1"',
        'must start with redis://'],
    ["redis:$SECRET\@127.0.0.1", 'invalid URL "***@127.0.0.1"',
        'must start with redis://'],
    ["user:$SECRET\@127.0.0.1", 'invalid URL "***@127.0.0.1"',
        'must start with redis://'],
    ['timeout=5ms', 'invalid URL "timeout=5ms"', 'must start with redis://'],

    ['redis://', 'invalid URL "redis://"', 'it has no host, as in redis://127.0.0.1:6379'],
    ['redis:///3', 'invalid URL "redis:///3"', 'it has no host, as in redis://127.0.0.1:6379'],
    ["redis://user:$SECRET\@", 'invalid URL "redis://user:***@"', 'it has no host'],
    ["redis://user:$SECRET\@/3", 'invalid URL "redis://user:***@/3"', 'it has no host'],

    ['redis://127.0.0.1:', 'invalid port in "127.0.0.1:"', $ADDRESS],
    ['redis://127.0.0.1:0', 'invalid port in "127.0.0.1:0"', $ADDRESS],
    ['redis://127.0.0.1:65536', 'invalid port in "127.0.0.1:65536"', $ADDRESS],
    ['redis://127.0.0.1:-1', 'invalid port in "127.0.0.1:-1"', $ADDRESS],
    ['redis://127.0.0.1:6379x', 'invalid port in "127.0.0.1:6379x"', $ADDRESS],
    ['redis://127.0.0.1:6379-6380', 'invalid port in "127.0.0.1:6379-6380"', $ADDRESS],
    ['redis://127.0.0.1:redis', 'invalid port in "127.0.0.1:redis"', $ADDRESS],
    ['redis://:6379', 'in ":6379"', $ADDRESS],
    ['redis://::1:6379', 'in "::1:6379"', $ADDRESS],
    ['redis://[::1', 'in "[::1"', $ADDRESS],
    ['redis://[::1]6379', 'in "[::1]6379"', $ADDRESS],
    ['redis://[::1]:0', 'invalid port in "[::1]:0"', $ADDRESS],
    ['redis://[nonsense]', 'invalid IPv6 address in "[nonsense]"', $ADDRESS],
    ['redis://127.0.0.1?db=3', 'in "127.0.0.1?db=3"', $ADDRESS],
    ['redis://unix:', 'in "unix:"', $ADDRESS],
    ['redis://unix:name', 'in "unix:name"', $ADDRESS],
    ['redis://no-such-host.invalid', 'host not found in "no-such-host.invalid" in', $LOOKED_UP],
    ["redis://user:$SECRET\@no-such-host.invalid:6379",
        'host not found in "no-such-host.invalid" in', $LOOKED_UP],

    ['sentinel://', 'invalid URL "sentinel://"', 'has no host, as in sentinel://'],
    ['sentinel://127.0.0.1', 'invalid URL', 'does not say what Sentinels call the primary'],
    ['sentinel:///mymaster', 'invalid URL', 'has no host, as in sentinel://'],
    ['sentinel://127.0.0.1:1,/mymaster', 'no address in ""', $ADDRESS],
    ['sentinel://127.0.0.1:1,127.0.0.1:0/mymaster', 'invalid port in "127.0.0.1:0"', $ADDRESS],
    ['sentinel://127.0.0.1:1/mymaster/x', 'invalid db "x"', $DB],
    ['cluster://', 'invalid URL "cluster://"', 'has no host, as in cluster://'],
    ['cluster://127.0.0.1:1,,127.0.0.1:2', 'no address in ""', $ADDRESS],
    ['cluster://127.0.0.1/1', 'invalid URL', 'a cluster has only one'],
    ['redis://127.0.0.1,127.0.0.2', 'host not found in "127.0.0.1,127.0.0.2"', $LOOKED_UP],

    ['redis://127.0.0.1/abc', 'invalid db "abc"', $DB],
    ['redis://127.0.0.1/-1', 'invalid db "-1"', $DB],
    ['redis://127.0.0.1/1.5', 'invalid db "1.5"', $DB],
    ['redis://127.0.0.1/2147483648', 'invalid db "2147483648"', $DB],
    ['redis://127.0.0.1/99999999999999999999', 'invalid db "99999999999999999999"', $DB],
    ['redis://127.0.0.1/1/2', 'invalid db "1/2"', $DB],
    ['redis://127.0.0.1/0?x', 'invalid db "0?x"', $DB],

    ['unix:', 'invalid URL "unix:"', 'it must be unix: and a path, as in unix:/run/redis.sock'],
    ["unix://u:$SECRET\@/run/redis.sock", 'invalid URL "unix://u:***@/run/redis.sock"', 'it must be unix: and a path'],
    ['unix:redis.sock', 'invalid socket path "redis.sock"', $SOCKET],
    ['unix:/' . 'p' x 107, 'invalid socket path "/' . 'p' x 107 . '"', $SOCKET],

    ["http://user:$HALF1/$HALF2\@127.0.0.1/3", 'invalid URL "http://user:***@127.0.0.1/3"',
        'must start with redis://'],
    ["redis://user:$HALF1/$HALF2\@127.0.0.1/x", 'invalid db "x"', $DB],
    ["redis://user:$HALF1/$HALF2\@127.0.0.1:0", 'invalid port in "127.0.0.1:0"', $ADDRESS],
    ["redis://user:$HALF1%4$HALF2\@127.0.0.1",
        'the password in the URL "redis://user:***@127.0.0.1"', 'two hex digits', '"%25"'],
    ["redis://user:$SECRET%\@127.0.0.1", 'the password in the URL', 'two hex digits', '"%25"'],
    ["redis://user:$SECRET%4\@127.0.0.1", 'the password in the URL', 'two hex digits', '"%25"'],
    ["redis://user:$SECRET%g0\@127.0.0.1", 'the password in the URL', 'two hex digits', '"%25"'],
    ["redis://us%zzer:$SECRET\@127.0.0.1",
        'the user in the URL "redis://us%zzer:***@127.0.0.1"', 'two hex digits', '"%25"'],

    ['redis://user@127.0.0.1', 'user "user" has no password', 'add password= or password_file='],
    ['redis://user:@127.0.0.1', 'user "user" has no password', 'add password= or password_file='],
    )
{
    my ($url, @needed) = @$_;
    refused($url =~ /\Q$HALF1\E/ ? "URL shown so: $needed[0]" : $url, { with_redis($url) }, @needed);
}

accepted($_, with_redis($_))
    for 'sentinel://127.0.0.1/mymaster', 'sentinel://127.0.0.1:1,[::1]:2,localhost/my-master/3',
    'sentinel://user:secret@127.0.0.1:1/mymaster', 'cluster://127.0.0.1', 'cluster://127.0.0.1:1,[::1]:2,localhost';

accepted('a name that the resolver will know', http => 'sliding_limit_redis redis://no-such-host.invalid; resolver 127.0.0.1;');

# ---- sliding_limit_redis: parameters

accepted("connections=$_", with_redis("redis://127.0.0.1 connections=$_")) for 1, 2, 64;
refused("connections=$_", { with_redis("redis://127.0.0.1 connections=$_") },
    qq{invalid connections "$_", must be a whole number from 1 to 64})
    for 0, 65, -1, 'many', '1.5';

accepted("prefix=$_", with_redis("redis://127.0.0.1 prefix=$_"))
    for 'rate_limit', 'a', '0', 'Staging-2.eu_west', 'p' x 64;
refused("prefix=$_", { with_redis("redis://127.0.0.1 prefix=$_") },
    qq{invalid prefix "$_", must be 1 to 64 letters, digits, "_", "." or "-"})
    for 'p' x 65, 'a:', 'a:b', '*', 'a?', 'a[b]', "caf\xc3\xa9", '~a', 'a/b';
refused("prefix=$_", { with_redis(qq{redis://127.0.0.1 "prefix=$_"}) }, qq{invalid prefix "$_"})
    for '{a}', 'a}', '{', 'a b', "a\tb", "a\x01";
refused('prefix=', { with_redis('redis://127.0.0.1 prefix=') }, '"prefix=" has no value');

accepted('sentinel_user= and sentinel_password=',
    with_redis('sentinel://127.0.0.1/m sentinel_user=u sentinel_password=p'));
accepted('sentinel_password= alone', with_redis('sentinel://127.0.0.1/m sentinel_password=p'));
refused('sentinel_user= without a password', { with_redis('sentinel://127.0.0.1/m sentinel_user=u') },
    'sentinel_user "u" has no password', 'sentinel_password= or sentinel_password_file=');
refused("$_ without Sentinel", { with_redis("redis://127.0.0.1 $_=x") }, 'need a URL that starts with sentinel://')
    for qw(sentinel_user sentinel_password sentinel_password_file);
refused('two passwords for Sentinel',
    { with_redis("sentinel://127.0.0.1/m sentinel_password=p sentinel_password_file=p") },
    'sentinel_password= and sentinel_password_file= are both given');
refused('sentinel_password_file= that is not there',
    { with_redis('sentinel://127.0.0.1/m sentinel_password_file=nowhere') },
    'cannot open password_file', 'nowhere');
refused('db= of a cluster', { with_redis('cluster://127.0.0.1 db=1') }, 'db=1 is given, but a cluster has only one database');

my $host = 'redis://127.0.0.1';
my $file = "$dir/password";

write_file($file, "$SECRET\n");

accepted($_, with_redis($_)) for
    map({ ("$host timeout=$_", "$host connect_timeout=$_") } '1ms', '50ms', '1', '1s', '60s', '1m'),
    map({ "$host db=$_" } 0, 3, 2147483647),
    "$host password=$SECRET", "$host user=u password=$SECRET", "$host password_file=$file",
    "$host password_file=password", "$host user=u password_file=$file",
    "$host password=$HALF1%$HALF2=", "redis://u\@127.0.0.1 password=$SECRET",
    "redis://u\@127.0.0.1/3 password_file=$file", "redis://:$SECRET\@127.0.0.1 user=u",
    "unix:/run/redis.sock user=u password=$SECRET db=3 timeout=1s connect_timeout=2s",
    "$host db=1 password=$SECRET user=u connect_timeout=2s timeout=1s";

for my $name ('timeout', 'connect_timeout') {
    refused("$name=$_", { with_redis("$host \"$name=$_\"") }, qq{invalid $name "$_"}, $TIMEOUT)
        for '0', '0ms', '61s', '60001ms', '2m', '-1s', '1.5s', 'abc', '10 seconds',
        '99999999999999999999s';
}

refused("db=$_", { with_redis("$host \"db=$_\"") }, qq{invalid db "$_"}, $DB)
    for -1, 2147483648, '1.5', 'abc', '99999999999999999999', '0x1';

accepted("name=$_", http => "sliding_limit_redis $host name=$_;")
    for 'a', '0', 'Memory', 'memory2', 'a.b_c-D', 'x' x 64;

refused("name=$_", { with_redis("$host \"name=$_\"") }, qq{invalid name "$_"}, $NAME)
    for 'memory', 'x' x 65, 'a b', 'a:b', 'a/b', 'a{b}', "caf\xc3\xa9", '$uri';

refused('db= and a database in the URL', { with_redis("$host/1 db=1") },
    'db= and a database in the URL "redis://127.0.0.1/1" are both given');

for my $name (qw(name timeout connect_timeout user password password_file db)) {
    my $value = { timeout => '5ms', connect_timeout => '5ms', db => 3, password_file => $file,
        password => $SECRET }->{$name} // 'u';

    refused("$name= without value", { with_redis("$host $name=") }, qq{"$name=" has no value});
    refused("$name= twice", { with_redis("$host $name=$value $name=$value") },
        "$name= is given twice");
}

for ('retries=3', "passwd=$SECRET", "Password=$SECRET", "pass=$SECRET=", 'password', 'tls') {
    my ($name) = /^([^=]*=?)/;
    refused("parameter $name", { with_redis("$host $_") }, qq{unknown parameter "$name"},
        'must be one of: name=, timeout=, connect_timeout=, user=, password=, password_file=, ');
}

# ---- sliding_limit_redis: logging in

refused('user= without a password', { with_redis("$host user=somebody") },
    'user "somebody" has no password', 'add password= or password_file=');
refused('user= and a user in the URL',
    { with_redis("redis://one:$SECRET\@127.0.0.1 user=two") },
    'user= and a user in the URL are both given');

for ("$host password=$SECRET password_file=$file",
    "redis://:$SECRET\@127.0.0.1 password=$SECRET",
    "redis://u:$SECRET\@127.0.0.1 password_file=$file")
{
    (my $name = $_) =~ s/\Q$SECRET\E/.../g;
    refused("two passwords: $name", { with_redis($_) },
        'more than one of password=, password_file= and a password in the URL is given');
}

{
    my $must_hold = 'must have a password in its first line, and less than 4096 bytes';
    my $other = "$dir/other";

    for (['a line', "$SECRET\n"], ['no end of line', $SECRET], ['CRLF', "$SECRET\r\n"],
        ['more lines', "$SECRET\n# why\n"], ['4095 bytes', $HALF1 x 585])
    {
        write_file($other, $_->[1]);
        accepted("password_file with $_->[0]", with_redis("$host password_file=$other"));
    }

    for (['nothing', ''], ['an empty first line', "\n$SECRET\n"],
        ['4096 bytes', $HALF1 x 585 . "\n"], ['much more', "$SECRET\n" x 10000])
    {
        write_file($other, $_->[1]);
        refused("password_file with $_->[0]", { with_redis("$host password_file=$other") },
            qq{password_file "$other"}, $must_hold);
    }

    refused('password_file that is missing', { with_redis("$host password_file=$dir/none") },
        qq{cannot open password_file "$dir/none"}, 'No such file or directory');
    refused('password_file that is missing, by a relative name',
        { with_redis("$host password_file=none") }, qq{cannot open password_file "$dir/none"});
    refused('password_file that is a directory', { with_redis("$host password_file=$dir") },
        qq{cannot read password_file "$dir"}, 'Is a directory');
}

# ---- sliding_limit_redis: TLS

accepted("tls=off: $_", with_redis("$_ tls=off"))
    for $host, 'sentinel://127.0.0.1/m', 'cluster://127.0.0.1', 'unix:/run/redis.sock';

# accepted, or else refused for this reason alone
{
    my $needed = 'needs hiredis 1.0 or later with TLS; this module was built with hiredis ';
    my ($has_tls) = nginx_t(with_redis('rediss://127.0.0.1'));

    for (['rediss://127.0.0.1', 'rediss://'], ["rediss://u:$SECRET\@127.0.0.1:6380/3", 'rediss://'],
        ['rediss://localhost tls=on', 'rediss://'], ["$host tls=on", 'tls=on'],
        ['sentinel://127.0.0.1/m tls=on', 'tls=on'], ['cluster://127.0.0.1 tls=on', 'tls=on'],
        map { ["rediss://127.0.0.1 $_", 'rediss://'] } 'tls_verify=on', 'tls_verify=off', 'tls_min_version=1.2',
            'tls_min_version=1.3', 'tls_name=redis.example', 'tls_name=a-b_c.1', 'tls_name=10.0.0.1', 'tls_name=::1')
    {
        my ($line, $what) = @$_;
        (my $name = $line) =~ s/\Q$SECRET\E/.../;

        $has_tls ? accepted($name, with_redis($line)) : refused($name, { with_redis($line) }, "$what $needed");
    }
}

refused("$_ without TLS", { with_redis("$host $_") }, s/=.*/=/r . qq{ is given, but "$host" does not use TLS},
    'add tls=on', 'rediss://')
    for "tls_ca=$file", "tls_cert=$file", "tls_key=$file", 'tls_name=a', 'tls_verify=on', 'tls_min_version=1.2';
refused('tls_verify= and tls=off', { with_redis("$host tls=off tls_verify=off") }, 'tls_verify= is given, but',
    'does not use TLS');
refused('rediss:// and tls=off', { with_redis("rediss://u:$SECRET\@127.0.0.1 tls=off") },
    'tls=off is given, but "rediss://u:***@127.0.0.1" means TLS', 'write redis://');
refused('tls=on and a socket', { with_redis('unix:/run/redis.sock tls=on') },
    'tls=on is given, but a unix socket like "unix:/run/redis.sock" cannot use TLS');

for my $name ('tls', 'tls_verify') {
    refused("$name=$_", { with_redis("rediss://127.0.0.1 $name=$_") }, qq{invalid $name "$_", must be "on" or "off"})
        for 'yes', 'ON', '1', '0', 'onoff';
}

refused("tls_min_version=$_", { with_redis("rediss://127.0.0.1 tls_min_version=$_") },
    qq{invalid tls_min_version "$_", must be "1.2" or "1.3"})
    for '1', '1.1', '1.4', '1.30', 'TLSv1.3';
refused('tls_name=' . substr($_, 0, 20), { with_redis("rediss://127.0.0.1 \"tls_name=$_\"") },
    qq{invalid tls_name "$_", must be a host name or an address})
    for 'a b', 'a:6379', 'a/b', '[::1]', '*.example', 'a' x 254;

refused('tls_cert= without tls_key=', { with_redis("rediss://127.0.0.1 tls_cert=$file") },
    'tls_cert= is given, but tls_key= is not');
refused('tls_key= without tls_cert=', { with_redis("rediss://127.0.0.1 tls_key=$file") },
    'tls_key= is given, but tls_cert= is not');

for my $name (qw(tls tls_ca tls_cert tls_key tls_name tls_verify tls_min_version)) {
    refused("$name= without value", { with_redis("rediss://127.0.0.1 $name=") }, qq{"$name=" has no value});
    refused("$name= twice", { with_redis("rediss://127.0.0.1 $name=on $name=on") }, "$name= is given twice");
}

done_testing();
