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
use Test::More;
use Time::HiRes qw(sleep time);

my %tests = (
    'api-keys.conf' => \&api_keys,
    'grpc.conf' => \&grpc,
    'hybrid.conf' => \&hybrid,
    'login.conf' => \&login,
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
