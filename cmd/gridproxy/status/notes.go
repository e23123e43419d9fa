package status

import (
	"fmt"
	"strings"
	"time"
)

// NotesOn returns what this daemon enforces of a Service, NAMESPACE/NAME, otherwise than the
// API server says, a sentence each.
func (s Status) NotesOn(service string) []string {
	var notes []string
	if saved := s.Knowledge.Saved; !saved.IsZero() {
		notes = append(notes, fmt.Sprintf("the daemon has not read the API server since its start: it enforces the state that was saved at %s, %s ago",
			saved.UTC().Format(time.RFC3339), s.age(saved)))
	}
	var held []string
	var until time.Time
	for _, e := range s.Knowledge.Held {
		if e.Service == service {
			held, until = append(held, e.Address), e.Until
		}
	}
	if len(held) > 0 {
		notes = append(notes, fmt.Sprintf("used although not ready, until %s at the latest: %s; they turned so in a wave when the API server was back (--reconnect-grace)",
			until.UTC().Format(time.RFC3339), strings.Join(held, ", ")))
	}
	return notes
}
