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
	Whole      bool   // what is not in Services does not exist any more

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

// WholeOf is the update that makes a View out of nothing.
func WholeOf(v dnsview.View) Update {
	return Update{Whole: true, Services: v.Services, Namespaces: v.Namespaces, NewNamespaces: true}
}

// Between is the update that makes one View of another. Unchanged Services are found by their
// pointers.
func Between(before, after dnsview.View) Update {
	same := func(n *dnsview.Names) *dnsview.Names { return n }
	return Changed(before.Services, after.Services, same).WithNamespaces(before.Namespaces, after.Namespaces)
}

// Changed is the part of Between about Services, which may have more than their names: of a sorted
// list that is never changed in place.
func Changed[T any](before, after []*T, names func(*T) *dnsview.Names) Update {
	var u Update
	compare := func(a, b *T) int { return dnsview.Compare(names(a), names(b)) }
	for old, now := range changes.Between(before, after, compare) {
		switch {
		case now != nil:
			u.Services = append(u.Services, names(now))
		default:
			u.Removed = append(u.Removed, names(old).Service)
		}
	}
	return u
}

// WithNamespaces is u with what changes of Namespaces.
func (u Update) WithNamespaces(before, after []string) Update {
	if !slices.Equal(before, after) {
		u.Namespaces, u.NewNamespaces = after, true
	}
	return u
}

// View is what an update says that is Whole, without the name of a node.
func (u Update) View() dnsview.View {
	return dnsview.View{Services: u.Services, Namespaces: u.Namespaces}
}
