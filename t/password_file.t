# The file of password_file= changes while nginx runs: new passwords are used on open
# connections and on new ones, and no request notices.

use strict;
use warnings;

use lib 't/lib';
use File::Temp ();
use SlidingLimit::Cluster qw(start_cluster);
use SlidingLimit::FakeRedis qw(read_command start_fake_redis);
use SlidingLimit::Load qw(start_load summary);
use SlidingLimit::Pages qw(blocks section);
use SlidingLimit::Rights qw(rights);
use SlidingLimit::Sentinels qw(start_sentinels);
use SlidingLimit::Servers qw(get start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $OLD = 'Hunter2Swordfish';
my $NEW = 'Hunter3Tunafish';

my $WORKERS = 2;
my $CONNECTIONS = 2;

# Whoever the workers run as, if that is not root.
my $USER = 'www-data';

# Never the reason for a failure, however busy the machine is.
my $PATIENT = 'timeout=10s connect_timeout=20s';

# A connection that is closed when it is younger counts as a failure.
my $SETTLED = 1.5;

# Longer than it takes until a file has been looked at twice.
my $TWO_LOOKS = 2.2;

my $temp = File::Temp->newdir();
my $dir = "$temp";
chmod 0755, $dir or die $!;

my $files = 0;
sub new_file { return "$dir/password" . ++$files }

# At once, as the documentation recommends. owner => NAME, mode => N.
sub write_file {
    my ($name, $content, %with) = @_;
    my (undef, undef, $uid, $gid) = getpwnam($with{owner} // $USER);

    open my $file, '>', "$name.new" or die $!;
    print $file $content;
    close $file or die $!;
    chown $uid, $gid, "$name.new" or die $!;
    chmod $with{mode} // 0600, "$name.new" or die $!;
    rename "$name.new", $name or die $!;

    return $name;
}

# Has the script of the documentation do it.
sub run_script {
    my ($name, $content) = @_;
    my ($script) = blocks(section('docs/operations.md', 'Passwords that change'), 'sh');

    $script =~ s{^file=.*}{file=$name}m or die;
    $script =~ s{^fetch_token }{printf '$content' }m or die;
    is(system('sh', '-c', $script), 0, 'the script of the documentation succeeds');
}

# In place, so that a reader may see it half written.
sub overwrite {
    my ($name, $content) = @_;

    open my $file, '>', $name or die $!;
    print $file $content;
    close $file or die $!;
}

sub nginx {
    my ($redis_line, %with) = @_;
    my $http = "sliding_limit_redis $redis_line $PATIENT connections=$CONNECTIONS;";

    return start_nginx(<<'END', http => $http, workers => $WORKERS, user => $USER, %with);
        add_header X-Status $sliding_limit_status always;
        add_header X-Store $sliding_limit_store always;
        location / { sliding_limit zone=rotate max=1000000 window=600s key=$arg_k; empty_gif; }
END
}

sub is_counted {
    my ($nginx) = @_;
    my ($status, $headers) = get($nginx->port, '/?k=' . rand, 30);
    return $status == 200 && ($headers->{'x-status'} // '') eq 'PASSED';
}

# Workers take connections at random, and keys are spread over each one's own.
sub counts {
    my ($nginx, $name) = @_;
    my $in_a_row = 0;

    wait_until { ($in_a_row = is_counted($nginx) ? $in_a_row + 1 : 0) >= 30 } 30, $name // 'counting';
}

sub all_are_counted {
    my ($nginx, $name) = @_;
    is(scalar(grep { !is_counted($nginx) } 1 .. 30), 0, $name);
}

sub lines {
    my ($nginx, $what) = @_;
    return scalar grep { /sliding_limit: / && /$what/ } split /\n/, $nginx->error_log;
}

sub shows_no_password {
    my ($nginx) = @_;

    unlike($nginx->error_log, qr/Hunter|Swordfish|Tunafish/, 'no password in the log');
    is($nginx->bad_lines, '', 'nothing bad in the log');
}

sub add_user {
    my ($redis, @more) = @_;
    is($redis->cli('ACL', 'SETUSER', 'limiter', 'reset', 'on', ">$OLD", '~rate_limit:*', rights(), @more),
        'OK', 'there is a user');
}

sub set_user {
    my ($redis, @rules) = @_;
    is($redis->cli('ACL', 'SETUSER', 'limiter', @rules), 'OK', "the user gets @rules");
}

# The ids of the user's connections, which Redis gives only once.
sub clients {
    my ($redis) = @_;
    return join ' ', sort map { /^id=(\d+) .* user=limiter / ? $1 : () } split /\n/, $redis->cli('CLIENT', 'LIST');
}

sub kill_clients {
    my ($redis) = @_;
    cmp_ok($redis->cli('CLIENT', 'KILL', 'USER', 'limiter'), '>', 0, 'Redis closes the connections');
}

sub open_connections { return scalar(() = clients($_[0]) =~ /\d+/g) }

sub kill_one {
    my ($redis) = @_;
    my ($id) = clients($redis) =~ /(\d+)/;
    is($redis->cli('CLIENT', 'KILL', 'ID', $id), 1, 'Redis closes one connection');
}

sub is_logged_in_again {
    my ($redis, $before, $name) = @_;
    my $expected = $before + $WORKERS * $CONNECTIONS;

    wait_until { $redis->calls('auth') >= $expected } 30, 'AUTH';
    sleep $TWO_LOOKS;
    is($redis->calls('auth'), $expected, $name);
}

sub one_redis {
    my $redis = start_redis();
    add_user($redis);
    return ($redis, 'redis://limiter@127.0.0.1:' . $redis->port);
}

# ---- a new password

subtest 'the password changes under load' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n");
    my $nginx = nginx("$url password_file=$file");
    counts($nginx);

    my $load = start_load(clients => 6, seconds => 120, ports => [ $nginx->port ], pause => 0.002,
        path => sub { "/?k=$_[0].$_[1]" });
    my $auths = $redis->calls('auth');
    my $clients = clients($redis);

    set_user($redis, ">$NEW");
    run_script($file, $NEW);
    is_logged_in_again($redis, $auths, 'every connection logs in once more');
    is(clients($redis), $clients, 'and stays open');
    set_user($redis, "<$OLD");

    my @answers = $load->stop->finish;
    cmp_ok(scalar @answers, '>', 100, 'there was load: ' . summary(@answers));
    is(scalar(grep { $_->{status} != 200 || $_->{store} ne 'redis' } @answers), 0, 'all of it was counted');

    kill_clients($redis);
    counts($nginx, 'new connections');
    unlike(clients($redis), qr/\b$_\b/, "connection $_ is another one") for split / /, $clients;
    is(lines($nginx, 'is down'), 0, 'Redis was never down');
    is(lines($nginx, 'has a new password'), 1, 'the log has one line for all workers');
    shows_no_password($nginx);
};

subtest 'connections are closed under load, after the old password has gone' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n");
    my $nginx = nginx("$url password_file=$file");
    counts($nginx);

    my $clients = 6;
    my $load = start_load(clients => $clients, seconds => 120, ports => [ $nginx->port ], pause => 0.002,
        path => sub { "/?k=$_[0].$_[1]" });

    # it is read by the attempt to connect, as a rule before a worker looks at it by itself
    set_user($redis, ">$NEW", "<$OLD");
    sleep $SETTLED;
    write_file($file, "$NEW\n");
    kill_clients($redis);
    sleep $SETTLED;

    my @answers = $load->stop->finish;
    cmp_ok(scalar @answers, '>', 100, 'there was load: ' . summary(@answers));
    is(scalar(grep { $_->{status} != 200 } @answers), 0, 'all of it passed');
    cmp_ok(scalar(grep { $_->{store} ne 'redis' } @answers), '<=', $clients,
        'and was counted, but for what was on its way when the connections were closed');
    is(lines($nginx, 'is down'), 0, 'Redis was never down');
    shows_no_password($nginx);
};

# ---- a password that Redis does not like

subtest 'a wrong password is tried on open connections, which stay open' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n");
    my $nginx = nginx("$url password_file=$file");
    counts($nginx);

    my $auths = $redis->calls('auth');
    my $clients = clients($redis);

    write_file($file, "not$NEW\n");
    is_logged_in_again($redis, $auths, 'every connection tries once');
    is(clients($redis), $clients, 'and stays open');
    all_are_counted($nginx, 'and requests are counted');
    is(lines($nginx, qr/\[crit\].* refuses the new password in password_file "\Q$file\E": WRONGPASS/), 1,
        'the log has one line for all connections of all workers');

    $auths = $redis->calls('auth');
    write_file($file, "$OLD\n");
    is_logged_in_again($redis, $auths, 'the next one is tried, too');
    all_are_counted($nginx, 'requests are counted');
    is(lines($nginx, 'refuses'), 1, 'and nothing more is to be said');
    shows_no_password($nginx);
};

subtest 'a password that Redis learns later is tried every ten seconds, also by a connection that is closed' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n");
    my $nginx = nginx("$url password_file=$file");
    counts($nginx);

    my $all = $WORKERS * $CONNECTIONS;
    my $auths = $redis->calls('auth');
    write_file($file, "$NEW\n");
    is_logged_in_again($redis, $auths, 'every connection tries');

    $auths = $redis->calls('auth');
    kill_one($redis);
    sleep 5;
    cmp_ok($redis->calls('auth') - $auths, '<=', 1 + $all, 'in five seconds each tries once at most, and one when it was closed');
    is(open_connections($redis), $all - 1, 'that one is not open');

    $auths = $redis->calls('auth');
    set_user($redis, ">$NEW");
    wait_until { $redis->calls('auth') >= $auths + $all } 30, 'all of them to try again';
    wait_until { open_connections($redis) == $all } 30, 'all connections';
    sleep 11;
    # the last one to be refused may have been a moment too early
    cmp_ok($redis->calls('auth') - $auths, '<=', $all + 1, 'each of them logs in once');

    is(lines($nginx, 'refuses'), 1, 'the log has one line');
    is(lines($nginx, 'is down'), 0, 'Redis was never down');
    shows_no_password($nginx);
};

subtest 'a wrong password while a connection is closed: it is back soon after the file has been mended' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n");
    my $nginx = nginx("$url password_file=$file");
    counts($nginx);

    my $all = $WORKERS * $CONNECTIONS;
    my $auths = $redis->calls('auth');
    write_file($file, "not$NEW\n");
    is_logged_in_again($redis, $auths, 'every connection tries');
    kill_one($redis);
    wait_until { $redis->calls('auth') > $auths + $all } 30, 'a new connection to be refused';

    my $start = time;
    write_file($file, "$OLD\n");
    wait_until { open_connections($redis) == $all } 30, 'all connections';
    my $took = time - $start;
    cmp_ok($took, '<', 8, sprintf 'it is open after %.1f s', $took);
    is(lines($nginx, 'is down'), 0, 'Redis was never down');
    shows_no_password($nginx);
};

subtest 'a wrong password at the start: Redis is back soon after the file has been mended' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "not$NEW\n");
    my $nginx = nginx("$url password_file=$file");

    wait_until { lines($nginx, qr/\[crit\].* is down: WRONGPASS/) } 30, 'a line in the log';
    # by itself it would be tried again after ten seconds
    my $start = time;
    write_file($file, "$OLD\n");
    wait_until { is_counted($nginx) } 30, 'counting';
    my $took = time - $start;
    cmp_ok($took, '<', 8, sprintf 'Redis is back after %.1f s', $took);
    counts($nginx);
    shows_no_password($nginx);
};

# The server closes each connection when it has read the password, and then has another one.
subtest 'a server that comes back with a new password is never told the old one' => sub {
    my $file = write_file(new_file(), "${NEW}0\n");
    my $told = "$dir/told";
    my $read = sub { open my $in, '<', $told or return 0; chomp(my @lines = <$in>); return @lines };

    my $redis = start_fake_redis(undef, on_connect => sub {
        my (undef, $password) = read_command($_[0]);
        open my $out, '>>', $told or die $!;
        print $out "$password\n";
        close $out;
        write_file($file, $NEW . $read->() . "\n");
    });
    my $nginx = start_nginx('location / { sliding_limit zone=rotate max=9 window=9s key=a; empty_gif; }', user => $USER,
        http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . " password_file=$file $PATIENT;");

    wait_until { $read->() >= 5 } 30, 'five attempts to connect';
    my @passwords = $read->();
    is_deeply [@passwords[0 .. 4]], [map { "$NEW$_" } 0 .. 4], 'each attempt has the password of its time';
    shows_no_password($nginx);
};

# ---- a file that cannot be read

subtest 'a file that only root can read' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n", owner => 'root');
    my $nginx = nginx("$url password_file=$file");

    counts($nginx);
    my $warning = qr/\[warn\].* cannot open password_file "\Q$file\E"; the last .* stays in use \(13: Permission denied\)/;
    wait_until { lines($nginx, $warning) } 30, 'a line in the log';

    set_user($redis, ">$NEW");
    write_file($file, "$NEW\n", owner => 'root');
    sleep $TWO_LOOKS;
    kill_clients($redis);
    counts($nginx, 'new connections, with the old password');
    is(lines($nginx, $warning), 1, 'one worker says so, once');

    my $auths = $redis->calls('auth');
    chmod 0644, $file or die $!;
    is_logged_in_again($redis, $auths, 'when the worker may read it, it does');
    set_user($redis, "<$OLD");
    kill_clients($redis);
    counts($nginx, 'new connections, with the new password');
    shows_no_password($nginx);

    # started by root, as it was before
    write_file($file, "$OLD\n", owner => 'root');
    set_user($redis, ">$OLD", "<$NEW");
    $nginx->reload;
    counts($nginx, 'a reload reads it');
    shows_no_password($nginx);
};

subtest 'a file without a password: the last one stays in use' => sub {
    my ($redis, $url) = one_redis();
    my $file = write_file(new_file(), "$OLD\n");
    my $nginx = nginx("$url password_file=$file");
    counts($nginx);

    my $has_none = qr/password_file "\Q$file\E" must have a password in its first line, and less than 4096 bytes; /;
    my $told = 0;

    for (['is empty', '', $has_none], ['has an empty first line', "\n$NEW\n", $has_none],
        ['is too large', $NEW x 1000, $has_none], ['consists of zeros', "\0" x 20, $has_none],
        ['is not there', undef, qr/cannot open .*No such file/])
    {
        my ($how, $content, $fault) = @$_;
        my $before = lines($nginx, $fault);

        defined $content ? overwrite($file, $content) : unlink $file;
        wait_until { lines($nginx, qr/\[warn\].*$fault/) > $before } 30, "a line about a file that $how";
        sleep $TWO_LOOKS;
        is(lines($nginx, $fault), $before + 1, "there is one line about a file that $how");
        kill_clients($redis);
        counts($nginx, 'new connections');

        overwrite($file, "$OLD\n");
        $told++;
        wait_until { lines($nginx, qr/\[notice\].* can be read again/) == $told } 30, 'another line';
    }

    is($redis->cli('ACL', 'LOG'), '', 'no other password was tried');

    my $auths = $redis->calls('auth');
    set_user($redis, ">$NEW");
    overwrite($file, $NEW);
    is_logged_in_again($redis, $auths, 'then a new password is used');
    is(lines($nginx, 'password_file'), 2 * $told + 1, 'and is one more line');
    is(lines($nginx, 'is down'), 0, 'Redis was never down');
    shows_no_password($nginx);
};

# ---- several servers

subtest 'Sentinels and the primary have new passwords' => sub {
    my $set = start_sentinels(down_after => 60000, sentinels => 1, replicas => 0);
    my ($sentinel) = $set->sentinels;
    my $redis = $set->primary;
    my %file = (primary => write_file(new_file(), "$OLD\n"), sentinel => write_file(new_file(), "other$OLD\n"));

    add_user($redis, '+role');
    is($sentinel->cli('ACL', 'SETUSER', 'asker', 'on', ">other$OLD", '-@all', '+sentinel'), 'OK',
        'there is a user at the Sentinel');
    is($sentinel->cli('ACL', 'SETUSER', 'default', 'resetpass', ">admin$OLD"), 'OK', 'others need a password');
    $sentinel->{cli_args} = ['--no-auth-warning', '-a', "admin$OLD"];

    my $nginx = nginx($set->url . " user=limiter password_file=$file{primary}"
        . " sentinel_user=asker sentinel_password_file=$file{sentinel}");
    counts($nginx);

    my $auths = $redis->calls('auth');
    set_user($redis, ">$NEW");
    write_file($file{primary}, "$NEW\n");
    is_logged_in_again($redis, $auths, 'every connection logs in to the primary once more');
    set_user($redis, "<$OLD");

    is($sentinel->cli('ACL', 'SETUSER', 'asker', ">other$NEW", "<other$OLD"), 'OK', 'the Sentinel has a new one');
    write_file($file{sentinel}, "other$NEW\n");
    sleep $SETTLED;
    kill_clients($redis);
    counts($nginx, 'the Sentinel to name the primary');

    is(lines($nginx, 'is down'), 0, 'Redis was never down');
    is(lines($nginx, 'has a new password'), 2, 'the log has a line for each file');
    shows_no_password($nginx);
};

subtest 'a Sentinel that refuses the password: the primary is found soon after the file has been mended' => sub {
    my $set = start_sentinels(down_after => 60000, sentinels => 1, replicas => 0);
    my ($sentinel) = $set->sentinels;
    my $file = write_file(new_file(), "not$OLD\n");

    is($sentinel->cli('ACL', 'SETUSER', 'asker', 'on', ">$OLD", '-@all', '+sentinel'), 'OK', 'there is a user');

    my $nginx = nginx($set->url . " sentinel_user=asker sentinel_password_file=$file");

    wait_until { lines($nginx, qr/\[crit\].* is down: Sentinel .* WRONGPASS/) } 30, 'a line in the log';

    my $start = time;
    write_file($file, "$OLD\n");
    wait_until { is_counted($nginx) } 30, 'counting';
    my $took = time - $start;
    cmp_ok($took, '<', 8, sprintf 'Redis is back after %.1f s', $took);
    shows_no_password($nginx);
};

subtest 'all servers of a cluster have a new password' => sub {
    my $cluster = start_cluster(primaries => 3);
    my @nodes = $cluster->nodes;
    my $file = write_file(new_file(), "$OLD\n");

    add_user($_, '+cluster|nodes', '+asking') for @nodes;

    my $nginx = nginx($cluster->url . " user=limiter password_file=$file");
    counts($nginx);
    wait_until { !grep { split(/ /, clients($_)) != $WORKERS * $CONNECTIONS } @nodes } 30, 'all connections';

    my @auths = map { $_->calls('auth') } @nodes;
    set_user($_, ">$NEW") for @nodes;
    write_file($file, "$NEW\n");
    is_logged_in_again($nodes[$_], $auths[$_], "server $_ gets AUTH on each connection") for 0 .. $#nodes;

    set_user($_, "<$OLD") for @nodes;
    kill_clients($_) for @nodes;
    counts($nginx, 'new connections');
    is(lines($nginx, 'is down'), 0, 'no server was ever down');
    shows_no_password($nginx);
};

done_testing();
