package watch

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// TestJoin compares with asking every watch about every Node and label.
func TestJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []unit{{}, {"k0", "x"}, {"k1", "x"}, {"k1", "y"}}
		var watches []unitNodes
		held := map[unit]map[string]labels.Set{}
		for _, u := range all {
			if !rapid.Bool().Draw(t, "runs") {
				continue
			}
			held[u] = map[string]labels.Set{}
			for _, name := range []string{"a", "b", "c"} {
				set := labels.Set{}
				for _, key := range []string{"k0", "k1", "k2"} {
					if v := rapid.SampledFrom([]string{"x", "x", "x", "y", ""}).Draw(t, key); v != "" {
						set[key] = v
					}
				}
				if u.has(set) {
					held[u][name] = set
				}
			}
			watches = append(watches, unitNodes{u, objects(held[u])})
		}
		want := map[string]labels.Set{}
		for _, nodes := range held {
			for name, set := range nodes {
				counts := func(key, value string) bool {
					for u, nodes := range held {
						set, holds := nodes[name]
						if holds && set[key] != value || !holds && (u.every() || u == unit{key, value}) {
							return false
						}
					}
					return true
				}
				set = maps.Clone(set)
				maps.DeleteFunc(set, func(key, value string) bool { return !counts(key, value) })
				want[name] = set
			}
		}
		if every, runs := held[unit{}]; runs {
			maps.DeleteFunc(want, func(name string, _ labels.Set) bool { _, holds := every[name]; return !holds })
		}
		if diff := cmp.Diff(want, join(watches)); diff != "" {
			t.Fatalf("join of %v (-want +got):\n%s", held, diff)
		}
	})
}

// TestOneWatchCopiesNothing: the labels of a single watch are those of its objects.
func TestOneWatchCopiesNothing(t *testing.T) {
	set := labels.Set{"k0": "x"}
	got := join([]unitNodes{{unit{"k0", "x"}, objects(map[string]labels.Set{"a": set})}})
	if !sameMap(got["a"], set) {
		t.Error("labels were copied")
	}
}
