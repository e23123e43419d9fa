package netns

import "net/netip"

// Family is an IP family.
type Family string

// The two families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// Families are both, for loops over them.
func Families() []Family { return []Family{IPv4, IPv6} }

// Has says whether an address is of the family.
func (f Family) Has(a netip.Addr) bool {
	return a.IsValid() && a.Unmap().Is4() == (f == IPv4)
}

// Pick is the first of some addresses that is of the family; the zero Addr if none is.
func (f Family) Pick(addrs ...netip.Addr) netip.Addr {
	for _, a := range addrs {
		if f.Has(a) {
			return a
		}
	}
	return netip.Addr{}
}
