package command

import (
	"strings"
	"testing"
	"time"
)

// TestProgress: nothing within two seconds; then one line, which a terminal rewrites and erases.
func TestProgress(t *testing.T) {
	for _, test := range []struct {
		name     string
		erasable bool
		ticks    []time.Duration
		want     string
	}{
		{"short", false, []time.Duration{time.Second, 1999 * time.Millisecond}, ""},
		{"short, terminal", true, []time.Duration{time.Second, 1999 * time.Millisecond}, ""},
		{"long", false, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, time.Hour}, "reading: 2 s\n"},
		{"long, terminal", true, []time.Duration{time.Second, 2100 * time.Millisecond, 3 * time.Second}, "\rreading: 2 s\x1b[K\rreading: 3 s\x1b[K\r\x1b[K"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w strings.Builder
			begun, ticks := time.Now(), make(chan time.Time)
			p := progress{what: "reading", erasable: test.erasable}
			done := p.follow(&w, begun, ticks)
			for _, passed := range test.ticks {
				ticks <- begun.Add(passed)
			}
			done()
			if w.String() != test.want {
				t.Errorf("wrote %q, want %q", w.String(), test.want)
			}
		})
	}
}
