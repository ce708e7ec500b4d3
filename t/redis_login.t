# Every way to reach a Redis and to log in there, and what happens if Redis says
# no: requests pass, and the log says it once, loudly and without the password.

use strict;
use warnings;

use lib 't/lib';
use File::Temp ();
use IO::Select ();
use IO::Socket::IP ();
use SlidingLimit::FakeRedis qw(read_command start_fake_redis);
use SlidingLimit::Rights qw(rights);
use SlidingLimit::Servers qw(free_port start_redis start_nginx get wait_until);
use Test::More;

my $SECRET = 'Hunter2Swordfish';

# With what a URL has to encode, and its encoded form.
my $ODD = 'Hunter2@:/%41?#[ Swordfish';
my $ODD_ENCODED = 'Hunter2%40%3A%2f%2541%3F%23%5B%20Swordfish';

my $WORKERS = 2;

my $temp = File::Temp->newdir();
my $dir = "$temp";

# Never the reason for a failure, however busy the machine is.
my $PATIENT = 'timeout=10s connect_timeout=20s';

# nginx with one limit. $redis_line: the arguments of sliding_limit_redis.
sub nginx {
    my ($redis_line, %with) = @_;

    return start_nginx(<<'END', http => "sliding_limit_redis $redis_line $PATIENT;", %with);
        location / {
            sliding_limit zone=login max=1000 window=1h key=somebody;
            add_header X-Status $sliding_limit_status always;
            empty_gif;
        }
        location /deny {
            sliding_limit zone=login max=1000 window=1h key=somebody;
            sliding_limit_on_error deny;
            add_header X-Status $sliding_limit_status always;
            empty_gif;
        }
END
}

# As "200 PASSED".
sub answer {
    my ($nginx, $path) = @_;
    my ($status, $headers) = get($nginx->port, $path // '/', 30);

    return "$status " . ($headers->{'x-status'} // '-');
}

sub lines_about_redis { return grep { /sliding_limit: redis/ } split /\n/, $_[0]->error_log }

sub shows_no_password {
    my ($nginx) = @_;

    unlike($nginx->error_log, qr/Hunter2|Swordfish/, 'no password in the log');
    is($nginx->bad_lines, '', 'nothing bad in the log');
}

# Requests are counted, in this database and nowhere else.
sub counts {
    my ($name, $redis, $redis_line, %with) = @_;
    my $db = $with{db} // 0;
    my $key = ($with{prefix} // 'rate_limit') . ':login:somebody';

    subtest "counts: $name" => sub {
        $redis->cli('FLUSHALL');

        my $nginx = nginx($redis_line);

        # a name may have more addresses than Redis listens at
        ok(eval { wait_until { answer($nginx) eq '200 PASSED' } 60; 1 }, 'a request is counted')
            or diag($nginx->error_log);
        is(answer($nginx), '200 PASSED', 'counted again');
        is($redis->cli('-n', $db, 'ZCARD', $key), 2, "both are in database $db");

        if ($db) {
            is($redis->cli('-n', 0, 'DBSIZE'), 0, 'nothing is in database 0');
        }

        if ($with{clients}) {
            like($redis->cli('CLIENT', 'LIST'), $with{clients}, 'by the right way');
        }

        shows_no_password($nginx);
        is(join("\n", lines_about_redis($nginx)), '', 'nothing to tell about Redis')
            unless $with{may_stumble};
    };
}

# Requests pass uncounted, and one worker logs one line at [crit].
sub fails {
    my ($name, $redis, $redis_line, $reason) = @_;

    subtest "fails: $name" => sub {
        my $nginx = nginx($redis_line, workers => $WORKERS);

        is(answer($nginx), '200 FAILED_OPEN', 'the first request passes');

        my $loud = qr/\[crit\] .* sliding_limit: redis "[^"]+" is down: $reason/;
        wait_until { $nginx->error_log =~ $loud } 60, 'a line in the log';

        my $attempts = $redis->calls('auth');
        my %answers;
        $answers{ answer($nginx) }++ for 1 .. 60;
        is_deeply(\%answers, { '200 FAILED_OPEN' => 60 }, 'all requests pass');
        is(answer($nginx, '/deny'), '503 FAILED_CLOSED', 'unless they are not to');

        cmp_ok($redis->calls('auth') - $attempts, '<', 30, 'requests do not try to log in');
        # the first one may have failed while another worker was telling why
        my @lines = grep { !/: 1 check\(s\) failed, / } lines_about_redis($nginx);
        is(scalar @lines, 1, 'nor log anything, nor does another worker')
            or diag($nginx->error_log);
        shows_no_password($nginx);
    };
}

sub write_file {
    my ($name, $content) = @_;

    open my $file, '>', "$dir/$name" or die $!;
    print $file $content;
    close $file or die $!;

    return "$dir/$name";
}

# ---- without a password

{
    my $socket = "$dir/redis.sock";
    my $redis = start_redis(args => ['--unixsocket', $socket, '--unixsocketperm', '777']);
    my $port = $redis->port;

    counts('an address', $redis, "redis://127.0.0.1:$port", clients => qr/ addr=127\.0\.0\.1:/);
    counts('the name localhost', $redis, "redis://localhost:$port", may_stumble => 1);
    counts('a unix socket', $redis, "unix:$socket", clients => qr/ flags=U /);

    counts('db=', $redis, "redis://127.0.0.1:$port db=3", db => 3);
    counts('a database in the URL', $redis, "redis://127.0.0.1:$port/15", db => 15);
    counts('database 0 in the URL', $redis, "redis://127.0.0.1:$port/0");
    counts('a unix socket and db=', $redis, "unix:$socket db=5", db => 5,
        clients => qr/ flags=U .*db=5 /);

    fails('a database that is not there', $redis, "redis://127.0.0.1:$port/16",
        qr/ERR .*DB index/);
    fails('a password where none is set', $redis, "redis://127.0.0.1:$port password=$SECRET",
        qr/ERR .*AUTH/);
}

# ---- IPv6

SKIP: {
    my $redis_port;

    for (1 .. 100) {
        my $port = free_port();
        my $probe = IO::Socket::IP->new(LocalHost => '::1', LocalPort => $port, Listen => 1);
        $redis_port = $port, last if $probe;
    }

    skip "this machine has no ::1 to listen at: $@", 1 unless $redis_port;

    my $redis = start_redis(port => $redis_port, args => ['--bind', '127.0.0.1', '::1']);

    counts('an IPv6 address', $redis, "redis://[::1]:$redis_port/2", db => 2,
        clients => qr/ addr=\[::1\]:/);
}

# ---- one password for everybody

{
    my $redis = start_redis(args => ['--requirepass', $SECRET],
        cli_args => ['--no-auth-warning', '-a', $SECRET]);
    my $host = '127.0.0.1:' . $redis->port;

    counts('password=', $redis, "redis://$host password=$SECRET");
    counts('password= and db=', $redis, "redis://$host password=$SECRET db=3", db => 3);
    counts('a password in the URL', $redis, "redis://:$SECRET\@$host");
    counts('a password and a database in the URL', $redis, "redis://:$SECRET\@$host/4", db => 4);
    counts('the user "default"', $redis, "redis://$host user=default password=$SECRET");

    for (['ends in a newline', "$SECRET\n"], ['ends in CRLF', "$SECRET\r\n"],
        ['has no newline', $SECRET], ['has more lines', "$SECRET\n# of the cache\n"])
    {
        my ($how, $content) = @$_;
        my $file = write_file('password', $content);

        counts("a password_file that $how", $redis, "redis://$host password_file=$file");
    }

    fails('no password', $redis, "redis://$host", qr/NOAUTH/);
    fails('a wrong password=', $redis, "redis://$host password=not$SECRET", qr/WRONGPASS/);
    fails('a wrong password in the URL', $redis, "redis://:not$SECRET\@$host", qr/WRONGPASS/);
    fails('a wrong password_file', $redis,
        "redis://$host password_file=" . write_file('wrong', " $SECRET\n"), qr/WRONGPASS/);
    fails('an unknown user', $redis, "redis://nobody:$SECRET\@$host", qr/WRONGPASS/);
}

# ---- a password that has to be encoded in a URL

{
    my $redis = start_redis(args => ['--requirepass', $ODD],
        cli_args => ['--no-auth-warning', '-a', $ODD]);
    my $host = '127.0.0.1:' . $redis->port;

    counts('an encoded password in the URL', $redis, "redis://:$ODD_ENCODED\@$host");
    counts('the same as password=', $redis, qq{redis://$host "password=$ODD"});
    counts('the same in a password_file', $redis,
        "redis://$host password_file=" . write_file('odd', "$ODD\n"));

    counts('a password in the URL, encoded only where it has to be', $redis,
        qq{"redis://:Hunter2\@:/%2541?#[ Swordfish\@$host/2"}, db => 2);

    fails('password= is not decoded', $redis, "redis://$host password=$ODD_ENCODED",
        qr/WRONGPASS/);
}

# ---- users with rights of their own

{
    my $redis = start_redis();
    my $host = '127.0.0.1:' . $redis->port;

    my $add_user = sub {
        my ($user, @rights) = @_;
        is($redis->cli('ACL', 'SETUSER', $user, 'reset', 'on', ">$SECRET", @rights), 'OK',
            "there is a user $user");
    };

    # no more than these are needed; "select" only with a database
    my @commands = grep { $_ ne '+select' } rights();

    $add_user->('limiter', '~rate_limit:*', @commands);
    $add_user->('a@b:c', '~rate_limit:*', @commands, '+select');
    $add_user->('stage', '~staging:*', @commands);

    counts('a user in the URL', $redis, "redis://limiter:$SECRET\@$host");
    counts('user= and password=', $redis, "redis://$host user=limiter password=$SECRET");
    counts('a user in the URL and password=', $redis,
        "redis://limiter\@$host password=$SECRET");
    counts('user= and a password in the URL', $redis, "redis://:$SECRET\@$host user=limiter");
    counts('user= and password_file=', $redis,
        "redis://$host user=limiter password_file=" . write_file('limiter', "$SECRET\n"));
    counts('an encoded user in the URL', $redis, "redis://a%40b%3ac:$SECRET\@$host/6", db => 6);
    counts('the same as user=', $redis, "redis://$host/6 user=a\@b:c password=$SECRET", db => 6);

    counts('a user with rights to the keys of a prefix', $redis,
        "redis://stage:$SECRET\@$host prefix=staging", prefix => 'staging');
    fails('the same without the prefix', $redis, "redis://stage:$SECRET\@$host",
        qr/NOPERM .*key/);

    fails("a user's wrong password", $redis, "redis://limiter:not$SECRET\@$host",
        qr/WRONGPASS/);

    $add_user->('calls_nothing', '~*', '+@all', '-evalsha');
    fails('a user without EVALSHA', $redis, "redis://calls_nothing:$SECRET\@$host",
        qr/NOPERM .*evalsha/);

    $add_user->('loads_nothing', '~*', '+@all', '-script');
    fails('a user without SCRIPT', $redis, "redis://loads_nothing:$SECRET\@$host",
        qr/NOPERM .*script/);

    $add_user->('adds_nothing', '~*', '+@all', '-zadd');
    fails('a user without a command of the script', $redis,
        "redis://adds_nothing:$SECRET\@$host", qr/\S/);

    $add_user->('elsewhere', '~other:*', '+@all');
    fails('a user without rights to the keys', $redis, "redis://elsewhere:$SECRET\@$host",
        qr/NOPERM .*key/);

    $add_user->('leaver', '~*', '+@all');

    subtest 'fails: a user whose rights end meanwhile' => sub {
        my $nginx = nginx("redis://leaver:$SECRET\@$host");

        wait_until { answer($nginx) eq '200 PASSED' } 60, 'a counted request';
        is($redis->cli('ACL', 'SETUSER', 'leaver', '-evalsha'), 'OK', 'no EVALSHA any more');

        is(answer($nginx), '200 FAILED_OPEN', 'the next request passes') for 1 .. 3;

        my @lines = lines_about_redis($nginx);
        is(scalar @lines, 1, 'one line');
        like($lines[0], qr/\[crit\].* redis "redis:\/\/leaver:\*\*\*\@$host" is down: NOPERM/,
            'a loud one');
        shows_no_password($nginx);
    };
}

# ---- what is said before the server has answered

# Redis hangs up on clients that say much before they have logged in: a word of more than
# 16 KB, or a command of more than ten words. What it has said of their password is lost then.
for (['nothing to say', '', 'SCRIPT'], ['a database', 'db=3', 'SELECT'],
    ['a password', "password=$SECRET", 'AUTH'],
    ['a user and a database', "user=limiter password=$SECRET db=3", 'AUTH SELECT'])
{
    my ($name, $parameters, $expected) = @$_;

    subtest "little is said before the server answers: $name" => sub {
        my $first_words = "$dir/first_words";
        my $slow = start_fake_redis(undef, on_connect => sub {
            my ($socket) = @_;
            my $heard = '';
            1 while IO::Select->new($socket)->can_read(0.5)
                && sysread $socket, $heard, 65536, length $heard;

            open my $file, '>', $first_words or die $!;
            syswrite $file, $heard;
            print $socket "+OK\r\n" for $heard =~ /^\*/mg;
            SlidingLimit::FakeRedis::serve($socket,
                sub { my ($to) = @_; print $to SlidingLimit::FakeRedis::ADMITTED });
        });
        my $nginx = nginx('redis://127.0.0.1:' . $slow->port . " $parameters", workers => 1);

        is(answer($nginx), '200 PASSED', 'a request that comes meanwhile waits, and is counted');

        my $heard = do { open my $file, '<', $first_words or die $!; local $/; <$file> };
        is(join(' ', $heard =~ /^\*\d+\r\n\$\d+\r\n(\w+)/mg), $expected, "it is $expected");
        cmp_ok(length $heard, '<', 200, 'and short');
        is(join("\n", lines_about_redis($nginx)), '', 'nothing to tell about Redis');
        shows_no_password($nginx);
    };
}

# ---- a server that cannot run scripts

{
    my $advice = qr/scripting is off or missing there: load Valkey's Lua module, do not rename SCRIPT and EVALSHA/;

    for my $command (qw(SCRIPT EVALSHA)) {
        my $redis = start_redis(args => ['--rename-command', $command, '']);
        my $host = '127.0.0.1:' . $redis->port;

        fails("a server without $command", $redis, "redis://$host",
            qr/ERR unknown command '$command'.*; $advice/);
        fails("a server without $command, and a database", $redis, "redis://$host/3",
            qr/ERR unknown command '$command'.*; $advice/);
    }

    subtest 'fails: a Valkey without Lua' => sub {
        my $valkey = start_fake_redis(undef, on_connect => sub {
            my ($socket) = @_;
            while (my ($command) = read_command($socket)) {
                print $socket $command eq 'SCRIPT' ? "-ERR Could not find scripting engine 'lua'\r\n"
                    : "-NOSCRIPT No matching script. Please use EVAL.\r\n";
            }
        });
        my $nginx = nginx('redis://127.0.0.1:' . $valkey->port, workers => $WORKERS);

        wait_until { lines_about_redis($nginx) } 60, 'a line in the log';
        is(answer($nginx), '200 FAILED_OPEN', 'requests pass') for 1 .. 10;
        is(answer($nginx, '/deny'), '503 FAILED_CLOSED', 'unless they are not to');

        my @lines = grep { !/: 1 check\(s\) failed, / } lines_about_redis($nginx);
        is(scalar @lines, 1, 'there is one line');
        like($lines[0], qr/\[crit\] .* is down: ERR Could not find scripting engine 'lua'; $advice/, 'a loud one');
        is($nginx->bad_lines, '', 'nothing bad in the log');
    };
}

# ---- a server that quotes what it does not understand

{
    my $redis = start_redis(args => ['--rename-command', 'AUTH', '']);
    my $nginx = nginx('redis://127.0.0.1:' . $redis->port . " password=$SECRET");

    is(answer($nginx), '200 FAILED_OPEN', 'a server without AUTH: requests pass');
    wait_until { lines_about_redis($nginx) } 30, 'a line about Redis';

    like($nginx->error_log, qr/is down: ERR unknown command/, 'a server without AUTH: the log says so');
    unlike($nginx->error_log, qr/\Q$SECRET\E/, 'a server without AUTH: no password in the log');
}

done_testing();
