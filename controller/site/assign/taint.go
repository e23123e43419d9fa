package assign

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// pairOf returns a taint's key:effect. A Node has at most one taint with the same.
func pairOf(t v1alpha2.Taint) string { return t.Key + ":" + t.Effect }

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

// taints returns the Node's list of taints with what is requested and without what was ours and is
// not requested any more, and what its annotation is to say; nil: no change. Records are written to
// the patch. A taint without a record is never changed (S-04), and there is at most one for a key
// and an effect (S-02).
func (r *restriction) taints(requested map[string]request) (list *[]corev1.Taint, record *string) {
	text := r.Annotations[v1alpha2.AnnotationTaints]
	if len(requested) == 0 && text == "" && !r.hasRecords() {
		return nil, nil // no taint of the Node is ours
	}
	claimed, ours := readPairs(text), sets.New[string]()
	all, changed := []corev1.Taint{}, false
	for _, t := range r.Taints {
		pair := t.Key + ":" + string(t.Effect)
		c, wanted := requested[pair]
		isOurs := r.isOurs(pair)
		if !isOurs && c.converts && c.value == t.Value && (claimed.Has(pair) || r.Legacy.Labels.Has(c.unit.Name)) {
			isOurs, changed, r.converts = true, true, true
		}
		differs := wanted && t.Value != c.value && !c.frozen
		switch {
		case isOurs && !wanted:
			changed = true
			r.leaves.taints.Insert(pair)
			continue
		case isOurs:
			r.write(pair, v1alpha2.RecordTaint)
			ours.Insert(pair)
			if differs {
				t.Value, changed = c.value, true
			}
		case differs:
			c.reportForeignValue(r.Name, "taint "+pair, t.Value)
		}
		if !isOurs && claimed.Has(pair) {
			r.foreign = append(r.foreign, pair)
		}
		all = append(all, t)
	}
	for _, pair := range slices.Sorted(maps.Keys(requested)) {
		present := slices.ContainsFunc(all, func(t corev1.Taint) bool { return t.Key+":"+string(t.Effect) == pair })
		if present || requested[pair].frozen {
			continue
		}
		key, effect, _ := strings.Cut(pair, ":")
		all = append(all, corev1.Taint{Key: key, Value: requested[pair].value, Effect: corev1.TaintEffect(effect)})
		r.write(pair, v1alpha2.RecordTaint)
		changed = true
		ours.Insert(pair)
	}
	if now := writePairs(ours); changed && now != text || !claimed.IsSuperset(ours) || len(requested)+len(ours)+len(r.foreign) == 0 && text != "" {
		record = &now
	}
	if changed {
		list = &all
	}
	return list, record
}
