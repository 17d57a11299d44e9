#!/usr/bin/perl
# The heavy page as a script.
use strict;
use warnings;
use Hello::Prices ();

print "Content-Type: text/html; charset=utf-8\r\n\r\n", Hello::Prices::page();
