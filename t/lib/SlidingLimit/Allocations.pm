# Makes allocations of nginx, the module and hiredis fail, in the nginx that
# scripts/build-sanitized-nginx links with t/modules/failing_allocator.cpp.
#
#   my $allocations = watch_allocations();   nginxes that are started from now on are such;
#                                            undef if it has not been built
#   $allocations->of($pid);                  whose they are
#   $allocations->of_next_child;             of the process that is forked next
#   $allocations->fail($n, $m)               from now on, the nth to the mth; or the nth alone
#   my $seen = $allocations->stop;           no more: what has happened since, a hash of
#       asked, refused   how many allocations there were, and how many of them failed
#       callers          of the first that failed: names of functions, from the inside out
#       whose            'ours', 'hiredis' or 'nginx', to make something of it
#   $allocations->live                       more than there were when a process was named
#   $allocations->branch(@command)           each that the module asks for fails in a
#                                            process of its own: [wait status, callers], ...

package SlidingLimit::Allocations;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();
use SlidingLimit::Servers qw(nginx_binary);

our @EXPORT_OK = qw(watch_allocations);

# As they stand in the file: 64 bits each, the frames at the end.
my @FIELDS = (qw(pid next_child first last asked refused spared live branch_begin branch_end spares),
    map({ ("spare_begin$_", "spare_end$_") } 0 .. 7), 'frames');
my %PLACE = map { $FIELDS[$_] => 8 * $_ } 0 .. $#FIELDS;
my $SIZE = 4096;

# Those who end the process, or bring it down, if they get no memory: hiredis before 1.0, and
# nginx when it logs that there is none for a request line. In the last one nginx forgets a pool.
my @OLD_HIREDIS = qw(hi_malloc hi_calloc hi_realloc hi_strdup redisBufferWrite);
my @NGINX = qw(ngx_http_v2_run_request ngx_http_v2_init);

sub watch_allocations {
    my $nginx = nginx_binary() . '-failing';
    return unless -x $nginx;
    $ENV{TEST_NGINX_BINARY} = $nginx;

    my $file = File::Temp->new;
    my $self = bless { file => $file }, __PACKAGE__;

    syswrite $file, "\0" x $SIZE;
    $ENV{SLIDING_LIMIT_ALLOCATIONS} = $file->filename;
    $self->read_symbols;
    $self->spare(@NGINX, grep({ $_ eq 'hiredisSetAllocators' } @{ $self->{names} }) ? () : @OLD_HIREDIS);

    return $self;
}

sub set {
    my ($self, %values) = @_;

    for my $name (keys %values) {
        sysseek $self->{file}, $PLACE{$name}, 0;
        syswrite $self->{file}, pack 'q', $values{$name};
    }

    return $self;
}

sub fields {
    my ($self) = @_;
    my %values;

    sysseek $self->{file}, 0, 0;
    my $all;
    sysread $self->{file}, $all, $SIZE;
    (@values{@FIELDS}, my @frames) = unpack 'q*', $all;
    $values{frame} = [@frames[0 .. $values{frames} - 1]];

    return \%values;
}

sub of { my ($self, $pid) = @_; return $self->set(pid => $pid, live => 0) }
sub of_next_child { my ($self) = @_; return $self->set(live => 0, next_child => 1) }

# The file is read while it is written: what begins it comes last.
sub fail {
    my ($self, $from, $to) = @_;
    $self->set(first => 0, last => 0);
    $self->set(asked => 0, refused => 0, spared => 0, frames => 0);
    $self->set(last => $to // $from);
    return $self->set(first => $from);
}

sub stop {
    my ($self) = @_;
    my $seen = $self->set(last => -1)->fields;
    my @callers = $self->names(@{ $seen->{frame} });

    return { asked => $seen->{asked}, refused => $seen->{refused}, callers => \@callers, whose => whose(@callers) };
}

# That of the innermost who could have made something of it. What sends an answer or starts a
# request is nginx's, also if the module had it do so.
sub whose {
    my (@callers) = @_;

    for my $function (@callers) {
        return 'ours' if $function =~ /^sl::/;
        return 'hiredis' if $function =~ /^_*redis|^sds|^hi_|^dict/;
        return 'nginx' if $function =~ /^ngx_http_(?:send_|output_|finalize_|special_response|core_|process_|v2_|\w+_filter$)|^ngx_event_accept/;
    }

    return 'nginx';
}

sub spare {
    my ($self, @functions) = @_;
    my @places = map { my $name = $_; grep { $self->{names}[$_] eq $name } 0 .. $#{ $self->{names} } } @functions;

    for my $i (0 .. $#places) {
        $self->set("spare_begin$i" => $self->{addresses}[$places[$i]], "spare_end$i" => $self->{addresses}[$places[$i] + 1]);
    }

    return $self->set(spares => scalar @places);
}

sub live { $_[0]->fields->{live} }

sub branch {
    my ($self, @command) = @_;
    my ($begin, $end) = $self->addresses_of_module;

    $self->set(branch_begin => $begin, branch_end => $end);
    my $pid = open(my $out, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec @command;
    }
    no warnings 'portable';
    my @ended = map { /^branch (\d+) (.*)/ ? [$1, [$self->names(map { hex } split ' ', $2)]] : () } <$out>;
    close $out;
    $self->set(branch_begin => 0, branch_end => 0);

    return @ended;
}

sub read_symbols {
    my ($self) = @_;
    my @symbols = map { /^([0-9a-f]+) [tTwW] (.*)/ ? [hex $1, $2] : () }
        `nm --numeric-sort --demangle @{[ nginx_binary() ]}`;

    $self->{addresses} = [map { $_->[0] } @symbols];
    $self->{names} = [map { $_->[1] } @symbols];

    return;
}

# The linker puts the module's objects side by side.
sub addresses_of_module {
    my ($self) = @_;
    my @its = grep { $self->{names}[$_] =~ /^sl::/ } 0 .. $#{ $self->{names} };

    return ($self->{addresses}[$its[0]], $self->{addresses}[$its[-1] + 1]);
}

# What these return addresses are in, but for the allocator itself.
sub names {
    my ($self, @addresses) = @_;
    my @names = map { $self->name_at($_ - 1) } @addresses;

    shift @names while @names && $names[0] =~ /^__wrap_|^operator new|^\(anonymous namespace\)::|^$/;

    return map { s/\(anonymous namespace\):://r =~ s/\(.*//r } grep { $_ ne '' } @names;
}

sub name_at {
    my ($self, $address) = @_;
    my $all = $self->{addresses};
    my ($low, $high) = (0, scalar @$all);

    # a library's, most likely
    return '' if $address < $all->[0] || $address > $all->[-1] + 4096;

    while ($high - $low > 1) {
        my $middle = int(($low + $high) / 2);
        $all->[$middle] <= $address ? $low = $middle : ($high = $middle);
    }

    return $self->{names}[$low];
}

1;
