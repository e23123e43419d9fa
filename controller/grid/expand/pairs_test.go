package expand

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestPairs: they are what a map with the same entries is.
func TestPairs(t *testing.T) {
	some := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.String(), rapid.StringN(100, 400, -1)))
	rapid.Check(t, func(t *rapid.T) {
		m := some.Draw(t, "map")
		p := MakePairs(m)
		if !maps.Equal(p.Map(), m) {
			t.Fatalf("%q are %q", m, p)
		}
		if p != MakePairs(maps.Clone(m)) {
			t.Fatal("the same pairs differ")
		}
		for name, value := range m {
			if p.Get(name) != value {
				t.Fatalf("%q is %q, want %q", name, p.Get(name), value)
			}
		}
		if _, found := p.Lookup("no such name, ever"); found {
			t.Fatal("a name is found that is not there")
		}
		if other := some.Draw(t, "another map"); (p == MakePairs(other)) != maps.Equal(m, other) {
			t.Fatalf("%q and %q", m, other)
		}
	})
}
