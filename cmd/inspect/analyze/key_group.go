package analyze

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// decisionsMax is for how many Nodes and ports of Services a Report decides whether clients are
// refused. They take some 30 s. Whoever may create Services can name keys that have another value
// on each Node.
const decisionsMax = 4_000_000

type keyGroup struct {
	services []closedService
	units    int // how many different Nodes there are at most, as far as the keys go
}

// cost returns how many decisions a Service of the group takes.
func (g keyGroup) cost(service int) int { return g.units * len(g.services[service].service.Spec.Ports) }

// groups returns the Services whose keys Nodes carry, grouped by keys. Groups with few units
// come first, so that keys with many values do not use up what is left for others.
func (a *analysis) groups() []keyGroup {
	values := map[string]map[string]bool{} // by key
	for _, node := range a.nodes {
		for key, value := range a.snapshot.Nodes[node] {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			values[key][value] = true
		}
	}
	byKeys := map[string]*keyGroup{}
	for _, c := range a.closed {
		if !slices.ContainsFunc(c.keys, a.isCarried) {
			continue
		}
		id := strings.Join(c.closure.Keys, "\x00")
		if byKeys[id] == nil {
			byKeys[id] = &keyGroup{units: 1}
			for _, key := range c.keys {
				byKeys[id].units = min(len(a.nodes), byKeys[id].units*(len(values[key])+1)) // one is without the label
			}
		}
		byKeys[id].services = append(byKeys[id].services, c)
	}
	var all []keyGroup
	for _, id := range slices.Sorted(maps.Keys(byKeys)) {
		all = append(all, *byKeys[id])
	}
	slices.SortStableFunc(all, func(a, b keyGroup) int { return cmp.Compare(a.units, b.units) })
	return all
}
