package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/gridspec"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxSkipped is for how many kinds it is said that their objects are skipped.
const maxSkipped = 10

// skipped returns a line for each kind of object in manifests that a command does not use, and
// one line for all beyond maxSkipped kinds. It is pure.
func skipped(counts map[schema.GroupKind]int) []string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	var lines []string
	for _, k := range kinds[:min(len(kinds), maxSkipped)] {
		why := "gridproxy does not use this kind"
		if k.String() == "Endpoints" {
			why = "gridproxy reads EndpointSlices; write an EndpointSlice"
		}
		if slices.ContainsFunc(gridspec.Kinds(), func(grid gridspec.Kind) bool { return grid.GroupVersionKind().GroupKind() == k }) {
			why = "see gridproxy analyze and grid-controller expand"
		}
		objects := "objects"
		if counts[k] == 1 {
			objects = "object"
		}
		lines = append(lines, fmt.Sprintf("%d %s of kind %s skipped: %s", counts[k], objects, excerpt.Of(k.String()), why))
	}
	if more := len(kinds) - maxSkipped; more > 0 {
		lines = append(lines, fmt.Sprintf("objects of %d other kinds skipped", more))
	}
	return lines
}
