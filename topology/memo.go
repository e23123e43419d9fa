package topology

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memo remembers the result for each Service, by the identity of its inputs. The zero value is
// ready for use. One goroutine may use it.
//
// Its Resolve always equals the function Resolve. A ServicePort whose inputs did not change is the
// same pointer as before.
type Memo struct {
	services map[types.NamespacedName]*memory
}

// memory is a result and everything it was decided from.
type memory struct {
	svc      *corev1.Service
	confined confinement                  // as read from svc
	slices   []*discoveryv1.EndpointSlice // an array of their own: a Snapshot's would stay as long as this
	node     string
	noUnit   NodesWithoutUnit
	labels   []nodeLabel // of this node and the endpoints' nodes, as far as they count
	watched  watchedPart
	result   resolved
	used     bool // in the current run
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
	view := resolveSnapshot(s, c, m)
	m.forgetUnused()
	return view
}

// confine is the function confine, faster: an annotation that could be read is not read
// again. LastKeys count only where it could not.
func (m *Memo) confine(name types.NamespacedName, svc *corev1.Service, lastKeys []string) confinement {
	if old := m.services[name]; old != nil && old.svc == svc && old.confined.malformed == "" {
		return old.confined
	}
	return confine(svc, lastKeys)
}

func (m *Memo) resolveService(name types.NamespacedName, o observer, svc *corev1.Service, own []*discoveryv1.EndpointSlice, confined confinement) resolved {
	seen := o.labelsThatCount(confined, own)
	watched := o.watchedPart(confined)
	old := m.services[name]
	if old == nil || old.svc != svc || old.node != o.node || old.noUnit != o.noUnit || old.watched != watched ||
		!slices.Equal(old.slices, own) || !equal(old.labels, seen) {
		old = &memory{
			svc: svc, confined: confined, slices: slices.Clone(own), node: o.node, noUnit: o.noUnit, labels: slices.Collect(seen),
			result: resolveService(o, svc, own, confined), watched: watched,
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

// labelsThatCount are the node labels that the decision about a Service reads: the zone of this
// node, and the topology keys in force of every node concerned. They contain everything that
// LastKeys decide, so LastKeys are not compared separately.
func (o observer) labelsThatCount(c confinement, own []*discoveryv1.EndpointSlice) iter.Seq[nodeLabel] {
	return func(yield func(nodeLabel) bool) {
		if zone := o.labels[corev1.LabelTopologyZone]; zone != "" &&
			!yield(nodeLabel{node: o.node, key: corev1.LabelTopologyZone, value: zone}) {
			return
		}
		if len(c.keys) == 0 {
			return
		}
		if !o.labelsOf(o.node, c.keys, yield) {
			return
		}
		for _, slice := range own {
			for i := range slice.Endpoints {
				if name := slice.Endpoints[i].NodeName; name != nil && !o.labelsOf(*name, c.keys, yield) {
					return
				}
			}
		}
	}
}

func (o observer) labelsOf(node string, keys []string, yield func(nodeLabel) bool) bool {
	labels, known := o.nodes[node]
	if !known {
		return yield(nodeLabel{node: node, unknown: true})
	}
	for _, key := range keys {
		if !yield(nodeLabel{node: node, key: key, value: labels[key]}) {
			return false
		}
	}
	return true
}

// equal reports whether a sequence is the remembered one.
func equal(old []nodeLabel, seen iter.Seq[nodeLabel]) bool {
	i := 0
	for label := range seen {
		if i == len(old) || old[i] != label {
			return false
		}
		i++
	}
	return i == len(old)
}
