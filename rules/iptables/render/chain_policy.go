package render

import (
	"net/netip"

	"gridproxy/rules/netfilter"
)

// ChainKind says who owns the rules of a chain. It decides how the chain is compared and written.
type ChainKind uint8

const (
	// Whole chains are ours alone: they hold the desired rules in order, and are written whole.
	Whole ChainKind = iota
	// Shared chains hold entries of many Services. Entries are disjoint matches, so their order
	// does not matter; they are inserted and removed one by one.
	Shared
	// Completed chains belong to the kubelet too: missing rules are added, nothing is removed.
	Completed
	// BuiltIn chains are the kernel's: our jumps are inserted, and surplus copies of them removed.
	BuiltIn
	// Stale chains are ours and not desired.
	Stale
)

// ChainPolicy is everything in which the treatment of chains differs.
type ChainPolicy struct {
	Kind ChainKind

	// last, of a shared chain: the jump to this chain comes after all other entries; "" = none. A
	// NodePort answers only where no cluster IP or external address does. Entries with a verdict
	// come before the reject of unknown ports of a virtual server's address.
	last string

	// counted, of a shared chain: rules that only count packets to these addresses, which another
	// entry matches too, are neither missed nor removed.
	counted netip.Prefix
}

// Policy returns how a desired chain is treated. That depends on nothing but id and the options.
func (o Options) Policy(id ChainID) ChainPolicy {
	switch {
	case netfilter.IsBuiltIn(id.Chain):
		return ChainPolicy{Kind: BuiltIn}
	case id.Chain == netfilter.ChainFirewall:
		return ChainPolicy{Kind: Completed}
	}
	switch kube, _ := o.Names.Kube(id.Chain); {
	case id.Table == netfilter.NAT && (kube == netfilter.ChainIPVSChains || kube == netfilter.ChainServices && !o.IPVS):
		return ChainPolicy{Kind: Shared, last: o.Names.Chain(netfilter.ChainNodePorts)}
	case id.Table == netfilter.NAT && kube == netfilter.ChainNodePorts && o.LocalhostNodePorts:
		return ChainPolicy{Kind: Shared, counted: loopback(o.Family)}
	case id.Table == netfilter.Filter && kube == netfilter.ChainExternalServices:
		return ChainPolicy{Kind: Shared, last: o.Names.Chain(netfilter.ChainIPVSFilter)}
	case kube == netfilter.ChainNodePorts, id.Table == netfilter.Filter && (kube == netfilter.ChainServices || kube == netfilter.ChainProxyFirewall):
		return ChainPolicy{Kind: Shared}
	}
	return ChainPolicy{Kind: Whole}
}

// MustBeLast reports whether an entry comes after all others of its chain.
func (p ChainPolicy) MustBeLast(r netfilter.Rule) bool {
	return p.last != "" && r.Target == netfilter.TargetJump && r.Jump == p.last
}

// OnlyCounts reports whether a rule only counts: the same rule for all addresses is desired.
func (p ChainPolicy) OnlyCounts(r netfilter.Rule, desired func(netfilter.Rule) bool) bool {
	if r.NFAcct == "" || !p.counted.IsValid() || r.Dst != p.counted {
		return false
	}
	r.Dst = netip.Prefix{}
	return desired(r)
}
