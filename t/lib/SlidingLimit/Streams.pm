# An application whose answers take their time: each is sent in pieces, with pauses between them,
# and many at once. What it answers is asked for in the query:
#
#   my $streams = start_streams();
#   GET /any?pieces=4&pause=0.05&size=1000   so many pieces, of so many bytes each
#   POST /v1/chat/completions?tokens=350     as a language model would, with this usage; how,
#                                            depends on the path, and on &stream=1 (or array)
#   …&wait=0.5                               after so many seconds
#   …&status=500                             with another status, and then without a usage
#   …&usage=0                                without a usage
#
# Its header X-Seen shows what Accept-Encoding and Authorization it was asked with.

package SlidingLimit::Streams;

use strict;
use warnings;

use Exporter 'import';
use IO::Select ();
use IO::Socket::INET ();
use POSIX ();
use Time::HiRes qw(sleep);
use parent 'SlidingLimit::Child';

our @EXPORT_OK = qw(start_streams);

sub start_streams {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 256) or die $!;
    # with the test it ends, too
    pipe my $alive, my $held or die $!;

    return __PACKAGE__->start({ port => $listener->sockport, held => $held }, sub {
        close $held;
        serve($listener, $alive);
    });
}

# A process for each connection, which has one request.
sub serve {
    my ($listener, $alive) = @_;
    my $readable = IO::Select->new($listener, $alive);
    local $SIG{CHLD} = 'IGNORE';
    local $SIG{PIPE} = 'DEFAULT';

    while (1) {
        for my $from ($readable->can_read) {
            return if $from == $alive;
            my $client = $listener->accept or next;
            my $pid = fork // die "fork: $!";
            next if $pid;
            eval { answer($client) };
            close $client;
            POSIX::_exit(0);
        }
    }
}

sub answer {
    my ($client) = @_;
    my $request = '';
    sysread $client, $request, 65536, length $request or return until $request =~ /\r\n\r\n/;

    my ($path, $query) = $request =~ m{^\S+ ([^ ?]*)\??(\S*)} or return;
    my %asked = (status => 200, pieces => 1, pause => 0, wait => 0, usage => 1, map { split /=/, $_, 2 } split /&/, $query);
    my %header = $request =~ /^(Accept-Encoding|Authorization): (.*)\r$/mg;
    read_body($client, $request);

    sleep $asked{wait} if $asked{wait};

    my ($type, @pieces) = pieces($path, %asked);
    write_all($client, "HTTP/1.1 $asked{status} X\r\nConnection: close\r\nContent-Type: $type\r\n"
        . 'X-Seen: ' . join(', ', map { "$_=$header{$_}" } sort keys %header) . "\r\n\r\n");

    for my $piece (@pieces) {
        write_all($client, $piece);
        sleep $asked{pause} if $asked{pause};
    }
}

sub write_all {
    my ($client, $text) = @_;
    my $sent = 0;
    $sent += syswrite($client, $text, length($text) - $sent, $sent) || die "gone\n" while $sent < length $text;
}

# Or the client would be reset before it has read the answer.
sub read_body {
    my ($client, $request) = @_;
    my ($length) = $request =~ /^Content-Length: (\d+)\r$/mi;
    my $body = (split /\r\n\r\n/, $request, 2)[1];

    if ($length) {
        sysread $client, $body, 65536, length $body or return while length $body < $length;
    } elsif ($request =~ /^Transfer-Encoding: chunked\r$/mi) {
        sysread $client, $body, 65536, length $body or return until $body =~ /(?:^|\r\n)0\r\n\r\n$/;
    }
}

# The media type of an answer, and the pieces in which it is sent.
sub pieces {
    my ($path, %asked) = @_;

    return 'text/plain', map { 'x' x $asked{size} } 1 .. $asked{pieces} if $asked{size};
    return 'application/json', '{"error":"', 'something"}' if $asked{status} != 200;
    return in_halves(model($path, %asked)) if defined $asked{tokens};
    return 'text/plain', ('hello') x $asked{pieces};
}

# Each document falls apart on the way.
sub in_halves {
    my ($type, @documents) = @_;
    return $type, map { my $half = int(length($_) / 2); (substr($_, 0, $half), substr $_, $half) } @documents;
}

# What models say. Input is a tenth of all tokens.
sub model {
    my ($path, %asked) = @_;
    my ($all, $stream) = @asked{qw(tokens stream)};
    my $input = int $all / 10;
    my $output = $all - $input;
    my $knows = $asked{usage};

    if ($path =~ m{^/v1/messages}) {
        return 'application/json', qq({"content":[{"text":"hi"}],"usage":{"input_tokens":$input,"output_tokens":$output}}) unless $stream;
        return events(
            qq({"type":"message_start","message":{"usage":{"input_tokens":$input,"output_tokens":1}}}),
            (qq({"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}})) x $asked{pieces},
            qq({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":$output}}),
            '{"type":"message_stop"}');
    }
    if ($path =~ m{^/api/}) {
        return 'application/x-ndjson', (qq({"message":{"content":"hi"},"done":false}\n)) x $asked{pieces},
            qq({"done":true,"prompt_eval_count":$input,"eval_count":$output}\n);
    }
    if ($path =~ m{^/v1beta/}) {
        my $usage = sub { qq("usageMetadata":{"promptTokenCount":$input,"totalTokenCount":$_[0]}) };
        return 'application/json', qq({"candidates":[],${\ $usage->($all)}}) unless $stream;
        my @parts = ((map { qq({"candidates":[],${\ $usage->($input + $_)}}) } 1 .. $asked{pieces}), qq({${\ $usage->($all)}}));
        return events(@parts) unless $stream eq 'array';
        return 'application/json', "[$parts[0]", (map { "\n,\r\n$_" } @parts[1 .. $#parts]), ']';
    }
    if ($path =~ m{^/v1/responses}) {
        return events('{"type":"response.created","response":{"usage":null}}',
            ('{"type":"response.output_text.delta","delta":"hi"}') x $asked{pieces},
            qq({"type":"response.completed","response":{"usage":{"input_tokens":$input,"total_tokens":$all}}}));
    }

    my $usage = qq({"prompt_tokens":$input,"completion_tokens":$output,"total_tokens":$all});
    return 'application/json', $knows ? qq({"choices":[{"message":{"content":"hi"}}],"usage":$usage}) : '{"choices":[]}' unless $stream;
    return events(('{"choices":[{"delta":{"content":"hi"}}],"usage":null}') x $asked{pieces},
        $knows ? qq({"choices":[],"usage":$usage}) : (), '[DONE]');
}

sub events { return 'text/event-stream', map { "data: $_\n\n" } @_ }

1;
