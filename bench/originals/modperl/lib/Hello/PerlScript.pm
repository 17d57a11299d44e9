# The same pages by a handler that is loaded once; the environment is filled in, and print is tied to the request.
package Hello::PerlScript;
use strict;
use warnings;
use Apache2::RequestRec ();
use Apache2::RequestIO ();
use Apache2::Const -compile => 'OK';
use Hello::Prices ();

sub handler {
    my $r = shift;
    if ($r->path_info eq '/gateway') {
        $r->content_type('text/plain; charset=utf-8');
        print "$_: ", defined $ENV{$_} ? $ENV{$_} : '(not set)', "\n" for qw(GATEWAY_INTERFACE MOD_PERL);
        return Apache2::Const::OK;
    }
    $r->content_type('text/html; charset=utf-8');
    if ($r->path_info eq '/heavy') {
        print Hello::Prices::page();
        return Apache2::Const::OK;
    }
    print "<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n";
    print "1234567890\n" for 1 .. 100;
    print "</pre>\n";
    return Apache2::Const::OK;
}

1;
