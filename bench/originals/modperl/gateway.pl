#!/usr/bin/perl
# The page of the first round: two variables of the environment.
use strict;
use warnings;

print "Content-Type: text/plain; charset=utf-8\r\n\r\n";
print "$_: ", defined $ENV{$_} ? $ENV{$_} : '(not set)', "\n" for qw(GATEWAY_INTERFACE MOD_PERL);
