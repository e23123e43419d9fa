package expand

import (
	"fmt"
	"math"
	"time"

	v1 "gridproxy/controller/api/v1"
)

// rollout returns how far the child's own controller is with the rollout, as kubectl rollout
// status shows it; "" if it is complete.
func (u *unit) rollout() string {
	l := u.live
	want := int32(1)
	if l.Replicas != nil {
		want = *l.Replicas
	}
	switch {
	case u.grid.Kind == ServiceGrid:
		return ""
	case l.ObservedGeneration < l.Generation:
		return fmt.Sprintf("the %s controller has not seen the last change yet", u.kind())
	case u.grid.Kind == StatefulSetGrid:
		return u.statefulRollout(want)
	case l.UpdatedReplicas < want && u.template("paused") == true:
		return fmt.Sprintf("%d of %d Pods are updated: the template says paused", l.UpdatedReplicas, want)
	case l.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d Pods are updated", l.UpdatedReplicas, want)
	case l.StatusReplicas > l.UpdatedReplicas:
		return fmt.Sprintf("%d old Pods are still there", l.StatusReplicas-l.UpdatedReplicas)
	case l.Available < want:
		return fmt.Sprintf("%d of %d Pods are available", l.Available, want)
	}
	return ""
}

// resumes returns the end of the extra time for a Deployment that exceeded its progress deadline
// while no Node was ready: it does not count as stuck before. The Deployment controller reports
// it as stuck until the rollout makes progress, and that takes time after the first Node is
// back. Zero if there is nothing to wait for.
func (a *assessment) resumes(u *unit) time.Time {
	since := a.ReadySince[u.Value]
	if u.ownership != ours || u.offline || since.IsZero() || u.live.StalledAt.IsZero() || u.live.StalledAt.After(since) {
		return time.Time{}
	}
	deadline := progressTimeout
	if seconds, ok := u.template("progressDeadlineSeconds").(int64); ok && seconds > 0 {
		deadline = min(deadline, time.Duration(seconds)*time.Second)
	}
	if until := since.Add(deadline); a.Now.Before(until) {
		return until
	}
	return time.Time{}
}

// statefulRollout returns what rollout returns for a StatefulSet. It leaves out the Pods that
// the update strategy does not update.
func (u *unit) statefulRollout(want int32) string {
	l := u.live
	updated := want - u.partition(want)
	switch {
	case l.ReadyReplicas < want:
		return fmt.Sprintf("%d of %d Pods are ready", l.ReadyReplicas, want)
	case l.UpdatedReplicas < updated:
		return fmt.Sprintf("%d of %d Pods are updated", l.UpdatedReplicas, updated)
	case l.StatusReplicas > want:
		return fmt.Sprintf("%d Pods too many are still there", l.StatusReplicas-want)
	}
	return ""
}

// partition returns how many Pods an update leaves as they are.
func (u *unit) partition(all int32) int32 {
	if u.template("updateStrategy", "type") == "OnDelete" {
		return all
	}
	if n, ok := u.template("updateStrategy", "rollingUpdate", "partition").(int64); ok && n >= 0 {
		return int32(min(n, int64(all)))
	}
	return 0
}

// template returns a field of the desired spec; nil if it is absent.
func (u *unit) template(path ...string) any {
	if u.Object == nil {
		return nil
	}
	value := u.Object.Object["spec"]
	for _, name := range path {
		o, _ := value.(map[string]any)
		value = o[name]
	}
	return value
}

// isUnserved reports whether no Pod of the unit's child has ever been ready. The last status
// remembers it; rows are those of this cluster in it. If neither the status nor the child says
// so, the unit has served. A complete child without replicas is what the user wants, so it
// counts as one that has served.
func (a *assessment) isUnserved(u *unit, last v1.WorkloadGridStatus, rows map[string]v1.UnitStatus) bool {
	if u.ownership == foreign || u.ownership == orphan {
		return false
	}
	if u.live != nil && (u.live.ReadyReplicas > 0 || u.live.Completed || u.rollout() == "") {
		return false
	}
	if row, found := rows[u.Value]; found {
		return row.Served != nil && !*row.Served && (a.Reported != nil || u.remembersPods())
	}
	created := u.live == nil || u.applied.UID == u.live.UID && u.applied.Before == "" && u.applied.After != ""
	return created && last.OmittedUnits == 0
}

// remembersPods reports whether the child itself says that its Pods were ready once, so that it
// does not matter if no controller has seen it: only a Deployment with a progress deadline does.
func (u *unit) remembersPods() bool {
	return u.grid.Kind == DeploymentGrid && u.template("progressDeadlineSeconds") != int64(math.MaxInt32)
}
