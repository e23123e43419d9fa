package netfilter

// Family is an address family, and with it which of iptables and ip6tables.
type Family uint8

// The families.
const (
	IPv4 Family = iota
	IPv6
)

// String is the family as people say it.
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}
