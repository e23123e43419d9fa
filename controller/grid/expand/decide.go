package expand

import (
	"encoding/json"
	"slices"
	"time"

	v1 "gridproxy/controller/api/v1"
)

// Decide returns what to do about a Grid now. It is a pure function of the observed state. The plan
// is empty for a Grid that is idle, or whose key is missing or not a label key: existing children
// are left unchanged.
func Decide(observed Observed) Plan {
	if observed.Grid.Idle() {
		return Plan{}
	}
	a := assess(observed)
	if a.problem != nil {
		return Plan{}
	}
	var look []string
	var marks, adding, removing []Step
	next := a.admission.Next()
	for _, u := range a.units {
		if u.loss != nil {
			step, due := u.lossSteps(a.Now, a.second())
			next = sooner(next, due)
			if _, is := step.(MarkLost); is {
				marks = append(marks, step)
			} else {
				removing = appendStep(removing, step)
			}
			continue
		}
		if a.paused(u) {
			adding = appendStep(adding, u.foundStep())
			continue
		}
		if u.withheld {
			continue
		}
		if u.ownership == unread && u.Problem == nil {
			look = append(look, u.Name)
			continue
		}
		next = sooner(next, u.resumes)
		adding = append(adding, u.steps(a.Now)...)
		next = sooner(next, u.contestRecheck(a.Now))
		if u == a.nextReplacement().next {
			removing = append(removing, u.replacement())
		}
		evictions, due := a.evictions(u)
		removing = append(removing, evictions...)
		next = sooner(next, due)
	}
	if a.keptKey() != "" {
		next = sooner(next, a.Now.Add(rekeyedPeriod))
	}
	for _, l := range a.strays {
		if !l.Deleting && !a.pause.holds(ValueOf(a.Grid, *l)) {
			removing = append(removing, Release{Name: l.Name, UID: l.UID, ResourceVersion: l.ResourceVersion})
		}
	}
	if names := a.prunable(); len(names) > 0 && !a.pause.all {
		removing = append(removing, Prune{Names: names})
	}
	slices.SortStableFunc(removing, func(a, b Step) int { return order(a) - order(b) })
	return Plan{
		Look: look, Steps: slices.Concat(marks, adding, spendFirst(removing)), Recheck: a.until(next),
		Flips: a.admission.Log, Refused: a.admission.Report, Blocked: a.blocked(),
	}
}

func (a *assessment) blocked() map[string]bool {
	blocked := map[string]bool{}
	for _, u := range a.units {
		if u.loss == nil && u.applied.Refused != nil {
			blocked[u.Name] = !a.paused(u) && !u.withheld && !u.deleting() && u.problem() == u.applied.Refused
		}
	}
	return blocked
}

// order returns the rank of a step: steps that can be reverted come before those that cannot.
func order(s Step) int {
	switch s.(type) {
	case Release:
		return 0
	case Prune:
		return 1
	default:
		return 2
	}
}

func appendStep(steps []Step, s Step) []Step {
	if s == nil {
		return steps
	}
	return append(steps, s)
}

func (a *assessment) until(next time.Time) time.Duration {
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(a.Now), time.Nanosecond)
}

// steps returns the steps that make the child of a unit with Nodes what it should be; nil while
// the child is being deleted: it is created again when it is gone.
func (u *unit) steps(now time.Time) []Step {
	if u.deleting() {
		return nil
	}
	steps := appendStep(nil, u.foundStep())
	if u.problem() != nil || u.repairWaits(now) || !u.differs() {
		return steps
	}
	apply := Apply{
		Child: u.Child, Fingerprint: u.fingerprint(), Adopt: u.ownership == orphan, HandOver: u.handOver(),
		Repair: u.isRepair(), Contested: u.isRepair() && u.repairs.Contests(now),
	}
	if u.live != nil {
		apply.UID, apply.TemplateHash = u.live.UID, u.live.TemplateHash
		for _, p := range u.live.Predecessors {
			apply.TakeOver = append(apply.TakeOver, p.Manager)
		}
	}
	return append(steps, apply)
}

// foundStep returns the step that removes the mark of a loss from the child of a unit with
// Nodes; nil if the child has no mark.
func (u *unit) foundStep() Step {
	if u.ownership != ours || u.deleting() || u.live.Annotations.Get(v1.AnnotationLostAt) == "" {
		return nil
	}
	return MarkFound{Name: u.Name, Value: u.Value, UID: u.live.UID}
}

// differs reports whether the child is not what was last applied, or what was applied is not what
// the Grid asks for. A writer that changes or removes one of our fields becomes its owner, which is
// how drift is detected (B-13, B-23).
func (u *unit) differs() bool {
	switch applied := u.applied; {
	case u.ownership != ours || len(u.live.Predecessors) > 0 || applied.UID != u.live.UID || applied.Desired != u.fingerprint():
		return true
	case u.live.ResourceVersion == applied.Before && applied.Before != applied.After:
		return false // the cache has not seen our apply yet
	default:
		return applied.Owned != u.memo.owns(u.live).print
	}
}

// handOver returns the child's number of replicas if we or a predecessor own it and the template
// does not set it any more (B-12), else nil. An apply without a field that we own removes the
// field, and the API server would set 1.
func (u *unit) handOver() *int32 {
	if u.saysReplicas() || u.live == nil || u.live.Replicas == nil {
		return nil
	}
	if ownsReplicas(u.live.Owned) || slices.ContainsFunc(u.live.Predecessors, func(p Predecessor) bool { return ownsReplicas(p.Owned) }) {
		return u.live.Replicas
	}
	return nil
}

func (u *unit) saysReplicas() bool { return u.template("replicas") != nil }

func ownsReplicas(fieldsV1 string) bool {
	var owned struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	return json.Unmarshal([]byte(fieldsV1), &owned) == nil && owned.Spec["f:replicas"] != nil
}
