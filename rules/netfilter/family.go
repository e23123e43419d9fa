package netfilter

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
