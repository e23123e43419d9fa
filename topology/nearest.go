package topology

import (
	"cmp"
	"slices"
)

// Bounds of Nearest: how many keys are compared, named, and how different they may be.
const (
	maxCompared = 1000
	maxNearest  = 3
	maxDistance = 3
)

// Nearest are the label keys that a mistyped one may have meant, the most similar first: those that
// a few characters added, removed or changed make of it.
func Nearest(key string, keys []string) []string {
	type near struct {
		key  string
		edit int
	}
	var all []near
	for _, k := range keys[:min(len(keys), maxCompared)] {
		limit := min(maxDistance, len(key)/2)
		if max(len(k)-len(key), len(key)-len(k)) > limit { // quickly
			continue
		}
		if d := NameDistance(key, k); d <= limit {
			all = append(all, near{k, d})
		}
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(a.edit-b.edit, cmp.Compare(a.key, b.key)) })
	var out []string
	for _, n := range all[:min(len(all), maxNearest)] {
		out = append(out, n.key)
	}
	return out
}
