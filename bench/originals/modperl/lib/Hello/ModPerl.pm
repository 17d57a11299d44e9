# The same pages by a handler that is loaded once and is given the request; nothing is filled in, nothing is tied.
package Hello::ModPerl;
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
        $r->print("$_: ", defined $ENV{$_} ? $ENV{$_} : '(not set)', "\n") for qw(GATEWAY_INTERFACE MOD_PERL);
        return Apache2::Const::OK;
    }
    $r->content_type('text/html; charset=utf-8');
    if ($r->path_info eq '/heavy') {
        $r->print(Hello::Prices::page());
        return Apache2::Const::OK;
    }
    $r->print("<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n");
    $r->print("1234567890\n") for 1 .. 100;
    $r->print("</pre>\n");
    return Apache2::Const::OK;
}

1;
