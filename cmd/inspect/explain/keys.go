package explain

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/similar"
)

// UncarriedKeys returns a note for each of a Service's keys that no Node has, with the similar keys
// that Nodes have. A source without Nodes has none.
func UncarriedKeys(s topology.Snapshot, keys []string) (notes []string) {
	carried := topology.CarriedKeys(s.Nodes)
	for _, key := range keys {
		if slices.Contains(carried, key) || key == topology.AnyEndpoint || len(s.Nodes) == 0 {
			continue
		}
		note := "no Node has a value for " + key
		if names := similar.Names(key, carried); len(names) > 0 {
			note += fmt.Sprintf("; Nodes have the similar %s", strings.Join(names, ", "))
		}
		notes = append(notes, note)
	}
	return notes
}
