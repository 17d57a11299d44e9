<?php
// The page of 1,164 bytes.
header('Content-Type: text/html; charset=utf-8');
echo "<!DOCTYPE html><html lang=en>\n<title>Hello</title>\n<pre>\n";
for ($i = 0; $i < 100; $i++) {
    echo "1234567890\n";
}
echo "</pre>\n";
