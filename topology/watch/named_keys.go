package watch

import (
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// namedKeys counts the topology keys that are in force for some Service: those of its annotation,
// or the last ones that could be read. The zero value is without Services.
type namedKeys struct {
	services []*corev1.Service      // as counted, sorted
	count    map[string]int         // Services by key
	last     map[types.UID][]string // of Services whose annotations cannot be read now
}

// names reports whether a key is in force for some Service.
func (n *namedKeys) names(key string) bool { return n.count[key] > 0 }

// follow takes over a sorted list of Services. Only Services that changed cost more than a
// comparison of pointers.
func (n *namedKeys) follow(services []*corev1.Service) {
	if n.count == nil {
		n.count, n.last = map[string]int{}, map[types.UID][]string{}
	}
	before, after := n.services, services
	for len(before) > 0 || len(after) > 0 {
		switch order := compareFirst(before, after); {
		case order < 0:
			n.replace(before[0], nil)
			before = before[1:]
		case order > 0:
			n.replace(nil, after[0])
			after = after[1:]
		default:
			if before[0] != after[0] {
				n.replace(before[0], after[0])
			}
			before, after = before[1:], after[1:]
		}
	}
	n.services = services
}

func compareFirst(a, b []*corev1.Service) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return object.Compare(a[0], b[0])
	}
}

// replace counts now instead of old; nil = there is none.
func (n *namedKeys) replace(old, now *corev1.Service) {
	var keys, lastKeys []string
	if old != nil {
		keys = n.countedKeys(old)
		delete(n.last, old.UID)
	}
	for _, key := range keys {
		if n.count[key]--; n.count[key] == 0 {
			delete(n.count, key)
		}
	}
	if now == nil {
		return
	}
	if old != nil && old.UID == now.UID {
		lastKeys = keys
	}
	keys, _, err := topology.ParseKeys(now.Annotations)
	if err != nil {
		keys = lastKeys
		if len(keys) > 0 {
			n.last[now.UID] = slices.Clone(keys)
		}
	}
	for _, key := range keys {
		n.count[key]++
	}
}

// countedKeys are the keys that a Service was counted with.
func (n *namedKeys) countedKeys(svc *corev1.Service) []string {
	keys, _, err := topology.ParseKeys(svc.Annotations)
	if err != nil {
		return n.last[svc.UID]
	}
	return keys
}
