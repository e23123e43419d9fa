package watch

import (
	"maps"
	"slices"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestListFollowsStore: list returns what the store holds, in the order of CompareObjects. Lists of
// before stay as they are. The list and its version change only if an object does.
func TestListFollowsStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newCollection(access{what: "Services"}, apiKind(new(object.Trimmer).Service), newPulse())
		if err != nil {
			t.Fatal(err)
		}
		store, have := c.informer.GetStore(), map[types.NamespacedName]*corev1.Service{}
		last, before := c.list()
		for range rapid.IntRange(1, 6).Draw(t, "lists") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
					Namespace: rapid.SampledFrom([]string{"a", "a-b"}).Draw(t, "namespace"), Name: rapid.StringMatching("[ab]-?").Draw(t, "name"),
				}}
				apply := store.Delete
				delete(have, topology.NameOf(svc))
				if rapid.Bool().Draw(t, "exists") {
					apply, have[topology.NameOf(svc)] = store.Add, svc
				}
				if err := apply(svc); err != nil {
					t.Fatal(err)
				}
				c.mark(svc)
			}
			kept := slices.Clone(last)
			got, version := c.list()
			if want := slices.SortedFunc(maps.Values(have), topology.CompareObjects); !slices.Equal(got, want) {
				t.Fatalf("listed %v, want %v", got, want)
			}
			if !slices.Equal(last, kept) {
				t.Fatal("the list of before was changed in place")
			}
			same := len(got) == len(last) && (len(got) == 0 || &got[0] == &last[0])
			if unchanged := slices.Equal(got, last); same != unchanged || (version == before) != unchanged {
				t.Fatalf("no change: %t; the same list: %t; version %d after %d", unchanged, same, version, before)
			}
			last, before = got, version
		}
	})
}
