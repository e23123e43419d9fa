package topology

import (
	"fmt"
	"net/netip"
	"slices"
)

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

// ExternalAddr reads an address of externalIPs or of a load balancer. An unusable one is an error:
// it would lead the node's own packets astray.
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

// splitUsable takes out the candidates at unusable addresses. The node-local API proxy, which
// AnnotationLocalEndpoint names, may be at any.
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
