package changes

import "slices"

// Replace returns a sorted list in which the elements of some owners are other ones. Owners are
// sorted, each once. compare orders an element's owner and an owner; now are the owner's elements.
// It is the same list if no owner had or has elements.
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
