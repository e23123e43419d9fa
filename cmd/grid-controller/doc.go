// Command grid-controller expands the Grids of superedge.io/v1 into one workload in every NodeUnit and one Service.
//
// This package is flags, wiring and printing: it decides nothing about children.
//
// Invariant: exit code 0 is done, 1 is wrong input or a failure, 2 is a wrong command line; an answer goes to standard
// output whole or not at all; every warning is one line of standard error.
package main
