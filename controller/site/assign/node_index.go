package assign

import (
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// nodeIndex finds the Nodes that a selector may match without asking about all of them. Nodes are
// sorted by name in each of its lists.
type nodeIndex struct {
	all     []*Node
	byLabel map[string]map[string][]*Node // by key and value
}

// newNodeIndex indexes the Nodes, sorted by name, by the label keys that the units' selectors
// require.
func newNodeIndex(nodes []*Node, units []*unit) nodeIndex {
	keys := sets.New[string]()
	for _, u := range units {
		if u.matches != nil && !u.entangled {
			for _, r := range requirements(u.selector) {
				keys.Insert(r.key)
			}
		}
	}
	x := nodeIndex{all: nodes, byLabel: map[string]map[string][]*Node{}}
	for key := range keys {
		x.byLabel[key] = map[string][]*Node{}
	}
	for _, n := range nodes {
		for key, value := range n.Labels {
			if byValue := x.byLabel[key]; byValue != nil {
				byValue[value] = append(byValue[value], n)
			}
		}
	}
	return x
}

// candidates returns all Nodes that the selector can match, and as few others as the index
// allows.
func (x nodeIndex) candidates(s *v1alpha2.Selector) []*Node {
	best := x.all
	for _, r := range requirements(s) {
		count := 0
		for _, value := range r.values {
			count += len(x.byLabel[r.key][value])
		}
		if count >= len(best) {
			continue
		}
		best = nil
		for _, value := range r.values {
			best = append(best, x.byLabel[r.key][value]...)
		}
		if len(r.values) > 1 {
			slices.SortFunc(best, compareNodes)
		}
	}
	return best
}

// requirement says that the label must have one of the values, which are distinct.
type requirement struct {
	key    string
	values []string
}

// requirements returns the requirements of a selector that an index can answer: exact values.
func requirements(s *v1alpha2.Selector) []requirement {
	var all []requirement
	for key, value := range s.MatchLabels {
		all = append(all, requirement{key, []string{value}})
	}
	for _, r := range s.MatchExpressions {
		if r.Operator == metav1.LabelSelectorOpIn {
			all = append(all, requirement{r.Key, slices.Compact(slices.Sorted(slices.Values(r.Values)))})
		}
	}
	return all
}
