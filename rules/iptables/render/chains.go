package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// TableChain is a chain of a table.
type TableChain struct {
	Table netfilter.Table
	netfilter.Chain
}

// AppendEntries appends the rules of a shared chain as entries.
func (c TableChain) AppendEntries(to []Entry) []Entry {
	for _, r := range c.Rules {
		to = append(to, Entry{Table: c.Table, Chain: c.Name, Rule: r})
	}
	return to
}

// Entry is a Service's rule in a chain that Services share.
type Entry struct {
	Table netfilter.Table
	Chain string
	Rule  netfilter.Rule
}

// Block is what one Service needs in one family: its own chains, all in nat, and its entries in
// shared chains. The entries of all Blocks are disjoint matches, so their order does not matter.
type Block struct {
	Chains  []TableChain
	Entries []Entry
}

// ChainID names a chain of a table.
type ChainID struct {
	Table netfilter.Table
	Chain string
}

func (id ChainID) String() string { return id.Table.String() + "/" + id.Chain }

// CompareChainIDs orders chains by table, then by name.
func CompareChainIDs(a, b ChainID) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Chain, b.Chain))
}

// Clone copies the name, which may be part of a longer text.
func (id ChainID) Clone() ChainID { return ChainID{id.Table, strings.Clone(id.Chain)} }

// ID returns the name of the chain, with its table.
func (c TableChain) ID() ChainID { return ChainID{c.Table, c.Name} }

// ID returns the chain that the entry is in.
func (e Entry) ID() ChainID { return ChainID{e.Table, e.Chain} }

// serviceHash returns the hash in the chain names of a Service port, 16 characters. As in
// kube-proxy, it covers the printed name, the lower-case protocol and, for an endpoint's chain,
// the address and port; endpoint is "" for other chains.
func serviceHash(name topology.ServicePortName, endpoint string) string {
	var buffer [256]byte // nearly all names fit, so that hashing allocates nothing
	input := append(buffer[:0], name.String()...)
	input = append(input, netfilter.Proto(name.IPProtocol()).String()...)
	sum := sha256.Sum256(append(input, endpoint...))
	var hash [16]byte // of ten bytes in base32
	base32.StdEncoding.Encode(hash[:], sum[:10])
	return string(hash[:])
}

func externalChain(n netfilter.Naming, name topology.ServicePortName) string {
	return n.Chain(netfilter.PrefixExternal) + serviceHash(name, "")
}

func firewallChain(n netfilter.Naming, name topology.ServicePortName) string {
	return n.Chain(netfilter.PrefixFirewall) + serviceHash(name, "")
}

// EndpointChain returns the name of the chain that leads to one endpoint of a Service port.
func EndpointChain(n netfilter.Naming, name topology.ServicePortName, endpoint netip.AddrPort) string {
	return n.Chain(netfilter.PrefixEndpoint) + serviceHash(name, endpoint.String())
}

// TrafficPolicyChain returns the name of the chain that chooses among the endpoints of a traffic
// policy.
func TrafficPolicyChain(n netfilter.Naming, name topology.ServicePortName, p rules.TrafficPolicy) string {
	prefix := netfilter.PrefixCluster
	if p == rules.Local {
		prefix = netfilter.PrefixLocal
	}
	return n.Chain(prefix) + serviceHash(name, "")
}

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
