package netfilter

import (
	"strings"
	"testing"
)

func TestIsOurs(t *testing.T) {
	for _, tc := range []struct {
		table Table
		chain string
		ours  bool
		own   bool // of one Service
	}{
		{NAT, "KUBE-SERVICES", true, false},
		{Filter, "KUBE-SERVICES", true, false},
		{Mangle, "KUBE-SERVICES", false, false},
		{Filter, "KUBE-NODEPORTS", true, false},
		{NAT, "KUBE-NODEPORTS", true, false},
		{Filter, "KUBE-EXTERNAL-SERVICES", true, false},
		{NAT, "KUBE-EXTERNAL-SERVICES", false, false},
		{Filter, "KUBE-FORWARD", true, false},
		{Filter, "KUBE-PROXY-FIREWALL", true, false},
		{NAT, "KUBE-POSTROUTING", true, false},
		{NAT, "KUBE-MARK-MASQ", true, false},
		{Filter, "KUBE-MARK-MASQ", false, false},
		{NAT, "KUBE-SVC-AQI2S6QIMU7PVVRP", true, true},
		{NAT, "KUBE-SVL-AQI2S6QIMU7PVVRP", true, true},
		{NAT, "KUBE-EXT-AQI2S6QIMU7PVVRP", true, true},
		{NAT, "KUBE-FW-AQI2S6QIMU7PVVRP", true, true},
		{NAT, "KUBE-SEP-AQI2S6QIMU7PVVRP", true, true},
		{Filter, "KUBE-SVC-AQI2S6QIMU7PVVRP", false, false},
		{Other, "KUBE-PROXY-CANARY", false, false},
		{Mangle, "KUBE-PROXY-CANARY", true, false},
		{Filter, "KUBE-FIREWALL", false, false},
		{Mangle, "KUBE-KUBELET-CANARY", false, false},
		{Mangle, "KUBE-IPTABLES-HINT", false, false},
		{NAT, "KUBE-MARK-DROP", false, false},
		{NAT, "PREROUTING", false, false},
		{NAT, "DOCKER", false, false},
	} {
		if got := KubeNames.IsOurs(tc.table, tc.chain); got != tc.ours {
			t.Errorf("IsOurs(%s, %s) = %v", tc.table, tc.chain, got)
		}
		if got := KubeNames.IsServiceChain(tc.table, tc.chain); got != tc.own {
			t.Errorf("IsServiceChain(%s, %s) = %v", tc.table, tc.chain, got)
		}
	}
}

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
