package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddr reads an IP address as Kubernetes does: leading zeros in an IPv4 address are
// dropped ("172.30.0.041" is 172.30.0.41), zones are refused. IPv4 addresses written in
// IPv6 form come out as IPv4.
func ParseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		addr, err = netip.ParseAddr(dropLeadingZeros(s))
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	if addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q has a zone", s)
	}
	return addr.Unmap(), nil
}

// ParsePrefix reads a CIDR as Kubernetes does: surrounding white space is ignored, host
// bits are cleared, leading zeros of the address are dropped.
func ParsePrefix(s string) (netip.Prefix, error) {
	text := strings.TrimSpace(s)
	p, err := netip.ParsePrefix(text)
	if err != nil {
		ip, bits, _ := strings.Cut(text, "/")
		p, err = netip.ParsePrefix(dropLeadingZeros(ip) + "/" + bits)
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR such as 10.0.0.0/8", s)
	}
	return p.Masked(), nil
}

// dropLeadingZeros rewrites a dotted IPv4 address without leading zeros, and leaves every
// other text as it is.
func dropLeadingZeros(s string) string {
	octets := strings.Split(s, ".")
	if len(octets) != 4 {
		return s
	}
	for i, o := range octets {
		if t := strings.TrimLeft(o, "0"); t != "" {
			octets[i] = t
		} else if o != "" {
			octets[i] = "0"
		}
	}
	return strings.Join(octets, ".")
}
