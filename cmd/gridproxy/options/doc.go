// Package options is the command line of gridproxy and the KubeProxyConfiguration file of --config,
// as one value.
//
// Invariant: a flag has one name, one default and one parser. The file sets flags through the same
// parsers, and never a flag that is on the command line.
//
// Where to look:
//
//   - the fields and their defaults: options.go; of the DNS server on this node: dns.go
//   - the name and the help of each flag: flags.go; of those of kube-proxy without effect:
//     without_effect.go; --feature-gates: feature_gates.go
//   - the parsers: values.go; of the addresses of servers: bind.go
//   - the longest durations that a flag takes: limits.go
//   - which flags exclude each other: check.go; the modes, and what depends on the mode in use:
//     mode.go
//   - which field of the file of --config sets which flag: config_file.go; the fields that a file
//     sets: leaves.go
//
// Parsing is pure. Only ConfigText opens a file.
package options
