package iptables

import (
	"net/netip"

	"gridproxy/rules/netfilter"
)

// chainKind says who owns the rules of a chain. It decides how the chain is compared and written.
type chainKind uint8

const (
	// whole chains are ours alone: they hold the desired rules in order, and are written whole.
	whole chainKind = iota
	// shared chains hold entries of many Services. Entries are disjoint matches, so their order
	// does not matter; they are inserted and removed one by one.
	shared
	// completed chains belong to the kubelet too: missing rules are added, nothing is removed.
	completed
	// builtIn chains are the kernel's: our jumps are inserted, and surplus copies of them removed.
	builtIn
	// stale chains are ours and not desired.
	stale
)

// chainPolicy is everything in which the treatment of chains differs.
type chainPolicy struct {
	kind chainKind

	// last, of a shared chain: the jump to this chain comes after all other entries; "" = none. A
	// NodePort answers only where no cluster IP or external address does. Entries with a verdict
	// come before the reject of unknown ports of a virtual server's address.
	last string

	// counted, of a shared chain: rules that only count packets to these addresses, which another
	// entry matches too, are neither missed nor removed. The zero value is none.
	counted netip.Prefix
}

// policy returns how a desired chain is treated. That depends on nothing but id and the options.
func (o Options) policy(id chainID) chainPolicy {
	switch {
	case netfilter.IsBuiltIn(id.chain):
		return chainPolicy{kind: builtIn}
	case id.chain == netfilter.ChainFirewall:
		return chainPolicy{kind: completed}
	}
	switch kube, _ := o.Names.Kube(id.chain); {
	case id.table == netfilter.NAT && (kube == netfilter.ChainIPVSChains || kube == netfilter.ChainServices && !o.IPVS):
		return chainPolicy{kind: shared, last: o.Names.Chain(netfilter.ChainNodePorts)}
	case id.table == netfilter.NAT && kube == netfilter.ChainNodePorts && o.LocalhostNodePorts:
		return chainPolicy{kind: shared, counted: loopback(o.Family)}
	case id.table == netfilter.Filter && kube == netfilter.ChainExternalServices:
		return chainPolicy{kind: shared, last: o.Names.Chain(netfilter.ChainIPVSFilter)}
	case kube == netfilter.ChainNodePorts, id.table == netfilter.Filter && (kube == netfilter.ChainServices || kube == netfilter.ChainProxyFirewall):
		return chainPolicy{kind: shared}
	}
	return chainPolicy{kind: whole}
}

// mustBeLast reports whether an entry comes after all others of its chain.
func (p chainPolicy) mustBeLast(r netfilter.Rule) bool {
	return p.last != "" && r.Target == netfilter.TargetJump && r.Jump == p.last
}

// onlyCounts reports whether a rule only counts: the same rule for all addresses is desired.
func (p chainPolicy) onlyCounts(r netfilter.Rule, desired func(netfilter.Rule) bool) bool {
	if r.NFAcct == "" || !p.counted.IsValid() || r.Dst != p.counted {
		return false
	}
	r.Dst = netip.Prefix{}
	return desired(r)
}
