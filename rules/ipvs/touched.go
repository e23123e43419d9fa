package ipvs

import (
	"iter"
	"net/netip"
)

// touched are the keys that a plan must compare. With nil maps it must compare all, and notes
// nothing.
type touched struct {
	servers      map[ServerKey]struct{}
	destinations map[DestinationKey]struct{}
	addresses    map[netip.Addr]struct{}
	entries      map[Entry]struct{}
}

func newTouched() touched {
	return touched{
		servers:      map[ServerKey]struct{}{},
		destinations: map[DestinationKey]struct{}{},
		addresses:    map[netip.Addr]struct{}{},
		entries:      map[Entry]struct{}{},
	}
}

// all reports whether a plan must compare everything.
func (t touched) all() bool { return t.servers == nil }

// note adds a key, unless keys are nil.
func note[K comparable](keys map[K]struct{}, key K) {
	if keys != nil {
		keys[key] = struct{}{}
	}
}

// missing yields the keys that desired has, and that observed lacks or has with another value.
// It looks only at the keys in touched; nil = at all.
func missing[K comparable, V, W any](touched map[K]struct{}, desired map[K]V, observed map[K]W, same func(K, V, W) bool) iter.Seq[K] {
	differs := func(k K) bool {
		v, isDesired := desired[k]
		w, found := observed[k]
		return isDesired && (!found || !same(k, v, w))
	}
	return func(yield func(K) bool) {
		if touched == nil {
			chosen(desired, differs, yield)
		} else {
			chosen(touched, differs, yield)
		}
	}
}

// surplus yields the keys that observed has and desired lacks. It looks only at the keys in
// touched; nil = at all.
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

// exists returns true, for missing: the key is all that must be equal.
func exists[K comparable, V, W any](K, V, W) bool { return true }

func has[K comparable, V any](m map[K]V, key K) bool {
	_, found := m[key]
	return found
}
