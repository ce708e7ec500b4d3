# A Redis Cluster for tests: each node a server of its own, on ports of its own.
#
#   my $cluster = start_cluster(primaries => 3, replicas => 1, args => [...]);
#
# with so many replicas for each primary. Its nodes are those of
# SlidingLimit::Servers, and it has
#   nodes, url(@nodes)        all of them, and what to configure; of some
#   owner($key)               who counts it now
#   primaries                 who has slots now
#   keys_of($node, $n, $name) so many keys that it has, named after `name`
#   replica_of($node)
#   count($zone, $key)        what is in the set; members() what exactly
#   calls($command)           of all nodes together
#   manage(@arguments)        redis-cli --cluster; dies if it does not succeed
#   add, remove($node)        a node that has no slots
#   reshard($n, $from, $to)   so many slots, as redis-cli does it
#   watch_closely             from now on a node that is away is soon missed by the others
#   begin_move, move_key, end_move   of a slot, by hand
#
# With scattered => 1 there are no replicas, and no slot is next to another one
# of the same node.

package SlidingLimit::Cluster;

use strict;
use warnings;

use Exporter 'import';
use SlidingLimit::Servers qw(free_port start_redis wait_until);

our @EXPORT_OK = qw(start_cluster start_cluster_node slot);

use constant SLOTS => 16384;

# Milliseconds after which nodes miss each other: on a busy machine none is to be taken
# for dead that is only slow, unless a test has some that are.
use constant { PATIENT => 60_000, WATCHFUL => 3000 };

# A node that is alone so far. bind => '::1' and port => N if that is where it is to be.
sub start_cluster_node {
    my (%with) = @_;
    my $host = $with{bind} || '127.0.0.1';

    return start_redis(port => $with{port}, cli_args => ['-h', $host], args => ['--bind', $host, '--cluster-enabled', 'yes',
        '--cluster-node-timeout', PATIENT, '--cluster-config-file', 'nodes.conf',
        '--cluster-port', free_port(), @{ $with{args} || [] }]);
}

sub start_cluster {
    my (%with) = @_;
    my $primaries = $with{primaries} || 3;
    my $replicas = $with{replicas} || 0;
    my $self = bless { args => $with{args} || [] }, __PACKAGE__;

    $self->{nodes} = [map { start_cluster_node(args => $self->{args}) } 1 .. $primaries * (1 + $replicas)];

    if ($with{scattered}) {
        $self->scatter;
    }
    else {
        $self->manage('create', map({ address($_) } $self->nodes), '--cluster-replicas', $replicas);
    }
    $self->settle;

    return $self;
}

# What "create" does, but for who gets what.
sub scatter {
    my ($self) = @_;
    my @nodes = $self->nodes;

    for my $i (0 .. $#nodes) {
        $nodes[$i]->cli('CLUSTER', 'SET-CONFIG-EPOCH', $i + 1);
        $nodes[$i]->cli('CLUSTER', 'ADDSLOTS', grep { $_ % @nodes == $i } 0 .. SLOTS - 1);
        $nodes[0]->cli('CLUSTER', 'MEET', '127.0.0.1', $nodes[$i]->port, bus_port($nodes[$i])) if $i;
    }
}

# Until all nodes agree, and replicas have what they need to take over.
sub settle {
    my ($self) = @_;
    my @nodes = $self->alive;

    wait_until {
        my %views;
        $views{ join ' ', sort map { join ',', $_->[0], map { @$_ } @$_[4 .. $#$_] } map_of($_) }++ for @nodes;

        keys %views == 1 && !grep {
            my $info = $_->cli('CLUSTER', 'INFO');
            $info !~ /cluster_state:ok/ || $info !~ /cluster_slots_ok:16384/
                || ($_->info('replication', 'role') eq 'slave'
                    && $_->info('replication', 'master_link_status') ne 'up')
        } @nodes
    } 60, 'the nodes to agree';
}

sub address { '127.0.0.1:' . $_[0]->port }
sub bus_port { my ($node) = @_; return $node->cli('CONFIG', 'GET', 'cluster-port') =~ /(\d+)$/ ? $1 : die }
sub id { my ($node) = @_; return $node->{id} //= $node->cli('CLUSTER', 'MYID') }

sub nodes { @{ $_[0]{nodes} } }
sub alive { grep { $_->{pid} } $_[0]->nodes }

sub url {
    my ($self, @nodes) = @_;

    return 'cluster://' . join ',', map { address($_) } @nodes ? @nodes : $self->nodes;
}

sub manage {
    my ($self, $command, @arguments) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec 'redis-cli', '--cluster', $command, @arguments, '--cluster-yes';
    }
    my $said = do { local $/; <$out> } // '';
    close $out;
    die "redis-cli --cluster $command: $said" if $?;

    return $said;
}

# CRC-16/XMODEM of what stands in braces, or of all of it.
sub slot {
    my ($key) = @_;
    my $hashed = $key =~ /\{([^}]+)\}/ ? $1 : $key;
    my $crc = 0;

    for my $byte (unpack 'C*', $hashed) {
        $crc ^= $byte << 8;
        $crc = ($crc & 0x8000 ? $crc << 1 ^ 0x1021 : $crc << 1) & 0xffff for 1 .. 8;
    }

    return $crc % SLOTS;
}

# [id, port, flags, primary's id, [first, last]...] of every node, as this one sees it.
sub map_of {
    my ($node) = @_;

    return map {
        my ($id, $where, $flags, $primary, undef, undef, undef, undef, @slots) = split;
        [$id, $where =~ /:(\d+)@/, $flags, $primary, map { /^(\d+)(?:-(\d+))?$/ ? [$1, $2 // $1] : () } @slots]
    } split /\n/, $node->cli('CLUSTER', 'NODES');
}

sub whole_map { map_of(($_[0]->alive)[0]) }

sub node_at { my ($self, $port) = @_; return grep { $_->port == $port } $self->nodes }

# The ports of who has each slot.
sub owners {
    my ($self) = @_;
    my @ports;

    for ($self->whole_map) {
        my (undef, $port, undef, undef, @ranges) = @$_;
        @ports[$_->[0] .. $_->[1]] = ($port) x ($_->[1] - $_->[0] + 1) for @ranges;
    }

    return @ports;
}

sub owner {
    my ($self, $key) = @_;
    my ($node) = $self->node_at(($self->owners)[slot($key)] // 0) or die "nobody has $key";

    return $node;
}

# Keys in its first `slots` slots, if that is given.
sub keys_of {
    my ($self, $node, $count, $name, $slots) = @_;
    my @ports = $self->owners;
    my @its_own = grep { $ports[$_] == $node->port } 0 .. $#ports;
    my %wanted = map { $_ => 1 } @its_own[0 .. ($slots || @its_own) - 1];
    my @keys;

    for (my $i = 1; @keys < $count; $i++) {
        push @keys, "$name$i" if $wanted{ slot("$name$i") };
    }

    return @keys;
}

sub primaries {
    my ($self) = @_;

    return map { @$_ > 4 ? $self->node_at($_->[1]) : () } $self->whole_map;
}

sub replica_of {
    my ($self, $node) = @_;

    return map { $_->[3] eq id($node) ? $self->node_at($_->[1]) : () } $self->whole_map;
}

sub set_of { my ($zone, $key) = @_; return "rate_limit:$zone:{$key}" }

sub count {
    my ($self, $zone, $key) = @_;

    return $self->owner($key)->cli('ZCARD', set_of($zone, $key));
}

sub members {
    my ($self, $zone, $key) = @_;

    return split /\n/, $self->owner($key)->cli('ZRANGE', set_of($zone, $key), 0, -1);
}

sub calls {
    my ($self, $command) = @_;
    my $calls = 0;

    $calls += $_->calls($command) for $self->alive;

    return $calls;
}

sub add {
    my ($self) = @_;
    my ($any) = $self->alive;
    my $node = start_cluster_node(args => $self->{args});

    $self->manage('add-node', address($node), address($any));
    push @{ $self->{nodes} }, $node;
    $self->settle;

    return $node;
}

# It goes on running, and knows nobody any more.
sub remove {
    my ($self, $node) = @_;

    $self->{nodes} = [grep { $_ != $node } $self->nodes];
    my ($any) = $self->alive;
    $self->manage('del-node', address($any), id($node));
    $self->settle;
}

sub reshard {
    my ($self, $slots, $from, $to) = @_;

    $self->manage('reshard', address($to), '--cluster-from', id($from), '--cluster-to', id($to),
        '--cluster-slots', $slots);
    $self->settle;
}

sub watch_closely {
    my ($self) = @_;

    $_->cli('CONFIG', 'SET', 'cluster-node-timeout', WATCHFUL) for $self->alive;
}

# By hand. In between, keys can be moved with move_key(): of those that are still
# there the old node takes calls, of the others (ASK) the new one.
sub begin_move {
    my ($self, $slot, $from, $to) = @_;

    $to->cli('CLUSTER', 'SETSLOT', $slot, 'IMPORTING', id($from));
    $from->cli('CLUSTER', 'SETSLOT', $slot, 'MIGRATING', id($to));

    return { slot => $slot, from => $from, to => $to };
}

sub move_key {
    my ($self, $move, $key) = @_;

    return $move->{from}->cli('MIGRATE', '127.0.0.1', $move->{to}->port, $key, 0, 5000);
}

sub end_move {
    my ($self, $move) = @_;
    my ($slot, $from, $to) = @$move{qw(slot from to)};

    # whoever comes for a key that has never been there makes it on the other side
    while (my @keys = split /\n/, $from->cli('CLUSTER', 'GETKEYSINSLOT', $slot, 100)) {
        $self->move_key($move, $_) for @keys;
    }
    $_->cli('CLUSTER', 'SETSLOT', $slot, 'NODE', id($to)) for $to, $from;
}

1;
