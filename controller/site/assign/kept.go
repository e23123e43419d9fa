package assign

import (
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"
)

// kept is all labels that Nodes keep, with these Nodes, and how that is reported.
type kept map[labelPair]*sample

type labelPair struct{ key, value string }

func (k kept) add(node string, labels map[string]string) {
	for key, value := range labels {
		of := k[labelPair{key, value}]
		if of == nil {
			of = &sample{}
			k[labelPair{key, value}] = of
		}
		of.add(node)
	}
}

func (k kept) sorted() []labelPair {
	return slices.SortedFunc(maps.Keys(k), func(a, b labelPair) int {
		return slices.Compare([]string{a.key, a.value}, []string{b.key, b.value})
	})
}

// report reports the labels to the group that the key names, and to the units that the key or
// the value names, also if these are being deleted. Labels without such an object are in the
// summary alone.
func (k kept) report(units map[string]*unit, groups map[string]*group, uses *Uses, summary *Summary) {
	for _, label := range k.sorted() {
		nodes, noun := k[label], "Node"
		if nodes.count > 1 {
			noun = "Nodes"
		}
		says := fmt.Sprintf("the label %s=%s stays on the %s %s though nothing sets it any more, because %s; to remove it: ",
			label.key, label.value, noun, nodes, uses.why(label.key))
		if g := groups[label.key]; g != nil {
			g.report.add(v1alpha2.ConditionInUse, reasonLabelKept, says+remedy(g.leaving(), "nodegroup "+g.Name, label.key))
		}
		for _, name := range slices.Compact([]string{label.key, label.value}) {
			if u := units[name]; u != nil {
				u.report.add(v1alpha2.ConditionInUse, reasonLabelKept, says+remedy(u.leaving(), "nodeunit "+u.Name, label.key))
			}
		}
		last := len(summary.Kept) - 1
		if last >= 0 && summary.Kept[last].Key == label.key {
			summary.Kept[last].Nodes += nodes.count
		} else {
			summary.Kept = append(summary.Kept, KeptLabels{Key: label.key, Nodes: nodes.count})
		}
	}
}

const reasonLabelKept = "LabelKept"

// remedy returns the command that lets a kept label go. It annotates the Nodes if the object is
// about to be gone.
func remedy(leaving bool, object, key string) string {
	if leaving {
		object = "nodes -l " + key
	}
	return fmt.Sprintf("kubectl annotate %s %s=%s", object, v1alpha2.AnnotationAllowRemoval, key)
}
