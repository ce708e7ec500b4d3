# What packagers get: the fields of debian/control, debian/watch, and docker/modules, the folder for
# docker-nginx. `make deb-lint`, `make build-test` and `make docker-test` go on to use them.

use strict;
use warnings;
use lib 't/lib';

use File::Basename qw(basename dirname);
use File::Temp ();
use SlidingLimit::Pages qw(broken_links contents);
use Test::More;

# ---- debian

my $control = contents('debian/control');
my %field = $control =~ /^([\w-]+): (.*)$/mg;

# The project has one address.
my ($host) = $field{Maintainer} =~ /@(\S+)>$/;
like $field{$_} // '', qr{^https://\Q$host\E/}, "debian/control: $_" for qw(Homepage Vcs-Browser Vcs-Git);

my ($version, $watched, $pattern) = contents('debian/watch') =~ /^version=(\d+)\n(\S+) (\S+)$/m;
is $version, 4, 'debian/watch has a version that every uscan of today knows';
like $watched, qr{^https://\Q$host\E/}, 'and looks where the project is';
chomp(my $released = `scripts/version`);
my %stands_for = ('@ANY_VERSION@' => '[-_]?v?(\d[-+.:~\da-zA-Z]*)', '@ARCHIVE_EXT@' => '\.(?:tar\.xz|tar\.gz|zip)');
my $expression = $pattern =~ s/(\@\w+\@)/$stands_for{$1}/gr;
is "ngx_http_sliding_limit_module-$released.tar.gz" =~ /^$expression$/ && $1, $released, 'for what `make dist` makes';
is contents('debian/source/format'), "3.0 (quilt)\n", 'of which the package is made';

for my $file (glob 'debian/control debian/tests/control') {
    my @alone = grep { !/\bvalkey-server\b/ } map { split /,/ } contents($file) =~ /^.*\bredis-server\b.*$/mg;
    is join(', ', grep { /\bredis-server\b/ } @alone), '', "$file: where Redis will do, Valkey does";
}
is $field{Suggests}, 'redis-server | valkey-server', 'one of them is suggested';

# ---- docker/modules

my $folder = 'docker/modules/sliding-limit';

is join(' ', map { basename($_) } sort glob "$folder/*"), 'build-deps prebuild source', "$folder has the files that docker-nginx looks for";
is join(' ', broken_links('docker/modules/README.md')), '', 'the links of its page lead somewhere';

my %needed = map { $_ => 1 } split ' ', `scripts/install-packages list build`;
my @packages = split ' ', contents("$folder/build-deps");
is join(' ', grep { !$needed{$_} } @packages), '', 'its packages are among those that every build needs';
cmp_ok scalar(@packages), '>', 0, 'and there are some';

# In a container, the folder is at /modules.
my $container = File::Temp->newdir;
system('cp', '-r', $folder, $container) == 0 or die "cp: $?";
my ($copy) = glob "$container/*";
my ($source) = contents("$folder/source") =~ m{^(/\S+)\n\z} or die 'no source';
is dirname($source), '/modules/' . basename($copy), 'the sources are in the folder';
my $unpacked = "$copy/" . basename($source);

# As docker-nginx calls it; (exit status, output).
sub prebuild {
    my $output = `cd / && '$copy/prebuild' 2>&1`;
    return ($? >> 8, $output);
}

{
    my ($status, $output) = prebuild();
    is $status, 1, 'prebuild fails without the tarball';
    like $output, qr/must lie there; "make dist" makes it$/, 'and says what is missing';
    ok !-e $unpacked, 'and leaves nothing';
}

chomp(my $tarball = `scripts/dist '$copy'`);
is basename($tarball), "ngx_http_sliding_limit_module-$released.tar.gz", 'make dist';

for my $time ('first', 'second') {
    my ($status, $output) = prebuild();
    is $output, '', "prebuild is content, the $time time";
    is $status, 0, 'and succeeds';
}
# docker-nginx takes a module without that line for one that cannot be loaded
like contents("$unpacked/config"), qr{^\. auto/module$}m, 'nginx finds a module in the directory that "source" names';
is join(' ', grep { !-d "$unpacked/$_" } qw(lua page src)), '', 'with all that it is built of';

{
    system('cp', $tarball, $tarball =~ s/\.tar\.gz$/.1.tar.gz/r) == 0 or die "cp: $?";
    my ($status, $output) = prebuild();
    is $status, 1, 'prebuild does not choose between two tarballs';
    like $output, qr/found "\S+ \S+" in \S+, but one /, 'and says so';
}

done_testing;
