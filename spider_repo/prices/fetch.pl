# fetch.pl URL: print what an http address answers. Needs perl's base package only; three tries, 30 s each.
use strict;
use warnings;
use IO::Socket::INET;

my ($url) = @ARGV;
my ($host, $port, $path) = $url =~ m{^http://([^/:?#\s]+)(?::(\d+))?([/?][^#\s]*)?}
    or die "ERROR: $url is not an http address.\n";
$path = '/' unless defined $path;
$path = "/$path" if $path =~ /^\?/;
$port ||= 80;
my $site = $port == 80 ? $host : "$host:$port";

my $fault = '';
for my $try (1 .. 3) {
    sleep $try - 1;
    print STDERR "WARNING: $fault, trying again.\n" if $fault;
    my ($status, $body) = eval { fetch() };
    if ($@) { chomp($fault = $@); next }
    if ($status == 200) { binmode STDOUT; print $body; exit 0 }
    $fault = "$url answered $status";
    last unless $status == 429 || $status >= 500;
}
print STDERR "ERROR: $fault.\n";
exit 1;

sub fetch {
    local $SIG{ALRM} = sub { die "no answer within 30 s\n" };
    alarm 30;
    my $socket = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp', Timeout => 10)
        or die "$host:$port cannot be reached ($@)\n";
    print $socket "GET $path HTTP/1.0\r\nHost: $site\r\nUser-Agent: prices/1.0\r\nAccept: text/csv\r\n\r\n";
    local $/;
    my $answer = <$socket>;
    alarm 0;
    my ($head, $body) = split /\r?\n\r?\n/, $answer // '', 2;
    my ($status) = ($head // '') =~ m{^HTTP/1\.[01] (\d{3})} or die "$site does not speak HTTP\n";
    my ($size) = $head =~ /^Content-Length:\s*(\d+)/im;
    die "the answer was cut short\n" if defined $size && length($body // '') < $size;
    return ($status, $body // '');
}
