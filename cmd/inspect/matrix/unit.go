package matrix

import (
	"cmp"
	"maps"
	"slices"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// MaxUnits is how many units a Matrix has at most. Whoever may create a Service can name a label
// that has another value on each Node.
const MaxUnits = 1000

// Unit is a row: all Nodes with one value of a label key, or, without a key, all Nodes that are in
// no unit.
type Unit struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
	Nodes int    `json:"nodes"` // how many

	members []int // indices of builder.nodes
}

// inNoUnit names what is in no unit. A label value has no parentheses.
const inNoUnit = "(no unit)"

// String returns "key=value", or a text for the Nodes in no unit.
func (u Unit) String() string {
	if u.Key == "" {
		return inNoUnit
	}
	return u.Key + "=" + u.Value
}

// keysOf returns the keys that may be in force for a Service: those of its annotation, or the
// last ones that could be read.
func keysOf(s topology.Snapshot, svc *corev1.Service) []string {
	keys, _, err := topology.ParseKeys(svc.Annotations)
	if err != nil {
		return s.LastKeys[svc.UID]
	}
	return keys
}

// withRules returns the Services that rules are written for.
func withRules(services []*corev1.Service, c topology.Config) []*corev1.Service {
	return slices.DeleteFunc(slices.Clone(services), func(svc *corev1.Service) bool { return explain.WithoutRules(svc, c) != "" })
}

// unitKeys returns the keys of the units: those that one of the Services names and a Node
// carries. The keys that most of them name come first.
func unitKeys(s topology.Snapshot, services []*corev1.Service) []string {
	carried := topology.CarriedKeys(s.Nodes)
	count := map[string]int{}
	for _, svc := range services {
		for _, key := range keysOf(s, svc) {
			if _, found := slices.BinarySearch(carried, key); found {
				count[key]++
			}
		}
	}
	return slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
}

// unitsOf returns the units of Nodes under the keys: in the order of keys, and sorted by value.
// The last one has the Nodes in none, if there are any. leftOut counts those beyond MaxUnits.
func unitsOf(nodes []labels.Set, keys []string) (units []Unit, leftOut int) {
	inUnit := make([]bool, len(nodes))
	for _, key := range keys {
		members := map[string][]int{}
		for i, set := range nodes {
			if value := set[key]; value != "" {
				members[value] = append(members[value], i)
				inUnit[i] = true
			}
		}
		for _, value := range slices.Sorted(maps.Keys(members)) {
			if len(units) == MaxUnits-1 { // the last one are those in no unit
				leftOut++
				continue
			}
			units = append(units, Unit{Key: key, Value: value, Nodes: len(members[value]), members: members[value]})
		}
	}
	var rest []int
	for i, is := range inUnit {
		if !is {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		units = append(units, Unit{Nodes: len(rest), members: rest})
	}
	return units, leftOut
}
