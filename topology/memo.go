package topology

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memo remembers what each Service came to, by the identity of what it was decided from.
// The zero value is ready for use. One goroutine may use it.
//
// Its Resolve equals the function Resolve always; a ServicePort whose inputs did not
// change is the same pointer as before.
type Memo struct {
	services map[types.NamespacedName]*memory
}

// memory is a result and everything it was decided from.
type memory struct {
	svc      *corev1.Service
	slices   []*discoveryv1.EndpointSlice
	node     string
	fallback NodesWithoutUnit
	labels   []nodeLabel // of this node and the endpoints' nodes, as far as they count
	result   resolved
	used     bool // in the run that goes on
}

// nodeLabel is one label of one node, or that the node is unknown.
type nodeLabel struct {
	node, key, value string
	unknown          bool
}

// Resolve is the function Resolve, faster.
func (m *Memo) Resolve(s Snapshot, c Config) View {
	if m.services == nil {
		m.services = make(map[types.NamespacedName]*memory, len(s.Services))
	}
	view := View{
		Node:       s.Node,
		Self:       factsOf(s),
		Ports:      make([]*ServicePort, 0, len(s.Services)),
		ReadyLocal: make(map[types.NamespacedName]FamilyCount),
	}
	o := newObserver(s, c)
	byService := slicesByService(s.Slices)
	for _, svc := range s.Services {
		if !Served(svc) {
			continue
		}
		name := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
		r := m.resolveService(name, o, svc, byService[name], s.LastKeys[svc.UID])
		view.Ports = append(view.Ports, r.ports...)
		if r.readyLocal != (FamilyCount{}) {
			view.ReadyLocal[name] = r.readyLocal
		}
	}
	m.forgetUnused()
	if !slices.IsSortedFunc(view.Ports, comparePorts) {
		slices.SortFunc(view.Ports, comparePorts)
	}
	return view
}

func comparePorts(a, b *ServicePort) int { return CompareNames(a.Name, b.Name) }

func (m *Memo) resolveService(name types.NamespacedName, o observer, svc *corev1.Service, own []*discoveryv1.EndpointSlice, lastKeys []string) resolved {
	seen := o.labelsThatCount(svc, own, lastKeys)
	old := m.services[name]
	if old == nil || old.svc != svc || old.node != o.node || old.fallback != o.fallback ||
		!slices.Equal(old.slices, own) || !slices.Equal(old.labels, seen) {
		old = &memory{
			svc: svc, slices: own, node: o.node, fallback: o.fallback, labels: seen,
			result: resolveService(o, svc, own, lastKeys),
		}
		m.services[name] = old
	}
	old.used = true
	return old.result
}

func (m *Memo) forgetUnused() {
	for name, memory := range m.services {
		if !memory.used {
			delete(m.services, name)
		}
		memory.used = false
	}
}

// labelsThatCount are the node labels that the decision about a Service reads: of this
// node its zone, and of every node concerned the topology keys in force. These say all
// that LastKeys decides, so it is not compared by itself: it changes once for every closed
// Service after the first run.
func (o observer) labelsThatCount(svc *corev1.Service, own []*discoveryv1.EndpointSlice, lastKeys []string) []nodeLabel {
	var seen []nodeLabel
	if zone := o.labels[corev1.LabelTopologyZone]; zone != "" {
		seen = append(seen, nodeLabel{node: o.node, key: corev1.LabelTopologyZone, value: zone})
	}
	if _, found := svc.Annotations[AnnotationKeys]; !found {
		return seen
	}
	keys := confine(svc, lastKeys).keys
	add := func(node string) {
		labels, known := o.nodes[node]
		seen = append(seen, nodeLabel{node: node, unknown: !known})
		for _, key := range keys {
			seen = append(seen, nodeLabel{node: node, key: key, value: labels[key]})
		}
	}
	add(o.node)
	for _, slice := range own {
		for i := range slice.Endpoints {
			if name := slice.Endpoints[i].NodeName; name != nil {
				add(*name)
			}
		}
	}
	return seen
}
