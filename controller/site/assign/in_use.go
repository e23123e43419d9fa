package assign

import (
	"strings"

	"gridproxy/controller/api/site/v1alpha2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// inUse decides which labels a Node keeps after the NodeUnit or NodeGroup that put them there is
// gone, because a Grid or a Service names the key (decision 34). Without the label, every closed
// Service that names the key would be refused at once.
type inUse struct {
	uses   *Uses
	units  map[string]*unit
	groups map[string]*group
	// leavingWishes are the labels of setNode of units that are being deleted.
	leavingWishes sets.Set[labelPair]
}

func newInUse(uses *Uses, units map[string]*unit, groups map[string]*group) inUse {
	i := inUse{uses: uses, units: units, groups: groups, leavingWishes: sets.New[labelPair]()}
	for _, u := range units {
		if !u.leaving() {
			continue
		}
		for _, set := range []v1alpha2.SetNode{u.wishes, u.privileged} {
			for key, value := range set.Labels {
				i.leavingWishes.Insert(labelPair{key, string(value)})
			}
		}
	}
	return i
}

// keeps returns the labels that the Node keeps unless a unit asks for the key, nil if it keeps
// no label. Labels whose value is empty are no unit for any Service and are not kept.
func (i inUse) keeps(n *Node) map[string]string {
	var kept map[string]string
	lost := unknown
	for key, value := range n.Labels {
		if value == "" || !i.uses.MayName(key) || !n.removable(key, value) {
			continue
		}
		if !n.isKept(key) && !i.vanished(key, value, n, &lost) || i.allowed(key, value, n) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// removable reports whether the label would be removed if no unit asked for it.
func (n *Node) removable(key, value string) bool {
	if restricted(key) {
		return n.isOurs(key)
	}
	return n.Owned.Labels.Has(key) && !n.Foreign.Labels.Has(key) ||
		n.Legacy.Labels.Has(key) && !reserved(key) || value == v1alpha2.UnitMark
}

// evidence is whether a Node carries the mark of a unit that is gone.
type evidence int

const (
	unknown evidence = iota
	lostUnit
	noLostUnit
)

// vanished reports whether what put the label on the Node is gone: the unit, the group, the
// unit's membership of the group, or by an edit most of the unit's Nodes or an entry of its
// setNode. A Node that has left a unit by its own labels is a deliberate move: then it is
// false. lost keeps the answer of carriesLostMark about the Node for the next call.
func (i inUse) vanished(key, value string, n *Node, lost *evidence) bool {
	if g := i.groups[key]; g != nil {
		u := i.units[value]
		return g.leaving() || u == nil || u.leaving() || u.takesMost(n.Name) || !g.units.Has(value)
	}
	if u := i.units[key]; u != nil && value == v1alpha2.UnitMark {
		return u.leaving() || u.takesMost(n.Name)
	}
	if u := i.units[value]; u != nil && u.Labels[key] == v1alpha2.GroupMark {
		return true // the group went without waiting for its finalizer
	}
	if i.leavingWishes.Has(labelPair{key, value}) || i.isEditedAway(key, value, n) {
		return true
	}
	if restricted(key) {
		return false // a Node can put a mark on itself
	}
	if *lost == unknown {
		*lost = noLostUnit
		if i.carriesLostMark(n) {
			*lost = lostUnit
		}
	}
	return *lost == lostUnit
}

// carriesLostMark reports whether the Node has been in a unit that is gone. What that unit's
// setNode said cannot be read any more, so any label of ours that no unit asks for may be from
// it. A mark that is itself kept from earlier proves nothing.
func (i inUse) carriesLostMark(n *Node) bool {
	record := readKeys(n.Annotations[v1alpha2.AnnotationKeptLabels])
	for key, value := range n.Labels {
		if u := i.units[key]; value == v1alpha2.UnitMark && !record.Has(key) && (u == nil || u.leaving() || u.takesMost(n.Name)) {
			return true
		}
	}
	return false
}

// allowed reports whether a person has allowed the removal of the key, on the Node or on an object
// that the label is from. A privileged label may always go: a Service that names its key must not
// keep it on Nodes.
func (i inUse) allowed(key, value string, n *Node) bool {
	if v1alpha2.PrivilegedKey(key) {
		return true
	}
	lists := func(annotations map[string]string) bool {
		return readKeys(annotations[v1alpha2.AnnotationAllowRemoval]).Has(key)
	}
	if lists(n.Annotations) {
		return true
	}
	if g := i.groups[key]; g != nil && lists(g.Annotations) {
		return true
	}
	for _, name := range []string{key, value} {
		if u := i.units[name]; u != nil && lists(u.Annotations) {
			return true
		}
	}
	for unit, mark := range n.Labels {
		if u := i.units[unit]; u != nil && mark == v1alpha2.UnitMark && lists(u.Annotations) {
			return true
		}
	}
	return false
}

// readKeys reads label keys that are separated by commas; nil for an empty text.
func readKeys(text string) sets.Set[string] {
	if text == "" {
		return nil
	}
	keys := sets.New[string]()
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys.Insert(key)
		}
	}
	return keys
}
