package iptables

import (
	"net/netip"

	"gridproxy/rules"
)

// Family is an address family, and with it which of iptables and ip6tables.
type Family uint8

// The families.
const (
	IPv4 Family = iota
	IPv6
)

// Table is an iptables table.
type Table uint8

// The tables that Services need, in the order in which they are restored: a packet that
// nat would already rewrite must already be subject to filter's verdicts.
const (
	Filter Table = iota
	NAT
	Mangle // only others' chains are ever looked at here
	Other  // raw, security and whatever else there is: never looked into
)

// String is the table's name as iptables(8) has it; "other" for Other.
func (t Table) String() string {
	switch t {
	case Filter:
		return "filter"
	case NAT:
		return "nat"
	case Mangle:
		return "mangle"
	default:
		return "other"
	}
}

// Rule is one iptables rule. Every field holds what the kernel holds (probability as its
// 31-bit integer, prefixes masked), so that a rule that was written and read back is
// equal to itself. The zero value of a field means that the rule does not have it.
type Rule struct {
	Src, Dst       netip.Prefix
	NotSrc, NotDst bool
	InInterface    string // a trailing "+" is a wildcard, as in iptables(8)
	NotInInterface bool

	Proto   Proto
	DstPort uint16 // with TCP, UDP or SCTP

	SrcLocal, DstLocal bool    // -m addrtype --src-type LOCAL, --dst-type LOCAL
	CTState            CTState // -m conntrack --ctstate
	NotCTState         bool
	Mark               Mark // -m mark --mark
	NotMark            bool
	Probability        uint32 // -m statistic --mode random: out of 1<<31; 0 = always
	Recent             Recent
	MatchSet           SetMatch
	IPVS               bool   // -m ipvs --ipvs: IPVS has sent the packet on its way
	NFAcct             string // -m nfacct --nfacct-name: counts, never decides; never compared

	Target Target
	Jump   string         // TargetJump: the chain
	DNAT   netip.AddrPort // TargetDNAT
	Set    Mark           // TargetMark: value is or-ed/xor-ed as --set-xmark VALUE/MASK
	Random bool           // TargetMasquerade: --random-fully

	Comment string // for people; never compared
}

// Proto is a transport protocol.
type Proto uint8

// The protocols of Services; the zero value is any. Other protocol numbers parse as foreign.
const (
	AnyProto Proto = 0
	TCP      Proto = 6
	UDP      Proto = 17
	SCTP     Proto = 132
)

// String is the protocol's name as iptables(8) and chain name hashes have it.
func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	default:
		return "all"
	}
}

// CTState is a set of connection-tracking states.
type CTState uint8

// The states that our rules name.
const (
	CTInvalid CTState = 1 << iota
	CTNew
	CTRelated
	CTEstablished
	CTDNAT
)

// Mark is a packet mark and the bits of it that count.
type Mark struct{ Value, Mask uint32 }

// SetMatch is a match of -m set. The zero value is none.
type SetMatch struct {
	Name   string
	Fields string // which side of the packet each field of an entry is about: "dst,dst"
}

// Recent is a match of -m recent. The zero value is none.
type Recent struct {
	Name    string
	Op      RecentOp
	Seconds uint32 // RecentCheck
	Reap    bool
}

// RecentOp is what a Recent match does.
type RecentOp uint8

// The operations of session affinity.
const (
	RecentSet   RecentOp = iota + 1 // --set
	RecentCheck                     // --rcheck
)

// Target is what a rule does with a packet that it matches.
type Target uint8

// The targets.
const (
	TargetNone Target = iota // counts only
	TargetAccept
	TargetDrop
	TargetReject // icmp-port-unreachable, icmp6-port-unreachable
	TargetReturn
	TargetJump
	TargetDNAT
	TargetMark
	TargetMasquerade
)

// Chain is a chain and its rules in order.
type Chain struct {
	Name  string
	Rules []Rule
}

// TableChain is a chain of a table.
type TableChain struct {
	Table Table
	Chain
}

// Entry is a rule that a Service puts into a chain it shares with others.
type Entry struct {
	Table Table
	Chain string
	Rule  Rule
}

// Block is what one Service of one family needs: chains of its own, all in nat, and its
// entries in the shared chains. The entries of all Blocks are disjoint matches, so their
// order among each other decides nothing.
type Block struct {
	Chains  []TableChain
	Entries []Entry
}

// Tables are a Ruleset in iptables terms: everything of one family.
type Tables struct {
	Family Family
	Tables [2]TableRules // by Table: Filter, NAT
}

// TableRules are the chains of one table.
type TableRules struct {
	// Chains are ours, in the order in which they are printed. KUBE-FIREWALL, last of
	// filter's where it is needed, is the kubelet's too: append its rule where that is
	// absent, never flush it, never delete it.
	Chains []Chain
	Jumps  []Chain // built-in chains with only our jumps in them, top first
}

// Options are what spelling needs to know beyond a Service. They are comparable: an equal
// Service under equal Options is spelled equally.
type Options struct {
	Family        Family
	MasqueradeBit uint8 // of the packet mark, 0..31; kube-proxy's default is 14
	RandomFully   bool  // MASQUERADE --random-fully: iptables 1.6.2 or newer
	DropInvalid   bool  // unless nf_conntrack_tcp_be_liberal is set
	NFAcct        bool  // the counters' kernel objects exist; never in render
	Names         Naming
	IPVS          bool // the skeleton of IPVS mode: what a Service needs stands behind the set SetChains

	// What this kernel lacks.
	WithoutRecent bool // xt_recent: Services are served without affinity
	WithoutSCTP   bool // xt_sctp: SCTP to every address of a Service is refused, whatever its port
	WithoutIPVS   bool // xt_ipvs, in IPVS mode: what a process of this machine sends to itself is masqueraded too

	// What a Ruleset says for all of its Services; For fills it in.
	Pods               PodMatch
	LocalhostNodePorts bool
}

// For is o with what rs says for all of its Services.
func (o Options) For(rs rules.Ruleset) Options {
	o.Pods = PodMatch{}
	switch {
	case rs.Local.Bridge != "":
		o.Pods.InInterface = rs.Local.Bridge
	case rs.Local.InterfacePrefix != "":
		o.Pods.InInterface = rs.Local.InterfacePrefix + "+"
	default:
		o.Pods.Prefix = rs.Local.Prefix(o.Family == IPv6)
	}
	o.LocalhostNodePorts = rs.NodePorts.Localhost && o.Family == IPv4
	return o
}

// PodMatch is how packets of this node's Pods are matched in one family. The zero value
// is no way to tell.
type PodMatch struct {
	Prefix      netip.Prefix // source
	InInterface string       // else: as Rule.InInterface
}
