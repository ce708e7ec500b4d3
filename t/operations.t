# What docs/operations.md and docs/faq.md tell people to do has the effect that they
# promise: commands and settings are taken from there.

use strict;
use warnings;
use lib 't/lib';

use File::Copy qw(copy);
use File::Temp ();
use SlidingLimit::Pages qw(blocks section start_example);
use SlidingLimit::Servers qw(get module request start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep);

my $OPERATIONS = 'docs/operations.md';
my $FAQ = 'docs/faq.md';

my $application = start_nginx('location / { return 200 "application"; }');

# Never the reason for a failure, however busy the machine is.
sub store { my ($redis) = @_; return 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;' }

# The statuses of so many requests, counted: "3 x 200, 1 x 429"
sub statuses {
    my ($nginx, $times, $text) = @_;
    my %count;
    $count{ (request($nginx->port, $text))[0] }++ for 1 .. $times;
    return join ', ', map { "$count{$_} x $_" } sort keys %count;
}

# Reloads, and waits until only new workers are left.
sub reload {
    my ($nginx, @configuration) = @_;
    my %old = map { $_ => 1 } $nginx->workers;
    $nginx->configure(@configuration) if @configuration;
    $nginx->reload;
    wait_until { my @now = $nginx->workers; @now && !grep { $old{$_} } @now } 10, 'new workers';
}

sub text { return join "\r\n", "$_[0] HTTP/1.1", 'Host: test', 'Connection: close', @_[1 .. $#_], '', '' }

# The commands of a section that begin so, without the prompt, and what is said to come of them.
sub commands {
    my ($page, $heading, $program) = @_;
    return map { /^\$ (\Q$program\E [^\n]*)\n((?:(?!\$ )[^\n]*\n)*)/mg } blocks(section($page, $heading), 'console');
}

subtest 'a customer is limited at night' => sub {
    my $redis = start_redis();
    my ($example) = blocks(section($OPERATIONS, 'A customer is limited at night'), 'nginx');

    # before acme is given more
    my $earlier = $example =~ s/^    acme .*\n//mr;
    isnt $earlier, $example, 'the example gives acme more';
    my $nginx = start_example($earlier, $application->port, store($redis));
    my $acme = text('GET /api/', 'X-API-Key: acme');
    is statuses($nginx, 105, $acme), '100 x 200, 5 x 429', 'they have used up their limit';
    is statuses($nginx, 1, text('GET /api/', 'X-API-Key: other')), '1 x 200', 'others have not';

    my @commands = commands($OPERATIONS, 'A customer is limited at night', 'redis-cli');
    is @commands, 2 * 3, 'three commands';
    my %said = @commands;
    for my $command (@commands[0, 2, 4]) {
        my @words = split ' ', $command =~ s/^redis-cli //r;
        my $reply = $redis->cli('--no-raw', @words);
        if ($words[0] eq 'zrange') {
            # the first one of a hundred
            my ($first) = $reply =~ /^((?:.*\n){2})/;
            is $first =~ s/"[-0-9a-f]+"/"ID"/gr =~ s/^ +//mgr, $said{$command} =~ s/"[-0-9a-f]+"/"ID"/gr, $command;
        } else {
            is $reply, $said{$command} =~ s/\n\z//r, $command;
        }
    }
    wait_until { statuses($nginx, 1, $acme) eq '1 x 200' } 3, 'all of their limit to be there again';
    is statuses($nginx, 105, $acme), '99 x 200, 6 x 429', 'and no more than that';

    my $given_more = start_example($example, $application->port, store($redis));
    is statuses($given_more, 20, $acme), '20 x 200', 'with more until morning they pass';
    is $redis->cli('ZCARD', 'rate_limit:api:acme'), 120, 'and what they have used stays counted';
    is statuses($given_more, 150, text('GET /api/', 'X-API-Key: monitor')), '150 x 200', 'the monitor always passes';

    my $long = 'k' x 200;
    my ($name) = section($OPERATIONS, 'A customer is limited at night') =~ /`(rate_limit:api:#\$\(.*?\))`/;
    chomp($name = `key=$long; echo $name`);
    is statuses($nginx, 2, text('GET /api/', "X-API-Key: $long")), '2 x 200', 'a long key';
    is $redis->cli('ZCARD', $name), 2, 'has the name that is said';
};

subtest 'the kill switch' => sub {
    my $redis = start_redis();
    my ($switch) = blocks(section($OPERATIONS, 'The kill switch'), 'nginx');
    chomp(my $line = $switch);
    like section($OPERATIONS, 'The kill switch'), qr/^\$ echo '\Q$line\E' > /m, 'the command writes that line';

    my $server = 'location / { sliding_limit zone=a max=2 window=600s key=k; sliding_limit zone=b max=2 window=600s key=k; empty_gif; }';
    my $nginx = start_nginx($server, http => store($redis));
    is statuses($nginx, 4, text('GET /')), '2 x 200, 2 x 429', 'limits';
    reload($nginx, $server, http => store($redis) . $switch);
    is statuses($nginx, 4, text('GET /')), '4 x 200', 'nobody is refused';
    reload($nginx, $server, http => store($redis));
    is statuses($nginx, 1, text('GET /')), '1 x 429', 'and what was counted is not lost';
};

# Starts a Redis with what a block of its section says.
sub redis_with {
    my ($heading, @more) = @_;
    my ($block) = blocks(section($OPERATIONS, $heading), 'conf');
    my @args = map { my ($name, @values) = split; ("--$name", map { $_ eq '""' ? '' : $_ } @values) }
        grep { !/^#/ } split /\n/, $block;
    return start_redis(args => [@args, @more]);
}

my $limit = 'location / { sliding_limit zone=a max=2 window=600s key=$arg_k; add_header X-Status $sliding_limit_status always; empty_gif; }';

subtest 'what becomes of counts when Redis is full' => sub {
    my $full = <<'END';
for i = 1, 100 do redis.call('SET', 'neighbour:' .. ARGV[1] .. ':' .. i, string.rep('x', 1000)) end
END

    for my $policy (qw(allkeys-lru allkeys-random volatile-lru volatile-ttl)) {
        my $redis = start_redis(args => ['--maxmemory', '3mb', '--maxmemory-policy', $policy]);
        my $nginx = start_nginx($limit, http => store($redis) . 'sliding_limit_deny_cache off;');
        is statuses($nginx, 3, text('GET /?k=hammers')), '2 x 200, 1 x 429';
        for my $i (1 .. 1000) {
            last unless $redis->cli('EXISTS', 'rate_limit:a:hammers');
            $redis->cli('EVAL', $full, 0, $i);
        }
        is statuses($nginx, 1, text('GET /?k=hammers')), '1 x 200', "$policy: who was refused starts anew";
        is $nginx->error_log =~ /is down|failed/, '', 'and nobody notices';
    }

    my $redis = redis_with('Redis: its settings', '--maxmemory', '3mb');
    my $nginx = start_nginx($limit, http => store($redis) . 'sliding_limit_deny_cache off;');
    is statuses($nginx, 3, text('GET /?k=hammers')), '2 x 200, 1 x 429';
    my $reply = '';
    for my $i (1 .. 1000) {
        last if ($reply = $redis->cli('EVAL', $full, 0, $i)) =~ /OOM/;
    }
    like $reply, qr/OOM/, 'noeviction: Redis is full';
    my (undef, $headers) = request($nginx->port, text('GET /?k=new'));
    is $headers->{'x-status'}, 'FAILED_OPEN', 'which counts as down';
    like $nginx->error_log, qr/is down: .*OOM/, 'and the log says why';
    is $redis->cli('ZCARD', 'rate_limit:a:hammers'), 2, 'what was counted is still there';

    # as SlidingLimitStoreDown advises
    $redis->cli('CONFIG', 'SET', 'maxmemory', '200mb');
    wait_until { statuses($nginx, 1, text('GET /?k=hammers')) eq '1 x 429' } 10, 'it to count again';
    pass 'with more memory it counts again, and goes on where it was';
};

subtest 'the settings, and persistence' => sub {
    my $redis = redis_with('Redis: its settings');
    is $redis->cli('CONFIG', 'GET', 'maxmemory-policy') =~ s/\s+/ /gr, 'maxmemory-policy noeviction';
    is $redis->cli('CONFIG', 'GET', 'lazyfree-lazy-expire') =~ s/\s+/ /gr, 'lazyfree-lazy-expire yes';

    for (['Redis: its settings', '1 x 200', 'without persistence windows start anew'],
        ['Persistence', '1 x 429', 'with a log what was counted still counts'])
    {
        my ($heading, $expected, $what) = @$_;
        my $redis = redis_with($heading);
        my $nginx = start_nginx($limit, http => store($redis) . 'sliding_limit_deny_cache off;');
        is statuses($nginx, 2, text('GET /?k=a')), '2 x 200';
        $redis->stop;
        $redis->start;
        wait_until { (request($nginx->port, text('GET /?k=probe-' . rand)))[1]{'x-status'} eq 'PASSED' } 10, 'Redis';
        is statuses($nginx, 1, text('GET /?k=a')), $expected, $what;
    }
};

subtest 'the embedded store: another zone, another size' => sub {
    my $server = $limit;
    my $nginx = start_nginx($server, http => 'sliding_limit_memory 8m;');
    is statuses($nginx, 3, text('GET /?k=a')), '2 x 200, 1 x 429';
    reload($nginx);
    is statuses($nginx, 1, text('GET /?k=a')), '1 x 429', 'a reload keeps counts';

    reload($nginx, $server =~ s/zone=a/zone=another/r, http => 'sliding_limit_memory 8m;');
    is statuses($nginx, 3, text('GET /?k=a')), '2 x 200, 1 x 429', 'in a zone of another name everybody starts anew';

    reload($nginx, $server =~ s/zone=a/zone=another/r, http => 'sliding_limit_memory 9m;');
    is statuses($nginx, 3, text('GET /?k=a')), '2 x 200, 1 x 429', 'and so they do with another size';

    reload($nginx, $server =~ s/zone=a max=2/zone=another max=4/r, http => 'sliding_limit_memory 9m;');
    is statuses($nginx, 3, text('GET /?k=a')), '2 x 200, 1 x 429', 'with another max what was used stays counted';
};

SKIP: {
    skip 'the module is built in' unless module();

    my $dir = File::Temp->newdir;
    my $file = "$dir/module.so";
    copy(module(), $file) or die $!;
    local $ENV{TEST_NGINX_LOAD_MODULES} = $file;
    my $nginx = start_nginx($limit);
    unlink $file;
    open my $other, '>', $file or die $!;
    print $other "no module\n";
    close $other;
    reload($nginx);
    is statuses($nginx, 3, text('GET /?k=a')), '2 x 200, 1 x 429', 'a reload does not load a module anew';
}

subtest 'questions: who is exempt' => sub {
    my ($example) = blocks(section($FAQ, 'How do I exempt somebody?'), 'nginx');
    my $nginx = start_example($example, $application->port, '');
    is statuses($nginx, 101, text('GET /')), '101 x 200', 'this machine is';
    my %status;
    $status{ (request($nginx->port, text('GET /'), 10, '127.0.0.2'))[0] }++ for 1 .. 101;
    is_deeply \%status, { 200 => 100, 429 => 1 }, 'another address is not';
};

subtest 'questions: everybody together' => sub {
    my ($example) = blocks(section($FAQ, 'Why is everybody limited together?'), 'nginx');
    my $nginx = start_example($example =~ s{10\.0\.0\.0/8}{127.0.0.1}r . 'location / { proxy_pass http://127.0.0.1:3000; }',
        $application->port, '');
    is statuses($nginx, 101, text('GET /', 'X-Forwarded-For: 192.0.2.1')), '100 x 200, 1 x 429', 'one client';
    is statuses($nginx, 1, text('GET /', 'X-Forwarded-For: 192.0.2.2')), '1 x 200', 'is not another';
};

subtest 'questions: a script that reads headers' => sub {
    my ($example) = blocks(section($FAQ, 'Why does my script not see the headers?'), 'nginx');
    my $nginx = start_example($example, $application->port, '');
    is statuses($nginx, 101, text('OPTIONS /api/')), '101 x 200', 'what browsers ask beforehand does not count';
    is statuses($nginx, 100, text('GET /api/')), '100 x 200';
    my ($status, $headers) = request($nginx->port, text('GET /api/'));
    is $status, 429;
    my @exposed = map { lc } split /, /, $headers->{'access-control-expose-headers'};
    is join(' ', grep { !defined $headers->{$_} } @exposed), '', 'what is exposed of a refusal is there';
};

done_testing;
