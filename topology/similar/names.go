package similar

import (
	"cmp"
	"slices"
)

// Bounds of Names: how many names are compared and returned, and how different they may be.
const (
	comparedMax = 1000
	foundMax    = 3
	distanceMax = 3
)

// Names returns the members of all that a mistyped name may have meant, the most similar first.
// They differ from it by a few characters added, removed or changed. It returns at most three.
func Names(mistyped string, all []string) []string {
	type near struct {
		name string
		edit int
	}
	var found []near
	for _, name := range all[:min(len(all), comparedMax)] {
		limit := min(distanceMax, len(mistyped)/2)
		if max(len(name)-len(mistyped), len(mistyped)-len(name)) > limit { // quickly
			continue
		}
		if d := Distance(mistyped, name); d <= limit {
			found = append(found, near{name, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(a.edit-b.edit, cmp.Compare(a.name, b.name)) })
	var out []string
	for _, n := range found[:min(len(found), foundMax)] {
		out = append(out, n.name)
	}
	return out
}

// Distance returns how many bytes must be added, removed or changed to turn a into b
// (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
