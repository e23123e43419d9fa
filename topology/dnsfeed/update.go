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

// Apply is a View after an update.
func Apply(v dnsview.View, u Update) dnsview.View {
	if u.Whole {
		v.Services = u.Services
	} else if len(u.Services)+len(u.Removed) > 0 {
		v.Services = merge(v.Services, u)
	}
	if u.NewNamespaces {
		v.Namespaces = u.Namespaces
	}
	return v
}

// merge makes a new list, because others share the old one.
func merge(before []*dnsview.Names, u Update) []*dnsview.Names {
	after := make([]*dnsview.Names, 0, len(before)+len(u.Services))
	put, removed := u.Services, u.Removed
	for _, svc := range before {
		for len(put) > 0 && dnsview.Compare(put[0], svc) < 0 {
			after, put = append(after, put[0]), put[1:]
		}
		for len(removed) > 0 && dnsview.CompareNames(removed[0], svc.Service) < 0 {
			removed = removed[1:]
		}
		switch {
		case len(put) > 0 && put[0].Service == svc.Service:
			after, put = append(after, put[0]), put[1:]
		case len(removed) > 0 && removed[0] == svc.Service:
		default:
			after = append(after, svc)
		}
	}
	return append(after, put...)
}
