# nginx loads modules with their symbols global. One that carries a hiredis of its
# own must not lend it to this module, nor get this module's.

use strict;
use warnings;
use lib 't/lib';

use SlidingLimit::Servers qw(start_redis start_nginx get module);
use Test::More;

plan skip_all => 'nginx has the module built in' unless module();

my $redis = start_redis();
my $decoy = $redis->dir . '/decoy.so';

# every function of hiredis that the module could take for its own: each ends nginx
# (of its library for TLS, too, where there is one)
my @functions = map { `nm -g --defined-only \$(cc -print-file-name=$_) 2>/dev/null` =~ /^\S+ T (\w+)$/mg }
    'libhiredis.a', 'libhiredis_ssl.a';
cmp_ok scalar @functions, '>', 50, scalar(@functions) . ' functions of hiredis';

open my $cc, '|-', 'cc', '-shared', '-fPIC', '-o', $decoy, '-x', 'c', '-' or die $!;
print $cc "void abort(void);\n", map { "void $_(void) { abort(); }\n" } @functions;
close $cc or die "cc: $?";

{
    local $ENV{LD_PRELOAD} = $decoy;
    my $nginx = start_nginx(<<'END', http => 'sliding_limit_redis redis://127.0.0.1:' . $redis->port . ';');
    location / { sliding_limit zone=decoy max=1 window=60s key=a; empty_gif; }
END
    delete local $ENV{LD_PRELOAD};

    is +(get($nginx->port, '/'))[0], 200, 'works beside another hiredis';
    is +(get($nginx->port, '/'))[0], 429, 'and counts';
    is $nginx->bad_lines, '';
}

my @visible = `nm -D --defined-only ${\ module()}` =~ /^\S+ \w (\w+)$/mg;
is join(' ', sort @visible),
    'ngx_http_sliding_limit_module ngx_module_names ngx_module_order ngx_modules',
    'shows nothing but what nginx looks for';

done_testing;
