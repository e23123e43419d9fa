package expand

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Member is a cluster that a Grid is distributed to, and what is known of the Grid there.
type Member struct {
	// Name is that of its FleetCluster.
	Name string
	// State is one of the words below, or the reason why the Grid is not there as it is here.
	State   string
	Message string
	// Leaving is why the Grid is there although it is not meant for the cluster, and LeavingSince
	// since when; zero: it does not leave.
	Leaving      string
	LeavingSince time.Time
	// SilentSince is when a silent cluster last reported.
	SilentSince time.Time
	// Report is the cluster's last report about the Grid. It is not changed.
	Report *MemberReport
}

// The states of a Member that are no failure, and that of a silent one in status.clusters.
const (
	StateCurrent = "Current" // the Grid there is what it is here
	StateBehind  = "Behind"  // it is not yet
	StateWaiting = "Waiting" // there is no report yet
	StateStale   = "Stale"
)

// MemberReport is what a cluster says about a Grid. Whoever has a cluster can write anything into
// it, so it is believed only about that cluster, and as far as it makes sense.
type MemberReport struct {
	Status v1.WorkloadGridStatus // of a ServiceGrid the conditions alone
	Ready  int32                 // units that are ready
	States map[string]v1.State
}

// outcome is a Member, and what is made of its report.
type outcome struct {
	Member
	standing   standing
	rows       []v1.UnitStatus
	extra      tally // beside the rows: their numbers alone, which can be negative
	unitNumber int
	ready      int    // 0 of a silent one
	why        string // what is wrong
}

// standing says how well the Grid is in a member, the worst first.
type standing int

const (
	standsFailed standing = iota
	standsSilent
	standsBehind
	standsChanging // its condition Ready says so
	standsUnready  // units say so
	standsReady
)

// readMember reads what is known of a Grid of a kind in a cluster.
func readMember(k Kind, m Member) outcome {
	o := outcome{Member: m}
	if o.State = excerpt.Fit(cmp.Or(m.State, StateWaiting), wordBytesMax); m.Report == nil {
		if o.State == StateCurrent {
			o.State = StateWaiting
		}
		o.Report = &MemberReport{}
	}
	o.rows = rowsOf(m.Name, o.Report.Status.Units)
	shown := tallyOf(o.rows)
	all := o.Report.count(shown)
	o.unitNumber, o.ready = max(all.all()-all.lost.n, 0), all.ready.n
	o.standing, o.why = o.stand(k, all)
	if o.standing == standsSilent {
		for i := range o.rows {
			o.rows[i] = o.silenced(o.rows[i])
		}
		o.ready, o.extra.stale.n = 0, all.all()-len(o.rows)
		return o
	}
	o.extra = all.minus(shown)
	return o
}

// rowsOf returns the rows that a cluster reports, at most one for each value. Rows without a
// valid value are left out, an unknown phase becomes Failed, and texts and numbers are bounded.
func rowsOf(cluster string, reported []v1.UnitStatus) []v1.UnitStatus {
	reported = reported[:min(len(reported), rowsMax)]
	rows, seen := make([]v1.UnitStatus, 0, len(reported)), make(map[string]bool, len(reported))
	for _, r := range reported {
		if r.Value == "" || seen[r.Value] || len(validation.IsValidLabelValue(r.Value)) > 0 {
			continue
		}
		seen[r.Value] = true
		row := v1.UnitStatus{
			Cluster: cluster, Value: r.Value, Child: excerpt.Fit(r.Child, childBytesMax), Template: excerpt.Fit(r.Template, childBytesMax),
			Nodes: max(r.Nodes, 0), Replicas: max(r.Replicas, 0), ReadyReplicas: max(r.ReadyReplicas, 0),
			UpdatedReplicas: max(r.UpdatedReplicas, 0), Misplaced: max(r.Misplaced, 0), Served: r.Served,
			Phase: r.Phase, Reason: reasonOf(r.Reason), Message: excerpt.Fit(r.Message, rowMessageMax),
		}
		switch r.Phase {
		case v1.UnitReady, v1.UnitProgressing, v1.UnitFailed, v1.UnitOffline:
		case v1.UnitLost:
			row.LostAt = r.LostAt
		default:
			row.Phase, row.Reason = v1.UnitFailed, ReasonUnknownPhase
			row.Message = fmt.Sprintf("its cluster reports the phase %s, which this version of grid-controller does not know: update it here",
				excerpt.Quoted(string(r.Phase)))
		}
		rows = append(rows, row)
	}
	return rows
}

// reasonOf returns the reason of a row that a cluster reports, if it is one that rows have,
// else ReasonOther: each other one would be an Event.
func reasonOf(reported string) string {
	switch reported {
	case "", "Deleting", "Creating", "Applying", "RollingOut",
		ReasonEmpty, ReasonInvalidKey, ReasonMissingTemplate, ReasonInvalidTemplate, ReasonNameCollision, ReasonRefused, ReasonImmutableField,
		ReasonStalled, ReasonTooManyUnits, ReasonPaused, ReasonChildPaused, ReasonContested, ReasonUnitLost, ReasonNodesNotReady:
		return reported
	}
	return ReasonOther
}

// count returns how many units are in each phase. It reads the counters, because a status may
// leave rows out, but counts at least the units that the rows show.
func (r *MemberReport) count(shown tally) tally {
	counter := func(n int32, least int) group { return group{n: max(bounded(n), least)} }
	t := tally{
		failed: counter(r.Status.FailedUnits, shown.failed.n), lost: counter(r.Status.LostUnits, shown.lost.n),
		offline: counter(r.Status.OfflineUnits, shown.offline.n), progressing: group{n: shown.progressing.n},
	}
	rest := max(bounded(r.Status.UnitNumber)+t.lost.n, shown.all()) - t.all() // ready or progressing
	t.ready.n = min(bounded(r.Ready), max(rest, 0))
	t.progressing.n += max(rest, 0) - t.ready.n
	return t
}

func bounded(n int32) int { return int(min(max(n, 0), countedMax)) }

// stand returns the standing of the Grid in the cluster, and what is wrong there.
func (m *outcome) stand(k Kind, all tally) (s standing, why string) {
	ready := meta.FindStatusCondition(m.Report.Status.Conditions, v1.ConditionReady)
	degraded := meta.FindStatusCondition(m.Report.Status.Conditions, v1.ConditionDegraded)
	unready := ready != nil && ready.Status == metav1.ConditionFalse || k == ServiceGrid && (ready == nil || ready.Status != metav1.ConditionTrue)
	switch {
	case !m.SilentSince.IsZero():
		return standsSilent, fmt.Sprintf("silent since %s; it was %s then", rfc3339(m.SilentSince).Format(time.RFC3339), m.State)
	case m.State == StateBehind || m.State == StateWaiting:
		return standsBehind, m.Message
	case m.State != StateCurrent:
		return standsFailed, strings.TrimSuffix(m.State+": "+m.Message, ": ")
	case all.failed.n > 0 || all.progressing.n > 0 || all.ready.n == 0 && all.offline.n > 0: // the condition is about these units
		return standsUnready, m.Message
	case !unready:
		return standsReady, m.Message
	case degraded != nil && degraded.Status == metav1.ConditionTrue:
		return standsFailed, cmp.Or(degraded.Message, degraded.Reason)
	case ready != nil:
		return standsChanging, cmp.Or(ready.Message, ready.Reason)
	default:
		return standsChanging, "its report has no condition " + v1.ConditionReady
	}
}

// silenced returns a row of a silent cluster. Its phase is Stale, and its message has the phase
// and the message that the cluster reported last.
func (m *outcome) silenced(row v1.UnitStatus) v1.UnitStatus {
	text := fmt.Sprintf("its cluster is silent since %s; it was %s then", rfc3339(m.SilentSince).Format(time.RFC3339), row.Phase)
	if row.Message != "" {
		text += ": " + row.Message
	}
	row.Phase, row.Reason, row.Message = v1.UnitStale, ReasonClusterSilent, text
	return row
}

// rfc3339 returns a time of a report in UTC and whole seconds, which is all that JSON holds.
func rfc3339(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func (m *outcome) row() v1.ClusterStatus {
	row := v1.ClusterStatus{
		Name: m.Name, State: m.State, Message: excerpt.Fit(m.why, rowMessageMax),
		Units: int32(min(m.unitNumber, countedMax)), ReadyUnits: int32(min(m.ready, countedMax)),
	}
	if m.standing == standsSilent {
		row.State, row.HeardAt = StateStale, &metav1.Time{Time: rfc3339(m.SilentSince)}
	}
	return row
}

// outcomes returns the outcomes of the members, the worst first, each once.
func outcomes(k Kind, fleet []Member) []outcome {
	all := make([]outcome, 0, len(fleet))
	seen := make(map[string]bool, len(fleet))
	for _, m := range fleet {
		if !seen[m.Name] {
			all = append(all, readMember(k, m))
		}
		seen[m.Name] = true
	}
	slices.SortFunc(all, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.standing, b.standing), cmp.Compare(a.Name, b.Name))
	})
	return all
}
