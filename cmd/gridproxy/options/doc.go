// Package options is the command line of gridproxy and the KubeProxyConfiguration file
// behind --config, as one value.
//
// Invariant: a flag has one name, one default and one parser; the file sets flags through
// these same parsers, and never one that stands on the command line.
//
// Parsing is pure; only ReadConfig opens a file.
package options
