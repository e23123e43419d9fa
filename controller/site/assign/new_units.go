package assign

import (
	"fmt"
	"maps"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"

	"k8s.io/apimachinery/pkg/types"
)

// admit removes from what the group finds the new units that are not to be made: those of Nodes
// that have brought too many, and all of them if the group would have more units than it may.
func (d *decision) admit(g *group, find map[string]found) {
	keys, fresh := strings.Join(g.keys, ","), d.newUnits(g, find)
	a := d.Flips[g.UID].Admit(keys, fresh, d.NewUnits, d.Now)
	if d.plan.Flips == nil {
		d.plan.Flips = map[types.UID]flips.Log{}
	}
	d.plan.Flips[g.UID] = a.Log
	d.plan.recheckAt(a.Next(), d.Now)
	for _, r := range a.Report {
		d.plan.Refused = append(d.plan.Refused, Refused{Group: g.Name, UID: g.UID, Note: r.Message("autoFindNodeKeys "+keys, d.NewUnits)})
	}
	for name := range a.Refused {
		delete(find, name)
		delete(fresh, name)
	}
	if number := d.countFound(g) + len(fresh); d.MaxUnits > 0 && number > d.MaxUnits && len(fresh) > 0 {
		g.report.add(v1alpha2.ConditionInvalid, "TooManyUnits", fmt.Sprintf("autoFindNodeKeys asks for %d units, more than the limit of %d "+
			"(--max-units), so %d NodeUnits are not created: check the keys, or raise the limit", number, d.MaxUnits, len(fresh)))
		for name := range fresh {
			delete(find, name)
		}
	}
}

// newUnits returns the units that the group finds and that do not exist, with the Nodes of each,
// sorted.
func (d *decision) newUnits(g *group, find map[string]found) map[string][]string {
	fresh := map[string][]string{}
	for name := range find {
		if d.unitByName[name] == nil {
			fresh[name] = nil
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	for _, n := range d.nodes {
		f, asks := g.findFor(n)
		if _, isNew := fresh[f.name]; asks && isNew && maps.Equal(f.pairs, find[f.name].pairs) {
			fresh[f.name] = append(fresh[f.name], n.Name)
		}
	}
	return fresh
}

// countFound returns how many NodeUnits the group has found.
func (d *decision) countFound(g *group) (n int) {
	for _, u := range d.units {
		if u.Labels[v1alpha2.LabelKeysHash] != "" && u.Labels[g.Name] == v1alpha2.GroupMark {
			n++
		}
	}
	return n
}
