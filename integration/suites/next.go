package suites

import "time"

// fullLoad is the processor time, in percent of one processor, up to which suites are started
// for each processor. It is over 100, because suites seldom need their share all the time.
const fullLoad = 115

// Next is the index of the waiting suite to start now, beside those that run; -1 if the machine
// is to be left as it is. Suites start in their order; where one needs more than is free, a later
// one that needs less may pass it. None passes a suite that waits to run alone.
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
	Deadline time.Duration // what still runs is killed; 0 = never
}

// Fits says whether a suite that usually takes this long is likely to end in time: it may take half
// as long again.
func (b Budget) Fits(now time.Time, usual time.Duration) bool {
	return b.Soft == 0 || now.Add(usual*3/2).Before(b.Start.Add(b.Soft))
}

// Limit is how long a process that starts now may run.
func (b Budget) Limit(now time.Time, own time.Duration) time.Duration {
	if b.Deadline == 0 {
		return own
	}
	return max(0, min(own, b.Start.Add(b.Deadline).Sub(now)))
}

// FuzzTime is how long one target may search for inputs: its share of the time that is left for
// all targets, with a minute to compile each, at most two minutes.
func (b Budget) FuzzTime(now time.Time, targets int, preset time.Duration) time.Duration {
	if b.Soft == 0 || targets == 0 {
		return preset
	}
	left := b.Start.Add(b.Soft).Sub(now) / time.Duration(targets)
	return min((left - time.Minute).Truncate(time.Second), 2*time.Minute)
}
