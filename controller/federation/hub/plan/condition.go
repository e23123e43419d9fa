package plan

import (
	"fmt"
	"slices"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is a condition without its time.
type verdict struct {
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string
}

func isTrue(of bool) metav1.ConditionStatus {
	if of {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// verdicts returns the conditions of the cluster, in the order in which they are shown.
func (m *member) verdicts() []verdict {
	return []verdict{m.reachable(), m.current(), m.stale(), m.distributionHeld(), m.engineMissing(), m.clusterReplaced()}
}

func (m *member) setConditions(s *v1alpha1.FleetClusterStatus, verdicts []verdict) {
	for _, v := range verdicts {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: v.kind, Status: v.status, Reason: v.reason, Message: v.message,
			ObservedGeneration: m.Object.Generation, LastTransitionTime: *second(m.Now),
		})
	}
}

// state returns the state of the cluster in one word.
func (m *member) state(verdicts []verdict) string {
	is := func(kind string) bool {
		for _, v := range verdicts {
			if v.kind == kind {
				return v.status == metav1.ConditionTrue
			}
		}
		return false
	}
	switch {
	case is(v1alpha1.ConditionClusterReplaced):
		return "Replaced"
	case m.Object.Spec.Suspend:
		return "Suspended"
	case is(v1alpha1.ConditionDistributionHeld):
		return "Held"
	case is(v1alpha1.ConditionStale):
		return "Stale"
	case m.unanswered() != nil:
		return reasonUnreachable
	case m.silence.never || !m.Namespace:
		return reasonWaiting
	case is(v1alpha1.ConditionEngineMissing):
		return "NoEngine"
	case is(v1alpha1.ConditionCurrent):
		return reasonCurrent
	case len(m.rows) > 0 && m.count(reasonWaiting) == len(m.rows):
		return reasonWaiting
	default:
		return reasonBehind
	}
}

func (m *member) count(state string) int {
	n := 0
	for _, row := range m.rows {
		if row.State == state {
			n++
		}
	}
	return n
}

func (m *member) reachable() verdict {
	v := verdict{kind: v1alpha1.ConditionReachable, status: metav1.ConditionTrue, reason: "Heard", message: "the cluster was heard within the last 90 s"}
	switch why := m.unanswered(); {
	case why != nil:
		v.status, v.reason, v.message = metav1.ConditionFalse, why.Reason, why.Message
		if m.silence.since != nil {
			v.message += "; " + m.silent()
		}
	case m.silence.never:
		v.status, v.reason, v.message = metav1.ConditionUnknown, reasonWaiting, m.neverHeard()
	case m.silence.since != nil:
		v.status, v.reason, v.message = metav1.ConditionFalse, "Silent", m.silent()
	}
	return v
}

func (m *member) neverHeard() string {
	if m.Object.Spec.KubeConfig != nil {
		return "the cluster has not been heard yet: run grid-controller of this cluster with --federation=hub, and check spec.kubeConfig"
	}
	return fmt.Sprintf("the cluster has not been heard yet: run grid-controller join --cluster %s here, apply what it prints in the cluster, and "+
		"run grid-controller there with --federation=member", m.name)
}

func (m *member) silent() string {
	return fmt.Sprintf("the cluster was last heard at %s; it goes on with what it has. If it should be heard, check its grid-controller, "+
		"the network, and with grid-controller join its token", m.silence.since.UTC().Format(time.RFC3339))
}

func (m *member) stale() verdict {
	v := verdict{kind: v1alpha1.ConditionStale, status: isTrue(m.silence.since != nil), reason: "Heard", message: "what is known of the cluster is new"}
	switch {
	case m.silence.never:
		v.reason, v.message = reasonWaiting, "the cluster has not been heard yet"
	case m.silence.since != nil:
		v.reason, v.message = "Silent", "what is known of the cluster is old: "+m.silent()
	}
	return v
}

func (m *member) distributionHeld() verdict {
	v := verdict{kind: v1alpha1.ConditionDistributionHeld, status: metav1.ConditionFalse, reason: "AllKnown",
		message: "the hub knows all Grids of its own that are in the cluster"}
	if len(m.unknown) > 0 && !m.removing && !m.replaced() {
		v.status, v.reason, v.message = metav1.ConditionTrue, "UnknownGrids", m.held()
	}
	return v
}

func (m *member) engineMissing() verdict {
	v := verdict{kind: v1alpha1.ConditionEngineMissing, status: metav1.ConditionFalse, reason: "NotReported",
		message: "the cluster does not report that Flux is missing"}
	for _, p := range m.problems() {
		if p.Reason == v1alpha1.ConditionEngineMissing {
			v.status, v.reason, v.message = metav1.ConditionTrue, p.Reason, p.Message
		}
	}
	return v
}

func (m *member) clusterReplaced() verdict {
	v := verdict{kind: v1alpha1.ConditionClusterReplaced, status: metav1.ConditionFalse, reason: "SameCluster",
		message: "no other cluster has answered"}
	if m.replaced() {
		v.status, v.reason, v.message = metav1.ConditionTrue, "OtherUID", m.obstacleReplaced().message
	}
	return v
}

// current returns the condition that says whether each Grid in the cluster is what the hub has,
// and if not, the first reason.
func (m *member) current() verdict {
	v := verdict{kind: v1alpha1.ConditionCurrent, status: metav1.ConditionFalse}
	problems := m.problemTexts()
	switch {
	case m.removing:
		v.reason, v.message = "Removing", m.leftToRemove()
	case m.blocked != nil:
		v.reason, v.message = m.blocked.reason, m.blocked.message
	case m.silence.never && len(problems) == 0:
		v.reason, v.message = reasonWaiting, m.neverHeard()
	case m.silence.since != nil:
		all := slices.Concat([]string{summary(m.rows) + " when " + m.silent()}, problems, m.noteTexts())
		v.status, v.reason, v.message = metav1.ConditionUnknown, "Silent", texts(all, len(all)+m.unnoted)
	case len(problems) > 0:
		v.reason, v.message = m.problems()[0].Reason, texts(problems, len(problems))
	case len(m.notes) > 0:
		v.reason, v.message = m.notes[0].reason, texts(m.noteTexts(), len(m.notes)+m.unnoted)
	case m.count(reasonCurrent) < len(m.rows) || len(m.expected) > 0:
		v.reason, v.message = reasonBehind, m.behind()
	default:
		v.status, v.reason, v.message = metav1.ConditionTrue, reasonCurrent, fmt.Sprintf("all %d Grids in the cluster are what the hub has", len(m.rows))
	}
	if left := m.leaving(); left != "" {
		v.message += "; " + left
	}
	return v
}

func (m *member) noteTexts() (all []string) {
	for _, o := range m.notes {
		all = append(all, o.message)
	}
	return all
}

// leaving returns a message that names Grids which the cluster still reports though the hub has
// withdrawn them, "" if it reports no such Grid.
func (m *member) leaving() string {
	var stuck, others []string
	for _, uid := range m.withdrawn {
		r, found := m.reported[uid]
		if !found {
			continue
		}
		name := excerpt.Of(fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name))
		if r.Problem != nil {
			stuck = append(stuck, name+": "+excerpt.Message(r.Problem.Message))
		} else {
			others = append(others, name)
		}
	}
	all := append(stuck, others...)
	if len(all) == 0 {
		return ""
	}
	return "withdrawn, and still reported by the cluster: " + texts(all[:min(notesMax, len(all))], len(all))
}

// behind names the Grids that are not what the hub has, first those that something is wrong with.
func (m *member) behind() string {
	var failed, others []string
	for _, row := range m.rows {
		name := fmt.Sprintf("%s %s/%s: %s", row.Kind, row.Namespace, row.Name, row.State)
		switch row.State {
		case reasonCurrent:
		case reasonBehind, reasonWaiting:
			others = append(others, name)
		default:
			failed = append(failed, name+": "+row.Message)
		}
	}
	all := append(failed, others...)
	return summary(m.rows) + ": " + texts(all[:min(notesMax, len(all))], len(all))
}

// leftToRemove returns a message that says what the deletion of a FleetCluster waits for.
func (m *member) leftToRemove() string {
	text := fmt.Sprintf("the FleetCluster is deleted when the cluster has removed its Grids: %d reports and %d bundles are left", len(m.reported), len(m.Bundles))
	if m.blocked != nil {
		text += "; " + m.blocked.message
	}
	if m.blocked != nil || m.silence.never || m.silence.since != nil {
		text += fmt.Sprintf("; to let go of a cluster that does not answer, and leave its Grids there, run: "+
			"kubectl patch fleetcluster %s --type merge -p '{\"spec\":{\"onDelete\":\"Orphan\"}}'", m.name)
	}
	if left := m.leaving(); left != "" {
		text += "; " + left
	}
	return text
}
