package watch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// HoldLimit is how long a Snapshot is held back at most.
const HoldLimit = 5 * time.Minute

// HoldConfig says when a Snapshot is held back.
type HoldConfig struct {
	// Written reports whether the kernel holds rules of ours. It is called at most once, before
	// the first Snapshot is handed out. nil = it does not.
	Written func() bool
	// NodesOnly expects this Node and those of its unit alone: default/kubernetes is another
	// proxy's, so that it is not listed.
	NodesOnly bool
	Limit     time.Duration    // 0 = HoldLimit
	Now       func() time.Time // nil = time.Now
	Log       *slog.Logger     // nil = none
}

// Lists is a Source that is an API server's; a Cluster is one.
type Lists interface {
	Source
	// Listed returns what was listed last. It may be ahead of the Snapshot, never behind it.
	Listed() Listed
}

// Listed are objects that every API server has.
type Listed struct {
	Service bool // default/kubernetes
	Slice   bool // the EndpointSlice default/kubernetes, which the API server makes too

	// NodesLost: this Node, or all of several Nodes of its unit, were listed before and are missing
	// now. An event that deletes this Node is no such case.
	NodesLost bool
}

// Hold is a Source that holds back a Snapshot that cannot be true: one without Service
// default/kubernetes, which every API server creates, although this process has seen it or the
// kernel holds rules of ours. Then the storage of the API server is empty or being restored, or it
// is another cluster. Kinds are listed one after the other, so the Service may be gone last.
// Therefore its EndpointSlice, this Node, and the Nodes of its unit if there were several, are
// expected in the same way once they were seen. Until nothing is missing, and for at most the
// limit, the previous Snapshot stays. If there is none, there is no Snapshot yet.
type Hold struct {
	config  HoldConfig
	source  Lists
	changed pulse
	holding atomic.Bool

	mu    sync.Mutex
	asked bool // Written was
	state expectation
	good  topology.Snapshot // the last one that was handed out
	whole bool              // there is one
}

// NewHold makes the Source.
func NewHold(s Lists, c HoldConfig) *Hold {
	if c.Limit == 0 {
		c.Limit = HoldLimit
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Hold{config: c, source: s, changed: newPulse()}
}

// Run runs the source.
func (h *Hold) Run(ctx context.Context) error {
	return forward(ctx, h.source, h.changed.send)
}

// Changed receives after a change in the source, and when the limit is over.
func (h *Hold) Changed() <-chan struct{} { return h.changed }

// Holding reports whether the Snapshot that was asked for last was held back. Safe for
// concurrent use.
func (h *Hold) Holding() bool { return h.holding.Load() }

// Snapshot returns that of the source, or the one from before while that of the source is held
// back; false = there is no Snapshot yet.
func (h *Hold) Snapshot() (topology.Snapshot, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, whole := h.source.Snapshot()
	if !whole {
		return s, false
	}
	listed := h.source.Listed() // after the Snapshot: what it misses is missing here too
	if h.config.NodesOnly {
		listed.Service, listed.Slice = true, true
	}
	if !h.asked && !listed.Service && h.config.Written != nil {
		h.state.expected.Service = h.config.Written()
	}
	h.asked = true
	now := h.config.Now()
	var held bool
	h.state, held = h.state.next(now, listed, h.config.Limit)
	h.report(listed, held)
	if held {
		return h.good, h.whole
	}
	h.good, h.whole = s, true
	return s, true
}

// report logs each transition, and makes sure that the end of the limit is noticed.
func (h *Hold) report(listed Listed, held bool) {
	was := h.holding.Swap(held)
	lacks := h.state.expected.lacks(listed)
	switch {
	case held && !was:
		time.AfterFunc(h.config.Limit, h.changed.send)
		h.config.Log.Warn("the API server does not list what every cluster has: its storage may be empty or being restored, or it may be another cluster's; "+
			"its list is held back, and the rules stay unchanged", "missing", lacks, "atMost", h.config.Limit)
	case was && !held && lacks != "":
		h.config.Log.Error("the API server still does not list what every cluster has; its list takes effect now", "missing", lacks, "heldFor", h.config.Limit)
	case was && !held:
		h.config.Log.Info("the API server lists what every cluster has again; its list takes effect")
	}
}

// expectation is what previous Snapshots contained. The zero value is before the first one. Pure.
type expectation struct {
	expected Listed    // what must be there
	missing  time.Time // since when some of it is not; zero = it is
}

// next decides on a Snapshot with these listed objects. After the limit the Snapshot is accepted,
// until everything that was expected exists again.
func (e expectation) next(now time.Time, listed Listed, limit time.Duration) (after expectation, held bool) {
	if e.expected.lacks(listed) == "" {
		e.missing = time.Time{}
		e.expected.Service = e.expected.Service || listed.Service
		e.expected.Slice = e.expected.Slice || listed.Slice
		return e, false
	}
	if e.missing.IsZero() {
		e.missing = now
	}
	return e, now.Sub(e.missing) < limit
}

// lacks returns the first object that is expected and not listed; "" = no object is missing.
func (expected Listed) lacks(listed Listed) string {
	switch {
	case expected.Service && !listed.Service:
		return "Service default/kubernetes"
	case expected.Slice && !listed.Slice:
		return "EndpointSlice default/kubernetes"
	case listed.NodesLost:
		return "this Node, or the other Nodes of its unit"
	default:
		return ""
	}
}

var _ Source = (*Hold)(nil)

// hold holds back a Snapshot that cannot be true: one without Service default/kubernetes, which
// every API server creates, although this process has seen it, an earlier one has saved it, or the
// kernel holds rules of ours. Then the storage of the API server is empty or being restored, or it
// is another cluster. Kinds are listed one after the other, so the Service may be gone last.
// Therefore its EndpointSlice, this Node, and the Nodes of its unit if there were several, are
// expected in the same way once they were seen. Until nothing is missing, and for at most the
// limit, the previous Snapshot stays. If there is none, there is no Snapshot yet.
//
// After the limit a Snapshot is accepted, until everything that was expected exists again.
type hold struct {
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

// Next decides on a Snapshot of the API server.
func (h hold) Next(f Facts) (after hold, s *topology.Snapshot, wake time.Time) {
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
	return slices.ContainsFunc(all, func(svc *corev1.Service) bool { return svc.Namespace+"/"+svc.Name == apiServerKey })
}
