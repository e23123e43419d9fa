package ipvs

import (
	"iter"
	"net/netip"
	"slices"
)

// touched are the keys that a plan must compare. A nil one notes nothing.
type touched struct {
	servers      map[ServerKey]struct{}
	destinations map[DestinationKey]struct{}
	addresses    map[netip.Addr]struct{}
	entries      map[Entry]struct{}
}

func newTouched() *touched {
	return &touched{
		servers:      map[ServerKey]struct{}{},
		destinations: map[DestinationKey]struct{}{},
		addresses:    map[netip.Addr]struct{}{},
		entries:      map[Entry]struct{}{},
	}
}

func (t *touched) server(k ServerKey) {
	if t != nil {
		t.servers[k] = struct{}{}
	}
}

func (t *touched) destination(k DestinationKey) {
	if t != nil {
		t.destinations[k] = struct{}{}
	}
}

func (t *touched) address(a netip.Addr) {
	if t != nil {
		t.addresses[a] = struct{}{}
	}
}

func (t *touched) entry(e Entry) {
	if t != nil {
		t.entries[e] = struct{}{}
	}
}

// missing are the keys that desired has, and that observed lacks or has with another value. It looks
// only at the keys in touched; nil = at all.
func missing[K comparable, V, W any](touched map[K]struct{}, desired map[K]V, observed map[K]W, same func(K, V, W) bool) iter.Seq[K] {
	differs := func(k K) bool {
		v, wanted := desired[k]
		w, found := observed[k]
		return wanted && (!found || !same(k, v, w))
	}
	return func(yield func(K) bool) {
		if touched == nil {
			chosen(desired, differs, yield)
		} else {
			chosen(touched, differs, yield)
		}
	}
}

// surplus are the keys that observed has and desired lacks. It looks only at the keys in touched; nil
// = at all.
func surplus[K comparable, V, W any](touched map[K]struct{}, desired map[K]V, observed map[K]W) iter.Seq[K] {
	return func(yield func(K) bool) {
		isSurplus := func(k K) bool { return has(observed, k) && !has(desired, k) }
		if touched == nil {
			chosen(observed, isSurplus, yield)
		} else {
			chosen(touched, isSurplus, yield)
		}
	}
}

// chosen yields the keys of m that choose reports true for.
func chosen[K comparable, V any](m map[K]V, choose func(K) bool, yield func(K) bool) {
	for k := range m {
		if choose(k) && !yield(k) {
			return
		}
	}
}

// exists is for missing: the key is all that must be equal.
func exists[K comparable, V, W any](K, V, W) bool { return true }

func has[K comparable, V any](m map[K]V, key K) bool {
	_, found := m[key]
	return found
}

func sorted[K any](keys iter.Seq[K], compare func(a, b K) int) []K {
	return slices.SortedFunc(keys, compare)
}
