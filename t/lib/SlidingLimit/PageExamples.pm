# Examples from the pages of the documentation, started: each as it stands, but for ports and
# paths, in the context that it needs, beside a Redis and an application of the test's.

package SlidingLimit::PageExamples;

use strict;
use warnings;

use Exporter 'import';
use SlidingLimit::Pages qw(whole_configuration);
use SlidingLimit::Servers qw(free_port module request start_nginx);

our @EXPORT_OK = qw(answers ask start_example);

# start_example($text, application => PORT, redis => PORT, change => { 'old' => 'new' }): an
# nginx. Without `redis` it counts in memory.
sub start_example {
    my ($text, %with) = @_;
    my $port = free_port();
    my $load = module() ? 'load_module ' . module() . ';' : '';
    my $temp = join ' ', map { "${_}_temp_path temp/$_;" } qw(client_body proxy fastcgi uwsgi scgi);

    for my $old (sort keys %{ $with{change} || {} }) {
        $text =~ s/\Q$old\E/$with{change}{$old}/g or die "the example has no \"$old\"";
    }

    my $config = whole_configuration($text);
    # a timeout that does not fail open where the machine is busy
    my $redis = defined $with{redis} ? "redis://127.0.0.1:$with{redis} timeout=10s connect_timeout=5s" : '';
    my $store = $redis && $config !~ s/redis:\/\/127\.0\.0\.1:6379\b/$redis/ ? "sliding_limit_redis $redis;" : '';
    my $quiet = $config =~ /^\s*access_log/m ? '' : 'access_log off;';

    $config =~ s/^load_module .*//m;
    $config =~ s/^\s*listen .*//mg;
    $config =~ s/^(\s*server \{)/$1\n    listen 127.0.0.1:$port;/mg;
    $config =~ s/^http \{/http {\n    $quiet $temp $store/m or die "no http: $config";
    $config =~ s{/var/log/nginx/}{logs/}g;
    $config =~ s/127\.0\.0\.1:3000\b/127.0.0.1:$with{application}/g if $with{application};

    return start_nginx('', port => $port,
        whole => "$load daemon off; user root; pid nginx.pid; error_log logs/error.log info;\n$config");
}

# ask($nginx, 'GET /', from => '127.0.0.2', headers => [...]): (status, headers, body)
sub ask {
    my ($nginx, $what, %with) = @_;
    my @headers = ('Host: test', 'Connection: close', @{ $with{headers} || [] });

    return request($nginx->port, join("\r\n", "$what HTTP/1.1", @headers, '', ''), 30, $with{from});
}

# What `times` such requests are answered with, as "200:10 429:1".
sub answers {
    my ($nginx, $times, @what) = @_;
    my (@order, %count);

    for (1 .. $times) {
        my ($status) = ask($nginx, @what);
        push @order, $status unless $count{$status}++;
    }

    return join ' ', map { "$_:$count{$_}" } @order;
}

1;
