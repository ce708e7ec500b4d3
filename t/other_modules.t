# Other modules beside this one: whatever they answer, and in whatever order they
# are loaded, a limit comes first, and the status that counts is the one that is sent.

use strict;
use warnings;
use lib 't/lib';

use File::Basename qw(dirname);
use SlidingLimit::Servers qw(free_port module nginx_binary start_nginx start_redis wait_until);
use Test::More;

# built for the same nginx, and beside it or the module
my $other = dirname(module() || nginx_binary()) . '/ngx_http_test_module.so';
plan skip_all => "there is no $other, \"make test\" builds it" unless -f $other;

my $redis = start_redis();
my $redis_at = 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ' timeout=10s connect_timeout=5s;';

# What is loaded, by the name of the order; nginx may have this module built in.
my %orders = module()
    ? ('the other module is loaded last' => [module(), $other], 'the other module is loaded first' => [$other, module()])
    : ('the other module is loaded, this one is built in' => [$other]);

sub load { join ' ', map { "load_module $_;" } @_ }

# Only what `main` says is loaded.
sub start {
    my ($modules, $config) = @_;
    local $ENV{TEST_NGINX_LOAD_MODULES} = '';
    return start_nginx($config, main => load(@$modules), http => $redis_at);
}

# Whether "nginx -t" likes it, and what it says.
sub try_config {
    my ($modules, $text) = @_;
    my $dir = File::Temp->newdir();
    mkdir "$dir/logs";
    open my $file, '>', "$dir/nginx.conf" or die $!;
    print $file load(@$modules), " pid $dir/nginx.pid; events {} $text";
    close $file;
    my $said = `${\ nginx_binary()} -t -p $dir -c $dir/nginx.conf -e $dir/error.log 2>&1`;
    return ($? == 0, $said);
}

for my $order (sort keys %orders) {
    my $modules = $orders{$order};

    for my $store ('redis', 'memory') {
        my $where = $store eq 'memory' ? 'store=memory' : '';
        my $limit = sub { "sliding_limit zone=$_[0] max=2 window=60s key=\$arg_k fallback=none $where $_[1];" };

        $redis->cli('FLUSHALL');
        my $nginx = start($modules, <<"END");
            location /kept_out { ${\ $limit->('kept_out', '')} test_access 401; empty_gif; }
            location /forbidden { ${\ $limit->('forbidden', '')} test_access 403; empty_gif; }
            location /let_in { ${\ $limit->('let_in', '')} test_access ok; empty_gif; }
            location /denied { ${\ $limit->('denied', '')} test_access ok; deny all; }
            location /any_let_in { satisfy any; ${\ $limit->('any_let_in', '')} test_access ok; deny all; empty_gif; }
            location /any_kept_out { satisfy any; ${\ $limit->('any_kept_out', '')} test_access 401; deny all; }
            location /any_allowed { satisfy any; ${\ $limit->('any_allowed', '')} test_access 401; allow all; empty_gif; }
            location /redirected {
                ${\ $limit->('redirected', '')}
                error_page 401 = /redirected_to;
                test_access 401;
            }
            location /redirected_to { ${\ $limit->('redirected', '')} test_access ok; empty_gif; }
            location /after { ${\ $limit->('after', 'phase=precontent')} test_access 401; empty_gif; }
            location /content_kept_out { ${\ $limit->('content_kept_out', 'phase=precontent')} test_precontent 403; empty_gif; }
            location /content_let_in { ${\ $limit->('content_let_in', 'phase=precontent')} test_precontent ok; empty_gif; }
            location /tried {
                ${\ $limit->('tried', 'phase=precontent')}
                test_precontent ok;
                try_files /nothing =404;
                empty_gif;
            }
            location /made_401 { ${\ $limit->('made_401', 'count_status=401')} test_status 401; empty_gif; }
            location /made_403 { ${\ $limit->('made_403', 'count_status=401')} test_status 403; empty_gif; }
            location /was_200 { ${\ $limit->('was_200', 'count_status=200')} test_status 401; empty_gif; }
END
        # 'status left' of four requests
        my $answers = sub {
            my ($path, $key) = @_;
            return [map { join ' ', $nginx->try("/$path?k=$key", 'X-RateLimit-Remaining') } 1 .. 4];
        };

        subtest "$order, $store: whom it keeps out is limited all the same" => sub {
            is_deeply $answers->('kept_out', 'a'), ['401 1', '401 0', '429 0', '429 0'], 'with 401';
            is_deeply $answers->('forbidden', 'a'), ['403 1', '403 0', '429 0', '429 0'], 'with 403';
        };

        subtest "$order, $store: whom it lets in is limited all the same" => sub {
            is_deeply $answers->('let_in', 'a'), ['200 1', '200 0', '429 0', '429 0'], 'satisfy all';
            is_deeply $answers->('denied', 'a'), ['403 1', '403 0', '429 0', '429 0'], 'satisfy all, and "deny"';
        };

        subtest "$order, $store: satisfy any is about those who let in, and the limit none of them" => sub {
            is_deeply $answers->('any_let_in', 'a'), ['200 1', '200 0', '429 0', '429 0'],
                'it lets in past "deny"';
            is_deeply $answers->('any_kept_out', 'a'), ['401 1', '401 0', '429 0', '429 0'], 'nobody lets in';
            is_deeply $answers->('any_allowed', 'a'), ['200 1', '200 0', '429 0', '429 0'], '"allow" lets in';
        };

        is_deeply $answers->('redirected', 'a'), ['200 1', '200 0', '429 0', '429 0'],
            "$order, $store: a request that it has sent elsewhere is counted once";
        is_deeply $answers->('after', 'a'), [('401 ') x 4],
            "$order, $store: a limit in the precontent phase comes after it";

        subtest "$order, $store: a limit in the precontent phase comes before what it does there" => sub {
            is_deeply $answers->('content_kept_out', 'a'), ['403 1', '403 0', '429 0', '429 0'], 'keeps out';
            is_deeply $answers->('content_let_in', 'a'), ['200 1', '200 0', '429 0', '429 0'], 'ends the phase';
            is_deeply $answers->('tried', 'a'), ['200 1', '200 0', '429 0', '429 0'], 'and both before try_files';
        };

        subtest "$order, $store: the status that it makes of an answer counts" => sub {
            is_deeply $answers->('made_401', 'a'), ['401 1', '401 0', '429 0', '429 0'], 'and is listed';
            is_deeply $answers->('made_403', 'a'), [('403 2') x 4], 'and is not listed';
            is_deeply $answers->('was_200', 'a'), [('401 2') x 4], 'and not the one before';
        };

        subtest "$order, $store: so it is after a reload" => sub {
            my ($worker) = $nginx->workers;
            $nginx->reload;
            wait_until { my @w = $nginx->workers; @w == 1 && $w[0] != $worker } 20, 'a new worker';
            is_deeply $answers->('kept_out', 'b'), ['401 1', '401 0', '429 0', '429 0'], 'kept out';
            is_deeply $answers->('let_in', 'b'), ['200 1', '200 0', '429 0', '429 0'], 'let in';
            is_deeply $answers->('content_let_in', 'b'), ['200 1', '200 0', '429 0', '429 0'], 'let in before the content';
        };

        is $nginx->bad_lines, '', 'nothing alarming in the log';
    }

    my ($is_fine, $said) = try_config($modules, '');
    ok $is_fine, "$order: no http block is no mistake" or diag $said;
}

subtest 'nginx -t refuses a module that takes the limits away' => sub {
    my $limited = 'location / { sliding_limit zone=a max=1 window=1s key=b; }';
    my ($order) = grep { !/first/ } keys %orders;
    my $conf = sub { "http { $_[0] server { listen 127.0.0.1:${\ free_port()}; $limited } }" };

    my ($is_fine, $said) = try_config($orders{$order}, $conf->(''));
    ok $is_fine, 'it is fine beside others' or diag $said;
    ($is_fine, $said) = try_config($orders{$order}, $conf->('test_removes_access_handlers on;'));
    ok !$is_fine, 'not if it removes their access handlers';
    like $said, qr/\[emerg\] sliding_limit: another module has removed the access handler.*; remove that module/, 'and nginx says so';
};

done_testing;
