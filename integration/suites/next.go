package suites

import (
	"slices"
	"time"
)

// fullLoad bounds the processor time of the suites that run, in percent of one processor, for each
// processor. It is over 100, because suites seldom need their share all the time.
const fullLoad = 115

// maxPace bounds how much longer than its limit a suite may take on a slow machine, so that one
// that hangs still ends.
const maxPace = 4

// Next returns the index of the waiting suite to start now, beside those that run; -1 if none
// starts. Suites start in their order. If one needs more than is free, a later one that needs less
// may start first, but none before a suite that waits to run alone.
func Next(waiting, running []Suite, processors int) int {
	if len(running) == 0 {
		return min(len(waiting), 1) - 1
	}
	load := 0
	for _, s := range running {
		if s.Alone {
			return -1
		}
		load += s.load()
	}
	for i, s := range waiting {
		if s.Alone {
			return -1
		}
		if load+s.load() <= processors*fullLoad {
			return i
		}
	}
	return -1
}

// Budget is the time that a run of CI has.
type Budget struct {
	Start    time.Time     // of the whole run
	Soft     time.Duration // no suite starts if it is likely to end after it; 0 = no limit
	Deadline time.Duration // when the run has ended, with all that it started; 0 = no limit
}

// Times that a Budget sets aside.
const (
	reserve     = 20 * time.Second // before the deadline, to kill what runs and print the table
	compileTime = 2 * time.Minute  // of a fuzz target
	minFuzzTime = 10 * time.Second // a shorter search is not worth compiling the target
	maxFuzzTime = 2 * time.Minute
)

// Pace returns how slow this machine is now: the time that passed suites took, divided by the time
// that they usually take; at least 1, and at most maxPace.
func Pace(results []Result, table []Suite) float64 {
	var took, usual time.Duration
	for _, r := range results {
		i := slices.IndexFunc(table, func(s Suite) bool { return s.Name == r.Suite })
		if i >= 0 && r.Outcome == Passed {
			took, usual = took+r.Run, usual+table[i].Usual
		}
	}
	if usual == 0 {
		return 1
	}
	return min(max(1, float64(took)/float64(usual)), maxPace)
}

// AtPace returns how long something takes at a pace.
func AtPace(usual time.Duration, pace float64) time.Duration {
	return time.Duration(float64(usual) * pace)
}

// Fits reports whether a suite that starts now is likely to end in time: at this pace, and on any
// machine within one and a half times its usual duration. The core tier always fits before the
// deadline.
func (b Budget) Fits(now time.Time, s Suite, pace float64) bool {
	switch {
	case b.Deadline > 0 && b.Limit(now, time.Hour) <= 0:
		return false
	case s.Tier == Core || b.Soft == 0:
		return true
	case s.Tier == Fuzz:
		return b.FuzzTime(now, 1, 0) > 0
	}
	return now.Add(AtPace(s.Usual, max(1.5, pace))).Before(b.Start.Add(b.Soft))
}

// Limit returns how long a process that starts now may run, at most the limit of its suite.
func (b Budget) Limit(now time.Time, own time.Duration) time.Duration {
	if b.Deadline == 0 {
		return own
	}
	return max(0, min(own, b.Start.Add(b.Deadline-reserve).Sub(now)))
}

// FuzzTime returns how long the next of some targets may search for inputs: its share of the
// remaining time. If that is too short, fewer targets share it. It returns 0 if there is no time.
func (b Budget) FuzzTime(now time.Time, targets int, preset time.Duration) time.Duration {
	if b.Soft == 0 {
		return preset
	}
	left := b.Start.Add(b.Soft).Sub(now)
	targets = max(1, min(targets, int(left/(compileTime+minFuzzTime))))
	share := (left/time.Duration(targets) - compileTime).Truncate(time.Second)
	if share < minFuzzTime {
		return 0
	}
	return min(share, maxFuzzTime)
}
