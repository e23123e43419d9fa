package metrics

import (
	"cmp"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pairs yields each name of two lists with its object in the first and in the second one; nil = it
// is not in that list. Both lists are sorted by namespace and name, as in a Snapshot.
func pairs[P interface {
	comparable
	metav1.Object
}](before, after []P) iter.Seq2[P, P] {
	return func(yield func(P, P) bool) {
		var none P
		for len(before) > 0 || len(after) > 0 {
			old, now := none, none
			switch c := compareHeads(before, after); {
			case c < 0:
				old, before = before[0], before[1:]
			case c > 0:
				now, after = after[0], after[1:]
			default:
				old, before = before[0], before[1:]
				now, after = after[0], after[1:]
			}
			if !yield(old, now) {
				return
			}
		}
	}
}

func compareHeads[P metav1.Object](before, after []P) int {
	switch {
	case len(before) == 0:
		return 1
	case len(after) == 0:
		return -1
	default:
		a, b := before[0], after[0]
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	}
}

// changed counts the objects that were added, removed or replaced. An object that is the same has
// the same pointer.
func changed[P interface {
	comparable
	metav1.Object
}](before, after []P) int {
	n := 0
	for old, now := range pairs(before, after) {
		if old != now {
			n++
		}
	}
	return n
}

// trigger is the time of the change for which the controller wrote the EndpointSlice.
func trigger(slice *discoveryv1.EndpointSlice) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, slice.Annotations[corev1.EndpointsLastChangeTriggerTime])
	return at, err == nil
}
