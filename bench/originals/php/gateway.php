<?php
// The page of the first round: a variable of the environment, and how PHP is run.
header('Content-Type: text/plain; charset=utf-8');
echo 'GATEWAY_INTERFACE: ', $_SERVER['GATEWAY_INTERFACE'] ?? '(not set)', "\n";
echo 'PHP_SAPI: ', PHP_SAPI, "\n";
