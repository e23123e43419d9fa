package otherproxy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
)

// at is a run that ended at a time after the start, with its findings.
func at(after time.Duration, places ...string) Run {
	return Run{End: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after), Others: rules.NewOtherWrites(places)}
}

func limits() Limits { return NewLimits(2*time.Minute, 10*time.Second) }

// every has a finding in each run of a period.
func every(period, from, to time.Duration) []Run {
	var all []Run
	for t := from; t < to; t += period {
		all = append(all, at(t, "IPv4 nat/KUBE-SVC-A"))
	}
	return all
}

func TestNext(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	for _, test := range []struct {
		name string
		runs []Run
		want bool
	}{
		{"nothing is ever found", []Run{at(0), at(10 * s), at(10 * m), at(2 * h)}, false},
		{"rules are written once", []Run{at(10*s, "a"), at(10 * m), at(20 * m)}, false},
		{"rules are written all the time", every(10*s, 0, 3*m), true},
		{"a rolling update: two daemons for nearly two minutes", slices.Concat(every(10*s, 0, 2*m), []Run{at(30 * m)}), false},
		{"an update when this daemon began, and one when it ends", slices.Concat(every(10*s, 0, m), every(10*s, 20*m, 21*m)), false},
		{"a kube-proxy that writes with each change", []Run{at(m, "a"), at(9*m, "b"), at(40*m, "c")}, true},
		{"a kube-proxy that writes once in an hour", []Run{at(h, "a"), at(2*h, "a"), at(3*h, "a")}, true},
		{"an operator who tries something out every two hours", []Run{at(h, "a"), at(3*h, "a"), at(5*h, "a"), at(7*h, "a")}, false},
		{"the other proxy has ended", slices.Concat(every(10*s, 0, h), []Run{at(2*h + 11*m)}), false},
		{"the other proxy was only quiet for an hour", slices.Concat(every(10*s, 0, h), []Run{at(2*h + m)}), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var state State
			for _, r := range test.runs {
				state = Next(state, r, limits())
			}
			if state.Suspected != test.want {
				t.Errorf("suspected %v, want %v: %+v", state.Suspected, test.want, state)
			}
		})
	}
}

// TestMessage: the message has the time, the number, the places and what to do. Its length is
// limited.
func TestMessage(t *testing.T) {
	var state State
	many := make([]string, 20000)
	for i := range many {
		many[i] = "IPv4 nat/KUBE-SVC-" + strings.Repeat("A", 16)
	}
	for i := range 3 {
		state = Next(state, at(time.Duration(i)*time.Minute, many...), limits())
	}
	text := state.Evidence.Message()
	for _, want := range []string{"3 times since 2026-01-01T00:00:00Z", "IPv4 nat/KUBE-SVC-A", "and 19995 more", "end the other proxy"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q: %s", want, text)
		}
	}
	if len(text) > 1000 { // 1024 is what an Event holds
		t.Errorf("%d bytes", len(text))
	}
}
