// Package clusterzone is the plugin of CoreDNS that answers for the cluster domain and for the
// reverse zones from a names.Zone.
//
// It answers as the kubernetes plugin of CoreDNS does that `pods insecure` and `fallthrough
// in-addr.arpa ip6.arpa` configure, the default of kubeadm. Both let the same code of CoreDNS make
// the records. What differs on purpose is listed, with reasons, in
// integration/agreement/dns_deviations_test.go.
//
// Invariant: one Zone answers a whole query, aliases of aliases too. Nothing that a client sends
// makes the plugin panic.
//
// Not pure: the Zone is replaced while queries are answered.
package clusterzone
