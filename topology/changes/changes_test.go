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

// TestReplace: of a list in which an owner has any number of elements, those of some owners are
// replaced. The list itself is not changed, and is returned where nothing was and is there.
func TestReplace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []element { // sorted
			var all []element
			for name := range 8 {
				for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, label) {
					all = append(all, element{name, rapid.IntRange(0, 99).Draw(t, "value")})
				}
			}
			return all
		}
		before, next := draw("before"), draw("now")
		owners := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.IntRange(0, 9), 0, 8).Draw(t, "owners"))))
		of := func(list []element, owner int) []element {
			return slices.DeleteFunc(slices.Clone(list), func(e element) bool { return e.name != owner })
		}
		var want []element
		touched := false
		for name := range 10 {
			from := before
			if slices.Contains(owners, name) {
				from = next
				touched = touched || len(of(before, name))+len(of(next, name)) > 0
			}
			want = append(want, of(from, name)...)
		}
		kept := slices.Clone(before)
		got := changes.Replace(before, owners, func(e element, owner int) int { return e.name - owner }, func(owner int) []element { return of(next, owner) })
		if !slices.Equal(got, want) || !slices.Equal(before, kept) {
			t.Fatalf("got %v, want %v; the list was %v and is %v", got, want, kept, before)
		}
		if len(before) > 0 && !touched && &got[0] != &before[0] {
			t.Fatal("nothing changed, and the list is another one")
		}
	})
}
