package topologytest

import (
	"maps"
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/dnsview"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Named is a Snapshot with names, and the EndpointSlices that it was read from, in the same order.
type Named struct {
	topology.Snapshot
	Read []*discoveryv1.EndpointSlice
}

// WithNames draws a Snapshot with what only DNS reads: Services of every kind, slices of every
// label, host names, Grids and Namespaces.
func WithNames(t *rapid.T) Named {
	s := Named{Snapshot: Snapshot(t)}
	s.Slices = nil
	for i := range s.Services {
		s.namedService(t, i)
		for n := range rapid.IntRange(1, 2).Draw(t, "slices") {
			s.namedSlice(t, i, n)
		}
	}
	s.grids(t)
	s.Namespaces = []string{"default", "ns"}
	return s
}

// WithoutNames returns the same cluster as it is read without names, by kube-proxy's selectors.
func (s Named) WithoutNames() topology.Snapshot {
	out := s.Snapshot
	out.Namespaces, out.Grids, out.Services, out.Slices = nil, nil, nil, nil
	for _, svc := range s.Services {
		if _, others := svc.Labels[topology.LabelServiceProxyName]; !others && svc.Spec.ClusterIP != corev1.ClusterIPNone {
			out.Services = append(out.Services, svc)
		}
	}
	for _, slice := range s.Read {
		if _, headless := slice.Labels[topology.LabelHeadless]; !headless {
			out.Slices = append(out.Slices, topology.NewSlice(slice))
		}
	}
	return out
}

// Change draws one change, and returns the changed copy.
func (s Named) Change(t *rapid.T) Named {
	switch rapid.IntRange(0, 7).Draw(t, "change of names") {
	case 0:
		s.grids(t)
	case 1, 2:
		s.namedService(t, drawNumber(t))
	case 3, 4:
		s.namedSlice(t, drawNumber(t), rapid.IntRange(0, 1).Draw(t, "slice"))
	case 5:
		name := sliceName(drawNumber(t), rapid.IntRange(0, 1).Draw(t, "slice"))
		s.Slices, s.Read = without(s.Slices, name), without(s.Read, name)
	default:
		what := rapid.SampledFrom([]string{"node", "own node", "other label", "last keys", "watched", "remove service", "labels of service"}).Draw(t, "change")
		s.Snapshot = kinds[what](t, s.Snapshot)
	}
	return s
}

func (s *Named) namedService(t *rapid.T, i int) {
	s.Snapshot = WithService(t, s.Snapshot, i)
	at := slices.IndexFunc(s.Services, func(svc *corev1.Service) bool { return svc.Name == serviceName(i) })
	svc := s.Services[at]
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1, 2:
		svc.Spec.Type, svc.Spec.ClusterIP, svc.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	case 3:
		svc.Spec.Type, svc.Spec.ClusterIP, svc.Spec.ClusterIPs = corev1.ServiceTypeExternalName, "", nil
		svc.Spec.ExternalName = rapid.SampledFrom([]string{"db.example.com", "10.0.0.1", "a..b"}).Draw(t, "external name")
	case 4: // that of another Service
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1"}
	}
}

// namedSlice draws an EndpointSlice with host names. Some are those of Pods of StatefulSets that
// Grids have in units.
func (s *Named) namedSlice(t *rapid.T, i, n int) {
	slice := drawSlice(t, i, n)
	switch rapid.IntRange(0, 6).Draw(t, "label") {
	case 0, 1, 2:
		slice.Labels[topology.LabelHeadless] = ""
	case 3:
		slice.Labels[topology.LabelServiceProxyName] = "other"
	case 4:
		slice.AddressType, slice.Endpoints = discoveryv1.AddressTypeFQDN, nil
	}
	hostnames := []string{"", "", "db-x-0", "db-x-1", "db-y-0", "app-x-0", "db-0", "db-x-00", "x-db-0", "Not_A.label", "db-x-y-0"}
	for j := range slice.Endpoints {
		e := &slice.Endpoints[j]
		if name := rapid.SampledFrom(hostnames).Draw(t, "host name"); name != "" {
			e.Hostname = &name
		}
		if rapid.IntRange(0, 5).Draw(t, "further") == 0 {
			e.Addresses = append(e.Addresses, rapid.SampledFrom([]string{"10.9.0.1", "fd00:9::1", "x"}).Draw(t, "further address"))
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "no name") == 0 {
		slice.Ports[0].Name = nil
	}
	s.Slices = append(without(s.Slices, slice.Name), topology.NewSliceWithNames(slice))
	s.Read = append(without(s.Read, slice.Name), slice)
	slices.SortFunc(s.Slices, func(a, b *topology.Slice) int { return topology.CompareObjects(a, b) })
	slices.SortFunc(s.Read, func(a, b *discoveryv1.EndpointSlice) int { return topology.CompareObjects(a, b) })
}

func (s *Named) grids(t *rapid.T) {
	drawn := map[types.NamespacedName]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "grids") {
		name := rapid.SampledFrom([]string{"db", "db", "app", "x", "db-x"}).Draw(t, "grid")
		drawn[types.NamespacedName{Namespace: rapid.SampledFrom([]string{"ns", "ns", "other"}).Draw(t, "namespace"), Name: name}] = true
	}
	s.Grids = slices.SortedFunc(maps.Keys(drawn), topology.CompareServices)
}

// Decided returns a DNSView with the names of v and no reasons for them.
func Decided(v dnsview.View) topology.DNSView {
	decided := topology.DNSView{Node: v.Node, Namespaces: v.Namespaces}
	for _, n := range v.Services {
		decided.Services = append(decided.Services, &topology.DNSService{Names: *n})
	}
	return decided
}
