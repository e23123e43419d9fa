package metrics

import (
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// changed counts the elements that were added, removed or replaced. An element that is the same
// has the same pointer.
func changed[T any](before, after []*T, compare func(a, b *T) int) int {
	n := 0
	for range topology.Changes(before, after, compare) {
		n++
	}
	return n
}

// trigger is the time of the change for which the controller wrote the EndpointSlice.
func trigger(slice *discoveryv1.EndpointSlice) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, slice.Annotations[corev1.EndpointsLastChangeTriggerTime])
	return at, err == nil
}
