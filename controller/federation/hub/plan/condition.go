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

// conditions returns the cluster's conditions, always the same six, in the order to be shown.
func (m *member) conditions() []metav1.Condition {
	return []metav1.Condition{m.reachable(), m.current(), m.stale(), m.distributionHeld(), m.engineMissing(), m.clusterReplaced()}
}

// condition returns a condition of the FleetCluster. Its time is kept only if its status is new.
func (m *member) condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: m.Object.Generation, LastTransitionTime: *second(m.Now),
	}
}

// state returns the state of the cluster in one word.
func (m *member) state(conditions []metav1.Condition) string {
	is := func(kind string) bool { return meta.IsStatusConditionTrue(conditions, kind) }
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
	case len(m.rows) > 0 && count(m.rows, reasonWaiting) == len(m.rows):
		return reasonWaiting
	default:
		return reasonBehind
	}
}

func (m *member) reachable() metav1.Condition {
	const kind = v1alpha1.ConditionReachable
	switch why := m.unanswered(); {
	case why != nil && m.silence.since != nil:
		return m.condition(kind, metav1.ConditionFalse, why.Reason, why.Message+"; "+m.silent())
	case why != nil:
		return m.condition(kind, metav1.ConditionFalse, why.Reason, why.Message)
	case m.silence.never:
		return m.condition(kind, metav1.ConditionUnknown, reasonWaiting, m.neverHeard())
	case m.silence.since != nil:
		return m.condition(kind, metav1.ConditionFalse, "Silent", m.silent())
	}
	return m.condition(kind, metav1.ConditionTrue, "Heard", "the cluster was heard within the last 90 s")
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

func (m *member) stale() metav1.Condition {
	const kind = v1alpha1.ConditionStale
	switch {
	case m.silence.never:
		return m.condition(kind, metav1.ConditionFalse, reasonWaiting, "the cluster has not been heard yet")
	case m.silence.since != nil:
		return m.condition(kind, metav1.ConditionTrue, "Silent", "what is known of the cluster is old: "+m.silent())
	}
	return m.condition(kind, metav1.ConditionFalse, "Heard", "what is known of the cluster is new")
}

func (m *member) distributionHeld() metav1.Condition {
	const kind = v1alpha1.ConditionDistributionHeld
	if len(m.unknown) > 0 && !m.removing && !m.replaced() {
		return m.condition(kind, metav1.ConditionTrue, "UnknownGrids", m.held())
	}
	return m.condition(kind, metav1.ConditionFalse, "AllKnown", "the hub knows all Grids of its own that are in the cluster")
}

func (m *member) engineMissing() metav1.Condition {
	const kind = v1alpha1.ConditionEngineMissing
	for _, p := range m.problems() {
		if p.Reason == kind {
			return m.condition(kind, metav1.ConditionTrue, p.Reason, p.Message)
		}
	}
	return m.condition(kind, metav1.ConditionFalse, "NotReported", "the cluster does not report that Flux is missing")
}

func (m *member) clusterReplaced() metav1.Condition {
	const kind = v1alpha1.ConditionClusterReplaced
	if m.replaced() {
		return m.condition(kind, metav1.ConditionTrue, "OtherUID", m.obstacleReplaced().message)
	}
	return m.condition(kind, metav1.ConditionFalse, "SameCluster", "no other cluster has answered")
}

// current returns the condition that says whether each Grid in the cluster is what the hub has,
// and if not, the first reason.
func (m *member) current() metav1.Condition {
	status, reason, message := metav1.ConditionFalse, "", ""
	problems := m.problemTexts()
	switch {
	case m.removing:
		reason, message = "Removing", m.leftToRemove()
	case m.blocked != nil:
		reason, message = m.blocked.reason, m.blocked.message
	case m.silence.never && len(problems) == 0:
		reason, message = reasonWaiting, m.neverHeard()
	case m.silence.since != nil:
		all := slices.Concat([]string{summary(m.rows) + " when " + m.silent()}, problems, m.noteTexts())
		status, reason, message = metav1.ConditionUnknown, "Silent", texts(all, len(all)+m.unnoted)
	case len(problems) > 0:
		reason, message = m.problems()[0].Reason, texts(problems, len(problems))
	case len(m.notes) > 0:
		reason, message = m.notes[0].reason, texts(m.noteTexts(), len(m.notes)+m.unnoted)
	case count(m.rows, reasonCurrent) < len(m.rows) || len(m.expected) > 0:
		reason, message = reasonBehind, m.behind()
	default:
		status, reason, message = metav1.ConditionTrue, reasonCurrent, fmt.Sprintf("all %d Grids in the cluster are what the hub has", len(m.rows))
	}
	if left := m.leaving(); left != "" {
		message += "; " + left
	}
	return m.condition(v1alpha1.ConditionCurrent, status, reason, message)
}

func (m *member) noteTexts() (all []string) {
	for _, o := range m.notes {
		all = append(all, o.message)
	}
	return all
}

// leaving returns a message that names Grids which the cluster still reports though the hub has
// withdrawn them; "" if there are none.
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

// behind returns a message that names Grids which are not what the hub has, faulty ones first.
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
