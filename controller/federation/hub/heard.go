package hub

import (
	"encoding/json"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/topology/excerpt"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// renewalFormat is how the API server writes a renewTime.
const renewalFormat = "2006-01-02T15:04:05.000000Z07:00"

// heardLast remembers by our own clock when the last renewal of each cluster was seen first. It is
// as large as there are clusters.
type heardLast map[string]plan.Heartbeat

// next returns the memory after another look at the Leases, by the names of their clusters. A
// Lease whose heartbeat cannot be read counts as missing. One that was never renewed says why:
// such a cluster has not been heard.
func (h heardLast) next(leases map[string]*coordinationv1.Lease, now time.Time) heardLast {
	after := make(heardLast, len(leases))
	for cluster, l := range leases {
		said, ok := readHeartbeat(l)
		if !ok {
			continue
		}
		beat := plan.Heartbeat{Heartbeat: said, Heard: now}
		if at := l.Spec.RenewTime; at != nil {
			beat.Renewal = at.UTC().Format(renewalFormat)
		}
		if before, known := h[cluster]; known && before.Renewal == beat.Renewal {
			beat.Heard = before.Heard
		}
		after[cluster] = beat
	}
	return after
}

// readHeartbeat reads what a member says of itself, within bounds.
func readHeartbeat(l *coordinationv1.Lease) (v1alpha1.Heartbeat, bool) {
	var h v1alpha1.Heartbeat
	text := l.Annotations[v1alpha1.AnnotationHeartbeat]
	if len(text) > heartbeatMax || json.Unmarshal([]byte(text), &h) != nil {
		return h, false
	}
	h.ClusterUID, h.Version = excerpt.Fit(h.ClusterUID, wordMax), excerpt.Fit(h.Version, wordMax)
	h.Problems = h.Problems[:min(len(h.Problems), problemsMax)]
	for i, p := range h.Problems {
		h.Problems[i] = v1alpha1.Problem{Reason: excerpt.Fit(p.Reason, wordMax), Message: excerpt.Fit(p.Message, messageMax)}
	}
	return h, l.Spec.RenewTime != nil || len(h.Problems) > 0
}
