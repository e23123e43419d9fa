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
