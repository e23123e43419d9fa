package topology

import (
	"k8s.io/apimachinery/pkg/types"
)

// Memo remembers the last View and decides only about the Services whose inputs have changed since.
// The zero value is ready for use. One goroutine may use it.
//
// Its Resolve always equals the function Resolve. A ServicePort whose inputs did not change is the
// same pointer as before. A run costs what tracker says, and the decisions about what changed.
type Memo struct {
	tracker
	view View // of the last Snapshot
}

// Resolve returns the same as the function Resolve, faster.
func (m *Memo) Resolve(s Snapshot, c Config) View {
	if m.startOver(s, c) {
		*m = Memo{tracker: newTracker(s, c), view: View{LastKeys: map[types.UID][]string{}}}
	}
	keys := m.take(s, serviceOf)
	o := newObserver(s, c)
	view := newView(s, c)
	view.LastKeys = changedKeys(m.view.LastKeys, keys)
	view.Ports = decided(&m.tracker, m.view.Ports,
		func(sp *ServicePort, name types.NamespacedName) int {
			return CompareServices(sp.Name.NamespacedName, name)
		},
		func(e *memory) []*ServicePort {
			if !c.Served(e.svc) {
				return nil
			}
			return resolveService(o, e.svc, e.slices, e.confined)
		})
	m.snapshot, m.view = s, view
	return view
}

// CompareObjects orders objects by namespace and name.
func CompareObjects[P Object](a, b P) int { return CompareServices(NameOf(a), NameOf(b)) }

// Object is an object with a known namespace and name.
type Object interface {
	GetNamespace() string
	GetName() string
}

// NameOf returns the namespace and name of an object.
func NameOf(o Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
