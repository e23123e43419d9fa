package watch

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// unit selects Nodes by the value of one label. The zero value selects every Node.
type unit struct{ key, value string }

func (u unit) every() bool { return u == unit{} }

// has reports whether a Node with these labels is in the unit.
func (u unit) has(node labels.Set) bool { return u.every() || node[u.key] == u.value }

// selector returns the label selector of the unit's Nodes; "" = every Node.
func (u unit) selector() string {
	if u.every() {
		return ""
	}
	return labels.Set{u.key: u.value}.AsSelectorPreValidated().String()
}

// what returns how messages name the unit's Nodes.
func (u unit) what() string {
	if u.every() {
		return "Nodes"
	}
	return "Nodes with " + u.selector()
}

func compareUnits(a, b unit) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value))
}

// unitsOf returns the units of a Node under the keys that are named, sorted. An empty value is
// no unit.
func unitsOf(node labels.Set, named func(key string) bool) []unit {
	var units []unit
	for key, value := range node {
		if value != "" && named(key) {
			units = append(units, unit{key, value})
		}
	}
	slices.SortFunc(units, compareUnits)
	return units
}
