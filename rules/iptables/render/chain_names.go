package render

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// serviceHash returns the hash in the chain names of a Service port. As in kube-proxy, it covers
// the printed name, the lower-case protocol and, for an endpoint's chain, the address.
func serviceHash(name topology.ServicePortName, endpoint string) string {
	var buffer [256]byte // nearly all names fit, so that hashing allocates nothing
	input := append(buffer[:0], name.String()...)
	input = append(input, netfilter.Proto(name.IPProtocol()).String()...)
	sum := sha256.Sum256(append(input, endpoint...))
	var hash [16]byte // of ten bytes in base32
	base32.StdEncoding.Encode(hash[:], sum[:10])
	return string(hash[:])
}

func clusterChain(n netfilter.Naming, name topology.ServicePortName) string {
	return n.Chain(netfilter.PrefixCluster) + serviceHash(name, "")
}

func localChain(n netfilter.Naming, name topology.ServicePortName) string {
	return n.Chain(netfilter.PrefixLocal) + serviceHash(name, "")
}

func externalChain(n netfilter.Naming, name topology.ServicePortName) string {
	return n.Chain(netfilter.PrefixExternal) + serviceHash(name, "")
}

func firewallChain(n netfilter.Naming, name topology.ServicePortName) string {
	return n.Chain(netfilter.PrefixFirewall) + serviceHash(name, "")
}

// EndpointChain returns the name of the chain that leads to one endpoint of a Service port.
func EndpointChain(n netfilter.Naming, name topology.ServicePortName, endpoint netip.AddrPort) string {
	return n.Chain(netfilter.PrefixEndpoint) + serviceHash(name, endpoint.String())
}

// TrafficPolicyChain returns the name of the chain that chooses among the endpoints of a traffic
// policy.
func TrafficPolicyChain(n netfilter.Naming, name topology.ServicePortName, p rules.TrafficPolicy) string {
	if p == rules.Local {
		return localChain(n, name)
	}
	return clusterChain(n, name)
}
