# The embedded store: what it costs to take a request back does not depend on how
# many others of the same client are counted.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(free_port start_nginx);
use Test::More;
use Time::HiRes qw(time);

my $entries = 100_000;

# the application answers a little later, so that many requests are under way
my $app = free_port();
my $nginx = start_nginx(<<"END",
    keepalive_requests 1000000;
    location /fill { sliding_limit zone=failures max=1000000 window=1h key=\$arg_k fallback=none; empty_gif; }
    location /look { sliding_limit zone=failures max=1000000 window=1h key=\$arg_k fallback=none cost=0; empty_gif; }
    location /succeeds {
        sliding_limit zone=failures max=1000000 window=1h key=\$arg_k fallback=none count_status=5xx;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_pass http://app;
    }
END
    slots => 4096, http => <<"END");
    upstream app { server 127.0.0.1:$app; keepalive 64; keepalive_requests 1000000; }
    server { listen 127.0.0.1:$app; keepalive_requests 1000000; location / { empty_gif; } }
END

sub counted {
    my ($client) = @_;
    my ($status, $remaining) = $nginx->try("/look?k=$client", 'X-RateLimit-Remaining');
    return $status == 200 ? 1_000_000 - $remaining : "status $status";
}

# How many requests wrk made in a second.
sub load {
    my ($path) = @_;
    my $said = `wrk -t1 -c32 -d1s 'http://127.0.0.1:${\ $nginx->port}$path'`;
    my ($requests) = $said =~ /(\d+) requests in/ or die $said;
    unlike $said, qr/Non-2xx|Socket errors/, "$path: $requests requests";
    return $requests;
}

# Seconds of CPU of the only worker: those do not depend on what else is running.
sub cpu_time {
    my ($pid) = $nginx->workers;
    open my $file, '<', "/proc/$pid/stat" or die $!;
    my ($user, $system) = <$file> =~ /\) (?:\S+ ){11}(\d+) (\d+)/ or die;
    return ($user + $system) / `getconf CLK_TCK`;
}

sub cpu_per_request {
    my ($path) = @_;
    my $before = cpu_time();
    my $requests = load($path);
    return (cpu_time() - $before) / $requests;
}

is_deeply [$nginx->try('/fill?k=few')], [200] for 1 .. 100;

for (my $end = time + 300; counted('many') < $entries && time < $end;) {
    load('/fill?k=many');
}

my %before = map { $_ => counted($_) } qw(few many);
is $before{few}, 100, 'one client with 100';
cmp_ok $before{many}, '>=', $entries, "one with $before{many}";

my %best;

for my $round (1 .. 4) {
    for my $client (qw(few many)) {
        my $each = cpu_per_request("/succeeds?k=$client");
        $best{$client} = $each if !defined $best{$client} || $each < $best{$client};
    }
}

my ($few, $many) = map { sprintf '%.1f', 1e6 * $best{$_} } qw(few many);
cmp_ok $many, '<', 1.5 * $few, "taken back: $many us of CPU per request with many, $few us with few";
is counted($_), $before{$_}, "all that were taken back, and no others: $_" for qw(few many);
is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
