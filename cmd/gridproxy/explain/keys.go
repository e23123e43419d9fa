package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/similar"
)

// UncarriedKeys returns a note for each of a Service's keys that no Node has, with the similar keys
// that Nodes have. A source without Nodes has none.
func UncarriedKeys(s topology.Snapshot, keys []string) (notes []string) {
	carried := map[string]bool{}
	for _, labels := range s.Nodes {
		for key, value := range labels {
			carried[key] = carried[key] || value != ""
		}
	}
	maps.DeleteFunc(carried, func(_ string, has bool) bool { return !has })
	for _, key := range keys {
		if carried[key] || key == topology.AnyEndpoint || len(s.Nodes) == 0 {
			continue
		}
		note := "no Node has a value for " + key
		if names := similar.Names(key, slices.Sorted(maps.Keys(carried))); len(names) > 0 {
			note += fmt.Sprintf("; Nodes have the similar %s", strings.Join(names, ", "))
		}
		notes = append(notes, note)
	}
	return notes
}
