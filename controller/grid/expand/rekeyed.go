package expand

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Grid whose gridUniqKey was edited has lost every unit of the former key, while the sites are
// there. The nodeSelector of a child says so: it has the key with which the child was made.

// OtherKeys returns the label keys, other than the Grid's, by which children of lost units may
// select their Nodes: the keys of Observed.Others. They are sorted, at most otherKeysMax.
//
// For a ServiceGrid it returns the Grid's key and that of its Service if they differ, else nil.
func OtherKeys(observed Observed) []string {
	if observed.Grid.Kind == ServiceGrid {
		if key := observed.serviceKey(); key != "" && key != observed.Grid.Key {
			return []string{observed.Grid.Key, key}
		}
		return nil
	}
	found := map[string]bool{}
	for i := range observed.Children {
		l := &observed.Children[i]
		value := ValueOf(observed.Grid, *l)
		if value == "" || len(observed.Units[value]) > 0 || observed.Grid.ownershipOf(l) != ours {
			continue
		}
		for key := range observed.Grid.otherLabels(l, value) {
			found[key] = true
		}
	}
	keys := slices.Sorted(maps.Keys(found))
	return keys[:min(len(keys), otherKeysMax)]
}

// serviceKey returns the key that a ServiceGrid's Service was made for; "" without a Service,
// or if we own neither its annotation nor its label that says so.
func (o Observed) serviceKey() string {
	for i := range o.Children {
		l := &o.Children[i]
		if l.Name != o.Grid.childName("") || o.Grid.ownershipOf(l) != ours {
			continue
		}
		// Who changes one owns it after that.
		if key := l.Annotations.Get(v1.AnnotationKey); key != "" && strings.Contains(l.Owned, `"f:`+v1.AnnotationKey+`"`) {
			return key
		}
		if strings.Contains(l.Owned, `"f:`+v1.LabelKey+`"`) {
			return l.Labels.Get(v1.LabelKey)
		}
	}
	return ""
}

// keptKey returns the key with which a ServiceGrid's Service stays, though the Grid has another
// one: no Node has that, and the Service would be refused everywhere. "": it follows the Grid.
func (o Observed) keptKey() string {
	if keys := OtherKeys(o); o.Grid.Kind == ServiceGrid && len(keys) == 2 && len(o.Others[keys[0]]) == 0 && len(o.Others[keys[1]]) > 0 {
		return keys[1]
	}
	return ""
}

// serviceRekeyed returns the condition Rekeyed of a ServiceGrid; nil: its Service has its key.
func (a *assessment) serviceRekeyed() *verdict {
	key := a.keptKey()
	if key == "" {
		return nil
	}
	return &verdict{metav1.ConditionTrue, "KeyChanged", fmt.Sprintf("gridUniqKey is %q, which no Node has, so the Service keeps the topology key %q, which Nodes have: "+
		"set gridUniqKey back, or label Nodes with the new key", a.Grid.Key, key)}
}

// otherLabels returns the entries of a child's nodeSelector by which it may select its unit,
// without the Grid's key: they have the value of the unit, or the value that gives the child its
// name. Labels and annotations alone do not decide: whoever may write the child may change them.
func (g Grid) otherLabels(l *Live, value string) map[string]string {
	others := map[string]string{}
	for key, selected := range l.NodeSelector.All() {
		if key != g.Key && (selected == value || g.childName(selected) == l.Name) {
			others[key] = selected
		}
	}
	return others
}

// formerLabels returns otherLabels of the child, without those in the nodeSelector of the Grid's
// template.
func (u *unit) formerLabels() map[string]string {
	others := u.grid.otherLabels(u.live, u.Value)
	wished, _ := u.template("template", "spec", "nodeSelector").(map[string]any)
	maps.DeleteFunc(others, func(key, selected string) bool { return wished[key] == selected })
	return others
}

// formerKey returns the first key of others, in sorted order, whose label Nodes carry; "" if
// they carry no such label. A key that was not looked up counts as carried.
func (a *assessment) formerKey(others map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(others)) {
		if values, found := a.Others[key]; !found || len(values[others[key]]) > 0 {
			return key
		}
	}
	return ""
}

// firstLoss returns when the first unit was lost whose child would be deleted; zero without such
// a unit. A loss that is not recorded yet counts as lost now.
func (a *assessment) firstLoss() (first time.Time) {
	for _, u := range a.units {
		if u.ownership != ours || u.nodes > 0 || u.unserved {
			continue
		}
		if _, never := a.graceOf(u, false); never != "" {
			continue
		}
		first = sooner(first, cmp.Or(clockOf(u.live), a.second()))
	}
	return first
}

// wasThere reports whether a child is older than the first loss, if there is one. A later child
// may have come in the place of one that is lost, so it does not make the loss a smaller part.
func wasThere(l *Live, first time.Time) bool {
	return first.IsZero() || l.Created.Before(first.Add(-firstLossGrace))
}

// rekeyed returns the condition Rekeyed: True if children without Nodes select Nodes by another
// key.
func (a *assessment) rekeyed() verdict {
	var values []string
	key := ""
	for _, u := range a.units {
		if u.loss != nil && u.loss.former != "" && !u.deleting() {
			values, key = append(values, u.Value), u.loss.former
		}
	}
	if len(values) == 0 {
		return verdict{metav1.ConditionFalse, "SameKey", "no child without Nodes selects Nodes that exist by another key than gridUniqKey"}
	}
	return verdict{metav1.ConditionTrue, "KeyChanged", fmt.Sprintf("gridUniqKey is %q, and Nodes with label %s have the values of %d children that were made for it: %s; "+
		"these children are kept; set gridUniqKey back, or delete them by name: %s", a.Grid.Key, key, len(values), listed(values), a.releaseCommand(values))}
}

// kept returns a condition of the last status if it was True there, else otherwise. While the
// Grid's key is unusable nothing new is known about losses.
func (a *assessment) kept(of string, otherwise verdict) verdict {
	if c := meta.FindStatusCondition(a.Observed.Status.Conditions, of); c != nil && c.Status == metav1.ConditionTrue {
		return verdict{metav1.ConditionTrue, c.Reason, c.Message}
	}
	return otherwise
}
