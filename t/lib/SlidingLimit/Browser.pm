# The live page in a real browser, for suites that have a program in t/js/ to drive it.

package SlidingLimit::Browser;

use strict;
use utf8;
use warnings;

use Exporter 'import';
use File::Spec ();
use IPC::Open2 qw(open2);
use JSON::PP ();
use POSIX ();
use SlidingLimit::Servers qw(wait_until);
use Test::More;

our @EXPORT_OK = qw(browser has_no_overflow is_quiet page_when start_browser);

my $json = JSON::PP->new->utf8->canonical;
my ($program, $pid, $from_browser, $to_browser);

# Starts the program; or skips the suite, where there is no browser.
sub start_browser {
    ($program) = @_;

    plan skip_all => 'told to do without a browser'
        if defined $ENV{SLIDING_LIMIT_BROWSER} && $ENV{SLIDING_LIMIT_BROWSER} eq '';

    # "make test" installs them and says where: there they must be
    my $packages = $ENV{SLIDING_LIMIT_NPM_DIR} // 'build/npm';
    my ($chromium) = grep { -x } map { "$_/chromium" } File::Spec->path;
    my @missing = (
        -e "$packages/node_modules/playwright-core/package.json" ? () : "playwright-core in $packages",
        $chromium ? () : 'chromium',
    );
    if (@missing) {
        die "not installed: @missing\n" if defined $ENV{SLIDING_LIMIT_NPM_DIR};
        plan skip_all => "not installed: @missing";
    }

    # whatever hangs, this ends
    $SIG{ALRM} = sub { die "took too long\n" };
    alarm 900;
    $SIG{PIPE} = 'IGNORE';
    binmode $_, ':encoding(UTF-8)' for map { Test::More->builder->$_ } qw(output failure_output todo_output);

    chomp($packages = `cd '$packages' && pwd`);
    $pid = open2($from_browser, $to_browser, 'node', $program, $packages, $chromium);
}

# it ends by itself when there is nothing more to do
END {
    local $?;
    close $to_browser if $to_browser;
    for my $signal ($pid ? qw(TERM KILL) : ()) {
        last if eval { wait_until { waitpid($pid, POSIX::WNOHANG()) } 10; 1 };
        kill $signal, $pid;
    }
}

# Has the browser do something; see the program.
sub browser {
    my ($do, %with) = @_;

    syswrite $to_browser, $json->encode({ do => $do, %with }) . "\n";
    my $line = <$from_browser> // die "the browser has gone\n";
    my $answer = $json->decode($line);
    die "$do: $answer->{failed}\n" if ref $answer eq 'HASH' && exists $answer->{failed};
    return $answer;
}

# What the page shows as soon as this holds; it looks for news every two seconds.
sub page_when(&$) {
    my ($condition, $what) = @_;
    my $page;

    my $came = eval { wait_until { local $_ = $page = browser('read'); $condition->() } 20, $what; 1 };
    ok $came, $what or diag $@, explain $page;
    return $page;
}

# is_quiet($url, 'zone=login&…'): but for these questions about clients.
sub is_quiet {
    my ($url, @questions) = @_;
    my $events = browser('events');
    my %expected = map { $_ => 1 } $url, map { "$url?$_" } 'format=json', @questions;

    is_deeply $events->{complaints}, [], 'the browser has nothing to complain of';
    my %other = map { $_ => 1 } grep { !$expected{$_} } @{ $events->{requested} };
    is_deeply [sort keys %other], [], 'and asked for nothing but the page and its numbers';
}

sub has_no_overflow {
    my ($page) = @_;
    cmp_ok $page->{width}{content}, '<=', $page->{width}{window}, 'nothing is wider than the window';
}

1;
