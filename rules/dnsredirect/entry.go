package dnsredirect

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/dnsview"

	corev1 "k8s.io/api/core/v1"
)

// Port is that of DNS: other ports of the Service stay as they are.
const Port = rules.PortDNS

// Entry is an address and protocol at which queries are led to the server of this machine.
type Entry struct {
	Addr  netip.Addr
	Proto corev1.Protocol // UDP or TCP
}

// String returns the entry as in ipset(8).
func (e Entry) String() string {
	return fmt.Sprintf("%s,%s:%d", e.Addr, strings.ToLower(string(e.Proto)), Port)
}

// Entries returns the entries of the cluster's DNS Service, sorted. A nil Service has none.
func Entries(svc *topology.DNSService) []Entry {
	if svc == nil || svc.Kind != dnsview.ClusterIP {
		return nil
	}
	var all []Entry
	for _, p := range svc.Ports {
		if p.Number != Port || p.Protocol != "UDP" && p.Protocol != "TCP" {
			continue
		}
		for _, addr := range svc.ClusterIPs {
			all = append(all, Entry{Addr: addr, Proto: corev1.Protocol(p.Protocol)})
		}
	}
	slices.SortFunc(all, Compare)
	return slices.Compact(all)
}

// OfFamily returns the entries of one family.
func OfFamily(all []Entry, ipv6 bool) []Entry {
	return slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Addr.Is6() != ipv6 })
}

// Compare orders Entries.
func Compare(a, b Entry) int { return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto)) }
