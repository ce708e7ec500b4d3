# What is in monitoring/ fits what the module serves. The rules pass their tests; every
# name and label in rules, dashboard and documents is there in the module's own
# output; and a real Prometheus that scrapes the demo understands every expression, and
# tells of a Redis that is stopped.

use strict;
use warnings;
use lib 't/lib';

use File::Spec ();
use File::Temp ();
use JSON::PP ();
use SlidingLimit::Pages qw(blocks contents section);
use SlidingLimit::Prometheus qw(parse_metrics start_prometheus);
use SlidingLimit::Servers qw(free_port get module request wait_until);
use Test::More;
use Time::HiRes qw(sleep);

# "make test" installs it: there it must be
if (my @missing = grep { my $name = $_; !grep { -x "$_/$name" } File::Spec->path } qw(prometheus promtool)) {
    die "not installed: @missing\n" if defined $ENV{SLIDING_LIMIT_NPM_DIR};
    plan skip_all => "not installed: @missing";
}
plan skip_all => 'the demo loads the dynamic module' unless module();

sub succeeds {
    my ($command, $name) = @_;

    my $output = `$command 2>&1`;
    is $?, 0, $name // $command or diag $output;
}

# ---- Rules by themselves

succeeds('promtool check config monitoring/prometheus.yml');
succeeds('promtool check rules --lint-fatal monitoring/alerts.yml');
succeeds('promtool test rules monitoring/alerts_test.yml');

# ---- The demo, and what it serves

my $temp = File::Temp->newdir;
chmod 0755, $temp;
$ENV{TMPDIR} = "$temp";
my $port = free_port();
my $demo = bless { owner => $$ }, 'SlidingLimit::Servers::Process';
$demo->launch("$temp/demo.out", 'scripts/demo', module(), $port);
wait_until { -e "$temp/demo.out" && contents("$temp/demo.out") =~ /Ctrl-C ends the demo/ } 30, 'the demo';

# Some requests to both of its zones, by somebody new: who was refused stays refused
# while Redis is away, and tells nothing of it.
my $visits = 0;

sub visit {
    my $from = sprintf '127.0.%d.%d', 1 + $visits / 250, 1 + $visits % 250;
    $visits++;

    for my $path (('/') x 6, ('/login') x 4) {
        request($port, "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", 10, $from);
    }
}

# A command that it prints to be tried.
sub try_command {
    my ($pattern) = @_;

    my ($command) = contents("$temp/demo.out") =~ /^    ($pattern.*)$/m
        or die "the demo does not say: $pattern";
    succeeds($command, $pattern);
}

visit();
my $metrics = (get($port, '/limits'))[2];
open my $file, '>', "$temp/metrics" or die $!;
print $file $metrics;
close $file;
succeeds("promtool check metrics < $temp/metrics", 'promtool check metrics');

# ---- Names and labels

# No zone of the demo settles its requests: this is what one would add. A Prometheus that
# reads the demo has no answer to questions about it.
my $none_here = qr/_zone_(?:settlements|reserved_units|entered_units|given_back_units|request_cost)_/;
$metrics .= join '', map { "nginx_sliding_limit_zone_$_ 1\n" }
    map({ qq(settlements_total{zone="demo",direction="$_"}) } qw(up down even stood)),
    map({ qq(${_}_units_total{zone="demo"}) } qw(reserved entered given_back)),
    map({ qq(request_cost_bucket{zone="demo",le="$_"}) } 0, 1, 10, '+Inf'),
    map({ qq(request_cost_$_\{zone="demo"}) } qw(sum count));

my $series = parse_metrics($metrics);
# Prometheus adds these to all
my %labels = map {
    $_ => { map { $_ => 1 } qw(job instance), map { keys %$_ } @{ $series->{$_} } }
} keys %$series;
my %types = map { $_ => 1 } $metrics =~ /^# TYPE (\w+) /mg;

# Labels that the result of an expression has.
sub result_labels {
    my ($expression) = @_;

    return split /,\s*/, $1 if $expression =~ /\bby \(([^)]*)\)/;
    return $expression =~ /\b(?:sum|count|min|max|avg|histogram_quantile)\(/ ? ()
        : keys %{ $labels{ ($expression =~ /(nginx_sliding_limit_\w+)/)[0] // '' } };
}

# What an expression asks for that the module does not serve. `shown`: texts in which
# labels of the result stand.
sub problems {
    my ($expression, @shown) = @_;
    my @problems;

    while ($expression =~ /(nginx_sliding_limit_\w+)(?:\{([^}]*)\})?/g) {
        my ($name, $matchers) = ($1, $2 // '');
        my @found = @{ $series->{$name} // [] };
        push @problems, "no metric $name" unless @found;

        while ($matchers =~ /(\w+)(=~?)"([^"]*)"/g) {
            my ($label, $operator, $value) = ($1, $2, $3);
            push @problems, "no label $label of $name" unless $labels{$name}{$label};
            next if $label =~ /^(?:job|instance)$/;

            for my $wanted ($operator eq '=' ? $value : split /\|/, $value) {
                push @problems, "no $label=$wanted of $name"
                    unless $wanted =~ /^\$/ || grep { ($_->{$label} // '') eq $wanted } @found;
            }
        }
    }

    while ($expression =~ /\bby \(([^)]*)\) \((?:\w+\()*(nginx_sliding_limit_\w+)/g) {
        my $name = $2;
        push @problems, map { "no label $_ of $name" } grep { !$labels{$name}{$_} } split /,\s*/, $1;
    }

    my %there = map { $_ => 1 } result_labels($expression);
    push @problems, map { "no label $_ of the result" } grep { !$there{$_} }
        map { (/\{\{\s*(\w+)\s*\}\}/g, /\$labels\.(\w+)/g) } @shown;

    return join ', ', @problems;
}

# would it be noticed?
my $requests = 'nginx_sliding_limit_zone_requests_total';
for (
    ["sum by (zone) (rate(${requests}{result=\"passed\"}[5m]))", '{{zone}}', ''],
    ["rate(${requests}[5m])", '{{result}}', ''],
    ['nginx_sliding_limit_zone_request_total', '', 'no metric nginx_sliding_limit_zone_request_total'],
    ["${requests}{zones=~\"\$zone\"}", '', "no label zones of $requests"],
    ["${requests}{result=\"refused\"}", '', "no result=refused of $requests"],
    ["${requests}{result=~\"passed|refused\"}", '', "no result=refused of $requests"],
    ["sum by (store) (rate(${requests}[5m]))", '', "no label store of $requests"],
    ["sum by (zone) (rate(${requests}[5m]))", '{{result}}', 'no label result of the result'],
    ["sum(${requests})", 'in {{ $labels.zone }}', 'no label zone of the result'],
) {
    my ($expression, $shown, $expected) = @$_;
    is problems($expression, $shown), $expected, "$expression: " . ($expected || 'no problem');
}

for my $path ('README.md', 'scripts/demo', glob('docs/*.md'), glob('monitoring/*')) {
    my @unknown = grep { !$series->{$_} && !$types{$_} }
        contents($path) =~ /\b(nginx_sliding_limit_[a-z]\w*)/g;
    is "@unknown", '', "$path names only metrics that there are";
}

my @shown = map { blocks(contents($_), 'promql') } glob 'docs/*.md';
ok scalar @shown, 'documents have expressions, too';
is problems($_), '', "which ask for what there is: $_" for @shown;

# ---- The dashboard

my $dashboard = JSON::PP->new->decode(contents('monitoring/grafana-dashboard.json'));
my @variables = @{ $dashboard->{templating}{list} };
my %variables = map { $_->{name} => 1 } @variables;
my @targets = map { @{ $_->{targets} // [] } } @{ $dashboard->{panels} };
cmp_ok @targets, '>', 20, 'the dashboard has queries';

is problems($_->{expr}, $_->{legendFormat}), '', "dashboard: $_->{expr}" for @targets;

for (grep { $_->{type} eq 'query' } @variables) {
    my ($of, $label) = $_->{definition} =~ /^label_values\((.*), (\w+)\)$/;
    is problems($of), '', "its variable $_->{name}: $of";
    ok $labels{ ($of =~ /^(\w+)/)[0] }{$label}, "has the label $label";
    is $_->{query}{query}, $_->{definition}, 'is asked for as it is shown';
}

my $text = JSON::PP->new->canonical->encode($dashboard);
my %used = map { $_ => 1 } $text =~ /\$\{?(\w+)/g;
delete @used{qw(__rate_interval __all)};
is_deeply \%used, \%variables, 'its variables are defined, and used';
is_deeply [grep { $_ ne '${datasource}' && $_ ne '-- Grafana --' } $text =~ /"uid":"([^"]+)"/g],
    [$dashboard->{uid}], 'it asks no data source but the chosen one';
my %ids = map { $_->{id} => 1 } @{ $dashboard->{panels} };
is scalar keys %ids, @{ $dashboard->{panels} }, 'panels have ids of their own';

# ---- A real Prometheus: with the configuration that we ship, but for the demo's port
# and less patience

my $config = contents('monitoring/prometheus.yml');
is $config =~ s/127\.0\.0\.1:8080/127.0.0.1:$port/, 1, 'its target is the demo';
is $config =~ s/_interval: 15s/_interval: 1s/g, 2, 'every second';
my $rules = contents('monitoring/alerts.yml');
cmp_ok $rules =~ s/\bfor: \d+m$/for: 1s/mg, '>', 5, 'alerts that have a duration';

my $prometheus = start_prometheus($config, 'alerts.yml' => $rules);
wait_until { sleep 0.2; $prometheus->query('count_over_time(up[1m]) >= 3') } 60, 'scrapes';
is_deeply [map { $_->{value}[1] } $prometheus->query('up')], ['1'], 'it can read the demo';
is_deeply [map { $_->{lastError} } @{ $prometheus->api('targets')->{activeTargets} }], [''],
    'without an error';

for my $rule ($prometheus->rules) {
    is problems($rule->{query}, values %{ $rule->{annotations} }), '',
        "$rule->{name} asks for what there is";
    like $rule->{labels}{severity}, qr/^(?:warning|critical)$/, 'has a severity';
    is_deeply [sort keys %{ $rule->{annotations} }], ['description', 'runbook_url', 'summary'],
        'and says what it means';
    is $rule->{annotations}{runbook_url}, "docs/operations.md#\L$rule->{name}", 'and what to do';
    like section('docs/operations.md', $rule->{name}) // '', qr/\w{3}/, 'where that is said';
    like contents('monitoring/alerts_test.yml'), qr/alertname="$rule->{name}",alertstate="firing"/,
        'and is tested';
}

for (@targets, map({ { expr => $_ } } @shown), grep { $_->{expr} } @{ $dashboard->{annotations}{list} }) {
    my $expression = $_->{expr} =~ s/\$__rate_interval/1m/gr =~ s/"\$\w+"/".*"/gr;
    my @result = eval { $prometheus->query($expression) };
    is $@, '', "prometheus understands $expression";

    # what is none now, or was an hour ago, may be empty
    ok scalar @result, 'and has an answer' unless $expression =~ /> 0|offset|ALERTS|$none_here/;
}

# Alerts of this name that are firing, as { zone or store => alert }.
sub firing {
    my ($name) = @_;

    return { map { $_->{labels}{zone} // $_->{labels}{store} => $_ }
        grep { $_->{labels}{alertname} eq $name && $_->{state} eq 'firing' } $prometheus->alerts };
}

is_deeply [map { $_->{labels}{alertname} } $prometheus->alerts], [], 'all is well';

try_command('redis-cli .* shutdown');
my $alert;
wait_until { visit(); sleep 0.3; $alert = firing('SlidingLimitStoreDown')->{default} } 60, 'an alert';
is $alert->{labels}{severity}, 'critical', 'Redis is stopped: an alert';
is $alert->{annotations}{summary}, "Store default is down for nginx 127.0.0.1:$port", 'which says so';
like $alert->{annotations}{description}, qr/127\.0\.0\.1:$port has had no use of 1 server\(s\) of store default\./,
    'and more';

wait_until { visit(); sleep 0.3; $alert = firing('SlidingLimitFailingOpen')->{demo} } 60, 'an alert';
like $alert->{annotations}{summary}, qr/^Zone demo lets [\d.]+% of its requests pass uncounted$/,
    'one that / is open';
wait_until { visit(); sleep 0.3; $alert = firing('SlidingLimitDecidingLocally')->{login} } 60, 'an alert';
like $alert->{annotations}{summary}, qr/^Zone login has [\d.]+% of its requests counted by each nginx alone$/,
    'and one that /login is counted in nginx';
is_deeply [map { keys %{ firing($_) } } 'SlidingLimitFailingOpen', 'SlidingLimitDecidingLocally'],
    ['demo', 'login'], 'for these zones only';

try_command('redis-server ');
wait_until { visit(); sleep 0.3; !firing('SlidingLimitStoreDown')->{default} } 60, 'the end of the alert';
is_deeply [$prometheus->query('nginx_sliding_limit_store_breakers_open > 0')], [], 'Redis is back: no alert';

$demo->signal('TERM');
is $demo->reap(30), 0, 'the demo ends';

done_testing;
