package otherproxy

import (
	"fmt"
	"strings"
	"time"

	"gridproxy/rules"
)

// Limits say what counts as evidence. All are durations.
type Limits struct {
	// Spell is the time after a finding in which further findings count as the same one. Two spells
	// are longer than an old and a new daemon run side by side in a rolling update.
	Spell time.Duration
	// Quiet is the time without a finding after which the other proxy is assumed to have ended.
	// Without changes, kube-proxy writes all of its rules once an hour.
	Quiet time.Duration
}

// NewLimits returns the Limits by which a proxy that writes all the time is suspected after a
// duration, if the kernel is read back once in a verify period.
func NewLimits(after, verifyPeriod time.Duration) Limits {
	const late = 10 * time.Minute // a sync of kube-proxy may be late
	return Limits{Spell: after / (spellsSuspected - 1), Quiet: max(time.Hour+late, 2*verifyPeriod)}
}

// spellsSuspected is the number of spells with a finding after which another proxy is suspected.
const spellsSuspected = 3

// Run is what one run of the syncer found. It reports a write once, as Backend.OtherWrites does.
type Run struct {
	End    time.Time
	Others rules.OtherWrites
}

// State is what the previous runs have shown. The zero value is for the first run.
type State struct {
	Suspected bool
	Evidence  Evidence

	spell time.Time // when the latest spell began
	last  time.Time // the latest finding
}

// Evidence is what was found since another proxy was first found.
type Evidence struct {
	Since    time.Time // the first finding
	Findings int       // verifies with a finding
	Spells   int       // findings that began a spell
	Latest   rules.OtherWrites
}

// Next returns the State after one more run. It starts again after l.Quiet without a finding.
func Next(s State, r Run, l Limits) State {
	if !s.last.IsZero() && r.End.Sub(s.last) >= l.Quiet {
		s = State{}
	}
	if r.Others.Places == 0 {
		return s
	}
	if s.Evidence.Findings == 0 {
		s.Evidence.Since = r.End
	}
	if s.spell.IsZero() || r.End.Sub(s.spell) >= l.Spell {
		s.spell = r.End
		s.Evidence.Spells++
	}
	s.last = r.End
	s.Evidence.Findings++
	s.Evidence.Latest = r.Others
	s.Suspected = s.Suspected || s.Evidence.Spells >= spellsSuspected
	return s
}

// Message returns the text for operators: what was found, and what to do.
func (e Evidence) Message() string {
	return fmt.Sprintf("another service proxy, such as kube-proxy or a second gridproxy, keeps writing into this node's rules: "+
		"%d times since %s they were written again after they had been repaired, last %s; Services may leave their unit until the next repair; "+
		"end the other proxy on this node",
		e.Findings, e.Since.UTC().Format(time.RFC3339), places(e.Latest))
}

func places(w rules.OtherWrites) string {
	text := strings.Join(w.First, ", ")
	if more := w.Places - len(w.First); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
