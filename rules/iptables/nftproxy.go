package iptables

import (
	"slices"

	"gridproxy/rules/netfilter"
)

// nftProxyTable is the table of a kube-proxy in mode nftables, in each family (KEP-3866). Its
// chains use the same hooks as ours, so the chains registered first decide.
const nftProxyTable = "kube-proxy"

// lookForNFTProxy logs when a kube-proxy in mode nftables has rules beside ours, and when they are
// gone. The rules decide even if it no longer runs. A trial is meant to run beside another proxy.
func (k *familySyncer) lookForNFTProxy(names netfilter.Naming) {
	if names != netfilter.KubeNames {
		return
	}
	tables, err := nftTables(k.kernel.family)
	if err != nil {
		return // retried at the next verify
	}
	was := k.nftProxy
	k.nftProxy = slices.Contains(tables, nftProxyTable)
	family := nftFamily(k.kernel.family)
	switch {
	case k.nftProxy && !was:
		k.log.Error("a kube-proxy in mode nftables has rules on this node, and packets traverse both: Services may leave their unit; "+
			"stop that kube-proxy, then delete its table", "delete", "nft delete table "+family+" "+nftProxyTable)
	case was && !k.nftProxy:
		k.log.Info("the rules of the kube-proxy in mode nftables are gone")
	}
}
