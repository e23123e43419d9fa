package explain

import (
	"iter"
	"slices"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ByService yields the ports of a View, one Service at a time. A View is sorted by Service.
func ByService(v topology.View) iter.Seq[[]*topology.ServicePort] {
	return func(yield func([]*topology.ServicePort) bool) {
		for rest := v.Ports; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Name.NamespacedName == rest[0].Name.NamespacedName {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// IsRefused reports whether a Service is closed and this node may use none of its endpoints.
// ports are all ports of the Service, at least one.
func IsRefused(ports []*topology.ServicePort) bool {
	return ports[0].Closure.Closed() && !slices.ContainsFunc(ports, func(sp *topology.ServicePort) bool {
		return len(sp.Cluster) > 0 || len(sp.Local) > 0
	})
}

// EachService yields, for each Service of a Snapshot, the Snapshot with this Service alone. A
// decision about a Service reads no other one, so the part resolves as the whole does.
func EachService(s topology.Snapshot) iter.Seq[topology.Snapshot] {
	return func(yield func(topology.Snapshot) bool) {
		own := SlicesOf(s)
		for _, svc := range s.Services {
			if !yield(only(s, svc, own[NameOf(svc)])) {
				return
			}
		}
	}
}

// SlicesOf returns the EndpointSlices of a Snapshot by Service, in the order of the Snapshot.
func SlicesOf(s topology.Snapshot) map[types.NamespacedName][]*topology.Slice {
	own := make(map[types.NamespacedName][]*topology.Slice, len(s.Services))
	for _, slice := range s.Slices {
		name := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Service}
		own[name] = append(own[name], slice)
	}
	return own
}

func only(s topology.Snapshot, svc *corev1.Service, own []*topology.Slice) topology.Snapshot {
	s.Services, s.Slices = []*corev1.Service{svc}, own
	return s
}

// ChangedServices yields the ports of each Service whose ports differ between two Views, as they
// were and as they are. Ports are compared by their pointers; both lists are sorted, as in a View.
func ChangedServices(before, after []*topology.ServicePort) iter.Seq2[[]*topology.ServicePort, []*topology.ServicePort] {
	return func(yield func(before, after []*topology.ServicePort) bool) {
		i, j := 0, 0
		for i < len(before) || j < len(after) {
			if i < len(before) && j < len(after) && before[i] == after[j] {
				i, j = i+1, j+1
				continue
			}
			name := firstName(before[i:], after[j:])
			if !yield(topology.PortsOf(before, name), topology.PortsOf(after, name)) {
				return
			}
			for i < len(before) && before[i].Name.NamespacedName == name {
				i++
			}
			for j < len(after) && after[j].Name.NamespacedName == name {
				j++
			}
		}
	}
}

// firstName returns the name of the Service that sorts first. One of the lists is not empty.
func firstName(a, b []*topology.ServicePort) types.NamespacedName {
	if len(a) == 0 || len(b) > 0 && topology.CompareNames(b[0].Name, a[0].Name) < 0 {
		return b[0].Name.NamespacedName
	}
	return a[0].Name.NamespacedName
}
