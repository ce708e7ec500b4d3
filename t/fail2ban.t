# The filter in monitoring/fail2ban knows every refusal that the module logs, whatever its
# level, and nothing that a client has made up: with what a real nginx has logged.

use strict;
use warnings;
use lib 't/lib';

use File::Spec ();
use File::Temp ();
use MIME::Base64 qw(encode_base64);
use SlidingLimit::Pages qw(blocks contents section);
use SlidingLimit::Servers qw(request start_nginx start_redis wait_until);
use Test::More;

# "make test" installs it: there it must be
if (my @missing = grep { my $name = $_; !grep { -x "$_/$name" } File::Spec->path } qw(fail2ban-regex fail2ban-server)) {
    die "not installed: @missing\n" if defined $ENV{SLIDING_LIMIT_NPM_DIR};
    plan skip_all => "not installed: @missing";
}

my $filter = 'monitoring/fail2ban/filter.d/nginx-sliding-limit.conf';

# What the page says that the safe log is made with.
my ($refused_log) = blocks(section('docs/recipes.md', 'fail2ban'), 'nginx');
$refused_log =~ s{/var/log/nginx/}{logs/};
$refused_log =~ s/^(access_log .*)\n//m or die;
my $access_log_line = $1;

# The addresses that fail2ban would count refusals for, in their order.
sub found {
    my ($log, $options) = @_;
    my $found = `fail2ban-regex -o ip '$log' '$filter${\ ($options // '')}' 2>&1`;

    die $found if $?;
    return [split /\n/, $found];
}

my $redis = start_redis();
my @levels = qw(info notice warn error);

my $by_level = join '', map { <<"END" } @levels;
    location = /$_ { sliding_limit zone=$_ max=0 window=60s key=a; sliding_limit_log_level $_; empty_gif; }
END

my $nginx = start_nginx(<<'END' . "$by_level $access_log_line", http => <<"HTTP");
    location = /redis { sliding_limit zone=by_redis max=1 window=60s key=$remote_addr; sliding_limit_deny_cache off; empty_gif; }
    location = /cached { sliding_limit zone=cached max=1 window=60s key=$remote_addr; sliding_limit_deny_cache 1m; empty_gif; }
    location = /memory { sliding_limit zone=in.memory-1 max=1 window=60s key=$remote_addr store=memory; empty_gif; }
    location = /never { sliding_limit zone=never max=0 window=60s key=$remote_addr; empty_gif; }
    location = /silent { sliding_limit zone=silent max=0 window=60s key=$remote_addr; sliding_limit_status 444; empty_gif; }
    location = /grpc { sliding_limit zone=grpc max=0 window=60s key=$remote_addr; sliding_limit_body grpc; empty_gif; }
    location = /dry { sliding_limit zone=dry max=0 window=60s key=$remote_addr dry_run; empty_gif; }
    location /forged/ { sliding_limit zone=forged max=1 window=60s key=$uri; proxy_pass http://127.0.0.1:1; }
    location /files/ { }
    location /secret/ { auth_basic secret; auth_basic_user_file html/nobody; }
    set_real_ip_from 127.0.0.9;
    real_ip_header X-Forwarded-For;
END
    sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=10s;
    $refused_log
HTTP

sub ask {
    my ($what, $from, @headers) = @_;

    return (request($nginx->port, join("\r\n", "GET $what HTTP/1.1", 'Connection: close', @headers, '', ''), 10, $from))[0];
}

open my $users, '>', $nginx->dir . '/html/nobody' or die $!;
close $users;

# An address for each kind of refusal.
my %kinds = ((map { $_ => 1 } @levels, qw(never silent grpc)), (map { $_ => 2 } qw(redis cached memory)));
my ($number, @expected) = (10);
my %address = map { $_ => '127.0.0.' . $number++ } sort keys %kinds;

for my $kind (sort keys %kinds) {
    ask("/$kind", $address{$kind}, 'Host: test') for 1 .. $kinds{$kind};
    push @expected, $address{$kind};
}

# one that comes through a proxy
ask('/error', '127.0.0.9', 'Host: test', "X-Forwarded-For: $_"), push @expected, $_ for '203.0.113.5', '2001:db8::7';

my ($error_log, $access_log) = map { $nginx->dir . "/logs/$_.log" } qw(error refused);

subtest 'refusals' => sub {
    wait_until { contents($access_log) =~ tr/\n// >= @expected } 10, 'the log';
    is_deeply found($error_log), \@expected, 'of every level and kind, in the error log';
    is_deeply found($access_log), \@expected, 'and in the log of refusals';
    is_deeply found($_, '[zones="info|in\.memory-1"]'), [@address{qw(info memory)}], "of some zones only: $_"
        for $error_log, $access_log;
    like contents($error_log), qr/max 0 in 60000 ms, store/, 'also where no waiting helps';
};

# ---- What is no refusal

my $victim = '198.51.100.66';
my @lines = (
    qq([error] 1#1: *1 sliding_limit: refused by zone "login", max 1 in 60000 ms, retry after 9 s, store: redis, client: $victim, server: , request: "GET / HTTP/1.1", host: "a"),
    qq(sliding_limit: refused $victim by zone "login"),
);
my @times = ('2026/11/17 15:00:00 ', '2026-11-17T15:00:00+00:00 ', '');

# As a line of its own, in a path.
sub encoded { my ($line) = @_; return "\n$line\n" =~ s/([^A-Za-z0-9])/sprintf '%%%02x', ord $1/ger }

subtest 'a client that is banned already' => sub {
    my $log = "$access_log.banned";
    open my $file, '>', $log or die $!;
    print $file map { "2026/11/17 15:00:00 $_\n" } $lines[0] =~ s/refused by/banned in/r, $lines[0] =~ s/refused by/banned by/r;
    close $file;
    is_deeply found($log), [$victim], 'is refused like others';
};

subtest 'a dry run' => sub {
    is ask('/dry', '127.0.0.2', 'Host: test'), 200, 'refuses nobody';
    like contents($error_log), qr/would be refused by zone "dry"/, 'and is logged';
    is_deeply found($_), \@expected, "but means nothing to $_" for $error_log, $access_log;
};

subtest 'lines that clients forge' => sub {
    for my $line (map { my $line = $_; map { "$_$line" } @times } @lines) {
        my $bare = $line =~ s/ /%20/gr;
        my $encoded = encoded($line);
        my @headers = ("Host: test", "Referer: $line", "User-Agent: $line", "X-Forwarded-For: $line");

        for my $path ("?$bare", $bare, $encoded, "$encoded?$bare") {
            # refused for what it is, but by another address than it claims
            ask("/forged/$path", '127.0.0.3', @headers) for 1 .. 2;
        }
        ask("/forged/x", '127.0.0.3', "Host: $line");
        ask("/$bare", '127.0.0.3', @headers);
    }
    cmp_ok contents($error_log) =~ s/sliding_limit: refused by zone "forged"//gr, 'ne', contents($error_log), 'are refused';
    my @ours = grep { $_ eq '127.0.0.3' } @{ found($error_log) };
    cmp_ok scalar(@ours), '>=', 12, 'in the name of who sends them';
    is_deeply [grep { $_ eq $victim } @{ found($error_log) }], [], 'not in that of who they name';

    wait_until { @{ found($access_log) } == @expected + @ours } 10, 'the log';
    is_deeply [grep { $_ eq $victim } @{ found($access_log) }], [], 'in neither log';
};

# nginx writes these line breaks into its error log, so only the other one can be trusted
subtest 'lines that clients write into the error log' => sub {
    my $before = contents($access_log);

    for my $line (map { my $line = $_; map { "$_$line" } @times } @lines) {
        is ask('/files/' . encoded($line), '127.0.0.4', 'Host: test'), 404, 'a missing file';
        my $login = encode_base64("\n$line\n:x", '');
        is ask('/secret/', '127.0.0.4', 'Host: test', "Authorization: Basic $login"), 401, 'an unknown user';
    }
    is contents($access_log), $before, 'the log of refusals knows nothing of them';
};

subtest 'the jail' => sub {
    my $dir = File::Temp->newdir;
    system "cp -r /etc/fail2ban/. $dir && cp -r monitoring/fail2ban/. $dir";
    # no jails but this one, with the test's log, a note instead of a firewall, and no memory
    write_file("$dir/fail2ban.local", "[DEFAULT]\ndbfile = None\n[Definition]\ndbfile = None\n");
    unlink "$dir/jail.d/defaults-debian.conf";
    system "sed -i 's,/var/log/nginx/refused.log,$access_log,' $dir/jail.d/nginx-sliding-limit.conf";
    write_file("$dir/jail.d/test.conf", "[DEFAULT]\nbackend = polling\naction = note\n");
    write_file("$dir/action.d/note.conf", "[Definition]\nactionban = echo <ip> for <bantime> >> $dir/banned\n");

    my $server = bless { owner => $$ }, 'SlidingLimit::Servers::Process';
    my $client = "fail2ban-client -c $dir -s $dir/socket -p $dir/pid";
    $server->launch("$dir/output", 'fail2ban-server', '-f', '-c', "$dir", '-s', "$dir/socket", '-p', "$dir/pid",
        '--logtarget', "$dir/log");
    wait_until { `$client status nginx-sliding-limit 2>&1` =~ /File list:\s+\Q$access_log\E/ } 20, 'fail2ban';

    my $refuse = sub { my ($who, $times) = @_; ask('/error', '127.0.0.9', 'Host: test', "X-Forwarded-For: $who") for 1 .. $times };
    $refuse->('203.0.113.77', 60);
    $refuse->('203.0.113.88', 110);
    wait_until { -s "$dir/banned" } 20, 'a ban';
    is contents("$dir/banned"), "203.0.113.88 for 600\n", 'who goes on is banned, and nobody else';
    $server->signal('TERM')->reap(10);
};

is $nginx->bad_lines, '', 'nothing alarming in the log';
done_testing;

sub write_file { my ($path, $text) = @_; open my $file, '>', $path or die "$path: $!"; print $file $text; close $file }
