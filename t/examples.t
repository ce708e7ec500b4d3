# The configurations in examples/ do what their comments promise: each is included as it
# stands, but for ports and paths, and driven with a real application and Redis. They fit
# beside each other, and examples/try shows of each what its comment shows.

use strict;
use warnings;
use lib 't/lib';

use File::Basename qw(basename dirname);
use File::Temp ();
use IO::Select ();
use IO::Socket::INET ();
use JSON::PP qw(decode_json);
use SlidingLimit::Servers qw(begin_request free_port module nginx_binary request start_nginx start_redis wait_until);
use SlidingLimit::Streams qw(start_streams);
use Test::More;
use Time::HiRes qw(sleep time);

my %tests = (
    'api-keys.conf' => \&api_keys,
    'bytes.conf' => \&bytes,
    'grpc.conf' => \&grpc,
    'hybrid.conf' => \&hybrid,
    'llm-tokens.conf' => \&llm_tokens,
    'login.conf' => \&login,
    'slow-queries.conf' => \&slow_queries,
    'tiers.conf' => \&tiers,
    'writes.conf' => \&writes,
);

# The application. Whoever has no session is who X-User and X-Role say, so that
# nothing but the example itself keeps forged ones out.
my $grpc_port = free_port();
my $application = start_nginx(<<'CONFIG', http => <<'HTTP' . <<"GRPC");
    location = /who {
        add_header X-User $session_user;
        add_header X-Role $session_role;
        return 204;
    }
    location /login {
        if ($arg_password = broken) { return 500; }
        if ($arg_password = expired) { return 403; }
        if ($arg_password != right) { return 401; }
        return 200 "welcome";
    }
    location /token {
        if ($http_authorization !~ "Basic \w+OnJpZ2h0$") { return 401; }
        return 200 "token";
    }
    location / { return 200 "user=$http_x_user role=$http_x_role"; }
CONFIG
    map $cookie_session $session_user {
        default   $http_x_user;
        of-alice  alice;
        of-root   root;
        of-owner  olivia;
        of-number 127.0.0.1;
    }
    map $cookie_session $session_role {
        default   $http_x_role;
        of-alice  standard;
        of-root   admin;
        of-owner  owner;
        of-number standard;
    }
HTTP
    server {
        listen 127.0.0.1:$grpc_port http2;
        location / { default_type application/grpc; add_header grpc-status 0; return 200; }
    }
GRPC

is_deeply [sort map { basename $_ } glob 'examples/*.conf'], [sort 'redis.conf', keys %tests],
    'every configuration in examples/ is tried here';

# Answers that take their time, with what they have cost.
my $streams = start_streams();

my ($redis, $nginx);

for my $name (sort keys %tests) {
    subtest $name => sub {
        $redis = start_redis();
        $nginx = start_example($name, $application->port);
        unlike $nginx->error_log, qr/\[warn\].*sliding_limit/, 'nginx has no doubts about it';
        $tests{$name}->();
        is $nginx->bad_lines, '', 'nothing alarming in the log';
        undef $nginx;
    };
}

subtest 'all of them together' => sub {
    my $dir = File::Temp->newdir;
    mkdir "$dir/$_" for qw(logs temp);
    write_file("$dir/nginx.conf", around(join "\n", map { contents($_) } sort(glob 'examples/*.conf')));

    my $said = `${\ nginx_binary()} -t -p $dir -c $dir/nginx.conf -e $dir/logs/error.log 2>&1`;
    is $?, 0, 'nginx -t' or diag $said;
    unlike $said, qr/conflicting|sliding_limit/, 'nginx has no doubts';

    # nginx would take the last one, without a word
    my (%defined, @twice);
    for my $file (glob 'examples/*.conf') {
        push @twice, grep { $defined{$_}++ } contents($file) =~ /^(?:map \S+|geo) (\$\w+) \{/mg;
    }
    cmp_ok scalar(keys %defined), '>=', 8, 'they define variables';
    is "@twice", '', 'none of which another file defines, too';
};

# What a file's comment shows: commands, and what they print.
sub promised {
    my ($name, $port) = @_;
    my $said = join "\n", contents("examples/$name") =~ /^#   (.*)$/mg;

    $said =~ s/127\.0\.0\.1:808[01]/127.0.0.1:$port/g;
    return $said;
}

SKIP: {
    skip 'examples/try loads the dynamic module', 1 unless module();

    subtest 'examples/try' => sub {
        local $ENV{MODULE} = module();
        local $ENV{PATH} = dirname(nginx_binary()) . ":$ENV{PATH}";

        for my $name (sort keys %tests) {
            my $temp = File::Temp->newdir;
            chmod 0755, $temp;
            my $port = free_port();
            local $ENV{PORT} = $port;
            local $ENV{TMPDIR} = "$temp";
            my $try = bless { owner => $$ }, 'SlidingLimit::Servers::Process';

            $try->launch("$temp/output", 'examples/try', $name);
            wait_until { -e "$temp/output" && contents("$temp/output") =~ /until Ctrl-C/ } 20, $name;

            my $shown = contents("$temp/output");
            # what nginx has to say about its own directives
            $shown =~ s/^nginx: \[warn\].*\n//mg;
            like promised($name, $port), qr/^\$ curl|; do curl/m, "$name says what to try";
            is $shown, promised($name, $port)
                . "\nhttp://127.0.0.1:$port/ is there for you to try more, until Ctrl-C.\n", 'and what comes of it';
            is $try->signal('TERM')->reap(10), 0, 'it ends when it is told to';
            is join(' ', map { basename $_ } glob "$temp/*"), 'output', 'and leaves nothing behind';
            is +(request($port, request_text('GET /')))[0], 0, 'not even an nginx';
        }

        like scalar(`examples/try 2>&1`), qr/^try FILE/, 'it says how it is called';
    };
}

done_testing;

sub write_file { my ($path, $text) = @_; open my $file, '>', $path or die "$path: $!"; print $file $text; close $file }

sub contents { my ($path) = @_; open my $file, '<', $path or die "$path: $!"; local $/; return <$file> }

# The example and redis.conf with this machine's ports, and a timeout that does not fail
# open where the machine is busy. `also` is what a test must change besides.
sub start_example {
    my ($name, $application_port, %also) = @_;
    my $port = free_port();
    my %ports = $name eq 'grpc.conf'
        ? ('listen 8081 ' => "listen 127.0.0.1:$port ", 'grpc://127.0.0.1:3000' => "grpc://127.0.0.1:$grpc_port")
        : ('listen 8080;' => "listen 127.0.0.1:$port;", 'http://127.0.0.1:3000' => "http://127.0.0.1:$application_port");

    my $example = changed($name, %ports, %also);
    my $store = changed('redis.conf',
        'redis://127.0.0.1:6379;' => 'redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

    return start_nginx('', port => $port, whole => around("$example\n$store"));
}

sub changed {
    my ($name, %change) = @_;
    my $text = contents("examples/$name");

    for my $old (sort keys %change) {
        $text =~ s/\Q$old\E/$change{$old}/g or die "examples/$name has no \"$old\"";
    }

    return $text;
}

# What a distribution's nginx.conf has around the files of conf.d.
sub around {
    my ($text) = @_;
    my $load = module() ? 'load_module ' . module() . ';' : '';
    my $temp = join ' ', map { "${_}_temp_path temp/$_;" } qw(client_body proxy fastcgi uwsgi scgi);

    return <<"END";
$load
daemon off;
user root;
pid nginx.pid;
error_log logs/error.log info;
events {}
http {
    access_log off;
    $temp
$text
}
END
}

sub request_text {
    my ($what, @headers) = @_;

    return join "\r\n", "$what HTTP/1.1", 'Host: test', 'Connection: close', @headers, '', '';
}

# ask('GET /', from => '127.0.0.2', headers => [...]): (status, headers, body)
sub ask {
    my ($what, %with) = @_;

    return request($nginx->port, request_text($what, @{ $with{headers} || [] }), 30, $with{from});
}

# What `times` such requests are answered with, as "200:10 429:1". What is asked
# may be made anew for each: sub { my ($number) = @_; return 'GET /', ... }
sub answers {
    my ($times, @what) = @_;
    my (@order, %count);

    for my $number (1 .. $times) {
        my ($status) = ask(ref $what[0] ? $what[0]->($number) : @what);
        push @order, $status unless $count{$status}++;
    }

    return join ' ', map { "$_:$count{$_}" } @order;
}

# How many are counted for "zone:key". What is taken back is gone soon after the
# answer, so an expected number is waited for.
sub counted {
    my ($key, $expected) = @_;
    my $end = time + 10;
    my $count = $redis->cli('ZCARD', "rate_limit:$key");

    while (defined $expected && $count != $expected && time < $end) {
        sleep 0.02;
        $count = $redis->cli('ZCARD', "rate_limit:$key");
    }

    return $count;
}

# As if so many requests had been counted so many seconds ago.
sub pretend_counted {
    my ($key, $number, $ago) = @_;
    my ($seconds) = split ' ', $redis->cli('TIME');
    my $then = ($seconds - $ago) * 1e6;

    $redis->cli('ZADD', "rate_limit:$key", map { ($then + $_, "earlier-$_") } 1 .. $number);
}

sub tiers {
    my @tiers = (
        { who => 'an anonymous client', key => 'address:127.0.0.1', minute => 10, hour => 100, ask => ['GET /'] },
        { who => 'a user', key => 'user:alice', minute => 100, hour => 1000,
            ask => ['GET /', headers => ['Cookie: session=of-alice']] },
        { who => 'an administrator', key => 'user:root', minute => 1000, hour => 10000,
            ask => ['GET /', headers => ['Cookie: session=of-root']] },
    );

    for my $tier (@tiers) {
        my ($key, $max) = @$tier{qw(key minute)};

        pretend_counted("$_:$key", $max - 5, 1) for qw(minute hour);
        is answers(6, @{ $tier->{ask} }), '200:5 429:1', "$tier->{who}: $max requests a minute";
        is counted("minute:$key"), $max, 'the refused one is not counted';
        is counted("hour:$key"), $max, 'nor charged to the hour';
        is +(ask(@{ $tier->{ask} }))[1]{'x-ratelimit-limit'}, $max, 'the client is told';
    }

    # longer than refusals are remembered
    sleep 2;

    for my $tier (@tiers) {
        my ($key, $max) = @$tier{qw(key hour)};

        $redis->cli('DEL', "rate_limit:minute:$key", "rate_limit:hour:$key");
        pretend_counted("hour:$key", $max - 5, 1800);

        is answers(6, @{ $tier->{ask} }), '200:5 429:1', "$tier->{who}: $max requests an hour";
        is counted("minute:$key"), 5, 'the refused one is not charged to the minute';
        my ($status, $headers) = ask(@{ $tier->{ask} });
        is $headers->{'x-ratelimit-limit'}, $max, 'the client is told';
        cmp_ok $headers->{'retry-after'}, '>', 60, 'that a minute is not enough';
    }

    # everybody from above is at the limit now
    my @forged = ('X-User: mallory', 'X-Role: admin');

    is +(ask('GET /', headers => \@forged))[0], 429, 'a forged user is no other client';

    my ($status, $headers, $body) = ask('GET /', from => '127.0.0.2', headers => \@forged);
    is "$status $headers->{'x-ratelimit-limit'}", '200 10', 'a forged role has no higher limit';
    like $body, qr/^user= role=$/m, 'and does not reach the application';
    is counted('minute:address:127.0.0.2'), 1, 'the address is counted';

    ($status, $headers) = ask('GET /', headers => ['Cookie: session=of-alice', @forged]);
    is "$status $headers->{'x-ratelimit-limit'}", '429 1000', 'a user cannot become another one';

    is +(ask('GET /', from => '127.0.0.3', headers => ['Cookie: session=of-alice']))[0], 429,
        'a user has one count, from whichever address';

    ($status, $headers, $body) = ask('GET /', headers => ['Cookie: session=of-number']);
    is "$status $body", '200 user=127.0.0.1 role=standard', 'a user called like an address has a count of its own';

    ($status, $headers) = ask('GET /', headers => ['Cookie: session=of-owner']);
    is "$status $headers->{'x-ratelimit-limit'}", '200 10', 'a role that is not listed has the lowest limits';

    is +(ask('GET /_who'))[0], 404, 'nobody else can ask who somebody is';
}

sub login {
    my $wrong = 'POST /login?password=wrong';
    my $right = 'POST /login?password=right';

    is answers(30, $right), '200:30', 'successful logins are not limited';
    is counted('failed:127.0.0.1', 0), 0, 'nor counted';
    is answers(15, 'POST /login?password=broken'), '500:15', 'nor is the application\'s own failure';
    is counted('failed:127.0.0.1', 0), 0, 'which says nothing about a password';

    is answers(4, $wrong), '401:4', 'failed ones are tried';
    is counted('failed:127.0.0.1', 4), 4, 'and counted';
    is answers(6, 'POST /login?password=expired'), '403:6', 'with 403 as well';
    is counted('failed:127.0.0.1', 10), 10, 'ten of them';
    is answers(3, $wrong), '429:3', 'then no more are tried';
    is answers(1, $right), '429:1', 'not even with the right password';
    is answers(1, "POST $_?password=right"), '429:1', "$_ is no way round" for qw(/login/ /LOGIN //login /%6cogin);
    is answers(1, 'POST /token', headers => ['Authorization: Basic YTpyaWdodA==']), '429:1', 'nor is /token';
    is answers(1, $right, headers => ['X-Forwarded-For: 192.0.2.9', 'X-Real-IP: 192.0.2.9']), '429:1',
        'nor another address in a header';
    is counted('failed:127.0.0.1'), 10, 'what is refused does not count';
    is answers(1, $right, from => '127.0.0.2'), '200:1', 'other addresses are not affected';
    is answers(20, 'GET /'), '200:20', 'nor is the rest of the site';

    # eve:0 to eve:9, eve:right and bob:right
    my @guesses = qw(ZXZlOjA= ZXZlOjE= ZXZlOjI= ZXZlOjM= ZXZlOjQ= ZXZlOjU= ZXZlOjY= ZXZlOjc= ZXZlOjg= ZXZlOjk=);
    my $guess = sub {
        my ($number) = @_;
        return 'POST /token', from => "127.0.1.$number",
            headers => ['Authorization: Basic ' . $guesses[$number % 10]];
    };
    my %eve = (headers => ['Authorization: Basic ZXZlOnJpZ2h0']);
    my %bob = (headers => ['Authorization: Basic Ym9iOnJpZ2h0']);

    is answers(40, 'POST /token', from => '127.0.0.3', %eve), '200:40', 'clients with their secret are not limited';
    is counted('failed_name:eve', 0), 0, 'nor counted';
    is answers(31, $guess), '401:30 429:1', 'a name is guessed at 30 times, from whichever addresses';
    is answers(1, 'POST /token', from => '127.0.0.3', %eve), '429:1', 'then nobody is let in by it';
    is answers(1, 'POST /token', from => '127.0.0.3', %bob), '200:1', 'other names are not affected';
    is answers(11, 'POST /token', from => '127.0.0.4'), '401:10 429:1', 'who sends no name is limited by address';
    is $redis->cli('KEYS', 'rate_limit:failed_name:*'), 'rate_limit:failed_name:eve', 'alone';

    login_under_way();
}

# An application that answers when the test wants it to.
sub login_under_way {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64, Timeout => 20) or die $!;
    my $text = request_text('POST /login');

    $redis->cli('FLUSHALL');
    $nginx = start_example('login.conf', $listener->sockport);

    my @guesses = map { begin_request($nginx->port, $text) } 1 .. 10;
    my @seen = map { scalar $listener->accept or die 'no login' } @guesses;
    is counted('failed:127.0.0.1'), 10, 'logins count while they are under way';
    is answers(2, 'POST /login'), '429:2', 'so guessing at the same time is no way round';

    for my $connection (@seen) {
        print $connection "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        close $connection;
    }
    is counted('failed:127.0.0.1', 0), 0, 'they are taken back when they succeed';
    close $_ for @guesses;

    my $hasty = begin_request($nginx->port, $text);
    my $connection = $listener->accept or die 'no login';
    my $head = '';
    sysread $connection, $head, 65536, length $head or die 'no request' until $head =~ /\r\n\r\n/;
    close $hasty;
    ok !IO::Select->new($connection)->can_read(0.5), 'a login goes on when the client hangs up';
    print $connection "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    close $connection;
    wait_until { counted('failed:127.0.0.1') == 1 } 10, 'the failed login to be counted';
    sleep 0.2;
    is counted('failed:127.0.0.1'), 1, 'and is counted when it fails';
}

sub api_keys {
    my ($alice, $bob, $partner) = map { { headers => ["X-Api-Key: $_"] } } qw(
        6f1c0a52d7e94b3b9c5e2f8a41d07b36 b93e7d10c6f845a28d4a0e59f7c3126e 0d48f2ab95c34e7186b7c1d3e05a9f64);

    my $mine = sub { my ($number) = @_; return 'GET /', from => '127.0.0.' . (2 + $number % 2), %$alice };
    is answers(601, $mine), '200:600 429:1', 'a key has 600 requests a minute, from whichever addresses';
    is counted('api:alice'), 600, 'under the client\'s name';
    is answers(1, 'GET /', %$bob), '200:1', 'another key has its own';

    is answers(21, 'GET /'), '200:20 429:1', 'an address without a key has 20';
    is counted('api:127.0.0.1'), 20, 'under the address';
    is answers(1, 'GET /', headers => ['X-Api-Key:']), '429:1', 'also if the key is empty';
    is answers(1, 'GET /', headers => ['X-Api-Key: alice']), '429:1', 'or a client\'s name';
    is answers(1, 'GET /', %$bob), '200:1', 'clients with a key at that address are not affected';

    my $invented = sub { my ($number) = @_; return 'GET /', from => '127.0.0.4', headers => ["X-Api-Key: $number"] };
    is answers(25, $invented), '200:20 429:5', 'a new key for every request does not help';

    my $exempt = sub {
        my ($status, $headers) = ask(@_);
        return join ' ', $status, grep { /ratelimit|retry/ } sort keys %$headers;
    };
    is answers(700, 'GET /', %$partner), '200:700', 'the partner is exempt';
    is $exempt->('GET /', %$partner), '200', 'and not told of any limit';

    is_deeply [sort split /\n/, $redis->cli('KEYS', 'rate_limit:api:*')],
        [sort map { "rate_limit:api:$_" } qw(127.0.0.1 127.0.0.4 alice bob)],
        'there are no keys in Redis, and no count of the partner\'s';

    my @claims = map { "$_: 192.0.2.1" } qw(X-Forwarded-For X-Real-IP Forwarded);
    is answers(1, 'GET /', headers => \@claims), '429:1', 'nobody is at the office by saying so';

    # the office's network stands for one that the test can send from
    $nginx = start_example('api-keys.conf', $application->port, '192.0.2.0/24' => '127.2.0.0/16');
    is answers(30, 'GET /', from => '127.2.0.1'), '200:30', 'the office is exempt';
    is answers(1, 'GET /', from => '127.2.0.1', %$alice), '200:1', 'with a used-up key, too';
    is $exempt->('GET /', from => '127.2.0.1'), '200', 'and not told of any limit';
    is counted('api:127.2.0.1'), 0, 'nor counted';
    is answers(1, 'GET /', from => '127.3.0.1', %$alice), '429:1', 'elsewhere the key is still used up';
}

sub grpc {
    my $url = 'http://127.0.0.1:' . $nginx->port;
    my $call = sub { my ($path) = @_; return scalar `nghttp -v $url$path 2>&1` };

    like $call->('/shop.Items/List'), qr/ grpc-status: 0$/m, 'a call reaches the application';

    $call->('/shop.Orders/Place') for 1 .. 11;
    is counted('orders:127.0.0.1'), 10, 'an address can place 10 orders a minute';
    is counted('calls:127.0.0.1'), 11, 'which are calls, too, but for a refused one';

    system "h2load -n 100 -c 1 -m 10 $url/shop.Items/List > /dev/null";
    is counted('calls:127.0.0.1'), 100, 'it can make 100 calls';

    for my $path ('/shop.Items/List', '/shop.Orders/Place') {
        my $said = $call->($path);
        like $said, qr/ :status: 200$/m, 'a refusal is a 200';
        like $said, qr/ grpc-status: 8$/m, 'with the status of gRPC';
        like $said, qr/ retry-after: \d+$/m, 'that says when to come back';
    }
}

sub writes {
    my $any_write = sub { return qw(POST PUT PATCH DELETE)[ $_[0] % 4 ] . ' /', from => '127.0.0.2' };

    is answers(101, 'GET /'), '200:100 429:1', 'an address has 100 reads a minute';
    is answers(1, 'POST /'), '429:1', 'and then no writes either';

    is answers(53, $any_write), '200:50 429:3', 'it has 50 writes';
    is counted('writes:127.0.0.2'), 50, 'refused ones are not charged to them';
    is counted('requests:127.0.0.2'), 50, 'nor to the requests';
    is answers(1, 'PROPFIND /', from => '127.0.0.2'), '429:1', 'a method that is not listed is a write';
    my $read = sub { return qw(GET HEAD OPTIONS)[ $_[0] % 3 ] . ' /', from => '127.0.0.2' };
    is answers(51, $read), '200:50 429:1', 'the other 50 can be reads';
    is counted('writes:127.0.0.2'), 50, 'which are no writes';
    is answers(1, 'GET /', from => '127.0.0.3', headers => ['X-Forwarded-For: 127.0.0.1']), '200:1',
        'another address has its own';

    is answers(11, 'GET /reports', from => '127.0.0.4'), '200:11', 'reports: reads cost 1';
    is answers(17, 'DELETE /reports', from => '127.0.0.4'), '200:17', 'writes cost 5';
    my ($status, $headers) = ask('DELETE /reports', from => '127.0.0.4');
    is "$status $headers->{'x-ratelimit-remaining'}", '429 4', 'more than what is left is refused';
    is answers(5, 'GET /reports', from => '127.0.0.4'), '200:4 429:1', 'what is left is enough for reads';
}

sub hybrid {
    my %alice = (headers => ['Cookie: session=of-alice']);

    is answers(101, 'GET /'), '200:100 429:1', 'unknown clients have 100 requests a minute';
    is counted('unknown:127.0.0.1'), 100, 'for each address';
    told(100, 'GET /');
    is answers(1, 'GET /', headers => ['Cookie: session=invented']), '429:1', 'an invented session does not help';
    is answers(1, 'GET /', headers => ['X-User: alice']), '429:1', 'nor does the name of a user';
    is counted('user:alice'), 0, 'who is not charged for it';
    like +(ask('GET /', from => '127.0.0.2', headers => ['X-User: alice']))[2], qr/^user= /,
        'and whose name does not reach the application';

    my $mine = sub { my ($number) = @_; return 'GET /', from => '127.0.0.' . (1 + $number % 3), %alice };
    is answers(1001, $mine), '200:1000 429:1', 'a user has 1,000, from whichever addresses';
    is counted('user:alice'), 1000, 'by name';
    is counted("unknown:127.0.0.$_->[0]"), $_->[1], 'not by address' for [1, 100], [2, 1], [3, 0];
    told(1000, 'GET /', %alice);
    is +(ask('GET /', headers => ['Cookie: session=of-root']))[2], 'user=root role=', 'another user has another 1,000';
}

# The refusal of `what` by a limit of `max`, as hybrid.conf words it.
sub told {
    my ($max, @what) = @_;
    my $before = int time;
    my ($status, $headers, $body) = ask(@what);
    my $wait = $headers->{'retry-after'};

    is $headers->{'content-type'}, 'application/json', 'a refusal is told in JSON';
    is_deeply decode_json($body), {
        error => {
            type => 'RateLimitExceeded',
            message => "Rate limit exceeded. Try again in $wait seconds.",
            retry_after => $wait,
            limit => $max,
            window => 60,
        },
    }, 'as the site wants it';
    like $body, qr/"retry_after":\d+,"limit":\d+,"window":60}}/, 'with numbers that are numbers';
    is $headers->{'x-ratelimit-remaining'}, 0, 'nothing is left';
    # nginx rounds up, and its clock may be a moment behind
    cmp_ok $headers->{'x-ratelimit-reset'}, '>=', $before - 1 + $wait, 'the reset is a Unix time';
    cmp_ok $headers->{'x-ratelimit-reset'}, '<=', time + 1 + $wait, 'not later than the wait';
}

# ---- What is known when a request ends

# The example with these streams behind it, and a place to look at counts.
sub start_with_streams {
    my ($name, %also) = @_;
    my ($server_name) = contents("examples/$name") =~ /(server_name \S+;)/;
    my $more = delete $also{server} // '';

    return start_example($name, $streams->port,
        $server_name => "$server_name location = /look { sliding_limit_metrics; sliding_limit off; } $more", %also);
}

sub used {
    my ($zone, $key) = @_;
    my $answer = (ask("GET /look?zone=$zone&key=$key"))[2];
    return $answer =~ /"used":(\d+)/ ? $1 : "unknown: $answer";
}

# What is settled is told to Redis after the answer, and nobody waits for it.
sub comes_to {
    my ($number, $zone, $key, $what) = @_;
    eval { wait_until { used($zone, $key) eq $number } 5 };
    is used($zone, $key), $number, $what;
}

# A request to a model, with a body of so many bytes, for the client that has this key.
sub model_text {
    my ($path, %with) = @_;
    my $size = $with{size} // 2;
    my @body = $with{chunked} ? 'Transfer-Encoding: chunked' : "Content-Length: $size";
    my $body = $with{chunked} ? "2\r\n{}\r\n0\r\n\r\n" : '{' . ' ' x ($size - 2) . '}';

    return request_text("POST $path", @body, $with{key} ? "Authorization: Bearer $with{key}" : ()) . $body;
}

sub ask_model { return request($nginx->port, model_text(@_), 30) }

# The statuses of requests that run at the same time, as "200:2 429:8".
sub at_once {
    my ($times, @what) = @_;
    my @clients = map { begin_request($nginx->port, model_text(@what)) } 1 .. $times;
    my %count;

    $count{ (join '', <$_>) =~ m{^HTTP/1\.1 (\d+)} ? $1 : 0 }++ for @clients;
    return join ' ', map { "$_:$count{$_}" } sort keys %count;
}

sub llm_tokens {
    my $alice = '6f1c0a52d7e94b3b9c5e2f8a41d07b36';
    my $bob = 'b93e7d10c6f845a28d4a0e59f7c3126e';
    my $chat = '/v1/chat/completions';
    $nginx = start_with_streams('llm-tokens.conf');
    my $forget = sub { $redis->cli('FLUSHALL') };

    # whatever model it is, as a whole or in a stream
    my @totals = ("$chat?", "$chat?stream=1&pieces=5&pause=0.02&", '/v1/responses?stream=1&pieces=5&',
        '/v1beta/models/m:generateContent?', '/v1beta/models/m:streamGenerateContent?stream=1&pieces=5&pause=0.02&',
        '/v1beta/models/m:streamGenerateContent?stream=array&pieces=5&pause=0.02&');
    for my $path (@totals) {
        $forget->();
        my ($status, $headers, $body) = ask_model("${path}tokens=350", key => $alice);
        is $status, 200, $path;
        like $body, qr/hi|350/, 'the answer arrives';
        like $headers->{ratelimit}, qr/"llm_minute";r=199000;/, 'an estimate is reserved';
        like $headers->{'ratelimit-policy'}, qr/"llm_minute";q=200000;qu="tokens";w=60/, 'of so many tokens';
        comes_to(350, $_, 'alice', "$_: the true number counts") for qw(llm_minute llm_day);
        is used('llm_requests', 'alice'), 1, 'and the request';
    }

    for my $path ('/v1/messages?', '/v1/messages?stream=1&pieces=5&pause=0.02&', '/api/chat?pieces=5&pause=0.02&') {
        $forget->();
        is +(ask_model("${path}tokens=3000", key => $alice, size => 1234))[0], 200, $path;
        comes_to(2700, $_, 'alice', "$_: output in tokens") for qw(llm_output llm_output_day);
        is used('llm_input', 'alice'), 1234, 'input in bytes';
    }

    # ---- estimates
    $forget->();
    my %estimates = (2 => 1000, 999 => 1000, 1000 => 1750, 3999 => 1750, 4000 => 3250, 9999 => 3250, 10000 => 10750,
        39999 => 10750, 40000 => 25750, 99999 => 25750, 100000 => 100000, 999999 => 100000);
    for my $size (sort { $a <=> $b } keys %estimates) {
        $forget->();
        my ($status, $headers) = ask_model("$chat?tokens=1", key => $alice, size => $size);
        my ($left) = $headers->{ratelimit} =~ /"llm_minute";r=(\d+)/;
        is 200_000 - $left, $estimates{$size}, "$size bytes";
    }
    my ($status, $headers) = ask_model("$chat?tokens=1", key => $bob, chunked => 1);
    like $headers->{ratelimit}, qr/"llm_minute";r=100000;/, 'a length that is not known';
    is +(ask_model('/v1/messages?tokens=10', key => $bob, chunked => 1))[0], 200;
    is used('llm_input', 'bob'), 100_000, 'is no way round for input either';

    # ---- the same number for everybody at once
    $forget->();
    is at_once(10, "$chat?stream=1&pieces=10&pause=0.1&tokens=350", key => $alice, size => 200_000), '200:2 429:8',
        'requests that run at the same time cannot have the same tokens';
    comes_to(700, $_, 'alice', "$_: and in the end only what they have cost") for qw(llm_minute llm_day);
    is used('llm_requests', 'alice'), 2, 'refused requests are charged to no limit';
    is at_once(2, "$chat?tokens=350", key => $alice, size => 200_000), '200:1 429:1', 'only what is left can be reserved';

    # ---- debt
    $forget->();
    is at_once(20, "$chat?stream=1&pieces=10&pause=0.05&tokens=20000", key => $alice), '200:20', 'estimates that are too low';
    comes_to(400_000, 'llm_minute', 'alice', 'are made good by what they were too low');
    ($status, $headers) = ask_model("$chat?tokens=1", key => $alice);
    is $status, 429, 'so that the next one waits';
    cmp_ok $headers->{'retry-after'}, '>', 30, 'for long';
    is used('llm_minute', 'alice'), 400_000, 'and settles nothing';
    is +(ask_model("$chat?tokens=1", key => $bob))[0], 200, 'others do not wait';

    # ---- what has cost nothing, or nobody knows what
    $forget->();
    is +(ask_model("$chat?tokens=350&status=500", key => $alice))[0], 500;
    comes_to(0, 'llm_minute', 'alice', 'an error costs no tokens');
    ask_model("$chat?tokens=350&usage=0&stream=1", key => $alice);
    sleep 0.3;
    is used('llm_minute', 'alice'), 1000, 'an answer that does not say costs the estimate';

    for my $asked ('stream=1&pieces=200&pause=0.05&tokens=350', 'wait=5&tokens=350') {
        $forget->();
        my $client = begin_request($nginx->port, model_text("$chat?$asked", key => $alice));
        wait_until { used('llm_minute', 'alice') == 1000 } 5, 'the reservation';
        sleep 0.2;
        close $client;
        sleep 0.3;
        is used('llm_minute', 'alice'), 1000, 'so does one that is not waited for';
    }

    $forget->();
    my $client = begin_request($nginx->port, model_text('/v1beta/x?stream=1&pieces=200&pause=0.05&tokens=9000', key => $alice));
    my $read = '';
    sysread $client, $read, 4096, length $read or die 'no answer' until $read =~ /totalTokenCount.*totalTokenCount/s;
    close $client;
    sleep 0.5;
    is used('llm_minute', 'alice'), 1000, 'also where it was said in the middle what it has cost so far';

    $forget->();
    is +(ask("GET /v1/chat/completions?tokens=350", headers => ["Authorization: Bearer $alice"]))[0], 200;
    sleep 0.3;
    is used('llm_minute', 'alice'), 1, 'what is only read again has not cost its tokens again';

    # ---- who it is, and how often
    $forget->();
    is answers(61, 'GET /v1/models', headers => ['Authorization: Bearer made-up']), '200:60 429:1', '60 requests a minute';
    is used('llm_requests', '127.0.0.1'), 60, 'by address, with a made-up key';
    is used('llm_minute', '127.0.0.1'), 60, 'which cost next to no tokens';
    my (undef, $seen) = ask('GET /v1/models', headers => ["X-Api-Key: $bob", 'Accept-Encoding: gzip']);
    is used('llm_requests', 'bob'), 1, 'a key can be in either header';
    is $seen->{'x-seen'}, '', 'and nobody is asked for compressed answers';
    (undef, $seen) = ask('GET /v1/models', headers => ["Authorization: Bearer $bob"]);
    is $seen->{'x-seen'}, "Authorization=Bearer $bob", 'the key reaches the application';

    # ---- a day
    $forget->();
    $nginx = start_with_streams('llm-tokens.conf', 'max=2000000' => 'max=3000');
    ask_model("$chat?tokens=2500", key => $alice);
    comes_to(2500, 'llm_day', 'alice', 'a day has its own limit');
    is +(ask_model("$chat?tokens=1", key => $alice))[0], 429, 'which refuses, too';
    is used('llm_minute', 'alice'), 2500, 'and then the minute is not charged';
}

sub bytes {
    my $raw = sub {
        my ($what, @headers) = @_;
        my $client = begin_request($nginx->port, request_text($what, @headers));
        local $/;
        return length <$client>;
    };
    $nginx = start_with_streams('bytes.conf');

    my $sent = $raw->('GET /download/a?size=5000&pieces=4&pause=0.05');
    cmp_ok $sent, '>', 20_000, 'a download arrives';
    comes_to($sent, 'bytes', '127.0.0.1', 'and its bytes count');
    is +(ask('GET /download/a?size=10'))[1]{'x-ratelimit-remaining'}, 999_999_999 - $sent, 'as the client is told';
    $redis->cli('FLUSHALL');
    $sent = $raw->('HEAD /download/a?size=5000');
    comes_to($sent, 'bytes', '127.0.0.1', 'without a body, those of the header');

    $redis->cli('FLUSHALL');
    my $client = begin_request($nginx->port, request_text('GET /download/a?size=1000&pieces=100&pause=0.05'));
    sysread $client, my $begun, 1000;
    is used('bytes', '127.0.0.1'), 1, 'while it runs, one is reserved';
    close $client;
    wait_until { used('bytes', '127.0.0.1') > 1 } 10, 'the end';
    cmp_ok used('bytes', '127.0.0.1'), '<', 50_000, 'of what is broken off that counts which was sent';

    my @downloads = map { begin_request($nginx->port, request_text('GET /download/a?size=10&wait=2')) } 1 .. 4;
    sleep 0.3;
    is answers(1, 'GET /download/a?size=10'), '429:1', 'four downloads at the same time are enough';
    is answers(1, 'GET /other?size=10'), '200:1', 'elsewhere there is no limit';
    like join('', <$_>), qr/^HTTP\/1.1 200/, 'they go on' for @downloads;

    $redis->cli('FLUSHALL');
    $nginx = start_with_streams('bytes.conf', 'max=1000000000' => 'max=30000');
    is answers(1, 'GET /download/a?size=20000'), '200:1', 'what is left is enough';
    wait_until { used('bytes', '127.0.0.1') > 20_000 } 10;
    is answers(1, 'GET /download/a?size=20000'), '200:1', 'for the last one, which goes beyond';
    wait_until { used('bytes', '127.0.0.1') > 40_000 } 10;
    is answers(1, 'GET /download/a?size=1'), '429:1', 'then nothing is sent';
    is answers(1, 'GET /download/a?size=1', from => '127.0.0.2'), '200:1', 'to this address';
}

sub slow_queries {
    my $log = sub { my $path = $nginx->dir . '/logs/times.log'; return -e $path ? contents($path) : '' };
    my $start = sub {
        my (%also) = @_;
        $redis->cli('FLUSHALL');
        $nginx = start_with_streams('slow-queries.conf', server => <<'END', %also,
    access_log logs/times.log times;
    location = /own { sliding_limit zone=busy max=20000 window=1m key=$sliding_limit_addr cost=100 settle=$slow_ms unit=milliseconds algorithm=buckets buckets=60; empty_gif; }
END
            "\nmap \$request_time" => "\nlog_format times '\$upstream_response_time|\$request_time|\$uri';\nmap \$request_time");
    };
    # the milliseconds that a request has taken, according to the log
    my $taken = sub {
        my ($path, $column) = @_;
        wait_until { $log->() =~ /\|\Q$path\E$/m } 10, "$path in the log";
        my ($line) = $log->() =~ /^(.*)\|\Q$path\E$/m;
        return (split /\|/, $line)[$column] =~ tr/.//dr + 0;
    };

    $start->();
    is +(ask('GET /first?wait=0.3'))[1]{'x-ratelimit-remaining'}, 19_900, 'a tenth of a second is reserved';
    my $first = $taken->('/first', 0);
    cmp_ok $first, '>=', 290, 'a query takes its time';
    comes_to($first, 'busy', '127.0.0.1', 'which counts');
    ask('GET /quick');
    my $both = $first + $taken->('/quick', 0);
    comes_to($both, 'busy', '127.0.0.1', 'of a quick one less than what was reserved');
    ask('GET /own');
    sleep 0.2;
    is used('busy', '127.0.0.1'), $both, 'what asked nobody costs nothing';
    ask('GET /longer?wait=1.1');
    my $all = $both + $taken->('/longer', 0);
    comes_to($all, 'busy', '127.0.0.1', 'seconds are milliseconds, too');

    my $client = begin_request($nginx->port, request_text('GET /left?wait=0.5'));
    wait_until { used('busy', '127.0.0.1') == $all + 100 } 10, 'the query';
    close $client;
    my $left = $taken->('/left', 0);
    cmp_ok $left, '>=', 490, 'a query goes on when nobody waits for it';
    comes_to($all + $left, 'busy', '127.0.0.1', 'and counts');

    # one of two servers is not there
    my $nobody = free_port();
    $start->('http://127.0.0.1:3000' => 'http://pair', 'server {' => "upstream pair { server 127.0.0.1:$nobody; server 127.0.0.1:"
        . $streams->port . "; }\nserver {");
    ask("GET /pair$_?wait=0.2") for 1, 2;
    wait_until { $log->() =~ m{/pair2$}m } 10, 'the log';
    my ($which) = $log->() =~ m{, .*/pair([12])$}m;
    ok $which, 'two servers were asked' or diag $log->();
    comes_to($taken->("/pair$which", 1) + $taken->('/pair' . (3 - $which), 0), 'busy', '127.0.0.1', 'then the time of the request counts');
    unlike $nginx->error_log, qr/settle of zone/, 'all of them are numbers';

    $start->('max=20000' => 'max=1000');
    my $text = request_text('GET /many?wait=0.5');
    my @clients = map { begin_request($nginx->port, $text) } 1 .. 12;
    my %count;
    $count{ (join '', <$_>) =~ m{^HTTP/1\.1 (\d+)} ? $1 : 0 }++ for @clients;
    is_deeply \%count, { 200 => 10, 429 => 2 }, 'only so many can run at the same time';
    wait_until { used('busy', '127.0.0.1') >= 10 * 490 } 10, 'their ends';
    is answers(1, 'GET /'), '429:1', 'and whoever has had more than its time waits';
    is answers(1, 'GET /', from => '127.0.0.2'), '200:1', 'others do not';
}
