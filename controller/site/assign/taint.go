package assign

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// pairOf is a taint's key:effect, of which a Node has at most one.
func pairOf(t v1alpha2.Taint) string { return t.Key + ":" + t.Effect }

// readPairs reads AnnotationTaints.
func readPairs(record string) sets.Set[string] {
	pairs := sets.New[string]()
	for pair := range strings.SplitSeq(record, ",") {
		if strings.Contains(pair, ":") {
			pairs.Insert(pair)
		}
	}
	return pairs
}

func writePairs(pairs sets.Set[string]) string { return strings.Join(sets.List(pairs), ",") }

// taintStep is the Node's list of taints with what is requested and without what was ours and is
// not requested any more; nil: no change. A taint that is not recorded as ours is never changed
// (S-04), and there is at most one for a key and an effect (S-02).
func taintStep(n *Node, requested map[string]request, leaves sets.Set[string]) *Taints {
	record := n.Annotations[v1alpha2.AnnotationTaints]
	if record == "" && len(requested) == 0 {
		return nil // no taint of the Node is ours
	}
	recorded := readPairs(record)
	ours := sets.New[string]()
	var all []corev1.Taint
	changed := false
	for _, t := range n.Taints {
		pair := t.Key + ":" + string(t.Effect)
		c, wanted := requested[pair]
		isOurs := recorded.Has(pair) || wanted && n.Legacy.Labels.Has(c.unit.Name)
		switch {
		case isOurs && !wanted:
			changed = true
			continue
		case isOurs:
			ours.Insert(pair)
			if !c.frozen {
				changed = changed || t.Value != c.value
				t.Value = c.value
			}
		case wanted && !c.frozen && t.Value != c.value:
			c.reportForeignValue(n.Name, "taint "+pair, t.Value)
		}
		delete(requested, pair)
		all = append(all, t)
	}
	for _, pair := range slices.Sorted(maps.Keys(requested)) {
		if requested[pair].frozen {
			continue
		}
		key, effect, _ := strings.Cut(pair, ":")
		all = append(all, corev1.Taint{Key: key, Value: requested[pair].value, Effect: corev1.TaintEffect(effect)})
		ours.Insert(pair)
		changed = true
	}
	leaves.Insert(recorded.Difference(ours).UnsortedList()...)
	if !changed && ours.Equal(recorded) {
		return nil
	}
	return &Taints{All: all, Ours: writePairs(ours)}
}
