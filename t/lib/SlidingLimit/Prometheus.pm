# A real Prometheus for tests, and what its text format says.

package SlidingLimit::Prometheus;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();
use HTTP::Tiny ();
use JSON::PP qw(decode_json);
use SlidingLimit::Servers ();

our @ISA = ('SlidingLimit::Servers::Process');
our @EXPORT_OK = qw(start_prometheus parse_metrics);

# start_prometheus(config, name => text, ...): with this configuration, and files that
# it names. An object with
#   query(expression)  its result, a list; dies if it is not understood
#   rules, alerts      lists of what Prometheus tells of them
sub start_prometheus {
    my ($config, %files) = @_;
    my $self = bless {
        port => SlidingLimit::Servers::free_port(),
        dir => File::Temp->newdir(),
        owner => $$,
        http => HTTP::Tiny->new(timeout => 10, no_proxy => ['127.0.0.1']),
    }, __PACKAGE__;

    $files{'prometheus.yml'} = $config;
    for my $name (keys %files) {
        open my $file, '>', "$self->{dir}/$name" or die $!;
        print $file $files{$name};
        close $file;
    }

    $self->launch("$self->{dir}/log", 'prometheus', "--config.file=$self->{dir}/prometheus.yml",
        "--storage.tsdb.path=$self->{dir}/data", "--web.listen-address=127.0.0.1:$self->{port}",
        '--log.level=warn');
    SlidingLimit::Servers::wait_until {
        waitpid($self->{pid}, POSIX::WNOHANG()) == 0
            or die 'prometheus does not start: ' . `cat $self->{dir}/log`;
        $self->{http}->get("http://127.0.0.1:$self->{port}/-/ready")->{success}
    } 60, 'prometheus';

    return $self;
}

sub api {
    my ($self, $path, %parameters) = @_;

    my $parameters = $self->{http}->www_form_urlencode(\%parameters);
    my $response = $self->{http}->get("http://127.0.0.1:$self->{port}/api/v1/$path?$parameters");
    my $answer = eval { decode_json($response->{content}) }
        or die "prometheus: $response->{status} $response->{content}";
    die "$answer->{error}\n" unless $answer->{status} eq 'success';

    return $answer->{data};
}

sub query { my ($self, $expression) = @_; return @{ $self->api('query', query => $expression)->{result} } }
sub rules { my ($self) = @_; return map { @{ $_->{rules} } } @{ $self->api('rules')->{groups} } }
sub alerts { my ($self) = @_; return @{ $self->api('alerts')->{alerts} } }

# { name => [ { label => value, ... }, ... ], ... } of all samples in a text.
sub parse_metrics {
    my ($text) = @_;
    my %series;

    for (split /\n/, $text) {
        next if /^(?:#|\s*$)/;
        my ($name, $labels) = /^([a-z_]+)(?:\{(.*)\})? \S+$/ or die "no sample: $_";
        push @{ $series{$name} }, { ($labels // '') =~ /(\w+)="((?:[^"\\]|\\.)*)"/g };
    }

    return \%series;
}

1;
