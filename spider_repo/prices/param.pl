# param.pl NAME: print one plain parameter of CLAW_PARAMS (text or number; nothing when it is not there).
use strict;
use warnings;

my ($name) = @ARGV;
my $text = $ENV{CLAW_PARAMS} // '{}';
my $string = qr/"((?:[^"\\]|\\.)*)"/;
while ($text =~ /\G.*?$string\s*:\s*(?:$string|([-+0-9.eE]+))?/gcs) {
    next unless $1 eq $name;
    my $value = defined $2 ? $2 : $3 // '';
    my %plain = (n => "\n", t => "\t", r => "\r", b => "\b", f => "\f");
    $value =~ s/\\(?:u([0-9a-fA-F]{4})|(.))/defined $1 ? chr hex $1 : $plain{$2} \/\/ $2/ge;
    binmode STDOUT, ':utf8' if $value =~ /[^\x00-\xff]/;
    print $value;
    last;
}
