# Certificates for tests, made by the openssl command in a directory of their own.
#
#   my $ca = new_ca('the CA');
#   my $it = $ca->issue('redis.test', names => 'DNS:redis.test,IP:127.0.0.1');
#
# $ca->cert, $it->{cert} and $it->{key} are files. With expired => 1 its time is over;
# with type => 'rsa' it has an RSA key.

package SlidingLimit::Certificates;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();

our @EXPORT_OK = qw(new_ca);

my %KEY = (
    ec => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
    rsa => ['-newkey', 'rsa:2048'],
);

sub openssl {
    my ($dir, @arguments) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir $dir or die $!;
        exec 'openssl', @arguments or die "openssl: $!";
    }
    my $said = do { local $/; <$out> } // '';
    close $out;
    die "openssl @arguments: $said" if $?;
}

sub write_file {
    my ($name, $content) = @_;

    open my $file, '>', $name or die "$name: $!";
    print $file $content;
    close $file or die $!;
}

sub new_ca {
    my ($name) = @_;
    my $self = bless { dir => File::Temp->newdir(), issued => 0 }, __PACKAGE__;

    chmod 0755, $self->{dir};
    write_file("$self->{dir}/index", '');
    write_file("$self->{dir}/serial", "01\n");
    openssl($self->{dir}, 'req', '-x509', @{ $KEY{ec} }, '-nodes', '-days', 2, '-subj', "/CN=$name",
        '-keyout', 'ca.key', '-out', 'ca.crt');

    return $self;
}

sub cert { "$_[0]{dir}/ca.crt" }

sub issue {
    my ($self, $name, %with) = @_;
    my $dir = $self->{dir};
    my $base = 'issued' . ++$self->{issued};
    my $names = $with{names} || "DNS:$name";
    my @time = $with{expired}
        ? ('-startdate', '20200101000000Z', '-enddate', '20200201000000Z') : ('-days', 2);

    write_file("$dir/ca.cnf", <<"END");
[ca]
default_ca = this
[this]
database = index
serial = serial
new_certs_dir = .
unique_subject = no
default_md = sha256
policy = any
x509_extensions = extensions
[any]
commonName = supplied
[extensions]
basicConstraints = CA:FALSE
subjectAltName = $names
END

    openssl($dir, 'req', @{ $KEY{ $with{type} || 'ec' } }, '-nodes', '-subj', "/CN=$name",
        '-keyout', "$base.key", '-out', "$base.csr");
    openssl($dir, 'ca', '-batch', '-notext', '-config', 'ca.cnf', '-cert', 'ca.crt', '-keyfile', 'ca.key',
        '-in', "$base.csr", '-out', "$base.crt", @time);
    chmod 0644, "$dir/$base.key";

    return { cert => "$dir/$base.crt", key => "$dir/$base.key" };
}

1;
