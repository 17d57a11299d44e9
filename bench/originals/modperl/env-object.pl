#!/usr/bin/perl
# Every variable, sorted, as a definition list: the CGI library's object interface.
use strict;
use warnings;
use CGI;

my $q = CGI->new;
print $q->header(-type => 'text/html', -charset => 'utf-8'), $q->start_html('Environment');
print $q->dl(map { $q->dt($q->escapeHTML($_)) . $q->dd($q->escapeHTML($ENV{$_})) . "\n" } sort keys %ENV);
print $q->end_html();
