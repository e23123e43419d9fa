package assign

import (
	"fmt"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"

	"k8s.io/apimachinery/pkg/types"
)

// admit removes from what the group finds the new units that are not to be made: those of Nodes
// that have brought too many, and all of them if the group would have more units than it may.
func (d *decision) admit(g *group, find map[string]found) {
	keys, fresh, number := strings.Join(g.keys, ","), map[string][]string{}, 0
	for name, f := range find {
		if d.unitByName[name] == nil {
			fresh[name] = f.nodes
		}
	}
	for _, u := range d.units {
		if u.Labels[v1alpha2.LabelKeysHash] != "" && u.Labels[g.Name] == v1alpha2.GroupMark {
			number++
		}
	}
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
	if number += len(fresh); d.MaxUnits > 0 && number > d.MaxUnits && len(fresh) > 0 {
		g.report.add(v1alpha2.ConditionInvalid, "TooManyUnits", fmt.Sprintf("autoFindNodeKeys asks for %d units, more than the limit of %d "+
			"(--max-units), so %d NodeUnits are not created: check the keys, or raise the limit", number, d.MaxUnits, len(fresh)))
		for name := range fresh {
			delete(find, name)
		}
	}
}
