package netfilter

import (
	"strings"
	"testing"
)

// A chain is ours under one Naming at most, and Kube is the inverse of Chain.
func TestNamingsAreDisjoint(t *testing.T) {
	for _, chain := range []string{
		ChainServices, ChainNodePorts, ChainForward, ChainProxyFirewall, ChainPostrouting, ChainMarkMasq,
		PrefixCluster + "AQI2S6QIMU7PVVRP", PrefixEndpoint + "AQI2S6QIMU7PVVRP",
	} {
		for _, n := range allNamings {
			name := n.Chain(chain)
			if kube, ok := n.Kube(name); kube != chain || !ok || !strings.HasPrefix(name, n.Prefix()) {
				t.Errorf("%s is %s under naming %d, and that is %s, %v", chain, name, n, kube, ok)
			}
			for _, other := range allNamings {
				for _, table := range []Table{Filter, NAT} {
					if n != other && other.IsOurs(table, name) {
						t.Errorf("%s %s is ours under naming %d too", table, name, other)
					}
				}
			}
		}
	}
	for _, chain := range []string{ChainFirewall, "KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY", "PREROUTING", "GRID", "GRID-", "GRIDSERVICES", "KUBE-", ""} {
		if GridNames.IsOurs(NAT, chain) || GridNames.IsOurs(Filter, chain) {
			t.Errorf("%s is ours", chain)
		}
	}
}
