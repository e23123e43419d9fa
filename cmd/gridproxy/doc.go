// Command gridproxy keeps the traffic of Services inside this node's NodeUnit.
//
// This package is flags, wiring and printing: it decides nothing about traffic. What it
// prints and the codes it exits with are tested as scripts in testdata/script.
//
// Invariant: exit code 0 is done, 1 is wrong input or a failure, 2 is a wrong command line; but
// diff has the codes of diff(1), where 1 is a difference and 2 is a failure too. An answer goes to
// standard output whole or not at all; every warning is one line of standard error.
package main
