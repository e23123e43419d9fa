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
	held := make([]*metav1.PartialObjectMetadata, len(watches)) // one Node, by watch; nil = it is not there
	for {
		name, found := firstName(watches, at)
		if !found {
			return all
		}
		for i, w := range watches {
			held[i] = nil
			if at[i] < len(w.nodes) && w.nodes[at[i]].Name == name {
				held[i] = w.nodes[at[i]]
				at[i]++
			}
		}
		if set, known := agreed(watches, held); known {
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
func agreed(watches []unitNodes, held []*metav1.PartialObjectMetadata) (labels.Set, bool) {
	var set labels.Set
	known, own := false, false // own = set is a copy
	change := func(drop func(key, value string) bool) {
		if !own {
			set, own = maps.Clone(set), true
		}
		maps.DeleteFunc(set, drop)
	}
	for _, node := range held {
		switch {
		case node == nil:
		case !known:
			set, known = node.Labels, true
		case !maps.Equal(set, node.Labels):
			change(func(key, value string) bool { theirs, has := node.Labels[key]; return !has || theirs != value })
		}
	}
	for i, w := range watches {
		switch {
		case held[i] != nil:
		case w.unit.every():
			return nil, false
		case w.unit.has(set):
			change(func(key, _ string) bool { return key == w.unit.key })
		}
	}
	return set, true
}
