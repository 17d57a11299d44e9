#!/usr/bin/perl
# Every variable, sorted, as a definition list: the CGI library imported wholesale.
use strict;
use warnings;
use CGI qw(:all);

print header(-type => 'text/html', -charset => 'utf-8'), start_html('Environment');
print dl(map { dt(escapeHTML($_)) . dd(escapeHTML($ENV{$_})) . "\n" } sort keys %ENV);
print end_html();
