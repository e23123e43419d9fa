package dnsfeed

import (
	"slices"

	"gridproxy/topology/changes"
	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// Update is what changes. It is applied as a whole or not at all.
type Update struct {
	Generation uint64 // counts up; of no meaning between two connections
	Whole      bool   // what is neither in Services nor Later does not exist any more

	// Later are large Services, if Whole: each follows in an update of its own, and until then a
	// reader keeps what it has of it.
	Later []types.NamespacedName

	Services []*dnsview.Names       // new and changed ones, sorted
	Removed  []types.NamespacedName // sorted

	Namespaces []string // all that exist, if NewNamespaces
	// NewNamespaces tells an update without any Namespace from one in which they stay.
	NewNamespaces bool
}

// Empty reports whether an update changes nothing.
func (u Update) Empty() bool {
	return !u.Whole && len(u.Services)+len(u.Removed) == 0 && !u.NewNamespaces
}

// WholeOf returns the update that makes v out of nothing.
func WholeOf(v dnsview.View) Update {
	return Update{Whole: true, Services: v.Services, Namespaces: v.Namespaces, NewNamespaces: true}
}

// Between returns the update that makes one View of another. Unchanged Services are found by their
// pointers.
func Between(before, after dnsview.View) Update {
	var u Update
	for old, now := range changes.Between(before.Services, after.Services, dnsview.Compare) {
		if now != nil {
			u.Services = append(u.Services, now)
		} else {
			u.Removed = append(u.Removed, old.Service)
		}
	}
	if !slices.Equal(before.Namespaces, after.Namespaces) {
		u.Namespaces, u.NewNamespaces = after.Namespaces, true
	}
	return u
}

// View returns the view that a Whole update describes, without the name of a node.
func (u Update) View() dnsview.View {
	return dnsview.View{Services: u.Services, Namespaces: u.Namespaces}
}
