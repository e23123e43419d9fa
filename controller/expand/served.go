package expand

import v1 "gridproxy/controller/api/v1"

// isUnserved reports whether no Pod of the unit's child has ever been ready. The last status
// remembers it. If neither the status nor the child says so, the unit has served. A complete child
// without replicas is what the user wants, so it counts as one that has served.
func (a *assessment) isUnserved(u *unit, rows map[string]v1.UnitStatus) bool {
	if u.ownership == foreign || u.ownership == orphan {
		return false
	}
	if u.live != nil && (u.live.ReadyReplicas > 0 || u.live.Completed || u.rollout() == "") {
		return false
	}
	if row, found := rows[u.Value]; found {
		return row.Served != nil && !*row.Served
	}
	created := u.live == nil || u.applied.UID == u.live.UID && u.applied.Before == "" && u.applied.After != ""
	return created && a.Observed.Status.OmittedUnits == 0
}

// ownRowsByValue returns the rows of units of this cluster by their values.
func ownRowsByValue(rows []v1.UnitStatus) map[string]v1.UnitStatus {
	own := make(map[string]v1.UnitStatus, len(rows))
	for _, r := range rows {
		if r.Cluster == "" {
			own[r.Value] = r
		}
	}
	return own
}
