package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"

	"gridproxy/rules"
	"gridproxy/topology"
)

// serviceHash tells the chains of Service ports apart: kube-proxy hashes the printed name
// and the lower-case protocol, and for an endpoint's chain its address behind them.
func serviceHash(name topology.ServicePortName, endpoint string) string {
	sum := sha256.Sum256([]byte(name.String() + Proto(name.IPProtocol()).String() + endpoint))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}

func (n Naming) clusterChain(name topology.ServicePortName) string {
	return n.chain(prefixCluster) + serviceHash(name, "")
}

func (n Naming) localChain(name topology.ServicePortName) string {
	return n.chain(prefixLocal) + serviceHash(name, "")
}

func (n Naming) externalChain(name topology.ServicePortName) string {
	return n.chain(prefixExternal) + serviceHash(name, "")
}

func (n Naming) firewallChain(name topology.ServicePortName) string {
	return n.chain(prefixFirewall) + serviceHash(name, "")
}

func (n Naming) endpointChain(name topology.ServicePortName, endpoint netip.AddrPort) string {
	return n.chain(prefixEndpoint) + serviceHash(name, endpoint.String())
}

// policyChain is the chain that chooses among the endpoints of a traffic policy.
func (n Naming) policyChain(name topology.ServicePortName, p rules.TrafficPolicy) string {
	if p == rules.Local {
		return n.localChain(name)
	}
	return n.clusterChain(name)
}
