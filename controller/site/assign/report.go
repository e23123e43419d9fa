package assign

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report collects what is wrong with one object.
type report struct{ all []finding }

type finding struct{ condition, reason, message string }

func (r *report) add(condition, reason, message string) {
	r.all = append(r.all, finding{condition, reason, message})
}

// conditions returns the conditions of what is wrong, sorted by type, nil if nothing is. A
// condition that existed before keeps its time.
func (r *report) conditions(before []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	var types []string
	for _, f := range r.all {
		types = append(types, f.condition)
	}
	slices.Sort(types)
	var out []metav1.Condition
	for _, kind := range slices.Compact(types) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: generation, LastTransitionTime: now,
		}
		c.Reason, c.Message = r.say(kind)
		if i := slices.IndexFunc(before, func(b metav1.Condition) bool { return b.Type == kind && b.Status == c.Status }); i >= 0 {
			c.LastTransitionTime = before[i].LastTransitionTime
		}
		out = append(out, c)
	}
	return out
}

// say returns the reason of a condition and its findings in one message, in a fixed order.
func (r *report) say(condition string) (reason, message string) {
	var messages []string
	for _, f := range r.all {
		if f.condition == condition {
			reason, messages = f.reason, append(messages, f.message)
		}
	}
	slices.Sort(messages)
	messages = slices.Compact(messages)
	more := ""
	if len(messages) > shownFindingsMax {
		more = fmt.Sprintf("; and %d more", len(messages)-shownFindingsMax)
		messages = messages[:shownFindingsMax]
	}
	for i, m := range messages {
		messages[i] = excerpt.Message(m)
	}
	return reason, strings.Join(messages, "; ") + more
}
