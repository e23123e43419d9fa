package topology

import (
	"net/netip"
	"slices"

	"gridproxy/topology/dnsview"

	corev1 "k8s.io/api/core/v1"
)

// addrHolders are the Services that name a cluster IP. No API server gives one address to two, but
// manifests and restored storage may.
type addrHolders map[netip.Addr][]*corev1.Service

func newAddrHolders(services []*corev1.Service) addrHolders {
	h := make(addrHolders, len(services))
	for _, svc := range services {
		h.add(svc)
	}
	return h
}

// clusterIPsOf returns the cluster IPs in the spec, unchecked: at least one text, which may be
// empty.
func clusterIPsOf(svc *corev1.Service) []string {
	if len(svc.Spec.ClusterIPs) > 0 {
		return svc.Spec.ClusterIPs
	}
	return []string{svc.Spec.ClusterIP}
}

// clusterAddrs returns the readable cluster IPs of a Service, each once; nil has none.
func clusterAddrs(svc *corev1.Service) []netip.Addr {
	if svc == nil || kindOfNames(svc) != dnsview.ClusterIP {
		return nil
	}
	var addrs []netip.Addr
	for _, text := range clusterIPsOf(svc) {
		if addr, err := ParseAddr(text); err == nil && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func (h addrHolders) add(svc *corev1.Service) {
	for _, addr := range clusterAddrs(svc) {
		h[addr] = append(h[addr], svc)
	}
}

func (h addrHolders) remove(svc *corev1.Service) {
	for _, addr := range clusterAddrs(svc) {
		if h[addr] = slices.DeleteFunc(h[addr], func(s *corev1.Service) bool { return s == svc }); len(h[addr]) == 0 {
			delete(h, addr)
		}
	}
}

// holder returns the Service that has an address, or nil: the oldest, then the first by name, as
// in the rules. A Service of unknown age counts as the youngest.
func (h addrHolders) holder(addr netip.Addr) *corev1.Service {
	if len(h[addr]) == 0 {
		return nil
	}
	return slices.MinFunc(h[addr], func(a, b *corev1.Service) int {
		age := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time)
		if a.CreationTimestamp.IsZero() != b.CreationTimestamp.IsZero() {
			age = -age // the zero time is the smallest
		}
		if age != 0 {
			return age
		}
		return CompareObjects(a, b)
	})
}
