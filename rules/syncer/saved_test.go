package syncer

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestSavedSnapshotDeletesNoFlow: flows may be right although they contradict a Snapshot from disk.
// The first Snapshot of the cluster judges them, with the saved one as the state before.
func TestSavedSnapshotDeletesNoFlow(t *testing.T) {
	swept := &flows{}
	saved := someSnapshot("1")
	saved.Saved = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run(t, func(b *bench, c *Config) { c.Flows, c.Saved = swept, saved; b.src.set(saved) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		if of := swept.families(); len(of) != 0 {
			t.Errorf("flows of %v were swept because of a saved Snapshot", of)
		}
		now := someSnapshot("2")
		now.Services = nil
		b.src.set(now)
		b.at(10 * s)
		if of := swept.families(); len(of) == 0 {
			t.Error("no flows were swept when the cluster was known")
		}
		if before := swept.before(); !slices.Equal(before, []int{1}) {
			t.Errorf("Services before: %v, want 1 once", before)
		}
	})
}

// TestSavedSnapshotNotNeeded: it counts for flows if the cluster answers first, too.
func TestSavedSnapshotNotNeeded(t *testing.T) {
	swept := &flows{}
	saved := someSnapshot("1")
	saved.Saved = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run(t, func(b *bench, c *Config) { c.Flows, c.Saved = swept, saved; b.src.set(someSnapshot("2")) }, func(t *testing.T, b *bench) {
		b.src.set(someSnapshot("3"))
		b.at(10 * s)
		if before, of := swept.before(), swept.families(); !slices.Equal(before, []int{1}) || len(of) == 0 {
			t.Errorf("Services before: %v, want 1 once; swept %v", before, of)
		}
	})
}

// TestSavedKeys: a malformed annotation keeps the keys that an earlier process read.
func TestSavedKeys(t *testing.T) {
	snapshot := someSnapshot("1")
	snapshot.Services[0].Annotations = map[string]string{"topologyKeys": "malformed"}
	snapshot.LastKeys = map[types.UID][]string{"uid": {"location"}}
	run(t, func(b *bench, _ *Config) { b.src.set(snapshot) }, func(t *testing.T, b *bench) {
		r := b.seen.all()[0]
		if got := r.View.LastKeys["uid"]; !slices.Equal(got, []string{"location"}) {
			t.Errorf("keys %v, want those of the Source", got)
		}
	})
}
