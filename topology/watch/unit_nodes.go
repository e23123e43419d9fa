package watch

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// unitNodes are the Nodes that a complete watch holds, sorted by name.
type unitNodes struct {
	unit  unit
	nodes []*metav1.PartialObjectMetadata
}

// join returns what several watches know together: labels by Node. Each of them may be late. So
// a label counts only if all watches that hold the Node show it, and if a watch that selects by
// it holds the Node.
func join(watches []unitNodes) map[string]labels.Set {
	most := 0
	for _, w := range watches {
		most = max(most, len(w.nodes))
	}
	all := make(map[string]labels.Set, most+1)
	at := make([]int, len(watches))
	held := make([]labels.Set, len(watches)) // of one Node, by watch
	holds := make([]bool, len(watches))
	for {
		name, found := firstName(watches, at)
		if !found {
			return all
		}
		for i, w := range watches {
			holds[i] = at[i] < len(w.nodes) && w.nodes[at[i]].Name == name
			held[i] = nil
			if holds[i] {
				held[i] = w.nodes[at[i]].Labels
				at[i]++
			}
		}
		if set, known := agreed(watches, holds, held); known {
			all[name] = set
		}
	}
}

// firstName returns the first of the names that come next in each list; false = all lists have
// ended.
func firstName(watches []unitNodes, at []int) (name string, found bool) {
	for i, w := range watches {
		if at[i] < len(w.nodes) && (!found || w.nodes[at[i]].Name < name) {
			name, found = w.nodes[at[i]].Name, true
		}
	}
	return name, found
}

// agreed returns the labels of one Node that count; false = the Node does not.
func agreed(watches []unitNodes, holds []bool, held []labels.Set) (labels.Set, bool) {
	var set labels.Set
	known, own := false, false // own = set is a copy
	change := func(drop func(key, value string) bool) {
		if !own {
			set, own = maps.Clone(set), true
		}
		maps.DeleteFunc(set, drop)
	}
	for i := range watches {
		switch {
		case !holds[i]:
		case !known:
			set, known = held[i], true
		case !maps.Equal(set, held[i]):
			other := held[i]
			change(func(key, value string) bool { theirs, has := other[key]; return !has || theirs != value })
		}
	}
	for i, w := range watches {
		switch {
		case holds[i]:
		case w.unit.every():
			return nil, false
		case w.unit.has(set):
			change(func(key, _ string) bool { return key == w.unit.key })
		}
	}
	return set, true
}
