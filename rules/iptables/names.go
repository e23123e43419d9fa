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

func clusterChain(name topology.ServicePortName) string {
	return prefixCluster + serviceHash(name, "")
}

func localChain(name topology.ServicePortName) string {
	return prefixLocal + serviceHash(name, "")
}

func externalChain(name topology.ServicePortName) string {
	return prefixExternal + serviceHash(name, "")
}

func firewallChain(name topology.ServicePortName) string {
	return prefixFirewall + serviceHash(name, "")
}

func endpointChain(name topology.ServicePortName, endpoint netip.AddrPort) string {
	return prefixEndpoint + serviceHash(name, endpoint.String())
}

// policyChain is the chain that chooses among the endpoints of a traffic policy.
func policyChain(name topology.ServicePortName, p rules.TrafficPolicy) string {
	if p == rules.Local {
		return localChain(name)
	}
	return clusterChain(name)
}
