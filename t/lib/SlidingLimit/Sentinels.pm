# A primary, its replicas and the Sentinels that watch over them, all real; and a
# Sentinel that says what a test wants it to say.
#
#   my $set = start_sentinels(name => 'mymaster', ...);
#
#   sentinels   how many Sentinels (3); all but one of them must agree
#   replicas    how many replicas (2)
#   down_after  milliseconds until a Sentinel takes the primary for dead (1000)
#   conf        more lines for the Sentinels, with NAME for the primary's name
#   host        what primary and replicas are called (127.0.0.1); if that is a name,
#               Sentinels pass it on as it is
#   redis_args  more arguments for primary and replicas
#   cli_args    what redis-cli needs to log in to a Sentinel
#
# is an object with
#   url         what sliding_limit_redis is given
#   sentinels   the Sentinels, which have cli, kill9, ... like any Redis
#   named($i)   the port that Sentinel $i names
#   primary     the server that the first Sentinel names
#   replicas    the others
#   fail_over   has the Sentinels choose another primary, which it returns
#
#   my $fake = start_fake_sentinel($reply);   see named_reply
#   $fake->says($reply);                      from now on
#
#   auth => $reply   what it says to AUTH (+OK)
#
# An empty reply closes the connection; undef is silence.

package SlidingLimit::Sentinels;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();
use SlidingLimit::FakeRedis qw(read_command start_fake_redis);
use SlidingLimit::Servers qw(free_port start_redis wait_until);

our @EXPORT_OK = qw(named_reply start_fake_sentinel start_sentinels);

# Sentinels take their time, and more of it on a busy machine.
use constant PATIENCE => 120;

sub start_sentinels {
    my (%with) = @_;
    my $self = bless { name => $with{name} || 'mymaster' }, __PACKAGE__;
    my $count = $with{sentinels} || 3;
    my $replicas = $with{replicas} // 2;
    my $down_after = $with{down_after} || 1000;
    my $host = $with{host} || '127.0.0.1';
    my @args = ('--repl-diskless-sync-delay', 0, '--replica-announce-ip', $host, @{ $with{redis_args} || [] });

    my $primary = start_redis(args => \@args);
    my $port = $primary->port;
    $self->{servers} = [$primary,
        map { start_redis(args => [@args, '--replicaof', $host, $port]) } 1 .. $replicas];

    # Sentinels look for replicas only now and then
    wait_until { $primary->info('replication', 'connected_slaves') == $replicas } PATIENCE, 'replicas';

    my $quorum = $count > 1 ? $count - 1 : 1;
    my $names = $host =~ /^[\d.]{7,}$/ ? 'no' : 'yes';
    my $conf = join "\n",
        "sentinel resolve-hostnames $names",
        "sentinel announce-hostnames $names",
        "sentinel monitor NAME $host $port $quorum",
        "sentinel down-after-milliseconds NAME $down_after",
        'sentinel failover-timeout NAME 5000',
        'sentinel parallel-syncs NAME 2',
        $with{conf} || '';
    $conf =~ s/NAME/$self->{name}/g;

    $self->{sentinels} = [map {
        SlidingLimit::Sentinels::Process::start_one($conf, $with{cli_args} || [])
    } 1 .. $count];

    my $others = $count - 1;
    for my $sentinel ($self->sentinels) {
        wait_until {
            my $state = $sentinel->cli('SENTINEL', 'MASTER', $self->{name});
            $state =~ /^num-slaves\n$replicas$/m && $state =~ /^num-other-sentinels\n$others$/m
        } PATIENCE, 'the Sentinels to know each other';
    }

    return $self;
}

sub sentinels { @{ $_[0]{sentinels} } }

sub url {
    my ($self) = @_;
    my $addresses = join ',', map { '127.0.0.1:' . $_->port } $self->sentinels;
    return "sentinel://$addresses/$self->{name}";
}

sub named {
    my ($self, $i) = @_;
    my $reply = $self->{sentinels}[$i]->cli('SENTINEL', 'get-master-addr-by-name', $self->{name});
    return $reply =~ /^\S+\n(\d+)$/ ? $1 : 0;
}

sub primary {
    my ($self) = @_;
    my $port = $self->named(0);
    my ($primary) = grep { $_->port == $port } @{ $self->{servers} };
    return $primary || die 'the Sentinel names none of the servers';
}

sub replicas {
    my ($self) = @_;
    my $primary = $self->primary;
    return grep { $_ != $primary } @{ $self->{servers} };
}

sub fail_over {
    my ($self) = @_;
    my $before = $self->primary;

    # not before it knows a replica well enough
    wait_until { $self->{sentinels}[0]->cli('SENTINEL', 'FAILOVER', $self->{name}) =~ /^OK/ }
        PATIENCE, 'the Sentinel to accept it';
    wait_until { $self->primary != $before } PATIENCE, 'another primary';

    return $self->primary;
}

# What a Sentinel says if this is where the primary is.
sub named_reply {
    my ($host, $port) = @_;
    return join '', "*2\r\n", map { '$' . length($_) . "\r\n$_\r\n" } $host, $port;
}

sub start_fake_sentinel {
    my ($reply, %with) = @_;
    my $dir = File::Temp->newdir();
    my $self = bless { dir => $dir }, 'SlidingLimit::Sentinels::Fake';

    $self->says($reply);
    $self->{server} = start_fake_redis(undef, on_connect => sub {
        my ($socket) = @_;

        while (my ($command) = read_command($socket)) {
            my $text = $command eq 'AUTH' ? $with{auth} // "+OK\r\n" : said("$dir");
            sleep 600 unless defined $text;
            last if $text eq '';
            print $socket $text;
        }
    });

    return $self;
}

sub said {
    my ($dir) = @_;
    open my $file, '<:raw', "$dir/reply" or return;
    local $/;
    return <$file> // '';
}

package SlidingLimit::Sentinels::Fake;

use strict;
use warnings;

sub port { $_[0]{server}->port }

# At once: it may be asked meanwhile.
sub says {
    my ($self, $reply) = @_;
    my $name = "$self->{dir}/reply";

    if (!defined $reply) {
        unlink $name;
        return $self;
    }

    open my $file, '>:raw', "$name.new" or die $!;
    print $file $reply;
    close $file or die $!;
    rename "$name.new", $name or die $!;

    return $self;
}

package SlidingLimit::Sentinels::Process;

use strict;
use warnings;
our @ISA = ('SlidingLimit::Servers::Redis');

sub start_one {
    my ($conf, $cli_args) = @_;
    my $self = bless {
        port => SlidingLimit::Servers::free_port(),
        cli_args => $cli_args,
        dir => File::Temp->newdir(),
        owner => $$,
    }, __PACKAGE__;

    # it keeps what it finds out there
    open my $file, '>', "$self->{dir}/sentinel.conf" or die $!;
    print $file "port $self->{port}\nbind 127.0.0.1\ndir $self->{dir}\n$conf\n";
    close $file or die $!;

    return $self->start;
}

sub start {
    my ($self) = @_;

    $self->launch("$self->{dir}/log", 'redis-server', "$self->{dir}/sentinel.conf", '--sentinel');
    SlidingLimit::Servers::wait_until { $self->cli('PING') =~ /PONG|NOAUTH/ } 20, 'a Sentinel';

    return $self;
}

1;
