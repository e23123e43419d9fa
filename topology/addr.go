package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	netutils "k8s.io/utils/net"
)

// ParseAddr reads an IP address as kube-proxy does: leading zeros are dropped and mean
// decimal numbers ("172.30.0.041" is 172.30.0.41), zones are refused. IPv4 addresses
// written in IPv6 form come out as IPv4.
func ParseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		// What the standard library refuses since Go 1.17, older API servers stored.
		var ok bool
		if addr, ok = netip.AddrFromSlice(netutils.ParseIPSloppy(s)); !ok {
			return netip.Addr{}, fmt.Errorf("%s is not an IP address", excerpt.Quoted(s))
		}
	}
	if addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%s has a zone", excerpt.Quoted(s))
	}
	return addr.Unmap(), nil
}

// ParsePrefix reads a CIDR as kube-proxy does: surrounding white space is ignored, host bits
// are cleared, leading zeros of the address and of the length are dropped. A range of IPv4
// addresses written in IPv6 form comes out as IPv4.
func ParsePrefix(s string) (netip.Prefix, error) {
	text := strings.TrimSpace(s)
	p, err := netip.ParsePrefix(text)
	if err != nil {
		var ok bool
		if p, ok = parseSloppyPrefix(text); !ok {
			return netip.Prefix{}, fmt.Errorf("%s is not a CIDR such as 10.0.0.0/8", excerpt.Quoted(s))
		}
	}
	return unmapPrefix(p.Masked()), nil
}

// parseSloppyPrefix parses a CIDR with leading zeros, which older API servers stored; false = it
// is not a CIDR.
func parseSloppyPrefix(text string) (netip.Prefix, bool) {
	ip, network, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	bits, size := network.Mask.Size()
	if size == 32 {
		addr = addr.Unmap()
	}
	return netip.PrefixFrom(addr, bits), ok
}

// unmapPrefix returns p as an IPv4 prefix if it is one in IPv6 form, else p. p must be masked.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	const mapped = 96 // bits of ::ffff:0:0/96
	if !p.Addr().Is4In6() || p.Bits() < mapped {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
}

// Unusable returns why no endpoint and no external address of a Service can be at an address.
// The API server refuses the same ranges in EndpointSlices and externalIPs. "" = it is usable.
func Unusable(addr netip.Addr) Reason {
	switch {
	case addr.IsUnspecified() || addr.Is4() && addr.As4()[0] == 0: // "this network", RFC 1122
		return ReasonUnspecified
	case addr.IsLoopback():
		return ReasonLoopback
	case addr.IsLinkLocalUnicast() || addr.IsLinkLocalMulticast():
		return ReasonLinkLocal
	case addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return ReasonMulticast
	default:
		return ""
	}
}

// ExternalAddr reads an address of externalIPs or of a load balancer. An unusable one is an
// error: it would divert the node's own packets.
func ExternalAddr(text string) (netip.Addr, error) {
	addr, err := ParseAddr(text)
	if err != nil {
		return netip.Addr{}, err
	}
	if reason := Unusable(addr); reason != "" {
		return netip.Addr{}, fmt.Errorf("%s is %s", addr, reason)
	}
	return addr, nil
}

// splitUsable returns the candidates at usable addresses, and the others with reasons, sorted
// by address. The node-local API proxy (AnnotationLocalEndpoint) may be at any address.
func splitUsable(all []candidate) (usable []candidate, ignored []Drop) {
	unusable := func(e candidate) bool { return !e.exempt && Unusable(e.Addr.Addr()) != "" }
	if !slices.ContainsFunc(all, unusable) {
		return all, nil
	}
	for _, e := range all {
		if unusable(e) {
			reason := Unusable(e.Addr.Addr())
			ignored = append(ignored, Drop{Endpoint: e.Endpoint, Reason: reason})
		} else {
			usable = append(usable, e)
		}
	}
	sortDrops(ignored)
	return usable, ignored
}
