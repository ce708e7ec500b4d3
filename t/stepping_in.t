# Operators at a location with sliding_limit_metrics: where one client stands, who has a ban
# or an override, and with "admin" what is changed about a client. What they ask is either
# done or refused with a sentence that says why; nobody else can make them ask; and all
# of it holds whichever store counts, from the next check on.

use strict;
use warnings;
use lib 't/lib';

use IO::Socket::INET ();
use JSON::PP qw(decode_json);
use SlidingLimit::Servers qw(begin_request free_port get nginx_binary request start_nginx start_redis wait_until);
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $h2_port = free_port();
my ($named_port, $unnamed_port) = (free_port(), free_port());
my ($minor, $patch) = `@{[ nginx_binary() ]} -v 2>&1` =~ m{nginx/1\.(\d+)\.(\d+)};
my $h2 = $minor > 25 || $minor == 25 && $patch >= 1
    ? "listen 127.0.0.1:$h2_port; http2 on;" : "listen 127.0.0.1:$h2_port http2;";

my $CONFIG = <<'END';
    sliding_limit_log_level info;
    sliding_limit_deny_cache 60s;

    location = /look { sliding_limit_metrics; }
    location = /admin { sliding_limit_metrics admin; client_body_buffer_size 64; }
    location = /plain { sliding_limit_metrics keys=plain admin; }
    location = /off { sliding_limit_metrics keys=off admin; client_body_in_file_only clean; }
    location = /guarded {
        sliding_limit_metrics admin;
        limit_except GET HEAD { auth_basic ops; auth_basic_user_file passwords; }
    }
    location /denied {
        sliding_limit_metrics admin;
        deny all;
        location /denied/files { limit_except GET { allow all; } }
        location /denied/if { if ($arg_a) { set $b 1; } allow all; }
        location /denied/plain { allow all; }
        location /denied/own { sliding_limit_metrics; allow all; limit_except POST { allow all; } }
    }
    location = /limited { sliding_limit zone=page max=3 window=600s key=$arg_k; sliding_limit_metrics admin; }
    location = /if { sliding_limit_metrics admin; if ($arg_zone) { set $b 1; } }
    location = /mirrored { sliding_limit_metrics admin; client_body_buffer_size 8; mirror /nowhere; }
    location = /nowhere { internal; return 204; }
    location = /copied { sliding_limit_metrics admin; mirror /copy; }
    location = /copy { internal; proxy_pass http://127.0.0.1:$server_port/plain?zone=memory&key=copy; }
    location = /mirror { mirror /admin; return 200; }
    location = /included { ssi on; ssi_types text/plain; default_type text/plain; }
    location = /after { sliding_limit_metrics admin; post_action /nowhere; }

    location = /redis { sliding_limit zone=redis max=3 window=600s key=$arg_k; empty_gif; }
    location = /memory { sliding_limit zone=memory max=3 window=600s key=$arg_k store=memory; empty_gif; }
    location = /redis-varies { sliding_limit zone=varies max=$arg_max window=600s key=$arg_k; empty_gif; }
    location = /redis-buckets { sliding_limit zone=redis-buckets max=3 window=600s key=$arg_k algorithm=buckets; empty_gif; }
    location = /memory-buckets { sliding_limit zone=memory-buckets max=3 window=600s key=$arg_k algorithm=buckets store=memory; empty_gif; }
    location = /address { sliding_limit zone=address max=3 window=600s key=$http_x_key store=memory; empty_gif; }
END

# Two servers that answer on one port, and one that has no name.
my $NAMED = <<"END";
server {
    listen 127.0.0.1:$named_port;
    server_name _ exact.example *.wild.example .both.example www.tail.* ~^re[0-9]+\\.example\$ ~^(?<part>any)\\. "";
    location = /admin { sliding_limit_metrics admin; }
    location = /added { sliding_limit_metrics admin host=Added.example,another.example; limit_except GET { allow all; } }
}
server {
    listen 127.0.0.1:$named_port;
    server_name second.example;
    location = /admin { sliding_limit_metrics admin; }
}
server {
    listen 127.0.0.1:$unnamed_port;
    location = /admin { sliding_limit_metrics admin; }
}
END

my %with = (slots => 512, http => 'large_client_header_buffers 4 32k; sliding_limit_redis redis://127.0.0.1:'
    . $redis->port . ' timeout=3s connect_timeout=3s;');

my $nginx = start_nginx("$h2 $CONFIG", %with, http => "$NAMED $with{http}");
my ($worker) = $nginx->workers;

# ann's password is "secret"
open my $passwords, '>', $nginx->dir . '/passwords' or die $!;
print $passwords "ann:{PLAIN}secret\nq\"\\:{PLAIN}secret\n";
close $passwords;
open my $included, '>', $nginx->dir . '/html/included' or die $!;
print $included 'a<!--# include virtual="/look?zone=redis&key=ssi" -->b<!--# include virtual="/look?zone=memory&key=ssi" -->c';
close $included;

# ask(METHOD, path, body => ..., headers => [...]): (status, headers, body). A change says that
# its body is JSON unless it is told otherwise.
sub message {
    my ($method, $path, %with) = @_;
    my @headers = @{ $with{headers} // ($method =~ /PUT|DELETE/ ? ['Content-Type: application/json'] : []) };
    my $host = $with{host} // 'test';

    push @headers, 'Content-Length: ' . length $with{body} if defined $with{body};
    return join("\r\n", "$method $path HTTP/1.1", "Host: $host", 'Connection: close', @headers) . "\r\n\r\n" . ($with{body} // '');
}

sub ask { my ($method, $path, %with) = @_; return request($with{port} // $nginx->port, message($method, $path, %with), 20) }

# What an error says; '' if there is none.
sub complaint {
    my ($status, $headers, $body) = ask(@_);
    return "$status " . (eval { decode_json($body)->{error} } // "no JSON: $body");
}

# What is said about a client, or what became of it.
sub told {
    my ($status, $headers, $body) = ask(@_);
    die "@_: $status $body" unless $status == 200;
    return decode_json($body);
}

sub client { my ($zone, $key) = @_; return told('GET', "/plain?zone=$zone&key=$key") }

sub put { my ($zone, $key, $body) = @_; return told('PUT', "/plain?zone=$zone&key=$key", body => $body) }

sub forget { my ($zone, $key) = @_; return told('DELETE', "/plain?zone=$zone&key=$key") }

# The statuses of so many requests.
sub statuses {
    my ($path, $count) = @_;
    return join ' ', map { ($nginx->try($path))[0] } 1 .. $count;
}

sub log_lines { return grep { /sliding_limit: \S+ .*(?:client "|unix)/ && /\[notice\]/ } split /\n/, $nginx->error_log }

sub still_fine {
    is join(',', $nginx->workers), $worker, 'the worker lives';
    is $nginx->bad_lines, '', 'nothing alarming in the log';
}

# ---- what is not understood

subtest 'methods' => sub {
    for my $path ('/look', '/look?zone=redis&key=a', '/look?nonsense') {
        for my $method (qw(PUT DELETE POST PATCH OPTIONS)) {
            my ($status, $headers, $body) = ask($method, $path, body => '{"ban":"15m"}');
            is "$status $headers->{allow}", '405 GET, HEAD', "$method $path without admin";
            like decode_json($body)->{error}, qr/^the method "$method" is not allowed, must be GET or HEAD; changes need "sliding_limit_metrics admin"$/;
            is $headers->{'cache-control'}, 'no-store', 'not to be cached';
        }
        for my $method (qw(POST PATCH OPTIONS MKCOL)) {
            my ($status, $headers, $body) = ask($method, $path =~ s/look/admin/r, body => '{"ban":"15m"}');
            is "$status $headers->{allow}", '405 GET, HEAD, PUT, DELETE', "$method $path with admin";
            like decode_json($body)->{error}, qr/^the method "$method" is not allowed, must be GET, HEAD, PUT or DELETE$/;
        }
    }
};

subtest 'arguments that are not right' => sub {
    my @cases = (
        ['zone=redis', 'key is missing, must be ?zone=ZONE&key=KEY, or ?zone=ZONE&overrides for all who have a ban or an override'],
        ['zone=redis&key=', 'key is empty, must be that of a client'],
        ['zone=nowhere&key=a', 'unknown zone "nowhere", must be that of a sliding_limit'],
        ['zone=&key=a', 'unknown zone "", must be that of a sliding_limit'],
        ['zone=%22%3Cb%3E%0A&key=a', qq{unknown zone ""<b>\n", must be that of a sliding_limit}],
        ['zone=' . 'x' x 100 . '&key=a', 'unknown zone "' . 'x' x 64 . '...", must be that of a sliding_limit'],
        ['zone=redis&zone=redis&key=a', 'the argument "zone" is given twice'],
        ['zone=redis&key=a&key=b', 'the argument "key" is given twice'],
        ['zone=redis&key=a&overrides', 'key and overrides are both given, must be one of them'],
        ['zone=redis&key=a&cursor=1', 'cursor goes with overrides alone'],
        ['zone=redis&key=%zz', 'invalid escape sequence in "%zz", must be % and two hexadecimal digits'],
    );
    for my $case (@cases) {
        my ($arguments, $sentence) = @$case;
        is complaint('GET', "/look?$arguments"), "400 $sentence", "GET ?$arguments";
        is complaint('DELETE', "/admin?$arguments"), "400 $sentence", "DELETE ?$arguments";
        is complaint('PUT', "/admin?$arguments", body => '{"ban":"15m"}'), "400 $sentence", "PUT ?$arguments";
    }
    for my $arguments ('', '?', '?key=a', '?Zone=redis&key=a') {
        is complaint('DELETE', "/admin$arguments"), '400 zone is missing, must be ?zone=ZONE&key=KEY', "a change without a zone: $arguments";
    }
    for my $case (['redis', 'x%22', 'x"'], ['redis', '7.0', '7.0'], ['memory', '-1', '-1'], ['memory', '4294967296', '4294967296']) {
        my ($zone, $cursor, $shown) = @$case;
        is complaint('GET', "/look?zone=$zone&overrides&cursor=$cursor"),
            qq{400 cursor is "$shown", must be one that such a list has ended with}, "$zone: cursor $cursor";
    }
    is complaint('DELETE', '/admin?zone=redis&overrides'),
        '400 overrides can only be looked at, must be ?zone=ZONE&key=KEY for a change', 'a change of all';
    my ($status, $headers, $body) = ask('GET', '/look?zone=%3Cb%3E&key=a');
    unlike $body, qr/<b>/, 'no markup is sent back';
    is $headers->{'content-type'}, 'application/json';
    is $headers->{'x-content-type-options'}, 'nosniff';
};

subtest 'bodies that are not right' => sub {
    my $time = 'must be a string with a time from 1s to 366d';
    my $max = 'must be a whole number from 1 to 1000000000000000, or null to lift an override';
    my @cases = (
        ['', 'the body is not JSON: "", it must be an object as {"ban":"15m"}'],
        ['{"ban":"15m"} x', 'the body is not JSON: "{"ban":"15m"} x", it must be an object as {"ban":"15m"}'],
        ['[]', 'the body is no object: "[]", it must be one as {"ban":"15m"}'],
        ['{"ban":"15x"}', qq{invalid ban "15x", $time, for example "15m", or null to lift a ban}],
        ['{"ban":"0s"}', qq{invalid ban "0s", $time, for example "15m", or null to lift a ban}],
        ['{"ban":"367d"}', qq{invalid ban "367d", $time, for example "15m", or null to lift a ban}],
        ['{"ban":900}', qq{invalid ban "900", $time, for example "15m", or null to lift a ban}],
        ['{"ban":"' . 'x' x 3000 . '"}', 'invalid ban "' . 'x' x 64 . qq{...", $time, for example "15m", or null to lift a ban}],
        ['{"max":0,"for":"1d"}', 'invalid max "0", must be 1 or more; use a ban, {"ban":"15m"}, to let nothing pass'],
        ['{"max":1.5,"for":"1d"}', qq{invalid max "1.5", $max}],
        ['{"max":"5","for":"1d"}', qq{invalid max "5", $max}],
        ['{"max":1000000000000001,"for":"1d"}', qq{invalid max "1000000000000001", $max}],
        ['{"max":5}', '"for" is missing: how long the max is to hold, from 1s to 366d, as in {"max":500,"for":"1d"}'],
        ['{"max":5,"for":"1"d}', 'the body is not JSON: "{"max":5,"for":"1"d}", it must be an object as {"ban":"15m"}'],
        ['{"max":5,"for":5}', qq{invalid for "5", $time, for example "1d"}],
        ['{"ban":"1s","max":5,"for":"1s"}', '"ban" and "max" are both given, must be one at a time'],
        ['{"ban":"1s","ban":"1s"}', 'the field "ban" is given twice'],
        ['{"bann":"1s"}', 'unknown field "bann", must be "ban", "max" or "for"'],
        [qq({"<b>\\u0000":1}), 'unknown field "<b>\u0000", must be "ban", "max" or "for"'],
    );
    for my $path ('/admin', '/off', '/mirrored') {
        is complaint('PUT', "$path?zone=redis&key=a", body => $_->[0]), "400 $_->[1]", substr "PUT $path $_->[0]", 0, 80 for @cases;
    }
    is complaint('PUT', '/admin?zone=redis&key=a'), "400 $cases[0][1]", 'no body at all';
    is client('redis', 'a')->{ban}, undef, 'and nothing has changed';
};

subtest 'bodies that are too large' => sub {
    my $too_large = '413 the body is too large, must be at most 4096 bytes';
    my $at_most = '{"ban":"15m"}' . ' ' x 4083;
    is length $at_most, 4096;

    for my $path ('/admin', '/off', '/mirrored') {
        my $url = "$path?zone=memory&key=large";
        my ($status) = ask('PUT', $url, body => $at_most);
        is $status, 200, "$path: 4096 bytes are not too many";
        is complaint('PUT', $url, body => "$at_most "), $too_large, "$path: one more is";
        is complaint('PUT', $url, body => ' ' x 100000), $too_large, "$path: and many more are";

        my @headers = ('Content-Type: application/json', 'Transfer-Encoding: chunked');
        my $chunks = sub { return join '', map { sprintf "%x\r\n%s\r\n", length, $_ } @_ };
        ($status) = request($nginx->port, message('PUT', $url, headers => \@headers) . $chunks->(unpack '(a1000)*', $at_most) . "0\r\n\r\n");
        is $status, 200, "$path: nor are they in chunks";
        (undef, undef, my $body) = request($nginx->port,
            message('PUT', $url, headers => \@headers) . $chunks->(unpack('(a1000)*', $at_most), ' ') . "0\r\n\r\n");
        is decode_json($body)->{error}, substr($too_large, 4), "$path: one more is too many";

        # mirror reads everything before anybody else gets to see it
        next if $path eq '/mirrored';
        my $socket = begin_request($nginx->port, message('PUT', $url, headers => \@headers) . $chunks->(' ' x 2000));
        sleep 0.2;
        syswrite $socket, $chunks->(' ' x 3000);
        sysread $socket, my $answer, 100;
        like $answer, qr/^HTTP\/1.1 413 /, "$path: a body that does not end is not read for ever";
    }
    forget('memory', 'large');

    my $socket = begin_request($nginx->port, message('PUT', '/admin?zone=memory&key=slow', headers => ['Content-Type: application/json', 'Content-Length: 13']));
    for my $byte (split //, '{"ban":"15m"}') {
        sleep 0.02;
        syswrite $socket, $byte;
    }
    sysread $socket, my $answer, 100;
    like $answer, qr/^HTTP\/1.1 200 /, 'a body that comes byte by byte';

    $socket = begin_request($nginx->port, message('PUT', '/admin?zone=memory&key=slow', headers => ['Content-Type: application/json', 'Content-Length: 13']) . '{"ban"');
    sleep 0.1;
    close $socket;
    still_fine();
};

subtest 'a client that waits to be told to go on' => sub {
    my @headers = ('Content-Type: application/json', 'Expect: 100-continue');
    my $socket = begin_request($nginx->port, message('PUT', '/admin?zone=memory&key=expect', headers => [@headers, 'Content-Length: 13']));
    sysread $socket, my $answer, 1000;
    like $answer, qr/^HTTP\/1.1 100 Continue/, 'is told so';
    syswrite $socket, '{"ban":"15m"}';
    sysread $socket, $answer, 1000;
    like $answer, qr/^HTTP\/1.1 200 /;

    for my $case (['key=expect', 5000, 413], ['nothing', 13, 400]) {
        my ($arguments, $size, $status) = @$case;
        $socket = begin_request($nginx->port, message('PUT', "/admin?zone=memory&$arguments", headers => [@headers, "Content-Length: $size"]));
        sysread $socket, $answer, 1000;
        like $answer, qr/^HTTP\/1.1 $status /, "unless it need not send anything: $status";
    }
};

# ---- who may change something

subtest 'a change must be meant' => sub {
    my $meant = '415 a change must have a Content-Type of application/json, or a header X-Requested-With';
    for my $headers ([], ['Content-Type: text/plain'], ['Content-Type: application/x-www-form-urlencoded'], ['Content-Type: application/jsonp'], ['Content-Type: text/plain; application/json']) {
        is complaint('PUT', '/admin?zone=memory&key=meant', body => '{"ban":"15m"}', headers => $headers), $meant, "PUT: @$headers";
        is complaint('DELETE', '/admin?zone=memory&key=meant', headers => $headers), $meant, "DELETE: @$headers";
    }
    is client('memory', 'meant')->{ban}, undef, 'and nothing has changed';
    for my $header ('Content-Type: application/json', 'content-type: Application/JSON; charset=utf-8', 'X-Requested-With: curl', 'x-requested-with:') {
        ok told('PUT', '/admin?zone=memory&key=meant', body => '{"ban":"15m"}', headers => [$header])->{ban}, "PUT: $header";
        ok !told('DELETE', '/admin?zone=memory&key=meant', headers => [$header])->{ban}, "DELETE: $header";
    }
};

subtest 'a change comes from a page of this server, or from no page' => sub {
    my $foreign = '403 the request comes from a page of another server: its Origin must be what its Host says';
    my @type = 'Content-Type: application/json';
    my $url = '/admin?zone=memory&key=origin';
    for my $case (['http://evil.example', 'test'], ['null', 'test'], ['null', 'null'], ['http://test:8080', 'test'], ['http://test', 'test:443'], ['', 'test'], ['http://test.evil.example', 'test']) {
        my ($origin, $host) = @$case;
        is complaint('PUT', $url, body => '{"ban":"15m"}', host => $host, headers => [@type, "Origin: $origin"]), $foreign, "$origin at $host";
        is complaint('DELETE', $url, host => $host, headers => [@type, "Origin: $origin"]), $foreign, "$origin at $host";
    }
    is complaint('DELETE', $url, headers => [@type, 'Origin: http://test', 'Origin: http://evil.example']), $foreign, 'two of them';
    is complaint('DELETE', $url, headers => ['Origin: http://evil.example']), $foreign, 'not even if nothing else is right';
    is client('memory', 'origin')->{ban}, undef, 'and nothing has changed';
    for my $case (['http://test', 'test'], ['https://test', 'test'], ['https://TEST', 'test:443'], ['http://test:80', 'test'], ['http://test:8080', 'test:8080'], ['http://[::1]:81', '[::1]:81']) {
        my ($origin, $host) = @$case;
        ok told('PUT', $url, body => '{"ban":"15m"}', host => $host, headers => [@type, "Origin: $origin"])->{ban}, "$origin at $host";
    }
    is told('GET', '/admin?zone=memory&key=origin', headers => ['Origin: http://evil.example'])->{key}, 'origin', 'to look changes nothing';
};

# A page of evil.example, whose name has been made to lead to this server, is a page of this
# server's to the browser.
subtest 'a change is made under a name of the server' => sub {
    my @type = 'Content-Type: application/json';
    my $arguments = '?zone=memory&key=named';
    my $changes = sub {
        my ($port, $path, $host) = @_;
        my %with = (port => $port, host => $host, headers => [@type, "Origin: http://$host"]);
        my @statuses = map { (ask($_, "$path$arguments", body => '{"ban":"15m"}', %with, $_[3] ? (headers => \@type) : ()))[0] } qw(PUT DELETE);
        return "@statuses";
    };
    my $is_taken = sub {
        my ($port, $path, @hosts) = @_;
        is $changes->($port, $path, $_), '200 200', "under $_" for @hosts;
    };
    my $is_refused = sub {
        my ($port, $path, @hosts) = @_;
        for my $host (@hosts) {
            is $changes->($port, $path, $host), '403 403', "not under $host";
            is $changes->($port, $path, $host, 'no Origin'), '403 403', "not under $host without a page either";
        }
    };

    $is_taken->($named_port, '/admin', 'exact.example', 'EXACT.example:8080', 'exact.example.', 'a.wild.example', 'a.b.wild.example',
        'both.example', 'a.both.example', 're7.example', 'second.example', 'localhost', 'localhost:8080',
        '127.0.0.1', "127.0.0.1:$named_port", '192.0.2.7', '[::1]', '[2001:DB8::1]:8080');
    $is_refused->($named_port, '/admin', 'evil.example', 'exact.example.evil.example', 'www.exact.example', 'wild.example', '_',
        'www.tail.example', 're7.example.evil.example', 'any.example', 'added.example', 'notlocalhost', 'localhost.evil.example',
        '127.0.0.1.evil.example', '1.2.3', '1.2.3.256', '[evil]');

    $is_taken->($named_port, '/added', 'added.example', 'ADDED.example:81', 'another.example', 'exact.example');
    $is_refused->($named_port, '/added', 'evil.example', 'a.added.example', 'added.example,another.example');

    $is_taken->($unnamed_port, '/admin', '127.0.0.1', 'localhost', '[::1]');
    $is_refused->($unnamed_port, '/admin', 'evil.example', 'exact.example', '_', 'test');

    is complaint('PUT', "/admin$arguments", port => $named_port, host => 'Evil.example:81', body => '{"ban":"15m"}'),
        '403 the Host "evil.example" is no name of this server, must be one of its server_name, an IP address, localhost, '
        . 'or one of "sliding_limit_metrics admin host="', 'the answer says why';
    my ($status) = request($unnamed_port, "DELETE /admin$arguments HTTP/1.0\r\nX-Requested-With: curl\r\n\r\n");
    is $status, 403, 'no name at all';
    is client('memory', 'named')->{ban}, undef, 'nothing has changed';
    is told('GET', "/admin$arguments", port => $named_port, host => 'evil.example')->{key}, 'named', 'to look changes nothing';
};

subtest 'locations within a location have nothing of its handler' => sub {
    for my $path ('/denied/files/x', '/denied/if/x', '/denied/if/x?a=1', '/denied/plain/x') {
        my $url = $path . ($path =~ /\?/ ? '&' : '?') . 'zone=memory&key=nested';
        isnt +(ask('GET', $url))[0], 200, "GET $url";
        isnt +(ask('PUT', $url, body => '{"ban":"15m"}'))[0], 200, "PUT $url";
    }
    is +(ask('PUT', '/denied?zone=memory&key=nested', body => '{"ban":"15m"}'))[0], 403, 'the location itself is denied';
    is client('memory', 'nested')->{ban}, undef, 'and nothing has changed';

    my $own = '/denied/own?zone=memory&key=nested';
    is +(ask('GET', $own))[0], 200, 'one with a line of its own has that';
    is +(ask('PUT', $own, body => '{"ban":"15m"}'))[0], 405, 'without admin';
    is +(ask('GET', '/if?zone=memory&key=nested'))[0], 200, 'an "if" of the location has its handler';
    is +(ask('DELETE', '/if?zone=memory&key=nested'))[0], 200, 'and its settings';
};

subtest 'limit_except protects changes' => sub {
    my @type = 'Content-Type: application/json';
    my $ann = 'Authorization: Basic ' . 'YW5uOnNlY3JldA==';
    my $url = '/guarded?zone=memory&key=guarded';
    is +(ask('GET', $url))[0], 200, 'anybody may look';
    is +(ask('HEAD', $url))[0], 200;
    is +(ask('GET', '/guarded?format=json'))[0], 200;
    is +(ask('PUT', $url, body => '{"ban":"15m"}'))[0], 401, 'not anybody may ban';
    is +(ask('DELETE', $url))[0], 401, 'or forget';
    is +(ask('POST', $url))[0], 401;
    is client('memory', 'guarded')->{ban}, undef, 'nothing has changed';
    ok told('PUT', $url, body => '{"ban":"15m"}', headers => [@type, $ann])->{ban}, 'ann may';
    is +(ask('PUT', $url, body => '{"ban":"15m"}', headers => [$ann]))[0], 415, 'if she means it';
    ok !told('DELETE', $url, headers => [@type, $ann])->{ban};
    is scalar(grep { /sliding_limit: 127\.0\.0\.1 \(user "ann"\) banned client "g\.\.\.#[0-9a-f]{8}" of zone "memory" for 900 s$/ } log_lines()), 1,
        'the log says who it was';
};

subtest 'subrequests look, and change nothing' => sub {
    my ($status, $headers, $body) = request($nginx->port, "GET /included HTTP/1.0\r\nHost: test\r\n\r\n");
    like $body, qr/^a\{"zone":"redis","key":"ssi".*\}\nb\{"zone":"memory","key":"ssi".*\}\nc$/s, 'included in a page';

    is +(ask('PUT', '/mirror?zone=memory&key=mirrored', body => '{"ban":"15m"}'))[0], 200;
    is client('memory', 'mirrored')->{ban}, undef, 'what is mirrored changes nothing';
    still_fine();
};

subtest 'a copy of the request has its body, too' => sub {
    put('memory', 'copy', '{"ban":null}');
    is +(ask('PUT', '/copied?zone=memory&key=original', body => '{"ban":"15m"}'))[0], 200;
    wait_until { client("memory", "copy")->{ban} } 5, "the ban that the copy asks for";
    ok client('memory', 'original')->{ban}, 'and the original was heard';
    still_fine();
};

# ---- what is told of a client

for my $zone (qw(redis memory)) {
    subtest "$zone: a client that nobody has seen" => sub {
        my $began = time;
        my $told = client($zone, 'unknown');
        my ($masked, $now) = delete @$told{qw(masked now)};
        like $masked, qr/^u\.\.\.#[0-9a-f]{8}$/, 'masked';
        ok $now > $began - 1 && $now < time + 1, 'now';
        is_deeply $told, {
            zone => $zone, key => 'unknown', store => $zone, window => 600, max => 3, unit => 'requests', used => 0, remaining => 3, reset => undef,
            stored_as => $zone eq 'redis' ? 'rate_limit:redis:unknown' : '',
            server => $zone eq 'redis' ? '127.0.0.1:' . $redis->port : '',
            ban => undef, override => undef, counted => 0, requests => [],
        };
    };

    subtest "$zone: where a client stands, and looking counts nothing" => sub {
        my $began = time;
        is statuses("/$zone?k=alice", 2), '200 200';
        for (1 .. 5) {
            my $told = client($zone, 'alice');
            is "$told->{used} $told->{remaining} $told->{counted} " . @{ $told->{requests} }, '2 1 2 2', 'two of three';
        }
        my $told = client($zone, 'alice');
        ok $told->{reset} > 590 && $told->{reset} <= 600, 'reset';
        for my $request (@{ $told->{requests} }) {
            ok $request->{time} > $began - 1 && $request->{time} < time + 1, 'when it came';
            is $request->{cost}, 1;
            like $request->{id}, $zone eq 'redis' ? qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/ : qr/^$/, 'its id';
        }
        ok $told->{requests}[0]{time} >= $told->{requests}[1]{time}, 'the newest first';

        my ($status, $headers, $body) = ask('GET', "/look?zone=$zone&key=alice");
        my ($head_status, $head_headers, $head_body) = ask('HEAD', "/look?zone=$zone&key=alice");
        is "$head_status $head_body", '200 ', 'HEAD has no body';
        is $head_headers->{'content-type'}, 'application/json';
        is $headers->{'cache-control'}, 'no-store';
        is statuses("/$zone?k=alice", 2), '200 429', 'the third request is still to be had';
    };

    subtest "$zone: masks are those of the lists" => sub {
        statuses("/$zone?k=topmost", 6);
        my ($listed) = grep { $_->{name} eq $zone } @{ told('GET', '/look?format=json')->{zones} };
        my $masked = client($zone, 'topmost')->{masked};
        like $masked, qr/^t\.\.\.#/;
        is scalar(grep { $_->{key} eq $masked } @{ $listed->{top_rejected} }), 1, $masked;
    };

    subtest "$zone: a ban, from the next check on" => sub {
        is statuses("/$zone?k=mallory", 1), '200';
        my $began = time;
        my $told = put($zone, 'mallory', '{"ban":"15m"}');
        ok $told->{ban}{until} > $began + 899 && $told->{ban}{until} < time + 901, 'until when';
        is $told->{used}, 1, 'what was counted stays';
        is statuses("/$zone?k=mallory", 2), '429 429', 'banned';
        is statuses("/$zone?k=alone", 1), '200', 'and nobody else is';
        is client($zone, 'mallory')->{used}, 1, 'what a ban refuses is not counted';

        is put($zone, 'mallory', '{"ban":null}')->{ban}, undef, 'lifted';
        is statuses("/$zone?k=mallory", 3), '200 200 429', 'from the next check on';
        put($zone, 'mallory', '{"ban":"1s"}');
        forget($zone, 'alone');
        is statuses("/$zone?k=mallory", 1), '429';
        sleep 1.3;
        is client($zone, 'mallory')->{ban}, undef, 'a ban ends by itself';
    };

    subtest "$zone: another max, more or less" => sub {
        is statuses("/$zone?k=carol", 4), '200 200 200 429';
        my $told = put($zone, 'carol', '{"max":5,"for":"1h"}');
        is "$told->{override}{max} $told->{used} $told->{remaining} $told->{max}", '5 3 2 3', 'two more';
        is statuses("/$zone?k=carol", 3), '200 200 429';
        $told = put($zone, 'carol', '{"max":1,"for":"1h"}');
        is "$told->{override}{max} $told->{used} $told->{remaining}", '1 5 0', 'fewer';
        is statuses("/$zone?k=carol", 1), '429';
        is put($zone, 'carol', '{"max":null}')->{override}, undef, 'lifted';
        is client($zone, 'carol')->{remaining}, 0;

        put($zone, 'carol', '{"max":1000000000000000,"for":"366d"}');
        is statuses("/$zone?k=carol", 3), '200 200 200', 'as good as no limit';
        is client($zone, 'carol')->{override}{max}, 1000000000000000;
    };

    subtest "$zone: forgotten, and let go at once on this nginx" => sub {
        is statuses("/$zone?k=dave", 6), '200 200 200 429 429 429';
        is +($nginx->try("/$zone?k=dave"))[0], 429;
        put($zone, 'dave', '{"max":2,"for":"1h"}');
        put($zone, 'dave', '{"ban":"1h"}');
        my $told = forget($zone, 'dave');
        is "$told->{used} $told->{counted} " . @{ $told->{requests} }, '0 0 0', 'nothing is counted';
        is $told->{ban}, undef, 'nor is there a ban';
        is $told->{override}{max}, 2, 'an override stays';
        is statuses("/$zone?k=dave", 3), '200 200 429';
        put($zone, 'dave', '{"max":null}');
        is forget($zone, 'dave')->{override}, undef;
        is statuses("/$zone?k=dave", 4), '200 200 200 429';
        is forget($zone, 'nobody')->{used}, 0, 'one that nobody has seen';
    };

    subtest "$zone: buckets" => sub {
        my $buckets = "$zone-buckets";
        is statuses("/$buckets?k=erin", 2), '200 200';
        my $told = client($buckets, 'erin');
        is "$told->{used} $told->{remaining} $told->{requests}[0]{id}", '2 1 ', 'used';
        put($buckets, 'erin', '{"ban":"15m"}');
        is statuses("/$buckets?k=erin", 1), '429';
        forget($buckets, 'erin');
        is statuses("/$buckets?k=erin", 4), '200 200 200 429';
    };

    subtest "$zone: any key" => sub {
        for my $case (['a%20b+c%2Bd', 'a b c+d'], ['%7B%7D', '{}'], ['%23x', '#x'], ['%00%01%ff', "\x{0}\x{1}\x{fffd}"],
            ['%C3%A4%C3%B6' x 200, "\x{e4}\x{f6}" x 200], ['%41' x 5000, 'A' x 5000], ['%3Cscript%3E%22%5C', '<script>"\\'], ['=', '=']) {
            my ($url, $key) = @$case;
            my $told = put($zone, $url, '{"ban":"15m"}');
            ok $told->{key} eq $key, 'key: ' . substr $url, 0, 20;
            ok client($zone, $url)->{ban}, 'it is found again';
            ok !client($zone, "${url}x")->{ban}, 'and no other is';
            ok !forget($zone, $url)->{ban};
        }
    };

    subtest "$zone: who has a ban or an override" => sub {
        put($zone, "listed$_", '{"ban":"1h"}') for 1 .. 20;
        put($zone, "listed$_", '{"max":7,"for":"2h"}') for 11 .. 30;
        put($zone, '%7Bodd%7D', '{"ban":"1h"}');

        my $list = sub {
            my ($path) = @_;
            my (@clients, %seen);
            my $cursor = '';
            do {
                my $told = told('GET', "$path?zone=$zone&overrides" . ($cursor ne '' ? "&cursor=$cursor" : ''));
                is $told->{zone}, $zone;
                push @clients, grep { !defined $_->{key} || !$seen{ $_->{key} }++ } @{ $told->{clients} };
                $cursor = $told->{cursor};
            } while defined $cursor;
            return @clients;
        };

        my %by_key = map { $_->{key} => $_ } $list->('/plain');
        is join(' ', sort grep { /^listed/ } keys %by_key), join(' ', sort map { "listed$_" } 1 .. 30), 'all of them';
        for my $n (1 .. 30) {
            my $client = $by_key{"listed$n"};
            is defined $client->{ban} || 0, $n <= 20 || 0, "$n: ban";
            is $client->{override}{max} // 0, $n > 10 ? 7 : 0, "$n: override";
            ok $client->{ban}{until} > time + 3500 && $client->{ban}{until} < time + 3601, 'until when' if $n <= 20;
        }
        is scalar(grep { /^#[0-9a-f]{64}$/ } keys %by_key), 1, 'a key that cannot be read is shown by its hash';

        my $mask = client($zone, 'listed5')->{masked};
        my @masked = $list->('/look');
        is scalar(grep { $_->{key} eq $mask } @masked), 1, 'masked keys are those of the lists';
        is scalar(grep { /listed\d/ } map { $_->{key} } @masked), 0, 'and no others are shown';
        is scalar(grep { defined $_->{key} } $list->('/off')), 0, 'keys=off shows none';

        forget($zone, "listed$_"), put($zone, "listed$_", '{"max":null}') for 1 .. 30;
        forget($zone, '%7Bodd%7D');
        is scalar(grep { $_->{key} =~ /^listed|^#/ } $list->('/plain')), 0, 'and they are gone';
    };
}

subtest 'entries that somebody else has written' => sub {
    my $now = sprintf '%.0f', (time - 10) * 1e6;
    $redis->cli('ZADD', 'rate_limit:redis:foreign', $now, 'x' x 50);
    is client('redis', 'foreign')->{requests}[0]{id}, 'x' x 36, 'as much of a long id as ids have';
    $redis->cli('ZADD', 'rate_limit:redis:foreign', 0, '!0:9000000000000000:3000000000000000');
    like complaint('GET', '/plain?zone=redis&key=foreign'), qr/^503 the store "default" gave no answer, nonsense: what it has stored for the client is not what checks store$/;
    is statuses('/redis?k=foreign', 1), '200', 'whoever checks has no use for that';
    ok client('redis', 'nobody'), 'and nobody else is told that Redis is down';
    unlike $nginx->error_log, qr/is down/, 'nor the log';
    still_fine();
};

subtest 'a max that varies' => sub {
    is statuses('/redis-varies?k=vera&max=2', 3), '200 200 429';
    my $told = client('varies', 'vera');
    is "$told->{max} $told->{used}", 'varies 2';
    is $told->{remaining}, undef, 'nobody knows what remains';
    is put('varies', 'vera', '{"max":9,"for":"1h"}')->{remaining}, 7, 'unless there is an override';
    is statuses('/redis-varies?k=vera&max=2', 1), '200';
};

subtest 'for all servers' => sub {
    my $other = start_nginx($CONFIG, %with);
    put('redis', 'everywhere', '{"ban":"15m"}');
    is +($other->try('/redis?k=everywhere'))[0], 429, 'a ban';
    forget('redis', 'everywhere');
    put('redis', 'more', '{"max":5,"for":"1h"}');
    is join(' ', map { ($_->try('/redis?k=more'))[0] } ($nginx, $other) x 3), '200 200 200 200 200 429', 'an override';
};

subtest 'the location may have limits itself' => sub {
    is join(' ', map { (ask('PUT', '/limited?k=a&zone=page&key=x', body => '{"ban":"15m"}'))[0] } 1 .. 4), '200 200 200 429';
    is +(ask('GET', '/limited?k=b&zone=redis&key=x'))[0], 200;
    is told('PUT', '/if?a=1&zone=memory&key=if', body => '{"ban":"15m"}')->{key}, 'if', 'and an "if"';
};

# ---- what is noted

subtest 'the log' => sub {
    my $before = () = log_lines();
    put('redis', 'logged%22%0A%5C%C3%A4', '{"ban":"1h30m"}');
    put('redis', 'logged', '{"ban":null}');
    put('memory', 'logged', '{"max":500,"for":"1d"}');
    put('memory', 'logged', '{"max":null}');
    forget('memory', 'l' x 2000);
    told('DELETE', '/admin?zone=memory&key=logged');
    told('DELETE', '/off?zone=memory&key=logged');
    told('DELETE', '/admin?zone=memory&key=logged',
        headers => ['Content-Type: application/json', 'Authorization: Basic ' . 'cSJcOnNlY3JldA==']);
    client('memory', 'logged');

    my $masked = client('memory', 'logged')->{masked};
    my @expected = (
        'banned client "logged\x22\x0a\x5c\xc3\xa4" of zone "redis" for 5400 s',
        'lifted the ban of client "logged" of zone "redis"',
        'set the max of client "logged" of zone "memory" to 500 for 86400 s',
        'lifted the override of client "logged" of zone "memory"',
        'reset client "' . 'l' x 169 . '..." of zone "memory"',
        (qq{reset client "$masked" of zone "memory"}) x 2,
    );
    my @lines = map { s/^.*?sliding_limit: //r } log_lines();
    splice @lines, 0, $before;
    is shift @lines, "127.0.0.1 $_", $_ for @expected;
    is shift @lines, qq{127.0.0.1 (user "q\\x22\\x5c") reset client "$masked" of zone "memory"}, 'whoever says who it is';
    is scalar @lines, 0, 'and nothing of those who only look';
};

subtest 'the metrics' => sub {
    my $fresh = start_nginx($CONFIG, %with);
    my $change = sub {
        my ($method, $zone, $body) = @_;
        told($method, "/admin?zone=$zone&key=counted", body => $body, port => $fresh->port);
    };
    $change->('PUT', 'redis', '{"ban":"15m"}') for 1 .. 3;
    $change->('PUT', 'redis', '{"ban":null}') for 1 .. 2;
    $change->('PUT', 'memory', '{"max":5,"for":"1s"}') for 1 .. 4;
    $change->('PUT', 'memory', '{"max":null}');
    $change->('DELETE', 'memory') for 1 .. 5;
    complaint('PUT', '/admin?zone=redis&key=counted', body => '{"ban":1}', port => $fresh->port);

    my $told = told('GET', '/admin?format=json', port => $fresh->port);
    my %zone = map { $_->{name} => $_ } @{ $told->{zones} };
    is_deeply $zone{redis}{changes}, { forgotten => 0, banned => 3, unbanned => 2, overridden => 0, override_lifted => 0 }, 'JSON';
    is_deeply $zone{memory}{changes}, { forgotten => 5, banned => 0, unbanned => 0, overridden => 4, override_lifted => 1 };
    ok $told->{admin}, 'and it says that changes are allowed';
    ok !told('GET', '/look?format=json', port => $fresh->port)->{admin}, 'or not';
    my (undef, undef, $text) = get($fresh->port, '/look?format=prometheus');
    like $text, qr/^# TYPE nginx_sliding_limit_zone_changes_total counter$/m, 'Prometheus';
    like $text, qr/^nginx_sliding_limit_zone_changes_total\{zone="redis",change="banned"\} 3$/m;
    like $text, qr/^nginx_sliding_limit_zone_changes_total\{zone="memory",change="override_lifted"\} 1$/m;
    is $fresh->bad_lines, '';
};

# ---- HTTP/2

subtest 'HTTP/2' => sub {
    plan skip_all => 'needs curl' if system 'command -v curl > /dev/null';
    my $curl = sub {
        my ($url, @options) = @_;
        open my $out, '-|', 'curl', '-sS', '--max-time', '30', '--http2-prior-knowledge', '-w', '%{http_code}', @options, "http://127.0.0.1:$h2_port$url" or die $!;
        local $/;
        return <$out>;
    };
    my @json = ('-H', 'Content-Type: application/json');
    my $url = '/admin?zone=redis&key=h2';
    for my $chunked (0, 1) {
        local $ENV{BODY} = '{"ban":"15m"}';
        my $told = $chunked ? `printf '%s' "\$BODY" | curl -sS --max-time 30 --http2-prior-knowledge -H 'Content-Type: application/json' -T - 'http://127.0.0.1:$h2_port$url'`
            : $curl->($url, @json, '-X', 'PUT', '-d', $ENV{BODY}) =~ s/200$//r;
        ok eval { decode_json($told)->{ban} }, ($chunked ? 'without' : 'with') . ' a length' or diag $told;
        is $curl->($url, @json, '-X', 'DELETE') =~ /"ban":null.*200$/s, 1, 'forgotten';
    }
    # nginx resets the stream of a body that it does not want; some versions of curl do not
    # read the answer then if they are still sending
    my $too_large = sub { my ($send) = @_; for (1 .. 200) { my $told = $send->(); return $told if $told =~ /error/ } return '' };
    like $too_large->(sub { $curl->($url, @json, '-X', 'PUT', '-d', ' ' x 5000, '--stderr', '/dev/null') }), qr/too large.*413$/s, 'too large, with a length';
    like $too_large->(sub { scalar `head -c 5000 /dev/zero | curl -s --max-time 30 --http2-prior-knowledge -H 'Content-Type: application/json' -T - 'http://127.0.0.1:$h2_port$url'` }),
        qr/too large/, 'and without one';
    like $curl->($url, @json, '-X', 'DELETE', '-H', "Origin: http://127.0.0.1:$h2_port"), qr/200$/, 'Origin: this server';
    like $curl->($url, @json, '-X', 'DELETE', '-H', 'Origin: http://127.0.0.1'), qr/403$/, 'Origin: another one';
    like $curl->($url, '-I'), qr/^HTTP\/2 200 .*200$/s, 'HEAD';
    still_fine();
};

# ---- a store that does not answer

subtest 'a Redis that is silent' => sub {
    client('redis', 'warm');
    $redis->pause;
    my @waiting = map { begin_request($nginx->port, $_) }
        message('GET', '/admin?zone=redis&key=silent'), message('GET', '/admin?zone=redis&overrides'),
        message('PUT', '/admin?zone=redis&key=silent', body => '{"ban":"15m"}');
    my @answers = map { local $/; scalar readline $_ } @waiting;
    $redis->resume;
    like $_, qr/^HTTP\/1.1 503 /, 'no answer in time' for @answers;
    my @errors = map { decode_json((split /\r\n\r\n/)[1])->{error} } @answers;
    like $_, qr/^the store "default" gave no answer, (?:timeout|down|connection)\b/, $_ for @errors;
    unlike $errors[$_], qr/may not have been done/, 'who looks changes nothing' for 0, 1;
    like $errors[2], qr/; what was wanted may or may not have been done$/, 'whoever wanted a change is told to look again';
    ok scalar(grep { /127\.0\.0\.1 may have banned client "[^"]*" of zone "redis" for 900 s, but got no answer$/ } log_lines()), 'and so is the log';
    wait_until { eval { client('redis', 'warm'); 1 } } 20, 'Redis to be asked again';
    still_fine();
};

subtest 'not too many lists at a time' => sub {
    client('redis', 'warm');
    $redis->pause;
    my @waiting = map { begin_request($nginx->port, message('GET', '/look?zone=redis&overrides')) } 1 .. 8;
    sleep 0.3;
    like complaint('GET', '/look?zone=redis&overrides'), qr/^503 the store "default" gave no answer, overload: too many of such lists are being made$/;
    close shift @waiting;
    sleep 0.1;
    push @waiting, begin_request($nginx->port, message('GET', '/look?zone=redis&overrides'));
    sleep 0.1;
    $redis->resume;
    like do { local $/; scalar readline $_ }, qr/^HTTP\/1.1 200 /, 'those before it are made, and one in the place of one that nobody waits for' for @waiting;
    is +(ask('GET', '/look?zone=redis&overrides'))[0], 200, 'and then there is room again';
    still_fine();
};

subtest 'clients that go away while Redis is silent' => sub {
    client('redis', 'warm');
    for my $reset (0, 1) {
        $redis->pause;
        my @clients = map { begin_request($nginx->port, $_) } map {
            (message('GET', "/admin?zone=redis&key=gone$_"), message('GET', '/admin?zone=redis&overrides'),
            message('PUT', "/admin?zone=redis&key=gone$_", body => '{"ban":"1m"}'), message('DELETE', "/admin?zone=redis&key=gone$_"),
            message('PUT', "/after?zone=redis&key=gone$_", body => '{"ban":"1m"}'))
        } 1 .. 10;
        sleep 0.3;
        if ($reset) {
            setsockopt $_, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 for @clients;
        }
        close $_ for @clients;
        sleep 0.3;
        $redis->resume;
        wait_until { eval { client('redis', 'warm'); 1 } } 20, 'Redis to be asked again';
        still_fine();
    }
    ok scalar(grep { /may have (?:banned|reset) client "[^"]*" of zone "redis".*, but did not wait for the answer$/ } log_lines()), 'the log tells of changes that nobody waited for';

    SKIP: {
        skip 'needs curl', 2 if system 'command -v curl > /dev/null';
        $redis->pause;
        system "curl -sS --max-time 0.3 --http2-prior-knowledge 'http://127.0.0.1:$h2_port/admin?zone=redis&key=gone' > /dev/null 2>&1";
        $redis->resume;
        wait_until { eval { client('redis', 'warm'); 1 } } 20, 'Redis to be asked again';
        still_fine();
    }
};

subtest 'a reload meanwhile' => sub {
    client('redis', 'warm');
    $redis->pause;
    my $socket = begin_request($nginx->port, message('PUT', '/admin?zone=redis&key=reloaded', body => '{"ban":"15m"}'));
    sleep 0.2;
    $nginx->reload;
    sleep 0.5;
    $redis->resume;
    my $answer = do { local $/; readline $socket };
    like $answer, qr/^HTTP\/1.1 200 .*"ban":\{"until"/s, 'the old worker answers before it goes';
    wait_until { my @workers = $nginx->workers; @workers == 1 && $workers[0] != $worker } 20, 'the new worker';
    ($worker) = $nginx->workers;
    is statuses('/redis?k=reloaded', 1), '429';
    ok told('GET', '/admin?zone=memory&key=origin')->{ban}, 'in memory rulings survive a reload, too';
    still_fine();
};

subtest 'a Redis that is down' => sub {
    $redis->stop;
    for my $case (['GET', '/admin?zone=redis&key=down'], ['GET', '/admin?zone=redis&overrides'], ['DELETE', '/admin?zone=redis&key=down'],
        ['PUT', '/admin?zone=redis&key=down', body => '{"ban":"15m"}']) {
        like complaint(@$case), qr/^503 the store "default" gave no answer, (?:connection|down|timeout)/, "@$case[0, 1]";
    }
    is +(ask('HEAD', '/admin?zone=redis&key=down'))[0], 503;
    ok told('PUT', '/admin?zone=memory&key=up', body => '{"ban":"15m"}')->{ban}, 'the other store goes on';
    $redis->start;
    wait_until { eval { client('redis', 'warm'); 1 } } 20, 'Redis to be asked again';
    is client('redis', 'down')->{ban}, undef, 'nothing has changed';
    still_fine();
};

is $nginx->quit, 0, 'nginx ends as it should';
is $nginx->bad_lines, '';

done_testing;
