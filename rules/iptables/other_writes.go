package iptables

import (
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// OtherWrites returns the chains into which another process had written, according to the last
// Sync that read the kernel back and repaired them.
func (b *Backend) OtherWrites() rules.OtherWrites {
	var all rules.OtherWrites
	for _, k := range b.syncers {
		all = all.Add(k.others)
	}
	return all
}

// otherWrites returns the repaired chains with a rule that we had not written. A chain that only
// lacked rules, as after a flush, does not count.
func (ks *kernelState) otherWrites(repaired []render.ChainID, f netfilter.Family) rules.OtherWrites {
	var names []string
	for _, id := range repaired {
		if ks.otherWrote(id) {
			names = append(names, f.String()+" "+id.String())
		}
	}
	return rules.NewOtherWrites(names)
}

func (ks *kernelState) otherWrote(id render.ChainID) bool {
	switch kube, _ := ks.options.Names.Kube(id.Chain); kube {
	case netfilter.ChainMarkMasq, netfilter.ChainPostrouting, netfilter.ChainFirewall:
		return false // kubelets write these too: before 1.28 all three, after it the last
	case netfilter.ChainTry:
		return false // every gridproxy that starts in mode ipvs creates it
	}
	c := ks.chain(id)
	return c != nil && c.foreign()
}

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
