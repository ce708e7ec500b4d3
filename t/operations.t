# What docs/operations.md and docs/faq.md tell people to do has the effect that they
# promise: commands and settings are taken from there.

use strict;
use warnings;
use lib 't/lib';

use File::Copy qw(copy);
use File::Temp ();
use SlidingLimit::PageExamples qw(answers ask start_example);
use SlidingLimit::Pages qw(blocks section);
use SlidingLimit::Servers qw(module start_nginx start_redis wait_until);
use Test::More;

my $OPERATIONS = 'docs/operations.md';
my $FAQ = 'docs/faq.md';

my $application = start_nginx('location / { return 200 "application"; }');

# Never the reason for a failure, however busy the machine is.
sub store { my ($redis) = @_; return 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;' }

# Reloads, and waits until only new workers are left.
sub reload {
    my ($nginx, @configuration) = @_;
    my %old = map { $_ => 1 } $nginx->workers;
    $nginx->configure(@configuration) if @configuration;
    $nginx->reload;
    wait_until { my @now = $nginx->workers; @now && !grep { $old{$_} } @now } 10, 'new workers';
}

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
    my $nginx = start_example($earlier, application => $application->port, redis => $redis->port);
    my @acme = ('GET /api/', headers => ['X-API-Key: acme']);
    is answers($nginx, 105, @acme), '200:100 429:5', 'they have used up their limit';
    is answers($nginx, 1, 'GET /api/', headers => ['X-API-Key: other']), '200:1', 'others have not';

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
    wait_until { answers($nginx, 1, @acme) eq '200:1' } 3, 'all of their limit to be there again';
    is answers($nginx, 105, @acme), '200:99 429:6', 'and no more than that';

    my $given_more = start_example($example, application => $application->port, redis => $redis->port);
    is answers($given_more, 20, @acme), '200:20', 'with more until morning they pass';
    is $redis->cli('ZCARD', 'rate_limit:api:acme'), 120, 'and what they have used stays counted';
    is answers($given_more, 150, 'GET /api/', headers => ['X-API-Key: monitor']), '200:150', 'the monitor always passes';

    my $long = 'k' x 200;
    my ($name) = section($OPERATIONS, 'A customer is limited at night') =~ /`(rate_limit:api:#\$\(.*?\))`/;
    chomp($name = `key=$long; echo $name`);
    is answers($nginx, 2, 'GET /api/', headers => ["X-API-Key: $long"]), '200:2', 'a long key';
    is $redis->cli('ZCARD', $name), 2, 'has the name that is said';
};

# A JSON answer up to its list of requests, without what differs from one time to another.
sub standing_of {
    my ($answer) = @_;
    return $answer =~ s/"requests":.*//sr =~ s/"(now|reset)":[\d.]+/"$1":N/gr =~ s/127\.0\.0\.1:\d+/SERVER/r
        =~ s/#[0-9a-f]{8}"/#NUMBER"/r;
}

subtest 'a customer is on the phone' => sub {
    my $heading = 'A customer is on the phone';
    my $redis = start_redis();
    my ($example) = blocks(section($OPERATIONS, $heading), 'nginx');
    my $nginx = start_example($example, application => $application->port, redis => $redis->port);
    my $to_nginx = sub { $_[0] =~ s/:8080/':' . $nginx->port/er =~ s{/var/log/nginx}{$nginx->dir . '/logs'}er };
    my $run = sub { my $command = $to_nginx->(@_); return scalar `$command` };

    is answers($nginx, 103, 'GET /api/orders', headers => ['X-API-Key: acme']), '200:100 429:3', 'they are at their limit';

    my ($find, $found) = commands($OPERATIONS, $heading, 'grep');
    my $line = '';
    wait_until { ($line = $run->($find)) ne '' } 5, 'the log';
    my ($said, $is) = map { s/^\S+ \S+ /TIME ADDRESS /r } $found, $line;
    is $is, $said, $find;

    my ($look, $looks, $forget, undef, $give, undef, $check, $checked) = commands($OPERATIONS, $heading, 'curl');
    is standing_of($run->($look)), standing_of($looks), $look;
    is $run->($check), "429\n", 'they are refused';
    my $forgotten = $run->($forget);
    like $forgotten, qr/"used":0,"remaining":100,/, $forget;
    is $run->($check), $checked, 'and let in';
    is answers($nginx, 100, 'GET /api/orders', headers => ['X-API-Key: acme']), '200:99 429:1', 'with all of their limit';

    like $run->($give), qr/"used":100,"remaining":900,.*"override":\{"max":1000,/, $give;
    is $run->($check), $checked, 'now they have more';
    is answers($nginx, 100, 'GET /api/orders', headers => ['X-API-Key: acme']), '200:100', 'much more';
    is answers($nginx, 1, 'GET /limits', from => '127.0.0.2'), '403:1', 'the page is not for everybody';
    is $nginx->bad_lines, '';
};

subtest 'the kill switch' => sub {
    my $redis = start_redis();
    my ($switch) = blocks(section($OPERATIONS, 'The kill switch'), 'nginx');
    chomp(my $line = $switch);
    like section($OPERATIONS, 'The kill switch'), qr/^\$ echo '\Q$line\E' > /m, 'the command writes that line';

    my $server = 'location / { sliding_limit zone=a max=2 window=600s key=k; sliding_limit zone=b max=2 window=600s key=k; empty_gif; }';
    my $nginx = start_nginx($server, http => store($redis));
    is answers($nginx, 4, 'GET /'), '200:2 429:2', 'limits';
    reload($nginx, $server, http => store($redis) . $switch);
    is answers($nginx, 4, 'GET /'), '200:4', 'nobody is refused';
    reload($nginx, $server, http => store($redis));
    is answers($nginx, 1, 'GET /'), '429:1', 'and what was counted is not lost';
};

# Starts a Redis with what a block of its section says.
sub redis_with {
    my ($heading) = @_;
    my ($block) = blocks(section($OPERATIONS, $heading), 'conf');
    my @args = map { my ($name, @values) = split; ("--$name", map { $_ eq '""' ? '' : $_ } @values) }
        grep { !/^#/ } split /\n/, $block;
    return start_redis(args => \@args);
}

my $limit = 'location / { sliding_limit zone=a max=2 window=600s key=$arg_k; add_header X-Status $sliding_limit_status always; empty_gif; }';

subtest 'what becomes of counts when Redis is full' => sub {
    # of a cache on the same Redis
    my $fill = <<'END';
for i = 1, 100 do redis.call('SET', 'neighbour:' .. ARGV[1] .. ':' .. i, string.rep('x', 1000), 'EX', 100000) end
END

    for my $policy (qw(allkeys-lru allkeys-random volatile-lru volatile-ttl)) {
        my $redis = start_redis(args => ['--maxmemory', '3mb', '--maxmemory-policy', $policy]);
        my $nginx = start_nginx($limit, http => store($redis) . 'sliding_limit_deny_cache off;');
        is answers($nginx, 3, 'GET /?k=hammers'), '200:2 429:1';
        for my $i (1 .. 1000) {
            last unless $redis->cli('EXISTS', 'rate_limit:a:hammers');
            $redis->cli('EVAL', $fill, 0, $i);
        }
        my (undef, $headers) = ask($nginx, 'GET /?k=hammers');
        is $headers->{'x-status'}, 'PASSED', "$policy: who was refused starts anew";
        is $headers->{'x-ratelimit-remaining'}, 1, 'with the whole limit';
        unlike $nginx->error_log, qr/is down|failed/, 'and nobody notices';
    }

    my $redis = redis_with('Redis: its settings');
    my $nginx = start_nginx($limit, http => store($redis) . 'sliding_limit_deny_cache off;');
    is answers($nginx, 3, 'GET /?k=hammers'), '200:2 429:1';
    # less than it has now
    $redis->cli('CONFIG', 'SET', 'maxmemory', '100kb');
    like $redis->cli('SET', 'neighbour', 'x'), qr/OOM/, 'noeviction: Redis is full';
    my (undef, $headers) = ask($nginx, 'GET /?k=new');
    is $headers->{'x-status'}, 'FAILED_OPEN', 'which counts as down';
    like $nginx->error_log, qr/is down: .*OOM/, 'and the log says why';
    is $redis->cli('ZCARD', 'rate_limit:a:hammers'), 2, 'what was counted is still there';

    # as SlidingLimitStoreDown advises
    $redis->cli('CONFIG', 'SET', 'maxmemory', '200mb');
    wait_until { answers($nginx, 1, 'GET /?k=hammers') eq '429:1' } 10, 'it to count again';
    pass 'with more memory it counts again, and goes on where it was';
};

subtest 'the settings, and persistence' => sub {
    my $redis = redis_with('Redis: its settings');
    is $redis->cli('CONFIG', 'GET', 'maxmemory-policy') =~ s/\s+/ /gr, 'maxmemory-policy noeviction';
    is $redis->cli('CONFIG', 'GET', 'lazyfree-lazy-expire') =~ s/\s+/ /gr, 'lazyfree-lazy-expire yes';

    for (['Redis: its settings', '200:1', 'without persistence windows start anew'],
        ['Persistence', '429:1', 'with a log what was counted still counts'])
    {
        my ($heading, $expected, $what) = @$_;
        my $redis = redis_with($heading);
        my $nginx = start_nginx($limit, http => store($redis) . 'sliding_limit_deny_cache off;');
        is answers($nginx, 2, 'GET /?k=a'), '200:2';
        $redis->stop;
        $redis->start;
        wait_until { (ask($nginx, 'GET /?k=probe-' . rand))[1]{'x-status'} eq 'PASSED' } 10, 'Redis';
        is answers($nginx, 1, 'GET /?k=a'), $expected, $what;
    }
};

subtest 'the embedded store: another zone, another size' => sub {
    my $server = $limit;
    my $nginx = start_nginx($server, http => 'sliding_limit_memory 8m;');
    is answers($nginx, 3, 'GET /?k=a'), '200:2 429:1';
    reload($nginx);
    is answers($nginx, 1, 'GET /?k=a'), '429:1', 'a reload keeps counts';

    reload($nginx, $server =~ s/zone=a/zone=another/r, http => 'sliding_limit_memory 8m;');
    is answers($nginx, 3, 'GET /?k=a'), '200:2 429:1', 'in a zone of another name everybody starts anew';

    reload($nginx, $server =~ s/zone=a/zone=another/r, http => 'sliding_limit_memory 9m;');
    is answers($nginx, 3, 'GET /?k=a'), '200:2 429:1', 'and so they do with another size';

    reload($nginx, $server =~ s/zone=a max=2/zone=another max=4/r, http => 'sliding_limit_memory 9m;');
    is answers($nginx, 3, 'GET /?k=a'), '200:2 429:1', 'with another max what was used stays counted';
};

subtest 'changing a limit: another algorithm' => sub {
    my $redis = start_redis();
    my @with = (http => store($redis));
    my $with = sub { "location / { sliding_limit zone=ZONE max=2 window=60s key=\$arg_k $_[0]; empty_gif; }" };
    my $nginx = start_nginx($with->(''), @with);
    is answers($nginx, 3, 'GET /?k=KEY'), '200:2 429:1';

    for my $algorithm ('algorithm=packed', 'algorithm=buckets') {
        reload($nginx, $with->($algorithm), @with);
        is answers($nginx, 3, 'GET /?k=KEY'), '200:2 429:1', "$algorithm begins anew";
    }
    reload($nginx, $with->('algorithm=log'), @with);
    is answers($nginx, 1, 'GET /?k=KEY'), '429:1', 'what was counted before is there again';

    my @names = section($OPERATIONS, 'What stands in Redis') =~ /^\| `algorithm=\w+` \| `(\S+)`/mg;
    is join(' ', sort split /\n/, $redis->cli('KEYS', 'rate_limit:ZONE*')), join(' ', sort @names), 'the names that are said';
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
    is answers($nginx, 3, 'GET /?k=a'), '200:2 429:1', 'a reload does not load a module anew';
}

subtest 'questions: who is exempt' => sub {
    my ($example) = blocks(section($FAQ, 'How do I exempt a client?'), 'nginx');
    my $nginx = start_example($example, application => $application->port);
    is answers($nginx, 101, 'GET /'), '200:101', 'this machine is';
    is answers($nginx, 101, 'GET /', from => '127.0.0.2'), '200:100 429:1', 'another address is not';
};

subtest 'questions: everybody together' => sub {
    my ($example) = blocks(section($FAQ, 'Why is everybody limited together?'), 'nginx');
    my $nginx = start_example("$example location / { proxy_pass http://127.0.0.1:3000; }",
        application => $application->port, change => { '10.0.0.0/8' => '127.0.0.1' });
    is answers($nginx, 101, 'GET /', headers => ['X-Forwarded-For: 192.0.2.1']), '200:100 429:1', 'one client';
    is answers($nginx, 1, 'GET /', headers => ['X-Forwarded-For: 192.0.2.2']), '200:1', 'is not another';
};

subtest 'questions: a script that reads headers' => sub {
    my ($example) = blocks(section($FAQ, 'Why does my script not see the headers?'), 'nginx');
    my $nginx = start_example($example, application => $application->port);
    is answers($nginx, 101, 'OPTIONS /api/'), '200:101', 'what browsers ask beforehand does not count';
    is answers($nginx, 100, 'GET /api/'), '200:100';
    my ($status, $headers) = ask($nginx, 'GET /api/');
    is $status, 429;
    my @exposed = map { lc } split /, /, $headers->{'access-control-expose-headers'};
    is join(' ', grep { !defined $headers->{$_} } @exposed), '', 'what is exposed of a refusal is there';
};

done_testing;
