package iptables

import (
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
