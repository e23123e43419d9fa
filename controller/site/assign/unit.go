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
	// lists are the names in spec.nodes. matches is the selector, nil if it selects nothing;
	// entangled: it reads what units set on Nodes.
	lists     sets.Set[string]
	matches   func(labels, annotations map[string]string) bool
	entangled bool
	// labels follow from the unit and its groups; wishes are what its setNode asks for besides.
	// refused is the privileged part of setNode, which is set on no Node, and stays where it is ours.
	labels          map[string]string
	wishes, refused v1alpha2.SetNode
	sorted          sortedKeys
	owners          []metav1.OwnerReference // the object's, and those that are to be added
	report          report
}

// leaving: the object is being deleted, and holds nothing any more.
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
		u.report.add(v1alpha2.ConditionInvalid, "InvalidSelector", err.Error()+": the selector selects nothing; correct it")
	} else if key := u.excludes(); key != "" {
		u.report.add(v1alpha2.ConditionInvalid, "SelectorExcludesMembers", fmt.Sprintf(
			"spec.selector does not match what the unit itself sets under %s, so Nodes would join and leave forever: it selects nothing; remove %s from it", key, key))
	} else {
		u.matches = matches
	}
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
		for _, n := range index.candidates(u.Spec.Selector) {
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

// excludes is a key under which the unit sets something that its own selector does not match; "" if
// there is none.
func (u *unit) excludes() string {
	set := maps.Clone(u.labels)
	for key, value := range u.wishes.Labels {
		set[key] = string(value)
	}
	s := u.Spec.Selector
	if s.Empty() {
		return ""
	}
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
