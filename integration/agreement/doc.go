// Package agreement holds gridproxy against the real kube-proxy.
//
// A Cluster is drawn from a seed. One way it goes through gridproxy: Resolve, Compile,
// Render. The other way a separate, naive implementation of closure (Prune) takes the
// endpoints of other units out of the EndpointSlices, and kube-proxy's own iptables
// Proxier, in a network namespace that has the node's addresses, writes the rules for
// what is left. Packets from everywhere to every frontend are walked through both texts,
// and must meet the same endpoints with the same probability, the same masquerade, the
// same verdict; and the two texts must be the same rules but for counters.
//
// Invariant: Prune shares no code with package topology. A mistake would have to be made
// twice to stay unseen.
//
// The module is nested because k8s.io/kubernetes must not enter gridproxy's own go.mod.
package agreement
