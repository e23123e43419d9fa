package status

import (
	"slices"
	"testing"
	"time"
)

func TestNotesOn(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := Status{CurrentTime: now}
	if notes := s.NotesOn("default/web"); len(notes) > 0 {
		t.Errorf("notes %q on a daemon that enforces what the API server says", notes)
	}
	s.Knowledge.Saved = now.Add(-2 * time.Hour)
	s.Knowledge.Held = []HeldEndpoint{
		{Service: "default/other", Address: "10.0.0.9", Until: now.Add(time.Hour)},
		{Service: "default/web", Address: "10.0.0.1", Until: now.Add(time.Minute)},
		{Service: "default/web", Address: "10.0.0.2", Until: now.Add(time.Minute)},
	}
	want := []string{
		"the daemon has not read the API server since its start: it enforces the state that was saved at 2026-01-02T01:04:05Z, 2h0m0s ago",
		"used although not ready, until 2026-01-02T03:05:05Z at the latest: 10.0.0.1, 10.0.0.2; they turned so in a wave when the API server was back (--reconnect-grace)",
	}
	if notes := s.NotesOn("default/web"); !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
}
