package netfilter

import "net/netip"

// Rule is one iptables rule. Every field holds what the kernel holds (probability as its 31-bit
// integer, prefixes masked), so that a rule that was written and read back is equal to itself. A
// zero field means that the rule does not have it.
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
	IPVS               bool   // -m ipvs --ipvs: IPVS has forwarded the packet
	NFAcct             string // -m nfacct --nfacct-name: only counts; never compared

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

// String returns the protocol's name in iptables(8) and in chain name hashes.
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

// Mark is a packet mark and its significant bits.
type Mark struct{ Value, Mask uint32 }

// SetMatch is a match of -m set. The zero value means no match.
type SetMatch struct {
	Name   string
	Fields string // the packet's side for each field of an entry: "dst,dst"
}

// Recent is a match of -m recent. The zero value means no match.
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

// Target is what a rule does with a matching packet.
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
