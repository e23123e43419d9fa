package watch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/state"

	"k8s.io/apimachinery/pkg/types"
)

// laterSource is a Source that has a Snapshot once it is given one. It is instead of an API server
// that is away at first.
type laterSource struct {
	changed pulse
	mu      sync.Mutex
	now     *topology.Snapshot
}

func (s *laterSource) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (s *laterSource) Changed() <-chan struct{}      { return s.changed }

func (s *laterSource) Snapshot() (topology.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return topology.Snapshot{}, false
	}
	return *s.now, true
}

func (s *laterSource) give(snapshot *topology.Snapshot) {
	s.mu.Lock()
	s.now = snapshot
	s.mu.Unlock()
	s.changed.send()
}

// remembering runs a Remembered with a saved Service "saved" until the test ends.
func remembering(t *testing.T, written bool) (*Remembered, *laterSource) {
	t.Helper()
	saved := savedNamed("saved")
	saved.Saved, saved.LastKeys = moment, map[types.UID][]string{"uid": {"location"}}
	source := &laterSource{changed: newPulse()}
	r := NewRemembered(source, RememberedConfig{State: state.State{Snapshot: saved}, Written: func() bool { return written }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r, source
}

// wantNow wants the Service of the Snapshot; "" = there is no Snapshot.
func wantNow(t *testing.T, r *Remembered, service string) topology.Snapshot {
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

func wantChanged(t *testing.T, r *Remembered, want bool) {
	t.Helper()
	synctest.Wait()
	select {
	case <-r.Changed():
		if !want {
			t.Error("Changed receives")
		}
	default:
		if want {
			t.Error("Changed does not receive")
		}
	}
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

// TestInUseDoesNotWait: who scrapes metrics does not wait for a kernel that hangs.
func TestInUseDoesNotWait(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	r := NewRemembered(&laterSource{changed: newPulse()}, RememberedConfig{Written: func() bool {
		close(asked)
		<-answer
		return true
	}})
	g := NewGrace(r, GraceConfig{Grace: time.Minute, Losses: func() (Loss, PastLoss) { return Loss{}, PastLoss{} }})
	done := make(chan struct{})
	go func() { defer close(done); g.Snapshot() }()
	<-asked
	if r.InUse() || len(g.Held()) > 0 {
		t.Error("something is in use before there is an answer")
	}
	close(answer)
	<-done
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
