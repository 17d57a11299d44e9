# The pages as a PSGI application.
use strict;
use warnings;

my $head = "<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n";
sub {
    my $env = shift;
    if ($env->{PATH_INFO} eq '/gateway') {
        my $page = join '', map { "$_: " . (defined $env->{$_} ? $env->{$_} : '(not set)') . "\n" }
            qw(GATEWAY_INTERFACE SERVER_SOFTWARE);
        return [200, ['Content-Type' => 'text/plain; charset=utf-8', 'Content-Length' => length $page], [$page]];
    }
    my $page = $head . ("1234567890\n" x 100) . "</pre>\n";
    return [200, ['Content-Type' => 'text/html; charset=utf-8', 'Content-Length' => length $page], [$page]];
};
