package analyze

import (
	"maps"
	"slices"

	"gridproxy/controller/gridspec"
)

// gridCode is the code for a reason of a gridspec.Mistake.
func gridCode(reason string) string {
	switch reason {
	case gridspec.ReasonNoUnits:
		return gridWithoutUnits
	case gridspec.ReasonMissingTemplate:
		return missingTemplate
	case gridspec.ReasonInvalidTemplate:
		return invalidTemplate
	default: // ReasonEmpty, ReasonInvalidKey
		return gridWithoutKey
	}
}

// gridMistakes finds what is wrong with Grids.
func (a *analysis) gridMistakes() {
	known := map[string]*gridspec.NodeLabels{} // by key
	for _, g := range a.grids {
		if known[g.Key] == nil && len(a.nodes) > 0 {
			known[g.Key] = &gridspec.NodeLabels{Keys: a.carried, Values: a.values(g.Key)}
		}
		for _, m := range g.Mistakes(known[g.Key]) {
			code := gridCode(m.Reason)
			a.found[code] = append(a.found[code], raw{Object{string(g.Kind), g.Namespace, g.Name}, text(m.Wrong, m.Remedy)})
		}
	}
}

// values are those that Nodes have for a key, sorted.
func (a *analysis) values(key string) []string {
	all := map[string]bool{}
	for _, set := range a.snapshot.Nodes {
		if value := set[key]; value != "" {
			all[value] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
