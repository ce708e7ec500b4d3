# Real servers for tests: each on ports of its own, in a temporary directory of
# its own, stopped and removed when the test ends, however it ends.

package SlidingLimit::Servers;

use strict;
use warnings;

use Exporter 'import';
use Fcntl qw(LOCK_EX LOCK_NB);
use File::Spec ();
use File::Temp ();
use IO::Socket::INET ();
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(free_port start_redis start_nginx begin_request get request wait_until
    module nginx_binary);

# With its path: nginx itself needs that to start a new binary.
sub nginx_binary {
    my $name = $ENV{TEST_NGINX_BINARY} || 'nginx';
    my ($path) = grep { -x } map { "$_/$name" } $name =~ m{/} ? '' : (File::Spec->path, '/usr/sbin');
    return $path || $name;
}

# The dynamic module to load; '' if nginx has it built in.
sub module {
    return $ENV{TEST_NGINX_LOAD_MODULES} if defined $ENV{TEST_NGINX_LOAD_MODULES};

    my $built = `cd build 2>/dev/null && pwd`;
    chomp $built;
    return "$built/ngx_http_sliding_limit_module.so";
}

# A port that nobody listens on, and that no other test takes until this one
# ends: a server that restarts is away from its port for a moment. Below the
# range from which the kernel takes ports of outgoing connections.
my @locks;

sub free_port {
    my $dir = "/tmp/sliding-limit-ports-$<";
    mkdir $dir;

    for (1 .. 1000) {
        my $port = 10000 + int rand 22000;

        open my $lock, '>', "$dir/$port" or die "$dir/$port: $!";
        next unless flock $lock, LOCK_EX | LOCK_NB;
        next unless IO::Socket::INET->new(
            LocalAddr => '0.0.0.0', LocalPort => $port, Listen => 1, ReuseAddr => 1);

        push @locks, $lock;
        return $port;
    }

    die 'no free port';
}

# wait_until { condition } $seconds, $what: dies if it does not come about, even if a busy
# machine is given more time than it should take.
sub wait_until(&$;$) {
    my ($condition, $seconds, $what) = @_;
    my $end = time + 3 * $seconds;

    until ($condition->()) {
        die 'waited in vain for ' . ($what || 'a condition') if time > $end;
        sleep 0.01;
    }
}

# One HTTP exchange on a connection of its own; (status, headers, body), with
# header names in lower case. Status 0 if there is no answer. `from` is an address
# of the loopback network, if it matters where the request comes from.
sub request {
    my ($port, $text, $seconds, $from) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", LocalAddr => $from,
        Timeout => $seconds || 10) or return (0, {}, '');

    my $answer = '';
    eval {
        local $SIG{ALRM} = sub { die "timeout\n" };
        local $SIG{PIPE} = 'IGNORE';
        Time::HiRes::alarm($seconds || 10);
        print $socket $text;
        1 while sysread $socket, $answer, 65536, length $answer;
        Time::HiRes::alarm(0);
    };
    Time::HiRes::alarm(0);

    my ($head, $body) = split /\r\n\r\n/, $answer, 2;
    return (0, {}, '') unless defined $head && $head =~ m{^HTTP/1\.1 (\d+)};
    my $status = $1;
    my %headers = map { /^([^:]+):\s*(.*)$/ ? (lc $1, $2) : () } split /\r\n/, $head;

    return ($status, \%headers, $body);
}

# Sends `text` on a connection of its own and leaves the answer to the caller.
sub begin_request {
    my ($port, $text) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die $!;
    syswrite $socket, $text;
    return $socket;
}

sub get {
    my ($port, $path, $seconds) = @_;

    return request($port, "GET $path HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", $seconds);
}

# start_redis(args => [...], port => N): an object with port, dir, pid and
#   cli(@command)  the reply as redis-cli prints it
#   stop, kill9    ends it; start again with start()
#   pause, resume  SIGSTOP and SIGCONT
sub start_redis {
    my (%with) = @_;
    my $self = bless {
        port => $with{port} || free_port(),
        args => $with{args} || [],
        cli_args => $with{cli_args} || [],
        dir => File::Temp->newdir(),
        owner => $$,
    }, 'SlidingLimit::Servers::Redis';

    return $self->start;
}

# start_nginx(config, workers => N, user => '...', slots => N, main => '...', events => '...',
# http => '...'): an nginx with `config` inside its server block, and what the others say outside.
# Or whole => '...' and port => N: all of its configuration, with paths relative to dir.
# An object with port, dir, pid and
#   try, reload, quit, stop, workers, error_log, bad_lines
sub start_nginx {
    my ($config, %with) = @_;
    my $self = bless {
        port => $with{port} || free_port(),
        dir => File::Temp->newdir(),
        owner => $$,
    }, 'SlidingLimit::Servers::Nginx';

    chmod 0755, $self->{dir};
    mkdir "$self->{dir}/$_" for qw(logs html temp);
    $self->configure($config, %with);

    return $self->start;
}

package SlidingLimit::Servers::Process;

use strict;
use warnings;
use Time::HiRes qw(sleep time);

# Every process is the leader of a group, so that nothing of it stays behind.
sub launch {
    my ($self, $out, @command) = @_;

    my $pid = fork // die "fork: $!";
    if (!$pid) {
        setpgrp;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $out;
        open STDERR, '>&', \*STDOUT;
        exec @command or POSIX::_exit(127);
    }

    return $self->{pid} = $pid;
}

sub signal { my ($self, $name) = @_; kill $name, $self->{pid} if $self->{pid}; return $self }

# Waits for its end; its exit status, or undef if it had to be killed.
sub reap {
    my ($self, $seconds) = @_;
    my $pid = $self->{pid} or return 0;
    my $end = time + $seconds;

    while (time < $end) {
        if (waitpid($pid, POSIX::WNOHANG()) == $pid) {
            $self->{pid} = undef;
            return $?;
        }
        sleep 0.01;
    }

    kill 'KILL', -$pid;
    waitpid $pid, 0;
    $self->{pid} = undef;
    return;
}

sub DESTROY {
    my ($self) = @_;

    # a forked client of the test must not stop its parent's servers
    return unless $self->{pid} && $self->{owner} == $$;

    local ($?, $!);
    kill 'CONT', $self->{pid};
    kill 'TERM', $self->{pid};
    $self->reap(5);
}

package SlidingLimit::Servers::Redis;

use strict;
use warnings;
our @ISA = ('SlidingLimit::Servers::Process');

sub port { $_[0]{port} }
sub dir { "$_[0]{dir}" }

sub start {
    my ($self) = @_;

    $self->launch("$self->{dir}/log", 'redis-server', '--port', $self->{port},
        '--bind', '127.0.0.1', '--dir', $self->dir, '--save', '', '--daemonize', 'no',
        @{ $self->{args} });
    SlidingLimit::Servers::wait_until { $self->cli('PING') =~ /PONG|NOAUTH/ } 20, 'redis-server';

    return $self;
}

sub cli {
    my ($self, @command) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>', '/dev/null';
        exec 'redis-cli', '-p', $self->{port}, @{ $self->{cli_args} }, @command;
    }
    my $reply = do { local $/; <$out> } // '';
    close $out;
    chomp $reply;

    return $reply;
}

# A number from INFO.
sub info {
    my ($self, $section, $name) = @_;

    return $self->cli('INFO', $section) =~ /^\Q$name\E[:=](.*?)\r?$/m ? $1 : undef;
}

# How often a command has been called.
sub calls {
    my ($self, $command) = @_;

    return $self->cli('INFO', 'commandstats') =~ /^cmdstat_\Q$command\E:calls=(\d+)/m ? $1 : 0;
}

# Until so many replicas know all that was written here. (WAIT is only about what its own connection
# has written.)
sub wait_for_replicas {
    my ($self, $count) = @_;

    SlidingLimit::Servers::wait_until {
        my $info = $self->cli('INFO', 'replication');
        my ($written) = $info =~ /^master_repl_offset:(\d+)/m;
        my $know = () = $info =~ /^slave\d+:.*offset=$written\b/mg;
        $know >= $count;
    } 30, 'replicas to know all';
}

sub stop { my ($self) = @_; $self->signal('TERM')->reap(10); return $self }
sub kill9 { my ($self) = @_; $self->signal('KILL')->reap(10); return $self }
sub pause { $_[0]->signal('STOP') }
sub resume { $_[0]->signal('CONT') }

package SlidingLimit::Servers::Nginx;

use strict;
use warnings;
our @ISA = ('SlidingLimit::Servers::Process');

sub port { $_[0]{port} }
sub dir { "$_[0]{dir}" }

sub configure {
    my ($self, $config, %with) = @_;
    my $dir = $self->dir;
    my $load = SlidingLimit::Servers::module();
    my %do = (workers => 1, user => 'root', main => '', slots => 1024, events => '', http => '', %with);

    $self->{workers} = $do{main} =~ /master_process off/ ? 0 : $do{workers};
    $load &&= "load_module $load;";
    open my $file, '>', "$dir/nginx.conf" or die $!;
    print $file $do{whole} // <<"END";
$load
daemon off;
user $do{user};
worker_processes $do{workers};
pid $dir/nginx.pid;
error_log $dir/logs/error.log info;
# for a new binary, too
env ASAN_OPTIONS; env LSAN_OPTIONS; env UBSAN_OPTIONS;
$do{main}
events { worker_connections $do{slots}; $do{events} }
http {
    access_log off;
    client_body_temp_path $dir/temp/body;
    proxy_temp_path $dir/temp/proxy;
    fastcgi_temp_path $dir/temp/fastcgi;
    uwsgi_temp_path $dir/temp/uwsgi;
    scgi_temp_path $dir/temp/scgi;
    $do{http}
    server {
        listen 127.0.0.1:$self->{port};
        server_name test;
        root $dir/html;
        $config
    }
}
END
    close $file;

    return $self;
}

sub start {
    my ($self) = @_;
    my $dir = $self->dir;

    $self->launch("$dir/logs/output", SlidingLimit::Servers::nginx_binary(),
        '-p', $dir, '-c', "$dir/nginx.conf", '-e', "$dir/logs/error.log");

    SlidingLimit::Servers::wait_until {
        waitpid($self->{pid}, POSIX::WNOHANG()) == 0
            or die "nginx does not start: " . $self->error_log . `cat $dir/logs/output`;
        IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}")
            && $self->workers >= $self->{workers}
    } 20, 'nginx';

    return $self;
}

sub error_log {
    my ($self) = @_;

    open my $file, '<', "$self->{dir}/logs/error.log" or return '';
    local $/;
    return <$file> // '';
}

# Lines that must never be there.
sub bad_lines {
    my ($self) = @_;

    return join "\n", grep { /\[(?:alert|emerg)\]|Sanitizer|runtime error|exited on signal/ }
        split /\n/, $self->error_log;
}

sub workers {
    my ($self) = @_;

    my @pids = map { /^(\d+)/ ? $1 : () } `pgrep -P $self->{pid}`;
    return @pids;
}

# (status, value of each of these headers or '') of a GET.
sub try {
    my ($self, $path, @names) = @_;

    my ($status, $headers) = SlidingLimit::Servers::get($self->{port}, $path);
    return ($status, map { $headers->{ lc $_ } // '' } @names);
}

sub reload { $_[0]->signal('HUP') }
sub stop { my ($self) = @_; $self->signal('TERM'); return $self->reap(10) }
sub quit { my ($self) = @_; $self->signal('QUIT'); return $self->reap(20) }

1;
