# What the pages say can be done: their configurations load, their links lead somewhere, the
# directives of docs/directives.md are those that exist, the ACL line of
# docs/operations.md suffices.

use strict;
use warnings;
use utf8;
use open qw(:std :utf8);
use lib 't/lib';

use File::Temp ();
use SlidingLimit::Certificates qw(new_ca);
use SlidingLimit::Pages qw(blocks broken_links contents pages refusal_of section whole_configuration);
use SlidingLimit::Rights qw(acl_line rights);
use SlidingLimit::Servers qw(get request start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep);
use YAML::PP ();

my $README = 'README.md';
my $DIRECTIVES = 'docs/directives.md';

cmp_ok scalar(split /\n/, contents($README)), '<', 300, "$README can be read in one go";

# ---- Examples

# what examples name, and what this machine has instead
my $ca = new_ca('of the examples');
my $password = File::Temp->new;
print $password "secret\n";
close $password;
my %instead = ('/etc/nginx/redis.password' => "$password", '/etc/nginx/redis/password' => "$password",
    '/etc/nginx/redis-ca.pem' => $ca->cert, 'redis.example' => '127.0.0.1');

# a module that was built without TLS says so, and nothing else
my $without_tls = qr/needs hiredis 1\.0 or later with TLS/;
my $has_tls = refusal_of(whole_configuration('sliding_limit_redis rediss://127.0.0.1;')) !~ $without_tls;

for my $page (pages()) {
    for my $example (blocks(contents($page), 'nginx')) {
        my ($title) = $example =~ /(sliding_limit\w* [^\n]*)/ ? $1 : $example =~ /^(.*)/;
        my $refusal = refusal_of(whole_configuration($example), %instead);
        if (!$has_tls && $example =~ /rediss:|tls=on/) {
            like $refusal, $without_tls, "$page: nginx -t, without TLS: $title";
        } else {
            is $refusal, '', "$page: nginx -t: $title";
        }
    }
}

# would it be noticed?
like refusal_of(whole_configuration("location / {\n    sliding_limit zone=a;\n}\n")), qr/sliding_limit/,
    'an example that nginx refuses is noticed';
like refusal_of(whole_configuration('sliding_limit zone=a max=1 window=1s key=$cookie_a;')), qr/fallback/,
    'one that it warns of';
ok !eval { whole_configuration("location / {\n") }, 'and one that is cut off';

# ---- Kubernetes

# The configuration that the pieces in a file's resources make.
sub configuration_of {
    my (@resources) = @_;
    my %piece = map { %{ $_->{data} // {} }, %{ $_->{metadata}{annotations} // {} } } @resources;
    my %at = map { $_ => '' } qw(main http location);

    for my $name (keys %piece) {
        my ($level) = $name =~ /(main|http|location|configuration)-snippets?$/ or next;
        $at{ $level eq 'configuration' ? 'location' : $level } .= $piece{$name};
    }
    # as the project's image does with conf.d and with what it is told of Redis
    $at{http} .= $piece{$_} for grep { /\.conf$/ } keys %piece;
    $at{http} .= "sliding_limit_redis $_->{value};" for grep { $_->{name} eq 'SLIDING_LIMIT_REDIS' }
        map { @{ $_->{env} // [] } } map { @{ $_->{spec}{template}{spec}{containers} // [] } } @resources;

    return unless join '', values %at;
    return "$at{main} events {} http { $at{http} server { location / { $at{location} } } }";
}

my @loaded;
for my $file (blocks(contents('docs/kubernetes.md'), 'yaml')) {
    my @resources = YAML::PP->new->load_string($file);
    ok $_->{apiVersion} && $_->{kind} && $_->{metadata}{name}, "docs/kubernetes.md: $_->{kind} $_->{metadata}{name}"
        for @resources;

    my $configuration = configuration_of(@resources) // next;
    push @loaded, $configuration;
    is refusal_of($configuration, %instead, map { $_ => '//127.0.0.1' } qw(//redis.limits.svc.cluster.local //redis //application)),
        '', 'nginx -t of what is in it';
}
is scalar(grep { /\bsliding_limit(?:_redis)? / } @loaded), 4, 'it has four configurations';

# ---- Links

for my $page (pages()) {
    is join(' ', broken_links($page)), '', "the links of $page lead somewhere";
}

for my $page (glob 'docs/*.md') {
    ok index(section($README, 'Documents'), "($page)") > 0, "$README leads to $page";
}

# What can be made according to the pages, can be.
my %targets = map { $_ => 1 } contents('Makefile') =~ /^([\w-]+):/mg;
for my $page (pages()) {
    my @named = contents($page) =~ /(?:`|^\$ )(?:\w+=\S+ )*make ([a-z][\w-]*)/mg;
    is join(' ', grep { !$targets{$_} } @named), '', "$page names targets of make that there are";
}

# ---- Other limiters

{
    my $others = section('docs/comparison.md', 'In their own words');
    my @rows = grep { !/this module/ } $others =~ /^\| (\*\*.*?) \|/mg;
    my %sources = $others =~ /^(\d+)\. (.*)/mg;
    my %cited = map { $_ => 1 } $others =~ /\[(\d+)\](?!\()/g;
    is join(' ', sort { $a <=> $b } keys %cited), join(' ', sort { $a <=> $b } keys %sources),
        'every source is cited, and every citation has its source';
    is join('; ', grep { !/ \[\d+\]$/ } @rows), '', 'every row has a source';
    is join('; ', grep { !/\]\(https:/ } values %sources), '', 'every source can be looked up';
    for my $name ('NGINX Plus', 'APISIX', 'Kong', 'Envoy', 'Traefik', 'HAProxy', 'AWS WAF', 'Cloudflare') {
        ok scalar(grep { /\Q$name\E/ } @rows), "$name has its row";
    }
}

# ---- The reference

my $directives = contents($DIRECTIVES);
my $source = contents('src/config/sl_directives.cpp');
my @documented = $directives =~ /^## (sliding_limit\w*)$/mg;
my @existing = $source =~ /ngx_string\("(sliding_limit\w*)"\),\n\s+(?:kAnywhere|NGX_HTTP)/g;
is join(' ', sort @documented), join(' ', sort @existing), 'every directive is documented';

for my $name (@documented) {
    my $section = section($DIRECTIVES, $name);
    like $section, qr/^\| $_ \|/m, "$name: $_" for qw(Syntax Default Context);
    ok scalar(grep { /\b$name\b/ } blocks($section, 'nginx')), "$name: example";
}

sub parameters { return contents("src/config/sl_config_$_[0].cpp") =~ /^    \{"(\w+=?)", offsetof/mg }

for my $name (parameters('limit')) {
    my $heading = $name =~ s/=$//r;
    # `buckets` belongs to `algorithm`
    like section($DIRECTIVES, $heading eq 'buckets' ? 'algorithm' : $heading) // '', qr/`$name/,
        "sliding_limit: $name has a section";
}
for my $name (parameters('redis')) {
    like section($DIRECTIVES, 'sliding_limit_redis'), qr/`$name/, "sliding_limit_redis: $name is documented";
}

for my $name (contents('src/answer/sl_variables.cpp') =~ /"(sliding_limit_\w+)"/g) {
    like section($DIRECTIVES, 'Variables'), qr/^\| `\$$name` \|/m, "\$$name is documented";
}

# its log format says what the line below it shows
{
    my ($format) = $directives =~ /^(log_format limits .*?;)/ms;
    my ($shown) = $directives =~ /^(\d{4}-\S+ 192\.0\.2\.7 "POST .*)$/m;
    my $redis = start_redis();
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . " timeout=10s;\n$format");
    access_log logs/limits.log limits;
    location = /login { sliding_limit zone=login max=10 window=60s key=$remote_addr; empty_gif; }
END
    $nginx->try('/login') for 1 .. 12;
    my @lines;
    wait_until { @lines = split /^/, contents($nginx->dir . '/logs/limits.log'); @lines == 12 } 10, 'the log';
    chomp(my $real = $lines[-1]);

    # but for what differs from one request to another
    for ($shown, $real) {
        s/^\S+ \S+ "\S+/TIME ADDRESS "METHOD/;
        s/took=0\.000\d{3} id=\S+$/took=TIME id=ID/;
    }
    is $real, $shown, 'a line of the access log';

    # and the commands below it do with it what they are for
    my ($by_client, $by_minute) = map { /^\$ (.*)$/mg } blocks(section($DIRECTIVES, 'Variables'), 'console');
    my $in_logs = "cd '@{[$nginx->dir]}/logs' &&";
    like scalar(`$in_logs $by_client`), qr/^ *2 127\.0\.0\.1\n\z/, $by_client;
    like scalar(`$in_logs $by_minute`), qr/^ *[12] \d{4}-\d\d-\d\dT\d\d:\d\d$/m, $by_minute;
}

# Lines of the error log are shown in the words of the sources.
my $sources = join('', map { contents($_) } glob 'src/*.cpp src/*/*.cpp src/*/pure/*.cpp') =~ s/"\s*\n\s*"//gr;
for my $page (pages()) {
    for my $line (contents($page) =~ /^\[error\] sliding_limit: (.*)$/mg) {
        # without names, numbers, and what nginx and the system say
        my @words = grep { / / } map { s/^\s+|\s+$//gr } split /"[^"]*"|[\d,:…]+k?|Connection refused/,
            $line =~ s/, client: ….*//r;
        is join(', ', grep { index($sources, $_) < 0 } @words), '', "$page: $line";
    }
}

# ---- The guides to the sources

for my $guide ('docs/architecture.md', 'src/ngx_http_sliding_limit_module.cpp') {
    my $text = contents($guide);
    my @files = $text =~ m{\b((?:answer|base|config|metrics|monitor|redis|request|store|usage)/(?:pure/)?sl_\w+)}g;
    is join(' ', grep { !-e "src/$_.h" && !-e "src/$_.cpp" } @files), '', "$guide names files that are there";
    my @suites = $text =~ m{\b(t/\w+\.t)\b}g;
    is join(' ', grep { !-e } @suites), '', "$guide names suites that are there";
}

# ---- The ACL line

my $script = `sh lua/assemble`;
my %called = map { lc($_) => 1 } $script =~ /(?:redis\.p?|\b)call\('([A-Z]+)'/g;
is join(' ', sort(rights())), join(' ', sort map { "+$_" } keys %called, qw(evalsha script|load select)),
    'the ACL line has what the script calls, and no more';

my ($for_operators) = contents('docs/operations.md') =~ /^To \[look at a client\](.*?)\. Without/ms;
my @for_operators = $for_operators =~ /`\+(\w+)`/g;
is join(' ', sort @for_operators), 'eval get scan', 'and operators need what is said';

subtest 'the ACL line is enough' => sub {
    my $redis = start_redis();
    $redis->cli(split ' ', acl_line());
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://nginx:PASSWORD@127.0.0.1:' . $redis->port . '/1 timeout=10s;');
    location /log { sliding_limit zone=log max=2 window=1s key=a; empty_gif; }
    location /cost { sliding_limit zone=cost max=4 window=1s key=a cost=2; empty_gif; }
    location /buckets { sliding_limit zone=buckets max=2 window=1s key=a algorithm=buckets buckets=2; empty_gif; }
    location /packed { sliding_limit zone=packed max=2 window=1s key=a algorithm=packed; empty_gif; }
    location /packed_cost { sliding_limit zone=packed_cost max=4 window=1s key=a cost=2 algorithm=packed; empty_gif; }
    location /denied { sliding_limit zone=denied max=2 window=1s key=a count=denied; empty_gif; }
    location /given_back { sliding_limit zone=back max=2 window=1s key=a cost=2 count_status=403; empty_gif; }
    location /given_back_packed { sliding_limit zone=back_packed max=2 window=1s key=a algorithm=packed count_status=403; empty_gif; }
    location /given_back_buckets { sliding_limit zone=back_buckets max=2 window=1s key=a algorithm=buckets count_status=403; empty_gif; }
    location /settled { sliding_limit zone=settled max=9 window=60s key=a cost=2 settle=$arg_cost; empty_gif; }
    location /settled_packed { sliding_limit zone=settled_packed max=9 window=60s key=a cost=2 algorithm=packed settle=$arg_cost; empty_gif; }
    location /settled_buckets { sliding_limit zone=settled_buckets max=9 window=60s key=a cost=2 algorithm=buckets settle=$arg_cost; empty_gif; }
END
    for my $path (qw(log cost packed packed_cost buckets denied)) {
        my @status = map { (get($nginx->port, "/$path"))[0] } 1 .. 3;
        is "@status", '200 200 429', $path;
    }
    for my $path (qw(given_back given_back_packed given_back_buckets)) {
        my @status = map { (get($nginx->port, "/$path"))[0] } 1 .. 3;
        is "@status", '200 200 200', $path;
    }
    # of two that are reserved one is given back, and later seven are entered
    for my $path (qw(settled settled_packed settled_buckets)) {
        my $left = sub { (get($nginx->port, "/$path?cost=$_[0]"))[1]{'x-ratelimit-remaining'} };
        is $left->(1), 7, "$path: reserved";
        wait_until { $left->(0) == 6 } 10, 'what is given back';
        is $left->(9), 6, 'given back';
        wait_until { (get($nginx->port, "/$path?cost=0"))[0] == 429 } 10, 'what is entered';
        pass 'entered';
    }
    sleep 1.8;
    is +(get($nginx->port, "/$_"))[0], 200, "$_: also when entries expire" for qw(log cost packed packed_cost buckets);
    unlike $nginx->error_log, qr/NOPERM|failed|down/, 'no call was refused';
    is $nginx->bad_lines, '';
};

subtest 'with the rights that operators need they can step in' => sub {
    my $redis = start_redis();
    $redis->cli(split ' ', acl_line());
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://nginx:PASSWORD@127.0.0.1:' . $redis->port . ' timeout=10s;');
    location /api { sliding_limit zone=api max=2 window=60s key=a; empty_gif; }
    location /limits { sliding_limit_metrics admin; }
END
    my $client = '/limits?zone=api&key=a';
    my $change = sub {
        my ($method, $body) = @_;
        return +(request($nginx->port, "$method $client HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
            . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body"))[0];
    };
    my ($status, undef, $body) = get($nginx->port, $client);
    is $status, 503, 'without them they cannot';
    like $body, qr/NOPERM/, 'and are told why';
    is +(get($nginx->port, '/api'))[0], 200, 'which does not disturb the limits';
    $redis->cli('ACL', 'SETUSER', 'nginx', map { "+$_" } @for_operators);
    is +(get($nginx->port, $client))[0], 200, 'they look';
    is $change->('PUT', '{"ban":"1h"}'), 200, 'and ban';
    is +(get($nginx->port, '/api'))[0], 429;
    ($status, undef, $body) = get($nginx->port, '/limits?zone=api&overrides');
    like $body, qr/"until"/, 'and see it in the list';
    is $change->('DELETE', ''), 200;
    is +(get($nginx->port, '/api'))[0], 200, 'and let go';
    unlike $nginx->error_log, qr/is down|check\(s\) failed/, 'the store was never in doubt';
};

done_testing;
