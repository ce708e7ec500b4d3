# The pages of the documentation, for tests of what they say: their blocks of code, their
# sections and links, and their configurations as whole ones that nginx can load.

package SlidingLimit::Pages;

use strict;
use warnings;

use Exporter 'import';
use File::Basename qw(dirname);
use File::Temp ();
use SlidingLimit::Servers qw(module nginx_binary);

our @EXPORT_OK = qw(pages contents section blocks whole_configuration refusal_of broken_links);

# Every page that people read, by its path.
sub pages { return sort(glob('*.md'), glob('docs/*.md')) }

sub contents { my ($path) = @_; open my $file, '<:utf8', $path or die "$path: $!"; local $/; return <$file> }

# What stands below a heading of a page, up to the next one of its level or above.
sub section {
    my ($path, $heading) = @_;
    my ($marks, $text) = contents($path) =~ /^(#+) \Q$heading\E\n(.*)/ms or return;
    my $level = length $marks;

    # a comment in a block of code is no heading
    $text =~ s/^```.*?^```$/$& =~ s{^#}{\0}mgr/mesg;
    $text =~ s/^#{1,$level} .*//ms;
    return $text =~ tr/\0/#/r;
}

# The blocks of code of a text that have this language: ```nginx
sub blocks {
    my ($text, $language) = @_;
    return $text =~ /^[ ]*```$language\n(.*?)^[ ]*```$/msg;
}

# ---- Configurations

# Directives that stand at one level alone. Others go where there is a place for them.
my %LEVEL = (
    (map { $_ => 'main' } qw(env events http load_module stream user worker_processes)),
    (map { $_ => 'http' } qw(geo limit_conn_zone limit_req_zone log_format map otel_exporter
        proxy_cache_path server sliding_limit_memory sliding_limit_redis split_clients upstream)),
    (map { $_ => 'server' } qw(listen location server_name)),
    (map { $_ => 'location' } qw(grpc_pass limit_except proxy_pass sliding_limit_metrics try_files)),
);

# A configuration's directives of the outermost level, each with its block.
sub statements {
    my ($text) = @_;
    my @statements;
    my $word = qr/(?: "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | \\. | \$\{\w+\} | [^\s;{}"'\\] )+/xs;
    my $space = qr/(?: \s | \#[^\n]* )+/x;
    my $block;
    $block = qr/ \{ (?: $space | $word | ; | (??{ $block }) )* \} /x;

    $text =~ /\G$space/gc;
    while ($text =~ /\G( (?:$word $space?)+ (?: ; | $block ) )/gcx) {
        push @statements, $1;
        $text =~ /\G$space/gc;
    }
    die 'no configuration: ' . substr $text, pos($text) // 0, 60 if (pos($text) // 0) < length $text;

    return @statements;
}

# An example as a whole configuration: each directive at the level where it may stand.
sub whole_configuration {
    my ($example) = @_;
    my %at = map { $_ => '' } qw(main http server location);

    my @statements = statements($example);
    my %name = map { $_ => (/^(\w+)/)[0] } @statements;
    my %needed = map { $LEVEL{ $name{$_} } // '' => 1 } @statements;
    my $others = $needed{location} ? 'location' : $needed{server} ? 'server' : 'http';
    $at{ $LEVEL{ $name{$_} } // $others } .= "$_\n" for @statements;

    return $at{main} if $needed{main} && $at{main} =~ /^http\b/m;
    my $location = $at{location} ? "location / {\n$at{location}}\n" : '';
    my $server = $at{server} || $location ? "server {\n$at{server}$location}\n" : '';
    my $events = $at{main} =~ /^events\b/m ? '' : "events {}\n";
    return "$at{main}${events}http {\n$at{http}$server}\n";
}

# What nginx -t says against a whole configuration; '' if it accepts it, and our module has no
# doubts. `instead`: what this machine has instead of files and hosts that are named there.
sub refusal_of {
    my ($configuration, %instead) = @_;
    my $dir = File::Temp->newdir;
    mkdir "$dir/$_" for qw(logs tmp);
    %instead = (%instead, '/var/log/nginx/' => "$dir/logs/", '/var/cache/nginx/' => "$dir/tmp/", '/tmp/' => "$dir/tmp/");
    my $named = join '|', map { quotemeta } sort { length $b <=> length $a } keys %instead;

    # the one that was built, instead of the one that would be installed
    $configuration =~ s/^load_module \S*ngx_http_sliding_limit_module.so;//m;
    $configuration =~ s/($named)/$instead{$1}/g;
    my $own = module() ? 'load_module ' . module() . ';' : '';
    $own .= " pid $dir/nginx.pid;" unless $configuration =~ /^\s*pid /m;

    open my $conf, '>:utf8', "$dir/nginx.conf" or die $!;
    print $conf "$own\n$configuration";
    close $conf;

    my $said = `'@{[nginx_binary()]}' -t -p $dir -c $dir/nginx.conf -e $dir/logs/error.log 2>&1`;
    return $said || 'something' if $?;
    return join "\n", $said =~ /^(.*\[warn\] sliding_limit: .*)$/mg;
}

# ---- Links

# A page without what is in blocks and marks of code.
sub prose {
    my ($text) = @_;
    return $text =~ s/^[ ]*```.*?^[ ]*```$//msgr =~ s/`[^`\n]*`//gr;
}

# The anchors that GitHub and others make of a page's headings.
sub anchors {
    my ($path) = @_;
    my $text = contents($path) =~ s/^[ ]*```.*?^[ ]*```$//msgr;
    my (%anchors, %times);

    for my $heading ($text =~ /^#+ (.*)$/mg) {
        my $anchor = lc $heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/gr;
        $anchor =~ s/[^\w\- ]//g;
        $anchor =~ tr/ /-/;
        my $number = $times{$anchor}++;
        $anchors{ $number ? "$anchor-$number" : $anchor } = 1;
    }
    $anchors{$_} = 1 for $text =~ /<a (?:id|name)="([^"]+)">/g;

    return \%anchors;
}

# The links of a page, within the project, that lead nowhere.
sub broken_links {
    my ($path) = @_;
    my @targets = (prose(contents($path)) =~ /\]\(([^)\s]+)\)/g, contents($path) =~ /\b(?:href|src)="([^"]+)"/g);
    return grep { !resolves($path, $_) } grep { !/^(?:https?|mailto):/ } @targets;
}

# Is there what a page means by this link?
sub resolves {
    my ($path, $target) = @_;
    my ($file, $anchor) = split /#/, $target, 2;
    my $dir = dirname($path);

    $file = $file eq '' ? $path : "$dir/$file";
    return -e $file && (!defined $anchor || $file =~ /\.md$/ && anchors($file)->{$anchor});
}

1;
