#!/usr/bin/perl
# The pages as a FastCGI application.
use strict;
use warnings;
use FCGI;

my $request = FCGI::Request();
while ($request->Accept() >= 0) {
    if ($ENV{REQUEST_URI} eq '/gateway') {
        print "Content-Type: text/plain; charset=utf-8\r\n\r\n";
        print "$_: ", defined $ENV{$_} ? $ENV{$_} : '(not set)', "\n" for qw(GATEWAY_INTERFACE MOD_PERL);
        next;
    }
    print "Content-Type: text/html; charset=utf-8\r\n\r\n";
    print "<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n";
    print "1234567890\n" for 1 .. 100;
    print "</pre>\n";
}
