package changes_test

import (
	"cmp"
	"slices"
	"testing"

	"gridproxy/topology/changes"

	"pgregory.net/rapid"
)

type element struct{ name, value int }

func byName(a, b *element) int { return cmp.Compare(a.name, b.name) }

// TestBetween: to apply what differs to the list of before makes the list of after, and what is the
// same pointer in both is not read.
func TestBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := func(label string) map[int]*element {
			m := map[int]*element{}
			for _, name := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 8).Draw(t, label) {
				m[name] = &element{name, rapid.Int().Draw(t, "value")}
			}
			return m
		}
		old, now := list("before"), list("after")
		for name, e := range old {
			if rapid.Bool().Draw(t, "stays") {
				now[name] = e
			}
		}
		patched := map[int]*element{}
		for name, e := range old {
			patched[name] = e
		}
		for a, b := range changes.Between(sorted(old), sorted(now), byName) {
			switch {
			case a == b:
				t.Fatalf("%v is in both lists", a)
			case b == nil:
				delete(patched, a.name)
			default:
				patched[b.name] = b
			}
		}
		if !slices.Equal(sorted(patched), sorted(now)) {
			t.Fatalf("got %v, want %v", sorted(patched), sorted(now))
		}
	})
}

func sorted(m map[int]*element) []*element {
	var all []*element
	for _, e := range m {
		all = append(all, e)
	}
	slices.SortFunc(all, byName)
	return all
}
