package watch

import (
	"time"

	"gridproxy/topology"
)

// rememberedAfter is how long the API server may take before the saved state is used, where the
// kernel holds rules already.
const rememberedAfter = 10 * time.Second

// Remembered uses the saved Snapshot until the API server has been read. After that it uses none,
// whatever becomes of the API server.
type Remembered struct {
	saved *topology.Snapshot // nil = none was read from disk
	from  time.Time          // from when on it is used although the kernel holds rules, which go on
	used  bool               // it was
	over  bool               // the API server has been read
}

// Next returns the API server's Snapshot, else the saved one from its time on or if the kernel
// holds no rules; nil = none yet, and wake is that time. The first Snapshot of the API server
// gets the topology keys that were saved: it has none itself.
func (r Remembered) Next(f Facts) (after Remembered, s *topology.Snapshot, wake time.Time) {
	switch {
	case r.saved == nil || r.over:
		return r, f.Snapshot, time.Time{}
	case f.Snapshot != nil:
		first := *f.Snapshot
		first.LastKeys, r.over = r.saved.LastKeys, true
		return r, &first, time.Time{}
	case !f.Now.Before(r.from) || !f.Written():
		r.used = true
		return r, r.saved, time.Time{}
	default:
		return r, nil, r.from
	}
}

// inUse reports whether the saved Snapshot is in force.
func (r Remembered) inUse() bool { return r.used && !r.over }
