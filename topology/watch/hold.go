package watch

import (
	"slices"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// HoldLimit is how long a Snapshot is held back at most.
const HoldLimit = 5 * time.Minute

// Hold holds back a Snapshot that cannot be true: one without Service default/kubernetes, which
// every API server creates, although this process has seen it, an earlier one has saved it, or the
// kernel holds rules of ours. Then the storage of the API server is empty or being restored, or it
// is another cluster. Kinds are listed one after the other, so the Service may be gone last.
// Therefore its EndpointSlice, this Node, and the Nodes of its unit if there were several, are
// expected in the same way once they were seen. Until nothing is missing, and for at most the
// limit, the previous Snapshot stays. If there is none, there is no Snapshot yet.
//
// After the limit a Snapshot is accepted, until everything that was expected exists again.
type Hold struct {
	limit     time.Duration // 0 = nothing is held back
	nodesOnly bool          // this Node and those of its unit alone are expected
	saved     bool          // the saved state has Service default/kubernetes

	expected Listed             // what must be there
	lacks    string             // the first object that is expected and missing; "" = none is
	missing  time.Time          // since when some object is; zero = none is
	held     bool               // the last Snapshot was held back
	good     *topology.Snapshot // the last one that was not; nil = there was none
	begun    bool               // there was a Snapshot
}

// Next returns f's Snapshot, or the last good one while f's is held back; nil = there is none
// yet. wake is when it is accepted at the latest; zero = it is not held back.
func (h Hold) Next(f Facts) (after Hold, s *topology.Snapshot, wake time.Time) {
	if h.limit == 0 || f.Snapshot == nil {
		return h, f.Snapshot, time.Time{}
	}
	listed := f.Listed
	if h.nodesOnly {
		listed.Service, listed.Slice = true, true
	}
	if !h.begun && !listed.Service {
		h.expected.Service = h.saved || f.Written()
	}
	h.begun = true
	h.lacks = h.expected.lacks(listed)
	switch {
	case h.lacks == "":
		h.expected.Service = h.expected.Service || listed.Service
		h.expected.Slice = h.expected.Slice || listed.Slice
		h.missing = time.Time{}
	case h.missing.IsZero():
		h.missing = f.Now
	}
	if h.held = h.lacks != "" && f.Now.Sub(h.missing) < h.limit; h.held {
		return h, h.good, h.missing.Add(h.limit)
	}
	h.good = f.Snapshot
	return h, h.good, time.Time{}
}

// HasAPIServer reports whether Service default/kubernetes is one of all.
func HasAPIServer(all []*corev1.Service) bool {
	return slices.ContainsFunc(all, func(svc *corev1.Service) bool { return topology.NameOf(svc) == topology.APIServer() })
}
