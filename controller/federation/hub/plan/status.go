package plan

import (
	"fmt"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of conditions and states of Grids. Others are the reason of a problem that a cluster
// reports, or one that is used only once.
const (
	reasonCurrent   = "Current"
	reasonBehind    = "Behind"
	reasonWaiting   = "Waiting"
	reasonFault     = "InvalidDistribution"
	reasonCollision = "NameCollision"
	reasonTarget    = "TargetNamespaceRefused"
	reasonNamespace = "NamespaceRefused"
	reasonTooMany   = "TooManyGrids"

	reasonTooLargeBundle = "BundleTooLarge"
	// The agent of a cluster with a kubeconfig gives these.
	reasonUnreachable = "Unreachable"
	reasonKubeConfig  = "KubeConfigInvalid"
	reasonTooLarge    = "TooLarge"
	reasonUnread      = "UnreadableReport"
)

func (m *member) status() v1alpha1.FleetClusterStatus {
	next := *m.last.DeepCopy()
	next.ObservedGeneration = m.Object.Generation
	if h := m.Heartbeat; h != nil && !m.replaced() {
		if m.unanswered() == nil { // it is counted there
			next.Nodes = max(h.Nodes, 0)
		}
		if next.ClusterUID == "" && h.Renewal != "" {
			next.ClusterUID = shortened(h.ClusterUID)
		}
	}
	next.SilentSince, next.LastRenewal = m.silence.since, m.silence.renewal
	next.Units = m.units()
	next.Grids, next.Withdrawn, next.Removals = m.rows, m.withdrawn, m.removals
	next.GridSummary = summary(m.rows)
	for _, c := range m.conditions() {
		meta.SetStatusCondition(&next.Conditions, c)
	}
	next.State = m.state(next.Conditions)
	return next
}

// shortened returns a UID that a member writes, cut to 64 bytes.
func shortened(uid string) string { return excerpt.Fit(uid, 64) }

// units returns how many units the Grids in the cluster have.
func (m *member) units() int32 {
	values := map[string]struct{}{}
	for _, r := range m.reported {
		for _, value := range r.Units {
			values[value] = struct{}{}
		}
	}
	return int32(len(values))
}

// describeRows writes into the row of each Grid how far it is in the cluster.
func (m *member) describeRows() {
	messages := 0
	for i := range m.rows {
		row := &m.rows[i]
		if row.State, row.Message = m.describe(*row); row.Message != "" {
			messages++
		}
		if messages > explainedMax {
			row.Message = ""
		}
	}
}

func (m *member) describe(row v1alpha1.ClusterGrid) (state, message string) {
	r, found := m.reported[row.UID]
	switch {
	case m.known[row.UID] == nil:
		return v1alpha1.ConditionDistributionHeld, "the hub does not know this Grid: see the condition DistributionHeld"
	case !found:
		return reasonWaiting, ""
	case r.Unread != "":
		return reasonUnread, excerpt.Fit(r.Unread, v1alpha1.MaxMessage)
	case r.Problem != nil:
		return wordOf(r.Problem.Reason), excerpt.Fit(r.Problem.Message, v1alpha1.MaxMessage)
	case r.Revision != row.Revision || !r.Observed:
		return reasonBehind, ""
	default:
		return reasonCurrent, ""
	}
}

// summary returns in a few words how many Grids are what the hub has.
func summary(rows []v1alpha1.ClusterGrid) string {
	current, behind, waiting := count(rows, reasonCurrent), count(rows, reasonBehind), count(rows, reasonWaiting)
	text := fmt.Sprintf("%d/%d", current, len(rows))
	if current == len(rows) {
		return text + " current"
	}
	for _, part := range []struct {
		count int
		word  string
	}{{behind, "behind"}, {waiting, "waiting"}, {len(rows) - current - behind - waiting, "failed"}} {
		if part.count > 0 {
			text += fmt.Sprintf(", %d %s", part.count, part.word)
		}
	}
	return text
}

// count returns how many rows have a state.
func count(rows []v1alpha1.ClusterGrid, state string) int {
	n := 0
	for _, row := range rows {
		if row.State == state {
			n++
		}
	}
	return n
}

// problems returns the problems of the heartbeat, in words that may be shown.
func (m *member) problems() []v1alpha1.Problem {
	if m.Heartbeat == nil {
		return nil
	}
	var all []v1alpha1.Problem
	for _, p := range m.Heartbeat.Problems[:min(problemsMax, len(m.Heartbeat.Problems))] {
		all = append(all, v1alpha1.Problem{Reason: wordOf(p.Reason), Message: excerpt.Fit(p.Message, v1alpha1.MaxMessage)})
	}
	return all
}

// unanswered returns the reported problem that keeps the cluster from being read, or nil.
func (m *member) unanswered() *v1alpha1.Problem {
	for _, p := range m.problems() {
		if p.Reason == reasonUnreachable || p.Reason == reasonKubeConfig || p.Reason == reasonTooLarge {
			return &p
		}
	}
	return nil
}

func (m *member) problemTexts() []string {
	var all []string
	for _, p := range m.problems() {
		all = append(all, p.Reason+": "+p.Message)
	}
	return all
}

// wordOf returns a reason that a member gives, or Unknown if the API server would not take it as
// one.
func wordOf(reason string) string {
	plain := !strings.ContainsFunc(reason, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') })
	if !plain || reason == "" || len(reason) > 64 {
		return "Unknown"
	}
	return reason
}

// texts joins some of all texts about what is wrong, and adds how many more there are.
func texts(some []string, all int) string {
	text := strings.Join(some, "; ")
	if more := all - len(some); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// silence is how long a cluster has not been heard.
type silence struct {
	never   bool         // it has never been heard
	since   *metav1.Time // when a silent cluster last reported
	renewal string       // the last one, of a silent cluster
	recheck time.Duration
}

// silenceOf decides by the clock of this process alone whether the cluster is silent. A process
// that has just begun counts from then, unless the status says that the cluster was silent, and
// nothing has come since.
func (m *member) silenceOf() silence {
	before := silence{since: m.last.SilentSince, renewal: m.last.LastRenewal}
	h := m.Heartbeat
	if h != nil && h.Renewal == "" {
		h = nil
	}
	switch {
	case h == nil && m.last.ClusterUID == "":
		return silence{never: true}
	case h == nil && before.since != nil:
		return before
	case h == nil:
		return silence{since: second(m.Now)}
	case before.since != nil && before.renewal == h.Renewal:
		return before
	}
	if age := m.Now.Sub(h.Heard); age < heartbeatTimeout {
		return silence{recheck: heartbeatTimeout - max(age, 0)}
	}
	return silence{since: second(h.Heard), renewal: h.Renewal}
}

// second returns a time as a status has it, cut to the second, so that it is equal to itself
// after it was written.
func second(t time.Time) *metav1.Time {
	to := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &to
}
