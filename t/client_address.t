# $sliding_limit_addr and sliding_limit_ipv6_prefix: a client's address as what is
# usually one client.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::IP;
use SlidingLimit::Servers qw(free_port request start_nginx start_redis);
use Test::More;

my $redis = start_redis();
my $six = free_port();
my $socket = File::Temp->newdir();
my $nginx = start_nginx(<<"END",
    listen [::1]:$six;
    listen unix:$socket/nginx.sock;
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Address;
    add_header X-Addr \$sliding_limit_addr always;

    location / { sliding_limit off; return 204; }
    location /56 { sliding_limit_ipv6_prefix 56; return 204; }
    location /49 { sliding_limit_ipv6_prefix 49; return 204; }
    location /128 { sliding_limit_ipv6_prefix 128; return 204; }
    location /1 { sliding_limit_ipv6_prefix 1; return 204; }
    location /limited {
        sliding_limit zone=network max=2 window=60s key=\$sliding_limit_addr;
        empty_gif;
    }
END
    http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;');

# ($sliding_limit_addr, status) of a client with this address
sub as {
    my ($address, $path) = @_;
    my ($status, $headers) = request($nginx->port,
        'GET ' . ($path || '/') . " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nX-Address: $address\r\n\r\n");
    return wantarray ? ($headers->{'x-addr'}, $status) : $headers->{'x-addr'};
}

my $address = '2001:db8:1234:5678:9abc:def0:1234:5678';

for my $case (
    ['192.0.2.7', '192.0.2.7', 'IPv4 as it is'],
    ['::ffff:192.0.2.7', '192.0.2.7', 'IPv4-mapped IPv6 as IPv4'],
    ['::ffff:c000:207', '192.0.2.7', 'in its other spelling, too'],
    ['64:ff9b::192.0.2.7', '192.0.2.7', 'a client behind NAT64 as its IPv4 address'],
    ['64:ff9b::c000:207', '192.0.2.7', 'in its other spelling, too'],
    ['::ffff:0:192.0.2.7', '192.0.2.7', 'and one behind a stateless translator'],
    ['64:ff9b:1::192.0.2.7', '64:ff9b:1::', 'the translation prefix for local use is IPv6: its layout is not known'],
    ['64:ff9b:1:c000:2:700::', '64:ff9b:1:c000::', 'whatever its layout'],
    ['64:ff9b::1:0:0', '64:ff9b::', 'and so is what is beside the well-known prefix'],
    [$address, '2001:db8:1234:5678::', 'IPv6 cut to its /64'],
    ['2001:db8::1', '2001:db8::', 'also a short one'],
    ['fe80::1', 'fe80::', 'link-local'],
    ['::192.0.2.7', '::', 'IPv4-compatible addresses are IPv6'],
) {
    my ($given, $want, $what) = @$case;
    is scalar(as($given)), $want, $what;
}

is scalar(as($address, '/56')), '2001:db8:1234:5600::', 'sliding_limit_ipv6_prefix 56';
is scalar(as($address, '/49')), '2001:db8:1234::', 'a prefix that ends within a byte';
is scalar(as('2001:db8:1234:ffff::1', '/49')), '2001:db8:1234:8000::', 'keeps the bits that belong to it';
is scalar(as($address, '/128')), $address, 'all of it';
is scalar(as('ffff::1', '/1')), '8000::', 'the first bit alone';
is scalar(as('192.0.2.7', '/1')), '192.0.2.7', 'IPv4 has no prefix';
is scalar(as('64:ff9b::192.0.2.7', '/56')), '192.0.2.7', 'nor has IPv4 behind NAT64';

subtest 'going through the addresses of one network does not help' => sub {
    my @status = map { (as("2001:db8:1:2::$_", '/limited'))[1] } 1 .. 5;
    is_deeply \@status, [200, 200, 429, 429, 429];
    is((as('2001:db8:1:3::1', '/limited'))[1], 200, 'the neighbours are not concerned');
    @status = map { (as($_, '/limited'))[1] } '192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1';
    is_deeply \@status, [200, 200, 429], 'nor does another spelling';
};

subtest 'two clients behind NAT64 are two, and one that comes by IPv4 as well is one' => sub {
    my @status = map { (as("64:ff9b::198.51.100.$_", '/limited'))[1] } 1, 1, 1, 2, 2, 2;
    is_deeply \@status, [200, 200, 429, 200, 200, 429], 'each has its own share';
    @status = map { (as($_, '/limited'))[1] }
        '198.51.100.3', '64:ff9b::198.51.100.3', '::ffff:0:198.51.100.3', '198.51.100.3';
    is_deeply \@status, [200, 200, 429, 429], 'and no second one by another way';
};

subtest 'a real IPv6 connection' => sub {
    my $c = IO::Socket::IP->new(PeerHost => '::1', PeerPort => $six)
        or plan skip_all => 'there is no IPv6 on this machine';
    print $c "GET / HTTP/1.0\r\n\r\n";
    like join('', <$c>), qr/^X-Addr: ::\r$/m;
};

subtest 'a unix socket' => sub {
    my $c = IO::Socket::UNIX->new(Peer => "$socket/nginx.sock") or die $!;
    print $c "GET / HTTP/1.0\r\n\r\n";
    like join('', <$c>), qr/^X-Addr: unix:\r$/m, 'as $remote_addr has it';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';

done_testing;
