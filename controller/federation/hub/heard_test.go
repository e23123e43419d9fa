package hub

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// TestHeard: each change of a member's renewTime counts as a sign of life, at the time of the
// hub's clock. The member's clock plays no part.
func TestHeard(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := heardLast{}
	for _, step := range []struct {
		renewed   time.Duration // by the member's clock
		heartbeat string
		now       time.Duration
		heard     time.Duration // negative: there is no heartbeat
	}{
		{0, `{}`, 0, 0},
		{0, `{"version":"1"}`, 50 * time.Second, 0},
		{time.Hour, `{}`, 60 * time.Second, 60 * time.Second},
		{time.Hour, `{}`, 100 * time.Second, 60 * time.Second},
		{-time.Hour, `{}`, 120 * time.Second, 120 * time.Second}, // its clock was set back
		{time.Minute, `{`, 130 * time.Second, -1},
		{time.Minute, strings.Repeat(" ", heartbeatMax) + `{}`, 140 * time.Second, -1},
	} {
		h = h.next(map[string]*coordinationv1.Lease{"west": newLease("west", begin.Add(step.renewed), step.heartbeat)}, begin.Add(step.now))
		beat, found := h["west"]
		if found != (step.heard >= 0) || found && (!beat.Heard.Equal(begin.Add(step.heard))) {
			t.Errorf("after %s: heard at %s, found: %t; want %s", step.now, beat.Heard, found, step.heard)
		}
	}
	if h = h.next(nil, begin); len(h) > 0 {
		t.Errorf("clusters that are gone are remembered: %v", h)
	}
}

// TestNeverRenewed: a Lease without a renewTime says what is wrong, or nothing.
func TestNeverRenewed(t *testing.T) {
	for text, want := range map[string]int{`{"problems": [{"reason": "KubeConfigInvalid"}]}`: 1, `{}`: 0} {
		l := newLease("west", time.Unix(1, 0), text)
		l.Spec.RenewTime = nil
		h := heardLast{}.next(map[string]*coordinationv1.Lease{"west": l}, time.Unix(2, 0))
		if len(h) != want || want > 0 && (h["west"].Renewal != "" || h["west"].Problems[0].Reason != "KubeConfigInvalid") {
			t.Errorf("of %s it is read %+v", text, h)
		}
	}
}

// TestHeartbeatBounds: however much a member says, what is kept of it has a bound.
func TestHeartbeatBounds(t *testing.T) {
	said := v1alpha1.Heartbeat{ClusterUID: strings.Repeat("u", 1000), Version: "1\n2"}
	for range 20 {
		said.Problems = append(said.Problems, v1alpha1.Problem{Reason: strings.Repeat("r", 200), Message: strings.Repeat("m", 500) + "\x1b[31m"})
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	kept, ok := readHeartbeat(newLease("west", time.Unix(1, 0), string(text)))
	if !ok || len(kept.Problems) != problemsMax || len(kept.ClusterUID) > wordMax || kept.Version != `1\n2` {
		t.Errorf("%t, %d problems, UID of %d bytes, version %q", ok, len(kept.Problems), len(kept.ClusterUID), kept.Version)
	}
	for _, p := range kept.Problems {
		if len(p.Reason) > wordMax || len(p.Message) > messageMax || strings.Contains(p.Message, "\x1b") {
			t.Errorf("a problem of %d and %d bytes: %q", len(p.Reason), len(p.Message), p.Message)
		}
	}
}
