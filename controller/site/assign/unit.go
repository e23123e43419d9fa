package assign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// unit is a NodeUnit with what follows from the observed state.
type unit struct {
	*v1alpha2.NodeUnit
	groups []string // the groups that hold it, sorted
	// bare are the object's labels without those that groups have put on it: what groups select by.
	bare  map[string]string
	nodes []*Node // its members, sorted by name
	// lists are the names in spec.nodes. selector and matches are what it selects by, nil if that is
	// nothing; entangled: it reads what units set on Nodes. keepsMembers: spec.selector cannot be used.
	lists                   sets.Set[string]
	selector                *v1alpha2.Selector
	matches                 func(labels, annotations map[string]string) bool
	entangled, keepsMembers bool
	// former are the Nodes with the mark of an edited unit: taken are the names of those that the edit
	// takes out. mostTaken is for status.mostTaken.
	former    []*Node
	taken     sets.Set[string]
	mostTaken int64
	// labels follow from the unit and its groups; wishes are what its setNode asks for besides.
	// privileged is the part of setNode that is set only on Nodes that the unit trusts, and stays where
	// it is ours.
	labels             map[string]string
	wishes, privileged v1alpha2.SetNode
	// trustsListed: the Nodes that spec.nodes names get what is privileged; trustsAll: all do.
	trustsListed, trustsAll bool
	sorted                  sortedKeys
	owners                  []metav1.OwnerReference // the object's, and those that are to be added
	recorded                bool                    // what it has set on Nodes has its records
	settled                 int64                   // for status.settledGeneration
	report                  report
}

// leaving reports whether the object is being deleted, and so holds nothing any more.
func (u *unit) leaving() bool { return u.DeletionTimestamp != nil }

// readUnit takes what can be used from a NodeUnit and reports the rest.
func readUnit(object *v1alpha2.NodeUnit) *unit {
	bare := maps.Clone(object.Labels)
	maps.DeleteFunc(bare, func(_, value string) bool { return value == v1alpha2.GroupMark })
	u := &unit{NodeUnit: object, bare: bare, lists: sets.New[string](), labels: map[string]string{}, owners: slices.Clone(object.OwnerReferences)}
	if err := v1alpha2.ValidateName(u.Name); err != nil {
		u.report.add(v1alpha2.ConditionInvalid, "InvalidName", err.Error()+": the unit holds no Nodes; create it again with a shorter name")
	}
	if level := u.Spec.AutonomyLevel; level != "" && level != "L3" {
		u.report.add(v1alpha2.ConditionNotImplemented, "AutonomyLevel",
			fmt.Sprintf("spec.autonomyLevel %s is stored and has no effect: the unit gets no control plane of its own", level))
	}
	return u
}

// readSelector fills in what the unit lists and selects by, and reports what is wrong with it.
// findWishes has been called.
func (u *unit) readSelector(byName map[string]*Node) {
	if u.leaving() || v1alpha2.ValidateName(u.Name) != nil {
		return
	}
	for _, name := range u.Spec.Nodes {
		if byName[name] == nil && !u.lists.Has(name) {
			u.report.add(v1alpha2.ConditionMissing, "NodeNotFound", fmt.Sprintf("spec.nodes names the Node %s, which does not exist", name))
		}
		u.lists.Insert(name)
	}
	if u.Spec.Selector.Empty() {
		return
	}
	matches, err := u.Spec.Selector.Compile()
	if err != nil {
		u.report.add(v1alpha2.ConditionInvalid, "InvalidSelector", err.Error()+": the unit keeps the Nodes that it has; correct the selector")
		u.keepMembers()
	} else if key := u.excludes(); key != "" {
		u.report.add(v1alpha2.ConditionInvalid, "SelectorExcludesMembers", fmt.Sprintf("spec.selector does not match what the unit itself sets under %s, "+
			"so Nodes would join and leave forever: the unit keeps the Nodes that it has; remove %s from the selector", key, key))
		u.keepMembers()
	} else {
		u.selector, u.matches = u.Spec.Selector, matches
	}
}

// keepMembers makes the unit select the Nodes that carry its mark. They get nothing privileged that
// they do not have: a Node can put the mark on itself.
func (u *unit) keepMembers() {
	u.keepsMembers, u.trustsAll = true, false
	u.selector = &v1alpha2.Selector{MatchLabels: map[string]string{u.Name: v1alpha2.UnitMark}}
	u.matches = func(labels, annotations map[string]string) bool {
		return labels[u.Name] == v1alpha2.UnitMark && !readKeys(annotations[v1alpha2.AnnotationKeptLabels]).Has(u.Name)
	}
}

// holds reports whether the unit lists or selects the Node as it is.
func (u *unit) holds(n *Node) bool {
	return u.lists.Has(n.Name) || u.matches != nil && u.matches(n.Labels, n.Annotations)
}

// findMembers fills in the units' Nodes: those that they list and those that they select. keeps are
// the labels that Nodes keep, by Node.
func findMembers(nodes []*Node, nodeByName map[string]*Node, units []*unit, keeps map[string]map[string]string) {
	entangled := entangle(units)
	index := newNodeIndex(nodes, units)
	for _, u := range units {
		u.findMembers(index, nodeByName)
	}
	if len(entangled) == 0 {
		return
	}
	holding := map[*Node][]*unit{}
	for _, u := range units {
		for _, n := range u.nodes {
			holding[n] = append(holding[n], u)
		}
		u.nodes = nil
	}
	for _, n := range nodes {
		for _, u := range selects(n, keeps[n.Name], holding[n], entangled) {
			u.nodes = append(u.nodes, n)
		}
	}
}

// findMembers fills in the Nodes that the unit lists, and those that it selects if its selector
// reads nothing that units set.
func (u *unit) findMembers(index nodeIndex, nodeByName map[string]*Node) {
	if u.matches != nil && !u.entangled {
		for _, n := range index.candidates(u.selector) {
			if !u.lists.Has(n.Name) && u.matches(n.Labels, n.Annotations) {
				u.nodes = append(u.nodes, n)
			}
		}
	}
	for name := range u.lists {
		if n := nodeByName[name]; n != nil {
			u.nodes = append(u.nodes, n)
		}
	}
	if len(u.lists) > 0 {
		slices.SortFunc(u.nodes, compareNodes)
	}
}

func compareNodes(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }

// excludes returns a key under which the unit sets something that its own selector does not
// match, "" if there is no such key.
func (u *unit) excludes() string {
	set := maps.Clone(u.labels)
	for key, value := range u.wishes.Labels {
		set[key] = string(value)
	}
	if u.trustsAll {
		for key, value := range u.privileged.Labels {
			set[key] = string(value)
		}
	}
	s := u.Spec.Selector
	for _, key := range slices.Sorted(maps.Keys(set)) {
		part := v1alpha2.Selector{}
		if value, found := s.MatchLabels[key]; found {
			part.MatchLabels = map[string]string{key: value}
		}
		for _, r := range s.MatchExpressions {
			if r.Key == key {
				part.MatchExpressions = append(part.MatchExpressions, r)
			}
		}
		// That the whole selector can be read is known.
		if matches, err := part.Compile(); err == nil && !part.Empty() && !matches(set, nil) {
			return key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		if value, found := u.wishes.Annotations[key]; found && value != s.Annotations[key] {
			return key
		}
	}
	return ""
}

func byName[T interface{ GetName() string }](a, b T) int {
	return cmp.Compare(a.GetName(), b.GetName())
}
