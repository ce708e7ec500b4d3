# Questions of one turn of the event loop go to Redis in one call of the script: each
# is answered as if it had been asked alone, also if something is wrong with another.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(begin_request free_port start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep time);

my $redis = start_redis();
my $app = free_port();
my $nginx = start_nginx(<<"END", http => <<"HTTP");
    add_header X-Status \$sliding_limit_status always;
    add_header X-Left \$sliding_limit_remaining always;
    keepalive_requests 10000;
    location /wide { sliding_limit zone=wide max=100 window=600s key=\$arg_k; empty_gif; }
    location /five { sliding_limit zone=five max=5 window=600s key=\$arg_k; sliding_limit_deny_cache off; empty_gif; }
    location /costs { sliding_limit zone=wide max=100 window=600s key=\$arg_k cost=10; empty_gif; }
    location /two {
        sliding_limit zone=one max=100 window=600s key=\$arg_k;
        sliding_limit zone=other max=100 window=60s key=\$arg_k;
        empty_gif;
    }
    location /both {
        sliding_limit zone=roomy max=100 window=600s key=\$arg_k;
        sliding_limit zone=tight max=5 window=600s key=\$arg_k;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /three {
        @{[ map { "sliding_limit zone=third$_ max=100 window=600s key=\$arg_k;" } 1 .. 3 ]}
        empty_gif;
    }
    location /a_third { sliding_limit zone=third3 max=100 window=600s key=\$arg_k; empty_gif; }
    location /sixteen {
        @{[ map { "sliding_limit zone=part$_ max=100 window=600s key=\$arg_k;" } 1 .. 16 ]}
        empty_gif;
    }
    location /packed {
        sliding_limit zone=packed max=5 window=600s key=\$arg_k algorithm=packed;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /buckets {
        sliding_limit zone=buckets max=5 window=600s key=\$arg_k algorithm=buckets;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /of_each {
        sliding_limit zone=roomier max=100 window=600s key=\$arg_k;
        sliding_limit zone=packed_tight max=5 window=600s key=\$arg_k algorithm=packed;
        sliding_limit zone=day max=100 window=1d key=\$arg_k algorithm=buckets buckets=24;
        sliding_limit_deny_cache off;
        empty_gif;
    }
    location /login {
        sliding_limit zone=login max=100 window=600s key=\$arg_k count_status=401;
        proxy_pass http://127.0.0.1:$app/\$arg_status;
    }
END
    sliding_limit_redis redis://127.0.0.1:@{[ $redis->port ]} timeout=10s connect_timeout=5s;
    server {
        listen 127.0.0.1:$app;
        location /401 { return 401; }
        location /204 { return 204; }
    }
HTTP

my ($worker) = $nginx->workers;

sub read_answer {
    my ($socket) = @_;
    my $answer = '';
    local $SIG{ALRM} = sub { die "no answer\n" };
    alarm 20;
    until ($answer =~ /\r\n\r\n/) { sysread $socket, $answer, 65536, length $answer or die "closed\n" }
    my ($size) = $answer =~ /^Content-Length: (\d+)/mi;
    my $head = index($answer, "\r\n\r\n") + 4;
    while (length $answer < $head + ($size // 0)) {
        sysread $socket, $answer, 65536, length $answer or die "closed\n";
    }
    alarm 0;
    return { map { lc $_ => ($answer =~ /^\Q$_\E: (.*?)\r$/mi)[0] // '' } qw(X-Status X-Left) };
}

# All of these requests are there when the worker looks: it is stopped until then. The
# connections are open already, or it would have to accept them first.
my @sockets;

sub at_once {
    my (@paths) = @_;

    while (@sockets < @paths) {
        my $socket = begin_request($nginx->port, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
        read_answer($socket);
        push @sockets, $socket;
    }

    kill 'STOP', $worker;
    syswrite $sockets[$_], "GET $paths[$_] HTTP/1.1\r\nHost: x\r\n\r\n" for 0 .. $#paths;
    kill 'CONT', $worker;

    return map { read_answer($sockets[$_]) } 0 .. $#paths;
}

sub statuses { join ' ', map { $_->{'x-status'} } @_ }
sub lefts { join ' ', map { $_->{'x-left'} } @_ }
sub size_of { my ($zone, $key) = @_; return $redis->cli('ZCARD', "rate_limit:$zone:$key") }

# How often the script has been called, without the probes of a connection.
sub calls_of(&) {
    my ($block) = @_;
    my $before = $redis->calls('evalsha');
    $block->();
    return $redis->calls('evalsha') - $before;
}

subtest 'many requests, few calls' => sub {
    my @answers;
    my $calls = calls_of { @answers = at_once(map { "/wide?k=few$_" } 1 .. 40) };
    is statuses(@answers), join(' ', ('PASSED') x 40), 'all pass';
    is lefts(@answers), join(' ', (99) x 40), 'each with its own count';
    is join(' ', map { size_of('wide', "few$_") } 1 .. 40), join(' ', (1) x 40), 'counted once each';
    cmp_ok $calls, '<=', 10, "40 questions in $calls calls";
};

subtest 'a request alone is asked at once' => sub {
    is calls_of { at_once('/wide?k=alone') }, 1, 'in one call';
};

subtest 'requests of one client are decided one after the other' => sub {
    my @answers = at_once(('/five?k=same') x 12);
    is join(' ', sort split / /, statuses(@answers)), join(' ', ('PASSED') x 5, ('REJECTED') x 7),
        'five of twelve pass';
    is join(' ', sort { $a <=> $b } split / /, lefts(@answers)), '0 0 0 0 0 0 0 0 1 2 3 4', 'with what is left then';
    is size_of('five', 'same'), 5, 'and five are counted';
};

subtest 'different limits at the same time' => sub {
    my @answers = at_once(map { ("/wide?k=mixed$_", "/five?k=mixed$_", "/two?k=mixed$_") } 1 .. 8);
    is statuses(@answers), join(' ', ('PASSED') x 24), 'all pass';
    is lefts(@answers), join(' ', (99, 4, 99) x 8), 'each by its own';
    is join(' ', map { my $zone = $_; map { size_of($zone, "mixed$_") } 1 .. 8 } qw(wide five one other)),
        join(' ', (1) x 32), 'counted once in each zone';
};

subtest 'requests with several limits go together, too' => sub {
    my @answers;
    my $calls = calls_of { @answers = at_once(('/both?k=pair') x 12, map { "/both?k=pair$_" } 1 .. 4) };
    is join(' ', sort split / /, statuses(@answers)), join(' ', ('PASSED') x 9, ('REJECTED') x 7),
        'all or nothing, for each';
    is size_of('tight', 'pair') . ' ' . size_of('roomy', 'pair'), '5 5', 'what one limit refuses the other does not count';
    cmp_ok $calls, '<=', 6, "16 questions about 32 limits in $calls calls";
};

# How many calls such requests take, in the best of some tries: the worker may see them in
# more turns than one.
sub fewest_calls {
    my ($path, $requests) = @_;
    my $serial = 0;
    my $fewest;

    for (1 .. 10) {
        my @answers;
        my $calls = calls_of { @answers = at_once(map { "$path?k=calls" . $serial++ } 1 .. $requests) };
        is statuses(@answers), join(' ', ('PASSED') x $requests), "$requests pass";
        $fewest = $calls if !defined $fewest || $calls < $fewest;
    }
    return $fewest;
}

subtest 'sixteen requests at most share a call, and thirty-two limits' => sub {
    is fewest_calls('/wide', 16), 1, 'sixteen with one limit';
    is fewest_calls('/wide', 17), 2, 'seventeen';
    is fewest_calls('/two', 16), 1, 'sixteen with two limits';
    is fewest_calls('/three', 10), 1, 'ten with three';
    is fewest_calls('/three', 11), 2, 'eleven';
    is fewest_calls('/sixteen', 2), 1, 'two with sixteen';
    is fewest_calls('/sixteen', 3), 2, 'three';
};

subtest 'what is said about many limits is told to the right requests' => sub {
    at_once('/three?k=used') for 1 .. 2;
    at_once('/a_third?k=more') for 1 .. 3;
    my @answers = at_once(map { "/three?k=$_" } 'new1', 'used', 'new2', 'more', 'new3', 'used', 'new4', 'new5', 'new6', 'more');
    is lefts(@answers), '99 97 99 96 99 96 99 99 99 95', 'each with its own count';
};

subtest 'packed logs and buckets go together, too' => sub {
    for my $path ('/packed', '/buckets', '/of_each') {
        is fewest_calls($path, 10), 1, "$path in one call";
        my @answers = at_once(("$path?k=same") x 8);
        is join(' ', sort split / /, statuses(@answers)), join(' ', ('PASSED') x 5, ('REJECTED') x 3), 'five of eight pass';
        is join(' ', sort { $a <=> $b } split / /, lefts(@answers)), '0 0 0 0 1 2 3 4', 'with what is left then';
    }
};

subtest 'one that costs more' => sub {
    at_once('/costs?k=dear');
    my @answers = at_once(map { "/wide?k=$_" } 'cheap1', 'dear', 'cheap2', 'dear');
    is statuses(@answers), join(' ', ('PASSED') x 4), 'all pass';
    is lefts(@answers), '99 89 99 88', 'with what it costs';
};

subtest 'a key of another type fails its own request only' => sub {
    $redis->cli('SADD', 'rate_limit:packed_tight!p:broken', 'by someone');
    my @answers = at_once(map { "/of_each?k=$_" } 'whole1', 'broken', 'whole2');
    is statuses(@answers), 'PASSED FAILED_OPEN PASSED', 'the others are counted';
    is lefts(@answers[0, 2]), '4 4', 'once each';
    is size_of('roomier', 'broken'), 0, 'it is not, also where it might be';
    my $keys = 'rate_limit:roomier:broken, rate_limit:packed_tight!p:broken, rate_limit:day!24x86400000:broken';
    like $nginx->error_log,
        qr/1 check\(s\) failed, the last one because: a value of another type stands under one of the keys \Q$keys\E$/m,
        'and the log says why';

    $redis->cli('SET', 'rate_limit:wide:broken', 'by someone');
    is statuses(at_once(map { "/wide?k=$_" } 'whole3', 'broken')), 'PASSED FAILED_OPEN', 'a string, of a log';
    $redis->cli('ZADD', 'rate_limit:buckets!6x600000:broken', 1, 'by someone');
    is statuses(at_once(map { "/buckets?k=$_" } 'whole3', 'broken')), 'PASSED FAILED_OPEN', 'a set, of buckets';
};

subtest 'a Redis that has forgotten the script' => sub {
    $redis->cli('SCRIPT', 'FLUSH');
    my @answers = at_once(map { "/wide?k=flushed$_" } 1 .. 20);
    is statuses(@answers), join(' ', ('PASSED') x 20), 'is given it again';
    is join(' ', map { size_of('wide', "flushed$_") } 1 .. 20), join(' ', (1) x 20), 'and counts each once';
};

subtest 'what does not count is taken back, and what does is not' => sub {
    my @answers = at_once(map { "/login?k=user$_&status=" . ($_ % 2 ? 401 : 204) } 1 .. 10);
    is statuses(@answers), join(' ', ('PASSED') x 10), 'all pass';
    wait_until { !grep { size_of('login', "user$_") } 2, 4, 6, 8, 10 } 10, 'it to be taken back';
    is join(' ', map { size_of('login', "user$_") } 1, 3, 5, 7, 9), '1 1 1 1 1', 'others stay';
};

subtest 'clients that leave before the answer' => sub {
    my @gone = splice @sockets, 0, 5;
    kill 'STOP', $worker;
    syswrite $gone[$_], "GET /login?k=gone$_&status=401 HTTP/1.1\r\nHost: x\r\n\r\n" for 0 .. $#gone;
    syswrite $sockets[$_], "GET /wide?k=stays$_ HTTP/1.1\r\nHost: x\r\n\r\n" for 0 .. 4;
    $redis->pause;
    kill 'CONT', $worker;
    sleep 0.3;
    close $_ for @gone;
    sleep 0.3;
    $redis->resume;
    is statuses(map { read_answer($sockets[$_]) } 0 .. 4), join(' ', ('PASSED') x 5), 'keep the others from nothing';
    wait_until { !grep { size_of('login', "gone$_") } 0 .. 4 } 10, 'what they counted to be taken back';
    pass 'what was to be counted only with their answer is taken back';
};

subtest 'an error that concerns all' => sub {
    my $before = () = $nginx->error_log =~ /is down/g;
    $redis->cli('CONFIG', 'SET', 'maxmemory', 1);
    is statuses(at_once(map { "/wide?k=full$_" } 1 .. 10)), join(' ', ('FAILED_OPEN') x 10), 'fails all';
    is scalar(() = $nginx->error_log =~ /is down/g), $before + 1, 'and is logged once';
    $redis->cli('CONFIG', 'SET', 'maxmemory', 0);
    wait_until { statuses(at_once('/wide?k=again')) eq 'PASSED' } 20, 'its return';
    pass 'until it is over';
};

subtest 'a Redis that is killed over it' => sub {
    kill 'STOP', $worker;
    syswrite $sockets[$_], "GET /wide?k=killed$_ HTTP/1.1\r\nHost: x\r\n\r\n" for 0 .. 9;
    $redis->pause;
    kill 'CONT', $worker;
    sleep 0.3;
    $redis->kill9;
    is statuses(map { read_answer($sockets[$_]) } 0 .. 9), join(' ', ('FAILED_OPEN') x 10), 'keeps nobody waiting';
    $redis->start;
    wait_until { statuses(at_once('/wide?k=again')) eq 'PASSED' } 20, 'its return';
    pass 'and all is well when it is back';
};

is $nginx->bad_lines, '', 'nothing bad in the log';

done_testing;
