package changes_test

import (
	"slices"
	"testing"

	"gridproxy/topology/changes"

	"pgregory.net/rapid"
)

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
