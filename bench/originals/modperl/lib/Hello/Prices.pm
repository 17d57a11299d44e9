# The heavy page: a price list of a thousand rows that is made, sorted and added up each time.
package Hello::Prices;
use strict;
use warnings;

my $ROWS = 1000;

sub escape {
    my $text = shift;
    $text =~ s/&/&amp;/g;
    $text =~ s/</&lt;/g;
    $text =~ s/>/&gt;/g;
    return $text;
}

sub show {
    my $cents = shift;
    return sprintf '%d.%02d', int($cents / 100), $cents % 100;
}

sub page {
    my @products = map { [$_ * 7919 % 10000, sprintf('P%04d', $_), "<Product> & $_"] } 1 .. $ROWS;
    my $rows = '';
    for (sort { $a->[0] <=> $b->[0] || $a->[1] cmp $b->[1] } @products) {
        $rows .= "<tr><td>$_->[1]</td><td>" . escape($_->[2]) . '</td><td>' . show($_->[0]) . "</td></tr>\n";
    }
    my $sum = 0;
    $sum += $_->[0] for @products;
    return "<!DOCTYPE html><html lang=en>\n<title>Prices</title>\n<table>\n$rows</table>\n<p>" . show($sum) . "\n";
}

1;
