package assign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	gridv1 "gridproxy/controller/api/v1"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// removal decides when units that a group has found are deleted. A unit is lost while it has no
// Node. Its clock is an annotation on it, which survives a restart. While most of the group's units
// are lost, none is removed, because that is more likely a mistake than the end of many sites.
type removal struct {
	now   time.Time
	grace time.Duration // negative: never
	plan  *Plan
}

// decide checks one group's own units. It puts the annotations that must change into edits, by
// unit.
func (r *removal) decide(g *group, units []*unit, edits map[string]edit) {
	var own, lost []*unit
	for _, u := range units {
		if u.leaving() || u.Spec.Selector.Empty() || !slices.ContainsFunc(u.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == g.UID }) {
			continue
		}
		own = append(own, u)
		if len(u.nodes) == 0 {
			lost = append(lost, u)
		} else if u.Annotations[gridv1.AnnotationLostAt] != "" {
			edits[u.Name].annotation(gridv1.AnnotationLostAt, nil)
		}
	}
	held := len(lost) >= 2 && 2*len(lost) > len(own)
	if held {
		g.hold(lost, len(own))
	}
	for _, u := range lost {
		r.lost(g, u, held, edits[u.Name])
	}
}

func (r *removal) lost(g *group, u *unit, held bool, e edit) {
	since, err := time.Parse(time.RFC3339, u.Annotations[gridv1.AnnotationLostAt])
	if err != nil {
		e.annotation(gridv1.AnnotationLostAt, r.now.UTC().Format(time.RFC3339))
		return
	}
	grace, err := r.graceOf(g, u)
	if err != nil {
		u.report.add(v1alpha2.ConditionInvalid, "InvalidGrace", err.Error()+": until then the unit, which has lost its Nodes, is not removed")
		return
	}
	if grace < 0 || held && !g.released(u.Name) {
		return
	}
	if left := since.Add(grace).Sub(r.now); left > 0 {
		if r.plan.Recheck == 0 || left < r.plan.Recheck {
			r.plan.Recheck = left
		}
		return
	}
	r.plan.Delete = append(r.plan.Delete, Delete{
		Name: u.Name, UID: u.UID, ResourceVersion: u.ResourceVersion, Labels: u.Spec.Selector.MatchLabels,
	})
}

// graceOf is how long a lost unit stays, according to the unit, else the group, else the flag.
// Negative: for ever.
func (r *removal) graceOf(g *group, u *unit) (time.Duration, error) {
	for _, annotations := range []map[string]string{u.Annotations, g.Annotations} {
		text, found := annotations[gridv1.AnnotationRemovalGrace]
		if !found {
			continue
		}
		if text == "never" {
			return -1, nil
		}
		grace, err := time.ParseDuration(text)
		if err != nil || grace < 0 {
			return 0, fmt.Errorf("the annotation %s is %q: write a duration such as 5m, 0s, or never", gridv1.AnnotationRemovalGrace, text)
		}
		return grace, nil
	}
	return r.grace, nil
}

// released: a person has allowed the removal of this unit by name.
func (g *group) released(unit string) bool {
	for name := range strings.SplitSeq(g.Annotations[gridv1.AnnotationAllowRemoval], ",") {
		if strings.TrimSpace(name) == unit {
			return true
		}
	}
	return false
}

func (g *group) hold(lost []*unit, of int) {
	names := make([]string, 0, shownFindings)
	for _, u := range lost[:min(len(lost), shownFindings)] {
		names = append(names, u.Name)
	}
	list := strings.Join(names, ",")
	g.report.add(v1alpha2.ConditionDeletionHeld, "MostUnitsLost", fmt.Sprintf(
		"%d of %d found units have no Node, which looks like a mistake; none is removed. First ones: %s. To remove them: kubectl annotate nodegroup %s %s=%s",
		len(lost), of, list, g.Name, gridv1.AnnotationAllowRemoval, list))
}
