package watch

import (
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/changes"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// namedKeys counts the topology keys that are in force for some Service: those of its annotation,
// or the last ones that could be read. The zero value is without Services.
type namedKeys struct {
	services []*corev1.Service      // as counted, sorted
	count    map[string]int         // Services by key
	last     map[types.UID][]string // of Services whose annotations cannot be read now
	saved    map[types.UID][]string // that an earlier process read
}

// names reports whether a key is in force for some Service.
func (n *namedKeys) names(key string) bool { return n.count[key] > 0 }

// follow counts the keys of a sorted list of Services instead of the list before. Only Services
// that changed cost more than a comparison of pointers.
func (n *namedKeys) follow(services []*corev1.Service) {
	if n.count == nil {
		n.count, n.last = map[string]int{}, map[types.UID][]string{}
	}
	for old, now := range changes.Between(n.services, services, topology.CompareObjects) {
		n.replace(old, now)
	}
	n.services = services
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
	if lastKeys = n.saved[now.UID]; old != nil && old.UID == now.UID {
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

// countedKeys returns the keys that a Service was counted with.
func (n *namedKeys) countedKeys(svc *corev1.Service) []string {
	keys, _, err := topology.ParseKeys(svc.Annotations)
	if err != nil {
		return n.last[svc.UID]
	}
	return keys
}
