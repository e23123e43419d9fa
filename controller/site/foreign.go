package site

import (
	"fmt"
	"strings"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
)

// foreignAgain is how often a Node at most is said to claim taints.
const foreignAgain = time.Hour

// foreign remembers when a Node's claims were last reported. It can be lost at any time.
type foreign map[types.UID]time.Time

// report sends an Event on each Node whose annotation calls taints ours that no unit has set, once
// in foreignAgain.
func (f foreign) report(nodes []assign.Foreign, now time.Time, to events.EventRecorder) foreign {
	next := foreign{}
	for uid, last := range f {
		if age := now.Sub(last); age >= 0 && age < foreignAgain {
			next[uid] = last
		}
	}
	for _, n := range nodes {
		if _, reported := next[n.UID]; reported {
			continue
		}
		next[n.UID] = now
		node := &corev1.Node{}
		node.Name, node.UID = n.Node, n.UID
		to.Eventf(node, nil, corev1.EventTypeWarning, "ForeignRecord", "Reconcile", "%s", excerpt.Message(fmt.Sprintf(
			"the annotation %s names taints that no NodeUnit has set: %s; they stay; to remove one that is not wanted: kubectl taint node %s %s-",
			v1alpha2.AnnotationTaints, strings.Join(n.Taints, ", "), n.Node, n.Taints[0])))
	}
	return next
}
