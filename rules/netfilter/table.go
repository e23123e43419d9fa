package netfilter

// Table is an iptables table.
type Table uint8

// The tables that Services need, in the order in which every restore writes them: filter's verdicts
// must be in force before nat rewrites a packet.
const (
	Filter Table = iota
	NAT
	Mangle // only chains of other programs are read here
	Other  // raw, security and any other table: never read
)

// String returns the table's name in iptables(8); "other" for Other.
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

// Family is an address family: of iptables or of ip6tables.
type Family uint8

// The families.
const (
	IPv4 Family = iota
	IPv6
)

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// Variant is the kernel interface of the iptables tools. Packets traverse the rules of both, so all
// programs on a node must use the same one.
type Variant string

// The variants of --iptables-variant. The zero value is VariantAuto.
const (
	VariantAuto   Variant = "auto"
	VariantNFT    Variant = "nft"
	VariantLegacy Variant = "legacy"
)
