package netfilter

// Table is an iptables table.
type Table uint8

// The tables that Services need. Their order is the order in which every restore writes them:
// a packet that nat would already rewrite must already be subject to filter's verdicts.
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
