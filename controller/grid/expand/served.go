package expand

import (
	"math"

	v1 "gridproxy/controller/api/v1"
)

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
