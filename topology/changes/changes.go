package changes

import (
	"iter"
	"slices"
)

// Between yields the elements in which two lists differ, each with its namesake in the other list;
// nil = it has none there. Elements are compared by their pointers, so a pass over lists that are
// equal reads no element, and one list is not read at all. compare is the order of both lists.
func Between[T any](before, after []*T, compare func(a, b *T) int) iter.Seq2[*T, *T] {
	return func(yield func(*T, *T) bool) {
		if None(before, after) {
			return
		}
		for len(before) > 0 && len(after) > 0 {
			if before[0] == after[0] {
				before, after = before[1:], after[1:]
				continue
			}
			var old, now *T
			order := compare(before[0], after[0])
			if order <= 0 {
				old, before = before[0], before[1:]
			}
			if order >= 0 {
				now, after = after[0], after[1:]
			}
			if !yield(old, now) {
				return
			}
		}
		for _, old := range before {
			if !yield(old, nil) {
				return
			}
		}
		for _, now := range after {
			if !yield(nil, now) {
				return
			}
		}
	}
}

// None reports whether two lists are one, which are never changed in place, or both empty.
func None[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Replace returns a sorted list with the elements that now returns in place of those of some
// owners. Owners are sorted, each once. compare orders an element's owner and an owner. It is
// the same list if no owner had or has elements.
func Replace[T, K any](list []T, owners []K, compare func(T, K) int, now func(K) []T) []T {
	others, n := make([][]T, len(owners)), 0
	for i, owner := range owners {
		others[i] = now(owner)
		n += len(others[i])
	}
	had := func(owner K) bool {
		_, found := slices.BinarySearchFunc(list, owner, compare)
		return found
	}
	if n == 0 && list != nil && !slices.ContainsFunc(owners, had) {
		return list
	}
	all := make([]T, 0, len(list)+n)
	for i, owner := range owners {
		first, _ := slices.BinarySearchFunc(list, owner, compare)
		all, list = append(all, list[:first]...), list[first:]
		for len(list) > 0 && compare(list[0], owner) == 0 {
			list = list[1:]
		}
		all = append(all, others[i]...)
	}
	return append(all, list...)
}
