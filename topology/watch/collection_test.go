package watch

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestMerge compares with doing it the simple way.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sorted []*corev1.Service
		have := map[types.NamespacedName]*corev1.Service{}
		for range rapid.IntRange(0, 5).Draw(t, "rounds") {
			changes := map[types.NamespacedName]change[corev1.Service]{}
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				name := types.NamespacedName{Namespace: rapid.SampledFrom([]string{"a", "a-b"}).Draw(t, "namespace"), Name: rapid.StringMatching("[ab]-?").Draw(t, "name")}
				c := change[corev1.Service]{namespace: name.Namespace, name: name.Name}
				if rapid.Bool().Draw(t, "there") {
					c.object = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
				}
				changes[name], have[name] = c, c.object
			}
			old := append([]*corev1.Service(nil), sorted...)
			next := merge[corev1.Service](sorted, inOrder(changes))
			if !slices.Equal(old, sorted) {
				t.Fatal("the old list was changed in place")
			}
			sorted = next
			count := 0
			for _, o := range have {
				if o != nil {
					count++
				}
			}
			if len(sorted) != count {
				t.Fatalf("%d objects, not %d", len(sorted), count)
			}
			for i, o := range sorted {
				if i > 0 && topology.CompareObjects(sorted[i-1], o) >= 0 || have[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] != o {
					t.Fatalf("object %d, %s/%s, is out of order or not the one that was put", i, o.Namespace, o.Name)
				}
			}
		}
	})
}

func inOrder(changes map[types.NamespacedName]change[corev1.Service]) []change[corev1.Service] {
	return slices.SortedFunc(maps.Values(changes), func(a, b change[corev1.Service]) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}
