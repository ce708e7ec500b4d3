# sliding_limit_usage: a number in a response, read as the response passes. Nothing of it is
# held back or changed.

use strict;
use warnings;
use lib 't/lib';

use Compress::Zlib ();
use Digest::SHA qw(sha1_hex);
use IO::Socket::INET;
use POSIX ();
use SlidingLimit::Servers qw(begin_request free_port get module nginx_binary request start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

# ---- The application: sends what is asked for, in pieces.

my $stream = join '', map { "data: {\"choices\":[{\"delta\":{\"content\":\"word $_ \\\"usage\\\":{\\\"total_tokens\\\":99}\"}}],\"usage\":null}\n\n" } 1 .. 20;
$stream .= "event: last\r\ndata: {\"choices\":[],\r\ndata: \"usage\":{\"prompt_tokens\":3,\"total_tokens\":45}}\r\n\r\ndata: [DONE]\n\n";

my %bodies = (
    json => ['application/json', '{"id":"x","usage":{"prompt_tokens":10,"total_tokens":25},"text":"\"usage\":{\"total_tokens\":1}"}'],
    charset => ['application/json; charset=utf-8', '{"usage":{"total_tokens":26}}'],
    problem => ['application/problem+json', '{"usage":{"total_tokens":27}}'],
    upper => ['Application/JSON', '{"usage":{"total_tokens":28}}'],
    gemini => ['application/json', '{"candidates":[],"usageMetadata":{"totalTokenCount":31}}'],
    both => ['application/json', '{"usageMetadata":{"totalTokenCount":31},"usage":{"total_tokens":32}}'],
    fraction => ['application/json', '{"usage":{"total_tokens":1.01e1}}'],
    none => ['application/json', '{"usage":{"total_tokens":"25"}}'],
    negative => ['application/json', '{"usage":{"total_tokens":-25}}'],
    broken => ['application/json', '{"usage":{"total_tokens":25},,,'],
    ndjson => ['application/x-ndjson', "{\"usage\":{\"total_tokens\":1}}\n{\"usage\":{\"total_tokens\":2}}\n{\"done\":true}\n"],
    list => ['application/json', '[{"usage":{"total_tokens":3}},{"usage":{"total_tokens":4}},{"usage":null}]'],
    text => ['text/plain', '{"usage":{"total_tokens":25}}'],
    stream => ['text/event-stream', $stream],
    large => ['application/json', '{"text":"' . join('', map { sha1_hex($_) } 1 .. 50_000) . '","usage":{"total_tokens":77}}'],
    empty => ['application/json', ''],
);

my $app = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die $!;
my $server = fork // die $!;

if (!$server) {
    # with those that answer
    setpgrp;
    $SIG{CHLD} = 'IGNORE';
    while (my $c = $app->accept) {
        next if fork;
        my $text = '';
        sysread $c, $text, 4096, length $text until $text =~ /\r\n\r\n/;
        my ($name, $query) = $text =~ m{^\w+ /(\w*)\S*?\??(\S*) HTTP};
        my %arg = map { /(.*)=(.*)/ } split /&/, $query;
        my ($type, $body) = @{ $bodies{$name} };
        my $head = "HTTP/1.1 200 OK\r\nContent-Type: $type\r\nConnection: close\r\n";
        $head .= "Content-Encoding: $arg{encoding}\r\n" if $arg{encoding};
        if ($arg{gzip}) {
            $body = Compress::Zlib::memGzip($body);
            $head .= "Content-Encoding: gzip\r\n";
        }
        $head .= 'Content-Length: ' . length($body) . "\r\n" unless $arg{piece};
        syswrite $c, "$head\r\n";
        for (my $at = 0, my $size = $arg{piece} || 65536; $at < length $body; $at += $size) {
            syswrite $c, substr $body, $at, $size;
            sleep $arg{pause} if $arg{pause};
        }
        # it does not end by itself
        sleep 60 if $arg{hang};
        POSIX::_exit(0);
    }
    POSIX::_exit(0);
}

END { local $?; kill 'TERM', -$server if $server }

my $h2_port = free_port();
my $upstream = "http://127.0.0.1:${\ $app->sockport}";

# not every nginx is built with it
my $has_slice = `${\ nginx_binary()} -V 2>&1` =~ /http_slice_module/;
my $sliced = $has_slice
    ? 'location /sliced/ { slice 29; proxy_set_header Range $slice_range; proxy_http_version 1.1; proxy_pass http://127.0.0.1:$server_port/file/lines.json; }' : '';

my $nginx = start_nginx(<<"END", http => <<'HTTP' . <<"CACHE");
    listen 127.0.0.1:$h2_port http2;
    add_header X-At-First "[\$sliding_limit_usage]" always;
    access_log logs/usage.log usage;
    sliding_limit_usage usage.total_tokens usageMetadata.totalTokenCount;
    location / { proxy_pass $upstream; proxy_http_version 1.1; }
    location /unbuffered/ { proxy_pass $upstream/; proxy_http_version 1.1; proxy_buffering off; }
    location /off/ { sliding_limit_usage off; proxy_pass $upstream/; }
    location /other/ { sliding_limit_usage usage.prompt_tokens; proxy_pass $upstream/; }
    location /cached/ { proxy_pass $upstream/; proxy_cache one; proxy_cache_valid 1h; proxy_force_ranges on; }
    location /spooled/ { proxy_pass $upstream/; proxy_buffers 2 4k; proxy_buffer_size 4k; proxy_busy_buffers_size 4k;
        proxy_max_temp_file_size 100m; limit_rate 4m; }
    location /gzipped/ { proxy_pass $upstream/; gzip on; gzip_min_length 1; gzip_types application/json text/event-stream; }
    $sliced
    location /proxied/ { proxy_pass http://127.0.0.1:\$server_port/file\$uri; rewrite ^/proxied(.*) \$1 break; }
    location /file/ { alias html/; sendfile on; types { application/json json; } }
    location /parent/ { ssi on; ssi_types application/json; alias html/; types { application/json json; } }
    location /post/ { proxy_pass $upstream/; post_action \@done; }
    location \@done { return 204; }
    location /error/ { proxy_pass http://127.0.0.1:1/; error_page 502 = /json; }
END
    log_format usage '$request_uri $status [$sliding_limit_usage]';
HTTP
    proxy_cache_path cache keys_zone=one:1m;
CACHE

sub logged {
    my ($uri, $count) = @_;
    my @found;
    wait_until {
        open my $log, '<', $nginx->dir . '/logs/usage.log' or return;
        @found = map { /^\Q$uri\E \d+ \[(.*)\]$/ ? $1 : () } <$log>;
        @found >= ($count || 1);
    } 20, "a line about $uri";
    return $found[-1];
}

# What is logged of a response, which must have come as it is.
sub usage {
    my ($uri) = @_;
    my ($status, $headers, $body) = get($nginx->port, $uri, 60);
    my ($name) = $uri =~ m{(\w+)(?:\?|$)};

    if (($headers->{'transfer-encoding'} // '') eq 'chunked') {
        my $rest = $body;
        $body = '';
        while ($rest =~ s/^([0-9a-f]+)\r\n//i) {
            $body .= substr $rest, 0, hex $1, '';
            $rest =~ s/^\r\n//;
        }
    }
    is sha1_hex($body), sha1_hex($bodies{$name}[1]), "$uri has come as it is";
    return logged($uri);
}

subtest 'a number in JSON' => sub {
    is usage('/json'), 25;
    is usage('/charset'), 26;
    is usage('/problem'), 27;
    is usage('/upper'), 28;
    is usage('/gemini'), 31, 'where the second path leads';
    is usage('/both'), 32, 'the first path that is there wins';
    is usage('/fraction'), 11, 'rounded up';
    is usage($_), '-', $_ for '/none', '/negative', '/empty';
    is usage('/broken'), 25, 'what was found before it went wrong';
    is usage('/ndjson'), 2, 'of several documents the last that has it';
    is usage('/list'), 4, 'also of those in an array';
    is usage('/large'), 77;
    is +(get($nginx->port, '/json?first'))[1]{'x-at-first'}, '[]', 'nothing is known when a response begins';
};

subtest 'nothing is read of what is no JSON, or where that is not wanted' => sub {
    is usage($_), '-', $_ for '/text', '/off/json';
    is usage('/json?encoding=Identity'), 25, 'no encoding is none';
    is usage('/other/json'), 10, 'paths of a location replace those above it';
};

subtest 'the last event that has it' => sub {
    is usage('/stream'), 45;
    is usage("/unbuffered/stream?piece=$_"), 45, "in pieces of $_" for 1, 7, 64;
    is usage("/unbuffered/json?piece=1"), 25;
};

subtest 'events pass as they come' => sub {
    my $begin = time;
    my $c = begin_request($nginx->port, "GET /unbuffered/stream?piece=256&hang=1&pause=0.01 HTTP/1.1\r\nHost: test\r\n\r\n");
    my $got = '';
    while ($got !~ /\[DONE\]/) {
        sysread $c, $got, 65536, length $got or last;
    }
    like $got, qr/\[DONE\]/, 'all of it is there although the response has not ended';
    cmp_ok time - $begin, '<', 30, 'and was not held back';
    close $c;
    is logged('/unbuffered/stream?piece=256&hang=1&pause=0.01'), 45, 'a client that leaves then has been told';

    # all but what nginx's own buffers can hold
    $c = begin_request($nginx->port, "GET /large?piece=65536&hang=3 HTTP/1.1\r\nHost: test\r\n\r\n");
    $got = '';
    sysread $c, $got, 65536, length $got or last while length $got < length($bodies{large}[1]) - 65536;
    cmp_ok length $got, '>=', length($bodies{large}[1]) - 65536, 'a buffered response passes as it comes, too';
    cmp_ok time - $begin, '<', 30;
    close $c;

    $c = begin_request($nginx->port, "GET /unbuffered/stream?piece=100&hang=2&pause=0.05 HTTP/1.1\r\nHost: test\r\n\r\n");
    $got = '';
    sysread $c, $got, 65536, length $got until $got =~ /word 2/;
    close $c;
    is logged('/unbuffered/stream?piece=100&hang=2&pause=0.05'), '-', 'one that leaves earlier has not';
};

subtest 'however nginx deals with the response' => sub {
    is usage('/cached/json'), 25;
    is usage('/cached/json'), 25;
    is logged('/cached/json', 2), 25, 'from the cache';
    is usage('/spooled/large'), 77, 'through a temporary file';
    is +(get($nginx->port, '/error/'))[0], 200;
    is logged('/error/'), 25, 'after an internal redirect';

    my ($status, $headers, $body) = request($nginx->port, "GET /gzipped/json HTTP/1.1\r\nHost: test\r\n"
        . "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    is $headers->{'content-encoding'}, 'gzip', 'compressed by nginx itself';
    is logged('/gzipped/json'), 25;

    open my $file, '>', $nginx->dir . '/html/some.json' or die $!;
    print $file $bodies{large}[1];
    close $file;
    is length((get($nginx->port, '/file/some.json'))[2]), length $bodies{large}[1];
    is logged('/file/some.json'), 77, 'a file';
    request($nginx->port, "GET /file/some.json?part HTTP/1.1\r\nHost: test\r\nRange: bytes=100-\r\nConnection: close\r\n\r\n");
    is logged('/file/some.json?part'), '-', 'a part of it says nothing';
    open $file, '>', $nginx->dir . '/html/lines.json' or die $!;
    print $file qq({"usage":{"total_tokens":5}}\n{"usage":{"total_tokens":777}}\n);
    close $file;
    my ($part) = request($nginx->port, "GET /file/lines.json?part HTTP/1.1\r\nHost: test\r\nRange: bytes=0-30\r\nConnection: close\r\n\r\n");
    is $part, 206;
    is logged('/file/lines.json?part'), '-', 'not even one that could be read: a client could choose it';
    # "bytes=0-" is a range, too
    my %whole = ('/file/lines.json?whole' => 777, '/proxied/lines.json?whole' => 777, '/cached/json' => 25);
    for my $uri (sort keys %whole) {
        my $times = $uri =~ /cached/ ? 3 : 1;
        my ($status, undef, $body) = request($nginx->port,
            "GET $uri HTTP/1.1\r\nHost: test\r\nRange: bytes=0-\r\nConnection: close\r\n\r\n");
        is $status, 206, $uri;
        like $body, qr/^\{.*\}$/s, 'the whole document';
        is logged($uri, $times), $whole{$uri}, 'a range that is the whole document is read as one';
    }
    request($nginx->port, "GET /proxied/lines.json?part HTTP/1.1\r\nHost: test\r\nRange: bytes=0-30\r\nConnection: close\r\n\r\n");
    is logged('/proxied/lines.json?part'), '-', 'a part that the application has made of it says nothing';
    if ($has_slice) {
        is length((get($nginx->port, '/sliced/'))[2]), -s $nginx->dir . '/html/lines.json', 'put together from slices';
        is logged('/sliced/'), '-', 'of which only the first could be read';
    }
    get($nginx->port, '/post/json');
    is logged('/post/json'), 25, 'post_action comes after it, and changes nothing';
    request($nginx->port, "HEAD /json?head HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    is logged('/json?head'), '-', 'nor does its head';

    open $file, '>', $nginx->dir . '/html/parent.json' or die $!;
    print $file '{"usage":{"total_tokens":5}} <!--# include virtual="/json?sub" -->';
    close $file;
    like +(get($nginx->port, '/parent/parent.json'))[2], qr/total_tokens":25/, 'SSI';
    is logged('/parent/parent.json'), 5, 'parts that come from elsewhere are not looked at';

    system "h2load -n 3 -c 1 -m 3 'http://127.0.0.1:$h2_port/stream?h2' > /dev/null 2>&1";
    is logged('/stream?h2', 3), 45, 'HTTP/2';
};

subtest 'a compressed response cannot be read, which is said once' => sub {
    is +(get($nginx->port, '/off/json?gzip=1'))[0], 200;
    unlike $nginx->error_log, qr/cannot read a response/, 'not where nothing is to be read';
    is +(get($nginx->port, '/json?gzip=1'))[0], 200 for 1 .. 5;
    is logged('/json?gzip=1', 5), '-';
    my @lines = grep { /cannot read a response with "Content-Encoding: gzip"/ } split /\n/, $nginx->error_log;
    is @lines, 1;
    like $lines[0], qr/\[warn\].*proxy_set_header Accept-Encoding "";/;
};

subtest 'nginx -t' => sub {
    my $dir = File::Temp->newdir;
    mkdir "$dir/logs";
    my $says = sub {
        my ($config) = @_;
        open my $file, '>', "$dir/nginx.conf" or die $!;
        print $file (module() ? "load_module ${\ module()};" : ''), "events {} http { $config }";
        close $file;
        return scalar `${\ nginx_binary()} -t -p $dir -c $dir/nginx.conf -e $dir/logs/error.log 2>&1`;
    };

    like $says->("sliding_limit_usage '$_';"), qr/invalid usage "\Q$_\E", must be one to eight names of up to 64 bytes, separated by dots, for example usage.total_tokens/, "'$_'"
        for '', '.', 'a.', '.a', 'a..b', 'a.b.c.d.e.f.g.h.i', 'x' x 65;
    like $says->('sliding_limit_usage a b c d e f g h i;'), qr/"i" is one usage too many, there can be 8/;
    like $says->('sliding_limit_usage a; sliding_limit_usage b;'), qr/directive is duplicate/;
    like $says->('sliding_limit_usage;'), qr/invalid number of arguments/;

    my $limit = 'server { location / { sliding_limit zone=z max=1 window=1s key=$remote_addr settle=%s; } }';
    like $says->(sprintf $limit, '5'), qr/invalid settle "5", must be a variable that is known when the request ends, for example \$bytes_sent/;
    like $says->(sprintf $limit, '$nothing_such'), qr/unknown "nothing_such" variable/;
    like $says->(sprintf $limit, '$bytes_sent count=denied'), qr/zone "z" has settle=\$bytes_sent and count=denied; refused requests are never settled, so leave out one of the two/;
    like $says->(sprintf $limit, '$http_x_cost'), qr/a client chooses its own settle with what it sends as "\$http_x_cost"/;
    like $says->(sprintf $limit, '$sliding_limit_usage'), qr/zone "z" in \S+nginx.conf:1 has settle=\$sliding_limit_usage, but no location with this limit has a sliding_limit_usage/;
    my $fine = $says->('sliding_limit_usage usage.total_tokens;' . sprintf $limit, '$sliding_limit_usage');
    unlike $fine, qr/sliding_limit/, 'nothing to complain about';
    like $fine, qr/successful/;
};

# What is read is what is settled.
subtest 'tokens are counted as the response says' => sub {
    my $redis = start_redis();
    my $limited = start_nginx(<<"END", http => "sliding_limit_redis redis://127.0.0.1:${\ $redis->port} timeout=10s connect_timeout=5s;");
        sliding_limit_usage usage.total_tokens;
        location /look { sliding_limit_metrics; sliding_limit off; }
        location / {
            sliding_limit zone=tokens max=100 window=600s key=one cost=20 settle=\$sliding_limit_usage;
            proxy_pass $upstream;
        }
END
    my $used = sub { (get($limited->port, '/look?zone=tokens&key=one'))[2] =~ /"used":(\d+)/ ? $1 : '' };
    is +(get($limited->port, '/stream'))[0], 200;
    eval { wait_until { $used->() eq 45 } 10 };
    is $used->(), 45;
    is +(get($limited->port, '/none'))[0], 200;
    is $used->(), 65, 'where nothing is said, what was reserved stands';
    is +(get($limited->port, '/stream'))[0], 200;
    eval { wait_until { $used->() eq 110 } 10 };
    is $used->(), 110;
    is +(get($limited->port, '/stream'))[0], 429;
    is $limited->bad_lines, '';
};

is $nginx->bad_lines, '', 'nothing alarming in the log';
done_testing();
