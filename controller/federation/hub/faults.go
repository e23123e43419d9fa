package hub

import (
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
)

// faults are what was last said about single Grids, by UID.
type faults map[string]v1alpha1.Problem

// tell sends an Event for each Grid whose fault is another one now, at most eventsMax, and
// returns what has been said. What is not wrong any more is forgotten.
func (f faults) tell(to events.EventRecorder, grids []plan.Grid, now map[string]v1alpha1.Problem) faults {
	told := faults{}
	left := eventsMax
	for _, g := range grids {
		fault, wrong := now[g.UID]
		if !wrong {
			continue
		}
		before, known := f[g.UID]
		switch {
		case known && before == fault:
			told[g.UID] = fault
		case left > 0:
			left--
			told[g.UID] = fault
			o := newMetadata(metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: g.Kind}, g.Namespace, g.Name)
			o.UID = types.UID(g.UID)
			to.Eventf(o, nil, corev1.EventTypeWarning, fault.Reason, "Distribute", "%s", excerpt.Message(fault.Message))
		case known:
			told[g.UID] = before
		}
	}
	return told
}
