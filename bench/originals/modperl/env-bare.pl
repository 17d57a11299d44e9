#!/usr/bin/perl
# Every variable, sorted, as a definition list: bare prints.
use strict;
use warnings;

sub escape {
    my $text = shift;
    my %names = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#x27;');
    $text =~ s/([&<>"'])/$names{$1}/g;
    return $text;
}

print "Content-Type: text/html; charset=utf-8\r\n\r\n";
print "<!DOCTYPE html><html lang=en>\n<title>Environment</title>\n<dl>\n";
print '<dt>', escape($_), '</dt><dd>', escape($ENV{$_}), "</dd>\n" for sort keys %ENV;
print "</dl>\n";
