package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// remembering runs a Chain with a saved Service "saved" until the test ends.
func remembering(t *testing.T, written bool) (*Chain, *scripted) {
	t.Helper()
	saved := savedNamed("saved")
	saved.Saved, saved.LastKeys = moment, map[types.UID][]string{"uid": {"location"}}
	source := newScripted()
	return startChain(t, Config{Saved: saved, Written: func() bool { return written }}, source), source
}

// wantNow wants the Service of the Snapshot; "" = there is no Snapshot.
func wantNow(t *testing.T, r *Chain, service string) topology.Snapshot {
	t.Helper()
	s, ok := r.Snapshot()
	got := ""
	if ok {
		got = s.Services[0].Name
	}
	if got != service || s.Saved.IsZero() == (service == "saved") {
		t.Fatalf("Snapshot with %q, saved %s, want %q", got, s.Saved, service)
	}
	return s
}

// TestRememberedAfterReboot: on a machine without rules the saved state is in force at once, and
// until the API server has been read.
func TestRememberedAfterReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, source := remembering(t, false)
		wantNow(t, r, "saved")
		now := savedNamed("now")
		source.give(&now)
		wantChanged(t, r, true)
		if s := wantNow(t, r, "now"); len(s.LastKeys) != 1 {
			t.Errorf("topology keys %v: those that were saved are lost", s.LastKeys)
		}
		if s := wantNow(t, r, "now"); s.LastKeys != nil {
			t.Errorf("topology keys %v in the second Snapshot, want those of the caller", s.LastKeys)
		}
		source.give(nil)
		wantNow(t, r, "") // never the saved state again
	})
}

// TestRememberedAfterRestart: rules in the kernel go on for a time, so that the API server may
// answer first.
func TestRememberedAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, source := remembering(t, true)
		wantNow(t, r, "")
		time.Sleep(rememberedAfter - time.Millisecond)
		wantChanged(t, r, false)
		wantNow(t, r, "")
		time.Sleep(time.Millisecond)
		wantChanged(t, r, true)
		wantNow(t, r, "saved")
		now := savedNamed("now")
		source.give(&now)
		wantNow(t, r, "now")
	})
	synctest.Test(t, func(t *testing.T) {
		r, source := remembering(t, true)
		now := savedNamed("now")
		source.give(&now)
		time.Sleep(time.Hour)
		if s := wantNow(t, r, "now"); len(s.LastKeys) != 1 {
			t.Errorf("topology keys %v", s.LastKeys)
		}
	})
}
