// Package options is the command line of gridproxy and the KubeProxyConfiguration file of --config,
// as one value.
//
// Invariant: a flag has one name, one default and one parser. The file sets flags through the same
// parsers, and never a flag that is on the command line.
//
//	options.go        the fields and their defaults
//	flags.go          the name and the help of each flag
//	values.go         the parsers; bind.go: of the addresses of servers
//	check.go          which flags exclude each other
//	mode.go           the modes, and what depends on the mode in use
//	config_file.go    which field of the file sets which flag
//	leaves.go         the fields that a file sets
//	feature_gates.go  --feature-gates
//	without_effect.go flags of kube-proxy that are accepted without effect
//
// Parsing is pure. Only ReadConfig opens a file.
package options
