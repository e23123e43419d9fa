package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
