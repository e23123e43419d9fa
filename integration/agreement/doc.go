// Package agreement holds gridproxy against the real kube-proxy, its two modes against each
// other, and its idea of what a packet meets against a real kernel.
//
// A Cluster is drawn from a seed. One way it goes through gridproxy: Resolve, Compile, Render. The
// other way a separate, naive implementation of closure (Prune) takes the endpoints of other units
// out of the EndpointSlices, and kube-proxy's own iptables Proxier, in a network namespace that has
// the node's addresses, writes the rules for what is left. Packets from everywhere to every
// frontend are walked through both texts, and must meet the same endpoints with the same
// probability, the same masquerade, the same verdict; and the two texts must be the same rules,
// except for counters. The one exception, on purpose, is refusedOutput.
//
// IPVS mode is held against iptables mode: the same packets are walked through the chains
// of the one and through the virtual servers, sets and chains of the other, and must meet
// the same set of endpoints. Where the modes differ on purpose, a deviation says when, and
// what must become of the packet then. The tests named TestKernel put packets before a real
// kernel in IPVS mode, which must do with each what the walk says; integration/env/vm boots
// one:
//
//	go build -o vmexec ../vmexec
//	go test -count=1 -exec "$PWD/vmexec -kernel 6.1" -run TestKernel .
//
// TestKubeProxyUnitTests runs kube-proxy's unit tests on gridproxy's code: overlay_test.go says in
// which functions, testdata/unittests/exceptions.yaml which cases differ.
//
// TestNamesAgree compares the names of the cluster domain: CoreDNS' own kubernetes plugin, which is
// given the objects of a random cluster, with grid-dns' plugin, which is given what they say.
//
// Invariant: Prune shares no code with package topology, and the deviations none with
// package rules/ipvs. A mistake would have to be made twice to stay unseen.
//
// The module is nested because k8s.io/kubernetes must not enter gridproxy's own go.mod.
package agreement
