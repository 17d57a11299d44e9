#!/usr/bin/perl
# The page of 1,164 bytes, with bare prints.
use strict;
use warnings;

print "Content-Type: text/html; charset=utf-8\r\n\r\n";
print "<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n";
print "1234567890\n" for 1 .. 100;
print "</pre>\n";
