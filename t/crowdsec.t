# What is in monitoring/crowdsec: CrowdSec reads what nginx logs of refusals, and reports who
# goes on, and nobody else.
#
# CrowdSec registers with its makers when its package is installed, so "make test" does not do
# that. SLIDING_LIMIT_CROWDSEC names a directory with the package's files instead:
#
#     apt-get download crowdsec && dpkg -x crowdsec_*.deb DIR

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use IO::Socket::INET ();
use JSON::PP qw(decode_json);
use SlidingLimit::Pages qw(blocks contents section);
use SlidingLimit::Servers qw(free_port request start_nginx wait_until);
use Test::More;

my $root = $ENV{SLIDING_LIMIT_CROWDSEC} // '';
my ($program, $share) = ("$root/usr/bin/crowdsec", "$root/usr/share/crowdsec");
plan skip_all => 'needs crowdsec' unless -x $program;

sub write_file { my ($path, $text) = @_; open my $file, '>', $path or die "$path: $!"; print $file $text; close $file }

# ---- A log of nginx's

my ($refused_log) = blocks(section('docs/recipes.md', 'fail2ban'), 'nginx');
$refused_log =~ s{/var/log/nginx/}{logs/};
$refused_log =~ s/^(access_log .*)\n//m or die;

my $nginx = start_nginx(<<"END", http => $refused_log);
    $1
    location / { sliding_limit zone=login max=0 window=60s key=\$remote_addr; empty_gif; }
    set_real_ip_from 127.0.0.9;
    real_ip_header X-Forwarded-For;
END

sub refuse {
    my ($who, $times) = @_;
    my $text = join "\r\n", 'GET / HTTP/1.1', 'Host: test', 'Connection: close', "X-Forwarded-For: $who", '', '';
    request($nginx->port, $text, 10, '127.0.0.9') for 1 .. $times;
}

refuse('203.0.113.5', 300);
refuse('2001:db8::7', 300);
refuse('203.0.113.6', 50);
my $log = $nginx->dir . '/logs/refused.log';
wait_until { (() = contents($log) =~ /\n/g) == 650 } 10, 'the log';
# what is no refusal, though it speaks of one
my ($time) = contents($log) =~ /^(\S+)/;
write_file($log, contents($log) . qq($time "sliding_limit: refused 198.51.100.66 by zone "login"\n) x 300);

# ---- CrowdSec, with a server that notes what it reports

my $dir = File::Temp->newdir;
my $port = free_port();

mkdir "$dir/$_" for qw(etc data hub);
system "cp -r monitoring/crowdsec/. $root/etc/crowdsec/patterns $root/etc/crowdsec/simulation.yaml $dir/etc";
system "cp -r $share/hub/. $dir/hub; cp -r $share/data/. $dir/data; mkdir $dir/etc/parsers/s00-raw $dir/etc/parsers/s02-enrich";
system "cp $share/hub/parsers/$_.yaml $dir/etc/parsers/" . (split '/')[0]
    for 's00-raw/crowdsecurity/syslog-logs', 's02-enrich/crowdsecurity/dateparse-enrich';
write_file("$dir/credentials.yaml", "url: http://127.0.0.1:$port/\nlogin: a\npassword: b\n");
write_file("$dir/config.yaml", <<"END");
common: {daemonize: false, log_media: stdout, log_level: info, log_dir: $dir, working_dir: $dir}
config_paths: {config_dir: $dir/etc, data_dir: $dir/data/, simulation_path: $dir/etc/simulation.yaml, hub_dir: $dir/hub/, index_path: $dir/hub/.index.json}
crowdsec_service: {enable: true, acquisition_dir: $dir/etc/acquis.d}
db_config: {type: sqlite, db_path: $dir/data/crowdsec.db}
cscli: {output: human}
api: {client: {credentials_path: $dir/credentials.yaml}}
prometheus: {enabled: false}
END

my $server = bless { owner => $$ }, 'SlidingLimit::Servers::Process';
$server->launch("$dir/server.out", $^X, '-e', <<'END', $port, "$dir/reports");
    use IO::Socket::INET;
    my ($port, $path) = @ARGV;
    my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 8, ReuseAddr => 1) or die $!;
    while (my $client = $listener->accept) {
        my $text = '';
        1 until $text =~ /\r\n\r\n/ || !sysread $client, $text, 65536, length $text;
        my ($size) = $text =~ /^Content-Length: (\d+)/mi;
        my ($head, $body) = split /\r\n\r\n/, $text, 2;
        1 until length $body >= ($size // 0) || !sysread $client, $body, 65536, length $body;
        if ($head =~ m{^POST /v1/alerts}) { open my $file, '>>', $path; print $file "$body\n"; close $file }
        my ($status, $answer) = $head =~ /login/ ? (200, '{"code":200,"expire":"2036-01-01T00:00:00Z","token":"x"}') : (201, '["1"]');
        print $client "HTTP/1.1 $status OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " . length($answer) . "\r\n\r\n$answer";
        close $client;
    }
END
wait_until { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") } 10, 'the server';

my $said = `timeout 60 $program -c $dir/config.yaml -type nginx-sliding-limit -dsn file://$log -no-api 2>&1`;
is $?, 0, 'CrowdSec reads the log' or diag $said;

my %reported = map { $_->{source}{ip} => $_->{scenario} } map { @{ decode_json($_) } } split /\n/, contents("$dir/reports");
is_deeply \%reported, { map { $_ => 'sliding-limit/keeps-on' } '203.0.113.5', '2001:db8::7' }, 'and reports who goes on';

done_testing;
