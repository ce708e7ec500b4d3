# What README.md says can be done: its configurations load, its ACL line suffices,
# its directives are those that exist.

use strict;
use warnings;
use lib 't/lib';

use File::Temp ();
use SlidingLimit::Rights qw(acl_line rights);
use SlidingLimit::Servers qw(get module nginx_binary start_nginx start_redis wait_until);
use Test::More;
use Time::HiRes qw(sleep);

my $readme = do { local (@ARGV, $/) = 'README.md'; <> };
my $source = do { local (@ARGV, $/) = 'src/config/sl_directives.cpp'; <> };

my $dir = File::Temp->newdir;
mkdir "$dir/logs";
open my $password, '>', "$dir/password" or die $!;
print $password "secret\n";
close $password;

my @examples = $readme =~ /^```nginx\n(.*?)^```/msg;
cmp_ok scalar @examples, '>=', 7, scalar(@examples) . ' examples';

for my $example (@examples) {
    my ($title) = $example =~ /(sliding_limit\w* [^\n]*)/ ? $1 : $example =~ /^(.*)/;
    my $redis = $example =~ /^\s*sliding_limit_redis/m ? '' : 'sliding_limit_redis redis://127.0.0.1:6379;';

    # in the context that it needs, with this machine's paths
    $example =~ s/^load_module .*//m;
    $example =~ s{/etc/nginx/redis.password}{$dir/password};
    $example =~ s{/var/log/nginx/}{$dir/logs/};
    $example = "server { listen 127.0.0.1:8080; $example }" if $example =~ /^\s*location/m && $example !~ /server \{/;
    $example = "events {} http { $redis $example }" unless $example =~ /^\s*http \{/m;

    my $load = module() ? 'load_module ' . module() . ';' : '';
    open my $conf, '>', "$dir/nginx.conf" or die $!;
    print $conf "$load pid $dir/nginx.pid; error_log $dir/logs/error.log;\n$example";
    close $conf;

    my $said = `${\ nginx_binary()} -t -p $dir -c $dir/nginx.conf -e $dir/logs/error.log 2>&1`;
    is $?, 0, "nginx -t: $title" or diag $said;
}

my %documented = map { $_ => 1 } $readme =~ /^### (sliding_limit\w*)$/mg;
my %existing = map { $_ => 1 } $source =~ /ngx_string\("(sliding_limit\w*)"\),\n\s+(?:kAnywhere|NGX_HTTP)/g;
is join(' ', sort keys %documented), join(' ', sort keys %existing), 'every directive is documented';

for my $name (sort keys %documented) {
    my ($section) = $readme =~ /^### $name\n(.*?)^##/ms;
    like $section, qr/^\| $_ \|/m, "$name: $_" for qw(Syntax Default Context);
    like $section, qr/^```nginx\n.*$name/ms, "$name: example";
}

# its log format says what the line below it shows
{
    my ($format) = $readme =~ /^(log_format limits .*?;)/ms;
    my ($shown) = $readme =~ /^(\d{4}-\S+ 192\.0\.2\.7 "POST .*)$/m;
    my $redis = start_redis();
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . " timeout=10s;\n$format");
    access_log logs/limits.log limits;
    location = /login { sliding_limit zone=login max=10 window=60s key=$remote_addr; empty_gif; }
END
    $nginx->try('/login') for 1 .. 12;
    wait_until { -s $nginx->dir . '/logs/limits.log' } 10, 'the log';
    my @lines = do { local @ARGV = $nginx->dir . '/logs/limits.log'; <> };
    chomp(my $real = $lines[-1]);

    # but for what differs from one request to another
    for ($shown, $real) {
        s/^\S+ \S+ "\S+/TIME ADDRESS "METHOD/;
        s/took=0\.000\d{3} id=\S+$/took=TIME id=ID/;
    }
    is $real, $shown, 'a line of the access log';
}

my $variables = do { local (@ARGV, $/) = 'src/answer/sl_variables.cpp'; <> };
for my $name (sort { $a cmp $b } $variables =~ /"(sliding_limit_\w+)"/g) {
    like $readme, qr/^\| `\$$name` \|/m, "\$$name is documented";
}

my $parameters = join '', do { local @ARGV = glob 'src/config/sl_config_{limit,redis}.cpp'; <> };
my %section = map { $_ => $readme =~ /^### $_\n(.*?)^###/ms } qw(sliding_limit sliding_limit_redis);
for my $name ($parameters =~ /^    \{"(\w+=?)", offsetof/mg) {
    ok scalar(grep { /`$name/ } values %section), "$name is documented";
}

for my $guide ('docs/architecture.md', 'src/ngx_http_sliding_limit_module.cpp') {
    my $text = do { local (@ARGV, $/) = $guide; <> };
    my @files = $text =~ m{\b((?:answer|base|config|metrics|monitor|redis|request|store)/(?:pure/)?sl_\w+)}g;
    is join(' ', grep { !-e "src/$_.h" && !-e "src/$_.cpp" } @files), '', "$guide names files that are there";
    my @suites = $text =~ m{\b(t/\w+\.t)\b}g;
    is join(' ', grep { !-e } @suites), '', "$guide names suites that are there";
}

my $script = do { local (@ARGV, $/) = 'lua/sliding_window.lua'; <> };
my %called = map { lc($_) => 1 } $script =~ /(?:redis\.p?|\b)call\('([A-Z]+)'/g;
is join(' ', sort(rights())), join(' ', sort map { "+$_" } keys %called, qw(evalsha script|load select)),
    'the ACL line has what the script calls, and no more';

subtest 'the ACL line is enough' => sub {
    my $redis = start_redis();
    $redis->cli(split ' ', acl_line());
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://nginx:PASSWORD@127.0.0.1:' . $redis->port . '/1 timeout=10s;');
    location /log { sliding_limit zone=log max=2 window=1s key=a; empty_gif; }
    location /cost { sliding_limit zone=cost max=4 window=1s key=a cost=2; empty_gif; }
    location /buckets { sliding_limit zone=buckets max=2 window=1s key=a algorithm=buckets buckets=2; empty_gif; }
    location /denied { sliding_limit zone=denied max=2 window=1s key=a count=denied; empty_gif; }
    location /given_back { sliding_limit zone=back max=2 window=1s key=a cost=2 count_status=403; empty_gif; }
    location /given_back_buckets { sliding_limit zone=back_buckets max=2 window=1s key=a algorithm=buckets count_status=403; empty_gif; }
END
    for my $path (qw(log cost buckets denied)) {
        my @status = map { (get($nginx->port, "/$path"))[0] } 1 .. 3;
        is "@status", '200 200 429', $path;
    }
    for my $path (qw(given_back given_back_buckets)) {
        my @status = map { (get($nginx->port, "/$path"))[0] } 1 .. 3;
        is "@status", '200 200 200', $path;
    }
    sleep 1.8;
    is +(get($nginx->port, "/$_"))[0], 200, "$_: also when entries expire" for qw(log cost buckets);
    unlike $nginx->error_log, qr/NOPERM|failed|down/, 'no call was refused';
    is $nginx->bad_lines, '';
};

done_testing;
