// Package takeover proves docs/migrate-from-kube-proxy.md: its commands, taken from the document, are run one heading after
// the other on machines where a real kube-proxy serves, of both variants of iptables, and after each step it is asked who
// answers and what the kernel holds.
//
// Not pure: a cluster of machines.
package takeover
