package expand

import (
	"fmt"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tally has a Grid's units by phase.
type tally struct {
	ready, progressing, failed, lost, offline, stale group

	failures []Failure // of the failed ones
}

// group is units: how many, and the names of those with a row.
type group struct {
	n     int
	names []string
}

func (g *group) add(r v1.UnitStatus) { g.n, g.names = g.n+1, append(g.names, UnitName(r)) }

// UnitName names the unit of a row of a status: its value, after the name of the cluster if it is
// another one.
func UnitName(r v1.UnitStatus) string {
	if r.Cluster == "" {
		return r.Value
	}
	return r.Cluster + "/" + r.Value
}

func tallyOf(rows []v1.UnitStatus) tally {
	var t tally
	var failed []v1.UnitStatus
	for _, r := range rows {
		switch r.Phase {
		case v1.UnitReady:
			t.ready.add(r)
		case v1.UnitProgressing:
			t.progressing.add(r)
		case v1.UnitLost:
			t.lost.add(r)
		case v1.UnitOffline:
			t.offline.add(r)
		case v1.UnitStale:
			t.stale.add(r)
		default:
			t.failed.add(r)
			failed = append(failed, r)
		}
	}
	t.failures = Failures(failed)
	return t
}

func (t *tally) groups() [6]*group {
	return [...]*group{&t.ready, &t.progressing, &t.failed, &t.lost, &t.offline, &t.stale}
}

func (t tally) all() (n int) {
	for _, g := range t.groups() {
		n += g.n
	}
	return n
}

// plus returns t with the numbers of others added, phase by phase. The units of others have no
// rows in the status, so the names and failures stay those of t.
func (t tally) plus(others tally) tally {
	for i, g := range t.groups() {
		g.n += others.groups()[i].n
	}
	return t
}

// minus returns t minus the numbers of others, phase by phase, without names.
func (t tally) minus(others tally) tally {
	for i, g := range t.groups() {
		*g = group{n: g.n - others.groups()[i].n}
	}
	return t
}

// verdict is a condition without its type and time.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func is(true bool) metav1.ConditionStatus {
	if true {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// conditions returns all conditions of a Grid. own has the units of this cluster, t those of all
// clusters. Other conditions are dropped, such as SuperEdge's CreateError, which stayed when the
// error was gone (B-25).
func (a *assessment) conditions(own, t tally, d distribution) []metav1.Condition {
	ready, degraded := a.ready(t), t.degraded()
	if a.limit.withheld > 0 {
		ready, degraded = a.tooManyUnits()
	}
	ready, progressing, degraded := d.judge(ready, a.progressing(t), degraded)
	held, rekeyed := a.held(own), a.rekeyed()
	if p := a.problem; p != nil {
		ready, degraded = verdict{metav1.ConditionFalse, p.Reason, p.Message}, verdict{metav1.ConditionTrue, p.Reason, p.Message}
		progressing = verdict{metav1.ConditionFalse, p.Reason, p.Message}
		held = a.kept(v1.ConditionDeletionHeld, verdict{metav1.ConditionFalse, p.Reason, "existing children are not changed"})
		rekeyed = a.kept(v1.ConditionRekeyed, verdict{metav1.ConditionFalse, p.Reason, "existing children are not changed"})
	}
	return a.dated(map[string]verdict{
		v1.ConditionReady: ready, v1.ConditionProgressing: progressing, v1.ConditionDegraded: degraded,
		v1.ConditionDeletionHeld: held, v1.ConditionRekeyed: rekeyed,
	}, d)
}

// addKstatus adds the condition of kstatus that is true, Stalled or Reconciling, if one is.
// What is not ready has failed if something is wrong with it, and is in progress if it changes.
// It is neither while it waits for Nodes: kstatus reads condition Ready then.
func addKstatus(verdicts map[string]verdict) {
	ready, degraded, progressing := verdicts[v1.ConditionReady], verdicts[v1.ConditionDegraded], verdicts[v1.ConditionProgressing]
	switch {
	case ready.status == metav1.ConditionTrue:
	case ready.status == metav1.ConditionFalse && degraded.status == metav1.ConditionTrue && degraded.reason == ready.reason:
		verdicts[v1.ConditionStalled] = degraded
	case progressing.status == metav1.ConditionTrue:
		verdicts[v1.ConditionReconciling] = progressing
	}
}

// ready returns the condition Ready. It covers the units with ready Nodes, and only names the
// offline ones, so that a client that waits for it does not wait for a site that is cut off.
// Degraded reports the units without Nodes, unless the Grid has no others.
func (a *assessment) ready(t tally) verdict {
	v := verdict{metav1.ConditionTrue, "UnitsReady", fmt.Sprintf("all %d units with Nodes are ready", t.ready.n)}
	if t.offline.n > 0 {
		v.message = fmt.Sprintf("all %d units with ready Nodes are ready", t.ready.n)
	}
	switch {
	case t.all() == 0:
		none := a.Grid.WithoutUnits(a.NodeKeys)
		v = verdict{metav1.ConditionUnknown, none.Reason, none.Wrong + "; " + none.Remedy}
	case t.failed.n > 0:
		v = verdict{metav1.ConditionFalse, "UnitsFailed", count(t.failed, t.all(), "failed")}
	case t.progressing.n > 0:
		v = verdict{metav1.ConditionFalse, "UnitsProgressing", count(t.progressing, t.all(), "progressing")}
	case t.ready.n == 0 && t.stale.n > 0:
		v = verdict{metav1.ConditionFalse, reasonClustersStale, "no unit is known to be ready"}
	case t.ready.n == 0 && t.offline.n > 0:
		v = verdict{metav1.ConditionUnknown, ReasonAllOffline, "no unit has a ready Node"}
	case t.ready.n == 0:
		v = verdict{metav1.ConditionFalse, "UnitsLost", count(t.lost, t.all(), "lost")}
	}
	v.message += t.offlineUnits()
	if names := a.returnedTemplates(); len(names) > 0 {
		v.message += fmt.Sprintf("; unused templates were added again after their removal and are kept: %s; "+
			"remove them at their source, or set autoDeleteUnusedTemplate to false", listed(names))
	}
	v.message += a.claimsRemark()
	return v
}

// claimsRemark returns a remark that names the units whose volume claims are deleted with their
// StatefulSet; "" without such units. The user chose that, often for another purpose.
func (a *assessment) claimsRemark() string {
	var values []string
	for _, u := range a.units {
		if a.Grid.Kind == StatefulSetGrid && u.template("persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete" {
			values = append(values, u.Value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("; the volume claims of %d units go with their StatefulSets: %s; to keep them, set "+
		"persistentVolumeClaimRetentionPolicy.whenDeleted to Retain", len(values), listed(values))
}

// offlineUnits returns the end of the message of condition Ready; "" if no unit is offline.
func (t tally) offlineUnits() string {
	switch t.offline.n {
	case 0:
		return ""
	case 1:
		return "; 1 unit offline" + t.offline.list()
	default:
		return fmt.Sprintf("; %d units offline%s", t.offline.n, t.offline.list())
	}
}

func (t tally) degraded() verdict {
	switch {
	case t.failed.n > 0:
		return verdict{metav1.ConditionTrue, "UnitsFailed", count(t.failed, t.all(), "failed") + "; " + explained(t.failures)}
	case t.lost.n > 0:
		return verdict{metav1.ConditionTrue, "UnitsLost", count(t.lost, t.all(), "lost")}
	default:
		return verdict{metav1.ConditionFalse, "AsExpected", "no unit has failed or is lost"}
	}
}

// serviceConditions returns the conditions of a ServiceGrid, which has no units that could be
// lost.
func (a *assessment) serviceConditions(row v1.UnitStatus, d distribution) []metav1.Condition {
	ready := verdict{is(row.Phase == v1.UnitReady), "ServiceReady", "the Service is what the Grid asks for"}
	progressing := verdict{metav1.ConditionFalse, "ServiceStable", "the Service is not changing"}
	degraded := verdict{metav1.ConditionFalse, "AsExpected", "nothing is wrong"}
	switch {
	case row.Phase == v1.UnitFailed:
		ready.reason, ready.message = row.Reason, row.Message
		degraded = verdict{metav1.ConditionTrue, row.Reason, row.Message}
	case row.Phase != v1.UnitReady:
		ready.reason, ready.message = row.Reason, row.Message
		progressing = verdict{metav1.ConditionTrue, row.Reason, row.Message}
	}
	if row.Reason == ReasonPaused {
		progressing = verdict{metav1.ConditionFalse, ReasonPaused, a.pauseMessage()}
	}
	ready, progressing, degraded = d.judge(ready, progressing, degraded)
	verdicts := map[string]verdict{v1.ConditionReady: ready, v1.ConditionProgressing: progressing, v1.ConditionDegraded: degraded}
	if rekeyed := a.serviceRekeyed(); rekeyed != nil {
		verdicts[v1.ConditionRekeyed] = *rekeyed
	}
	return a.dated(verdicts, d)
}

// dated returns the verdicts as conditions, in a fixed order, with those of kstatus and
// federation added. Each has the time at which its status last changed.
func (a *assessment) dated(verdicts map[string]verdict, d distribution) []metav1.Condition {
	addKstatus(verdicts)
	if v := d.withdrawing(a.Grid); v != nil {
		verdicts[v1.ConditionWithdrawing] = *v
	}
	if a.FederationOff {
		m := gridspec.FederationOff()
		verdicts[v1.ConditionNotDistributed] = verdict{metav1.ConditionTrue, m.Reason, m.Wrong + ": " + m.Remedy}
	}
	var all []metav1.Condition
	for _, of := range []string{
		v1.ConditionReady, v1.ConditionProgressing, v1.ConditionDegraded, v1.ConditionDeletionHeld, v1.ConditionRekeyed,
		v1.ConditionWithdrawing, v1.ConditionNotDistributed, v1.ConditionReconciling, v1.ConditionStalled,
	} {
		v, found := verdicts[of]
		if !found {
			continue
		}
		c := metav1.Condition{
			Type: of, Status: v.status, Reason: v.reason, Message: excerpt.Fit(v.message, conditionMessageMax),
			ObservedGeneration: a.Grid.Generation, LastTransitionTime: metav1.Time{Time: a.second()},
		}
		if before := meta.FindStatusCondition(a.Observed.Status.Conditions, of); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		all = append(all, c)
	}
	return all
}

func count(g group, of int, what string) string {
	return fmt.Sprintf("%d of %d units %s%s", g.n, of, what, g.list())
}

// list returns ": " and the first names; "" if no unit has a row.
func (g group) list() string {
	if len(g.names) == 0 {
		return ""
	}
	return ": " + namesOf(g.names, g.n, listedMax)
}

func listed(names []string) string { return listedUpTo(names, listedMax) }

func listedUpTo(names []string, limit int) string { return namesOf(names, len(names), limit) }

// namesOf lists the first names, at most limit, and says how many more of all there are.
func namesOf(names []string, all, limit int) string {
	shown := names[:min(len(names), limit)]
	text := strings.Join(shown, ", ")
	if more := all - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// IdleCondition returns the condition to add to the status of a Grid that represents another
// cluster; nil if there is nothing to add. The other fields of that status belong to the other
// cluster, so an absent condition is added only when the Grid changes.
func IdleCondition(g Grid, has []metav1.Condition, now time.Time) *metav1.Condition {
	if !g.Distributed || g.Deleting || meta.IsStatusConditionTrue(has, v1.ConditionIdle) {
		return nil
	}
	return &metav1.Condition{
		Type: v1.ConditionIdle, Status: metav1.ConditionTrue, Reason: "Distributed", ObservedGeneration: g.Generation,
		LastTransitionTime: metav1.Time{Time: now.UTC().Truncate(time.Second)},
		Message: fmt.Sprintf("the label %s says that another cluster expands this Grid, so it has no children here; "+
			"to have them here, remove the label", v1.LabelDistributed),
	}
}
