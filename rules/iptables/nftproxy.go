package iptables

import (
	"slices"

	"gridproxy/rules/netfilter"
)

// nftProxyTable is the table of a kube-proxy in mode nftables, in each family (KEP-3866). Its
// chains stand at the same hooks as ours, so that packets are sent on by whichever was made first.
const nftProxyTable = "kube-proxy"

// lookForNFTProxy reports when a kube-proxy in mode nftables has rules beside ours, and when they
// are gone. Whether it still runs makes no difference: rules without it decide all the same. A
// trial is meant to stand beside another proxy.
func (k *keeper) lookForNFTProxy(names netfilter.Naming) {
	if names != netfilter.KubeNames {
		return
	}
	tables, err := nftTables(k.kernel.family)
	if err != nil {
		return // a kernel that cannot say so is asked again at the next verify
	}
	was := k.nftProxy
	k.nftProxy = slices.Contains(tables, nftProxyTable)
	family := nftFamily(k.kernel.family)
	switch {
	case k.nftProxy && !was:
		k.log.Error("a kube-proxy in mode nftables has rules on this node, and packets meet both: Services may leave their unit; "+
			"end that kube-proxy, then delete its table", "delete", "nft delete table "+family+" "+nftProxyTable)
	case was && !k.nftProxy:
		k.log.Info("the rules of the kube-proxy in mode nftables are gone")
	}
}
