package metrics

import (
	"gridproxy/topology/changes"
)

// changed counts the elements that were added, removed or replaced. An element that is the same
// has the same pointer.
func changed[T any](before, after []*T, compare func(a, b *T) int) int {
	n := 0
	for range changes.Between(before, after, compare) {
		n++
	}
	return n
}
