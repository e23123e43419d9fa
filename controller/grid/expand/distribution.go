package expand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of conditions that the clusters of a distributed Grid are the cause of.
const (
	reasonClustersFailed   = "ClustersFailed"
	reasonClustersBehind   = "ClustersBehind"
	reasonClustersChanging = "ClustersProgressing"
	reasonClustersStale    = "ClustersStale"
	reasonNotSelected      = "NotSelected"
	reasonNoCluster        = "NoClusterSelected"
)

// distribution is the clusters that a Grid is distributed to. The zero value is that of a Grid that
// is not distributed: it changes nothing of a status.
type distribution struct {
	distributed bool
	members     []outcome // the worst first
}

func distributionOf(observed Observed) distribution {
	if observed.Fleet == nil {
		return distribution{}
	}
	return distribution{distributed: true, members: outcomes(observed.Grid.Kind, observed.Fleet)}
}

func (d distribution) rows() (rows []v1.UnitStatus) {
	for i := range d.members {
		rows = append(rows, d.members[i].rows...)
	}
	return rows
}

// extra returns how many units the members have beside their rows, by phase.
func (d distribution) extra() (t tally) {
	for i := range d.members {
		t = t.plus(d.members[i].extra)
	}
	return t
}

func (d distribution) unitNumber() (n int) {
	for i := range d.members {
		n += d.members[i].unitNumber
	}
	return n
}

// status adds the clusters of a distributed Grid to a status, and returns how many bytes of
// JSON they take. For another Grid it does nothing.
func (d distribution) status(s *v1.GridStatus) (size int) {
	if !d.distributed {
		return 0
	}
	s.ClusterRate = fmt.Sprintf("%d/%d", len(d.standing(standsReady)), len(d.members))
	s.Clusters, size = d.clusters()
	return size
}

// clusters returns the rows of the members, as many as there is room for, and their size in
// bytes of JSON. A message takes only what rows without messages leave.
func (d distribution) clusters() (rows []v1.ClusterStatus, size int) {
	for i := range d.members {
		row := d.members[i].row()
		row.Message = ""
		if size += sizeOf(row); i == rowsMax || size > clustersSizeMax {
			size -= sizeOf(row)
			break
		}
		rows = append(rows, row)
	}
	for i := range rows {
		row := d.members[i].row()
		if more := sizeOf(row) - sizeOf(rows[i]); size+more <= clustersSizeMax {
			rows[i], size = row, size+more
		}
	}
	return rows, size
}

// states returns the states of the members' units that have a row, by the units' names. A state
// that cannot be written, because it is too large or no JSON, is left out.
func (d distribution) states() map[string]v1.State {
	all := map[string]v1.State{}
	for i := range d.members {
		m := &d.members[i]
		for _, r := range m.rows {
			if s := m.Report.States[r.Value]; len(s.JSON) > 0 && len(s.JSON) <= stateSizeMax && json.Valid(s.JSON) {
				all[UnitName(r)] = s
			}
		}
	}
	return all
}

func (d distribution) standing(s standing) (names []string) {
	for i := range d.members {
		if d.members[i].standing == s {
			names = append(names, d.members[i].Name)
		}
	}
	return names
}

// say returns a text that counts and names the clusters with this standing; "" without any. what
// is the word for the standing.
func (d distribution) say(s standing, what string) string {
	names := d.standing(s)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d clusters %s: %s", len(names), len(d.members), what, listedUpTo(names, clusterNamesMax))
}

// judge returns the same three conditions about the units of all clusters, with what is known
// of the clusters added. The Grid is ready only if it is in all clusters what it is here. A
// silent cluster has not failed: a site that is cut off is silent.
func (d distribution) judge(ready, progressing, degraded verdict) (verdict, verdict, verdict) {
	if failed := d.say(standsFailed, "failed"); failed != "" {
		failed += "; " + d.explained()
		if degraded.status == metav1.ConditionTrue && degraded.reason == ready.reason { // kstatus wants one reason
			ready, degraded = ready.and(failed), degraded.and(failed)
		} else {
			ready = verdict{metav1.ConditionFalse, reasonClustersFailed, failed}.and(ready.message)
			before := degraded
			degraded = verdict{metav1.ConditionTrue, reasonClustersFailed, failed}
			if before.status == metav1.ConditionTrue {
				degraded = degraded.and(before.message)
			}
		}
	}
	for _, c := range []struct {
		is           standing
		what, reason string
	}{{standsBehind, "behind", reasonClustersBehind}, {standsChanging, "progressing", reasonClustersChanging}} {
		if text := d.say(c.is, c.what); text != "" {
			ready = ready.unless(c.reason, text)
			progressing = progressing.also(c.reason, text)
		}
	}
	if text := d.say(standsSilent, "stale"); text != "" {
		ready = ready.unless(reasonClustersStale, text)
	}
	if n := len(d.members); n > 0 && ready.status == metav1.ConditionTrue {
		ready.message += fmt.Sprintf("; %d of %d clusters are ready", len(d.standing(standsReady)), n)
	}
	return ready, progressing, degraded
}

// withdrawing returns the condition that names the clusters which have the Grid although it is not
// meant for them, and says what becomes of it; nil: no cluster has it.
func (d distribution) withdrawing(g Grid) *verdict {
	var stays []string
	var leaves []*outcome
	for i := range d.members {
		switch m := &d.members[i]; {
		case m.Leaving == "":
		case m.LeavingSince.IsZero():
			stays = append(stays, m.Name)
		default:
			leaves = append(leaves, m)
		}
	}
	switch {
	case len(leaves) > 0:
		slices.SortFunc(leaves, func(a, b *outcome) int {
			return cmp.Or(a.LeavingSince.Compare(b.LeavingSince), cmp.Compare(a.Name, b.Name))
		})
		entry := removal.Entry("cluster/"+leaves[0].Name, leaves[0].LeavingSince)
		remedy := fmt.Sprintf("kubectl annotate -n %s %s %s %s=%s", g.Namespace, strings.ToLower(string(g.Kind)), g.Name, v1.AnnotationAllowRemoval, entry)
		if g.Annotations[v1.AnnotationAllowRemoval] != "" {
			remedy = fmt.Sprintf("add %s to its annotation %s", entry, v1.AnnotationAllowRemoval)
		}
		v := verdict{metav1.ConditionTrue, reasonNotSelected, fmt.Sprintf("%s; to let it go now: %s", leaves[0].Leaving, remedy)}
		if len(leaves) > 1 {
			v.message = fmt.Sprintf("%d clusters have it and are to lose it, %s first: %s", len(leaves), leaves[0].Name, v.message)
		}
		return &v
	case len(stays) > 0:
		slices.Sort(stays)
		return &verdict{metav1.ConditionTrue, reasonNoCluster, "its selector matches no cluster; it stays in " + listedUpTo(stays, 1)}
	}
	return nil
}

// explained returns what is wrong with the first clusters that have failed.
func (d distribution) explained() string {
	var texts []string
	for i := range d.members { // they come first
		if m := &d.members[i]; m.standing == standsFailed && len(texts) < failuresMax {
			texts = append(texts, fmt.Sprintf("%s: %s", m.Name, excerpt.Fit(m.why, failureBytesMax)))
		}
	}
	return strings.Join(texts, "; ")
}

// and returns v with text added to its message, unless text is "".
func (v verdict) and(text string) verdict {
	if text != "" {
		v.message += "; " + text
	}
	return v
}

// also returns a condition as True for a reason. If it is True already, it keeps its reason, and
// text is added.
func (v verdict) also(reason, text string) verdict {
	if v.status == metav1.ConditionTrue {
		return v.and(text)
	}
	return verdict{metav1.ConditionTrue, reason, text}
}

// unless returns condition Ready as False for a reason. If it is False already, it keeps its
// reason, and text is added.
func (v verdict) unless(reason, text string) verdict {
	if v.status == metav1.ConditionFalse {
		return v.and(text)
	}
	return verdict{metav1.ConditionFalse, reason, text}.and(v.message)
}

// whole bounds a number to what a field of a status can hold, and to at least 0.
func whole(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
