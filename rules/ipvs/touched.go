package ipvs

import (
	"iter"
	"net/netip"
)

// touched is the keys that a plan must compare. A nil one notes nothing.
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

// missing are the keys that want has and have lacks, or has otherwise than same says. Only
// keys in touched are looked at; a nil touched stands for all.
func missing[K comparable, V, W any](t map[K]struct{}, want map[K]V, have map[K]W, same func(K, V, W) bool) iter.Seq[K] {
	differs := func(k K, v V) bool {
		w, found := have[k]
		return !found || !same(k, v, w)
	}
	return func(yield func(K) bool) {
		if t == nil {
			for k, v := range want {
				if differs(k, v) && !yield(k) {
					return
				}
			}
			return
		}
		for k := range t {
			if v, wanted := want[k]; wanted && differs(k, v) && !yield(k) {
				return
			}
		}
	}
}

// surplus are the keys that have has and want lacks, among those in touched; a nil touched
// stands for all.
func surplus[K comparable, V, W any](t map[K]struct{}, want map[K]V, have map[K]W) iter.Seq[K] {
	return func(yield func(K) bool) {
		if t == nil {
			for k := range have {
				if _, wanted := want[k]; !wanted && !yield(k) {
					return
				}
			}
			return
		}
		for k := range t {
			if _, found := have[k]; !found {
				continue
			}
			if _, wanted := want[k]; !wanted && !yield(k) {
				return
			}
		}
	}
}

// exists is for missing: a key that is there is as it must be.
func exists[K comparable, V, W any](K, V, W) bool { return true }
