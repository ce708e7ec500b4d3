# What nginx -t accepts and what it refuses, and that a refusal says why: it
# quotes what was given, says what is allowed, and never shows a password.

use strict;
use warnings;

use lib 't/lib';
use File::Temp ();
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

# Runs nginx -t; (whether it succeeded, its output and its log).
sub nginx_t {
    my (%at) = @_;
    my $load = module();
    my $text = $load ? "load_module $load;\n" : '';

    $text .= "pid $dir/nginx.pid;\n"
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

# One test per row: everything that is wrong with the outcome.
sub outcome {
    my ($name, $config, $succeeds, @needed) = @_;
    my ($succeeded, $output, $text) = nginx_t(%$config);
    my @wrong;

    push @wrong, $succeeded ? 'it was accepted' : 'it was refused'
        if !!$succeeded != !!$succeeds;
    push @wrong, 'there was a message'
        if $succeeds && $output =~ /\[(?:warn|error|crit|alert|emerg)\]/;
    push @wrong, 'there was no [emerg]' if !$succeeds && $output !~ /\[emerg\]/;
    push @wrong, map { "missing: $_" } grep { index($output, $_) < 0 } @needed;
    push @wrong, 'a password is shown' if $output =~ /\Q$HALF1\E|\Q$HALF2\E/;
    push @wrong, 'it went down' if $output =~ /ended by signal|Sanitizer|runtime error/;

    ok(!@wrong, $name) or diag(join "\n", @wrong, $output, $text);
}

sub accepted {
    my ($name, %config) = @_;

    outcome("accepted: $name", \%config, 1);
}

# @needed: what the message has to hold, beside the place in the file.
sub refused {
    my ($name, $config, @needed) = @_;

    outcome("refused: $name", $config, 0, "$conf:", @needed);
}

# A sliding_limit line; undef leaves a parameter out.
sub limit {
    my %with = (zone => 'z', max => 1, window => '1s', key => 'k', @_);

    return 'sliding_limit '
        . join(' ', map { "\"$_=$with{$_}\"" } grep { defined $with{$_} } sort keys %with)
        . ";\n";
}

sub with_limit { return (http => $redis, location => join '', @_) }

# For rows about sliding_limit_redis: one line, and a limit that uses it.
sub with_redis { return (http => "sliding_limit_redis $_[0];", location => limit()) }

my $MAX = 'a whole number of requests from 0 to 2147483647';
my $WINDOW = 'a time from 100ms to 31d';
my $ZONE = '1 to 64 letters, digits, "_", "." or "-"';
my $TIMEOUT = 'a time from 1ms to 60s';
my $DB = 'a number from 0 to 2147483647';
my $ADDRESS = 'must be host or host:port with a port from 1 to 65535';
my $SOCKET = 'an absolute path shorter than 108 bytes';

# ---- sliding_limit: values

accepted("max=$_", with_limit(limit(max => $_))) for 0, 1, 2147483647;

refused("max=$_", { with_limit(limit(max => $_)) }, qq{invalid max "$_"}, $MAX)
    for -1, 2147483648, '99999999999999999999', '1.5', '1e3', '0x10', 'abc', '10r/s', '+1', ' 1';

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

# nginx itself finds these, once all is read, and does not name the line
for (qw(key fallback)) {
    outcome("refused: $_ of an unknown variable", { with_limit(limit($_ => '$no_such_thing')) },
        0, 'unknown "no_such_thing" variable');
}

refused('a key with a bare $', { with_limit(limit(key => 'a$')) }, 'invalid variable name');

accepted("fallback=$_", with_limit(limit(key => '$cookie_id', fallback => $_)))
    for '$remote_addr', 'none', 'a$uri';

# ---- sliding_limit: its parameters as such

for (qw(zone max window key)) {
    refused("no $_=", { with_limit(limit($_ => undef)) }, "$_= is missing");
}

for (qw(zone max window key fallback)) {
    refused("$_= without value", { with_limit(limit($_ => '')) }, qq{"$_=" has no value});

    my $twice = limit(fallback => 'f');
    $twice =~ s/("$_=[^"]*")/$1 $1/;
    refused("$_= twice", { with_limit($twice) }, "$_= is given twice");
}

my $KNOWN = 'known are zone=, max=, window=, key=, fallback=';

for ('rate=5', 'Zone=z', ' zone=z', '=z') {
    my ($name) = split /=/;
    refused("parameter '$_'",
        { with_limit("sliding_limit zone=z max=1 window=1s key=k \"$_\";") },
        qq{unknown parameter "$name"}, $KNOWN);
}

for ('nodelay', 'zone', 'on', 'off', '') {
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
refused('the same zone twice at one level', { with_limit(limit(), limit(key => 'other')) },
    'zone "z" is used twice at one level');

{
    # both lines by number
    my $server = "# line of the comment\n" . limit(window => '1s');
    my $location = limit(window => '2s');
    my (undef, undef, $text) = nginx_t(http => $redis, server => $server, location => $location);
    my ($first, $second) =
        grep { (split /\n/, $text)[$_ - 1] =~ /^sliding_limit / } 1 .. ($text =~ tr/\n//);

    refused('the same zone with another window, with both lines',
        { http => $redis, server => $server, location => $location },
        'zone "z" has a window of 2000 ms here, but 1000 ms in ' . "$conf:$first;",
        "in $conf:$second\n");
}

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

refused('a limit without sliding_limit_redis', { location => limit(zone => 'lonely') },
    'zone "lonely" in', 'has no Redis', 'sliding_limit_redis redis://');
accepted('sliding_limit_redis after the limit',
    location => limit(), server => "}\n$redis\nserver { listen unix:$dir/second.sock;");
accepted('sliding_limit_redis without any limit', http => $redis);

# ---- where directives may stand

my %good = (
    sliding_limit => limit(),
    sliding_limit_redis => $redis,
    sliding_limit_on_error => 'sliding_limit_on_error pass;',
    sliding_limit_status => 'sliding_limit_status 429;',
    sliding_limit_log_level => 'sliding_limit_log_level warn;',
    sliding_limit_reset => 'sliding_limit_reset delta;',
);

for my $directive (sort keys %good) {
    my $line = $good{$directive};
    my $is_redis = $directive eq 'sliding_limit_redis';
    my $http = $is_redis ? '' : $redis;
    my $not_allowed = qq{"$directive" directive is not allowed here};

    accepted("$directive in http", http => "$http $line");

    for my $level (qw(server location)) {
        my %config = (http => $http, $level => $line);

        $is_redis ? refused("$directive in $level", \%config, $not_allowed)
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

    refused("$directive twice", { http => "$http $line $line" },
        qq{"$directive" directive is duplicate});
    refused("$directive without value", { http => "$http $directive;" },
        qq{invalid number of arguments in "$directive"});
}

# ---- directives with one value

my %choices = (
    sliding_limit_on_error => [qw(pass deny)],
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

refused('sliding_limit_status with two values', { location => 'sliding_limit_status 429 503;' },
    'invalid number of arguments in "sliding_limit_status"');

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
    ['""', 'invalid URL ""', 'must start with redis:// or unix:'],
    ['127.0.0.1:6379', 'invalid URL "127.0.0.1:6379"', 'must start with redis:// or unix:'],
    ['redis', 'invalid URL "redis"', 'must start with redis:// or unix:'],
    ['redis:127.0.0.1', 'invalid URL "redis:127.0.0.1"', 'must start with redis:// or unix:'],
    ['redis:/127.0.0.1', 'invalid URL "redis:/127.0.0.1"', 'must start with redis:// or unix:'],
    ['REDIS://127.0.0.1', 'invalid URL "REDIS://127.0.0.1"', 'must start with redis:// or unix:'],
    ['http://127.0.0.1', 'invalid URL "http://127.0.0.1"', 'must start with redis:// or unix:'],
    ["http://user:$SECRET\@127.0.0.1", 'invalid URL "http://user:***@127.0.0.1"',
        'must start with redis:// or unix:'],
    ["rediss://user:$SECRET\@127.0.0.1", 'invalid URL "rediss://user:***@127.0.0.1"'],
    ["redis:/user:$SECRET\@127.0.0.1", 'invalid URL "***@127.0.0.1"',
        'must start with redis:// or unix:'],
    ["redis:$SECRET\@127.0.0.1", 'invalid URL "***@127.0.0.1"',
        'must start with redis:// or unix:'],
    ["user:$SECRET\@127.0.0.1", 'invalid URL "***@127.0.0.1"',
        'must start with redis:// or unix:'],
    ['timeout=5ms', 'invalid URL "timeout=5ms"', 'must start with redis:// or unix:'],

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
    ['redis://no-such-host.invalid', 'host not found in "no-such-host.invalid"', $ADDRESS],
    ["redis://user:$SECRET\@no-such-host.invalid:6379",
        'host not found in "no-such-host.invalid:6379"', $ADDRESS],

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
        'must start with redis:// or unix:'],
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

# ---- sliding_limit_redis: parameters

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

refused('db= and a database in the URL', { with_redis("$host/1 db=1") },
    'db= and a database in the URL "redis://127.0.0.1/1" are both given');

for my $name (qw(timeout connect_timeout user password password_file db)) {
    my $value = { timeout => '5ms', connect_timeout => '5ms', db => 3, password_file => $file,
        password => $SECRET }->{$name} // 'u';

    refused("$name= without value", { with_redis("$host $name=") }, qq{"$name=" has no value});
    refused("$name= twice", { with_redis("$host $name=$value $name=$value") },
        "$name= is given twice");
}

for ('retries=3', "passwd=$SECRET", "Password=$SECRET", "pass=$SECRET=", 'password', 'tls') {
    my ($name) = split /=/;
    refused("parameter $name", { with_redis("$host $_") }, qq{unknown parameter "$name"},
        'known are timeout=, connect_timeout=, user=, password=, password_file=, db=');
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
    my $must_hold = 'must hold a password in its first line and less than 4096 bytes';
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

done_testing();
