package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gridproxy/rules"

	"pgregory.net/rapid"
)

// churn is a node whose changes come all the time, in the time of its schedule.
type churn struct {
	schedule
	now      time.Time
	arrivals []time.Time     // of changes, ascending
	costs    []time.Duration // of reading, each used once; then the first again
	readings int

	oldest time.Time // of the changes that wait
	done   time.Time // end of the last verification that was completed
	rested time.Time // until when the last one must rest
}

func (c *churn) dirty() bool { return !c.oldest.IsZero() }

// next lets time pass until the next run has ended, and reports what is wrong with it.
func (c *churn) next(writing time.Duration, dearest time.Duration) error {
	for {
		at, known := c.due(c.dirty())
		arrives := len(c.arrivals) > 0 && (!known || !c.arrivals[0].After(at))
		if arrives {
			c.arrive()
			continue
		}
		if c.now.Before(at) {
			c.now = at
		}
		break
	}
	p := c.plan(c.now, c.dirty())
	if !p.alone {
		from := c.oldest
		if earliest := c.wrote.Add(c.min); from.Before(earliest) {
			from = earliest
		}
		if late := c.now.Sub(from); c.dirty() && late > max(writing, dearest) {
			return fmt.Errorf("a change of %v is written %v late", c.oldest, late)
		}
		c.oldest = time.Time{}
		c.end(writing, Result{plan: p, Verify: p.verify})
		return nil
	}
	return c.verify(p, writing, max(c.schedule.verification.configured, verifyDelayFactor*dearest))
}

// verify is a run that only verifies; longest is the longest period.
func (c *churn) verify(p plan, writing, longest time.Duration) error {
	switch firm := c.done.Add(overduePeriods * c.schedule.verification.period()); {
	case c.dirty() && c.now.Before(firm):
		return fmt.Errorf("a verification starts while a change waits, before %v", firm)
	case c.now.Before(c.done.Add(c.schedule.verification.configured)), c.now.Before(c.rested):
		return fmt.Errorf("a verification starts at %v, too early after %v and before %v", c.now, c.done, c.rested)
	case c.now.Sub(c.done) > 3*longest+writing+c.min:
		return fmt.Errorf("a verification starts %v after the last one, which is more than three periods of %v", c.now.Sub(c.done), longest)
	}
	cost := c.costs[c.readings%len(c.costs)]
	c.readings++
	interrupted := false
	if p.reading == untilChange && len(c.arrivals) > 0 && c.arrivals[0].Before(c.now.Add(cost)) {
		cost, interrupted = c.arrivals[0].Sub(c.now), true
	}
	c.end(cost, Result{plan: p, Verify: true, Changes: rules.Changes{VerifyTime: cost, Interrupted: interrupted}})
	c.rested = c.now.Add(verifyDelayFactor * cost)
	if !interrupted {
		c.done = c.now
	}
	return nil
}

func (c *churn) arrive() {
	if c.now.Before(c.arrivals[0]) {
		c.now = c.arrivals[0]
	}
	if c.oldest.IsZero() {
		c.oldest = c.arrivals[0]
	}
	c.arrivals = c.arrivals[1:]
}

// end lets a run end after a time, in which changes arrive.
func (c *churn) end(after time.Duration, r Result) {
	r.Start, r.End = c.now, c.now.Add(after)
	for len(c.arrivals) > 0 && !c.arrivals[0].After(r.End) {
		c.arrive()
	}
	c.now = r.End
	c.schedule = c.after(r)
}

// TestVerificationUnderChurn: however often changes come and whatever reading costs, a
// verification does not start while a change waits nor keeps one waiting unless it is overdue,
// takes at most a fiftieth of a processor, and starts within three periods.
func TestVerificationUnderChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1_800_000_000, 0)
		millis := func(least, most int, name string) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(t, name)) * time.Millisecond
		}
		c := &churn{now: begin, done: begin, costs: []time.Duration{0}}
		c.min = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "min")
		c.schedule.verification.configured = rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "period")
		writing := millis(1, 900, "writing")
		for range rapid.IntRange(0, 3).Draw(t, "costs") {
			c.costs = append(c.costs, millis(0, 3000, "cost"))
		}
		gap := millis(1, 4000, "gap")
		at := begin
		for range rapid.IntRange(0, 400).Draw(t, "changes") {
			at = at.Add(millis(0, int(2*gap/time.Millisecond), "wait"))
			c.arrivals = append(c.arrivals, at)
		}
		c.end(0, Result{plan: c.plan(c.now, true), Verify: true})
		for runs := 0; runs < 2000 && (len(c.arrivals) > 0 || runs < 20); runs++ {
			if err := c.next(writing, slices.Max(c.costs)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestLongestPeriod: however much a verification costs, completed or not, the next one may start
// an hour later, and a longer period that the operator asked for stays.
func TestLongestPeriod(t *testing.T) {
	start := time.Unix(0, 0)
	for _, tc := range []struct{ configured, cost, want time.Duration }{
		{10 * time.Second, time.Second / 5, 10 * time.Second},
		{10 * time.Second, 2 * time.Second, 100 * time.Second},
		{10 * time.Second, 3 * time.Minute, time.Hour},
		{10 * time.Second, time.Hour, time.Hour},
		{10 * time.Second, 1 << 62, time.Hour},
		{3 * time.Hour, time.Hour, 3 * time.Hour},
	} {
		v := verification{configured: tc.configured}.after(start, tc.cost, true)
		if at, _, _ := v.next(false, time.Time{}); at.Sub(start) != tc.want {
			t.Errorf("period %v, cost %v: the next starts after %v, want %v", tc.configured, tc.cost, at.Sub(start), tc.want)
		}
		v = v.after(start.Add(tc.want), tc.cost, false)
		if at, _, _ := v.next(false, time.Time{}); at.Sub(start) > tc.want+verifyDelayMax {
			t.Errorf("cost %v, interrupted: the next starts after %v", tc.cost, at.Sub(start))
		}
	}
}

// TestFirstVerificationAfterWriting: what a start has written is not read back sooner than what
// it cost allows, as long as nothing else says what reading costs. A start that wrote little
// waits a period.
func TestFirstVerificationAfterWriting(t *testing.T) {
	start := time.Unix(0, 0)
	for _, tc := range []struct{ read, write, want time.Duration }{
		{0, 2 * time.Second, 100 * time.Second},
		{3 * time.Second, 2 * time.Second, 150 * time.Second},
		{10 * time.Millisecond, 400 * time.Millisecond, 10 * time.Second},
	} {
		s := schedule{verification: verification{configured: 10 * time.Second}}
		s = s.after(Result{Start: start, End: start, Verify: true, Changes: rules.Changes{VerifyTime: tc.read, WriteTime: tc.write}})
		if at, _ := s.dueToVerify(false); at.Sub(start) != tc.want {
			t.Errorf("read %v, wrote %v: the first verification starts after %v, want %v", tc.read, tc.write, at.Sub(start), tc.want)
		}
	}
}

// TestVerificationPutsNothingOff: the minimum period counts from runs that write. A change just
// after a verification is written at once.
func TestVerificationPutsNothingOff(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(10100 * ms)
		b.src.set(someSnapshot("2"))
		b.at(15 * s)
		b.expectStarts(t, 0, 10*s, 10100*ms)
	})
}

// TestChangeInterruptsVerification: a change that arrives is written at once. What was not read is
// read when the reading that was interrupted has been paid for, and the period follows the cost.
func TestChangeInterruptsVerification(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(9 * s)
		b.backend.tamper()
		b.backend.set(func(k *backend) { k.reads = 2 * s })
		b.at(10500 * ms)
		b.src.set(someSnapshot("2"))
		b.at(10500 * ms)
		b.expectStarts(t, 0, 10*s, 10500*ms)
		all := b.seen.all()
		if r := all[1]; r.Err != nil || !r.Changes.Interrupted || r.Changes.Verified || r.Changes.VerifyTime != 500*ms || !r.Queued.IsZero() {
			t.Errorf("the verification: %v, %+v", r.Err, r.Changes)
		}
		if r := all[2]; r.Verify || r.Queued.Sub(b.began) != 10500*ms || r.Start.Sub(b.began) != 10500*ms {
			t.Errorf("the change: verify %t, queued %v", r.Verify, r.Queued)
		}
		b.at(140 * s)
		b.expectStarts(t, 0, 10*s, 10500*ms, 35500*ms, 137500*ms)
		all = b.seen.all()
		if r := all[3]; !r.Changes.Verified || r.VerifyPeriod != 100*s {
			t.Errorf("the verification after it: %+v, the next in %v, want 100s", r.Changes, r.VerifyPeriod)
		}
	})
}

// TestPendingDuringVerification: a verification leaves the changes that wait to the next run. They
// are pending since the first of them came, also if that was before the verification began.
func TestPendingDuringVerification(t *testing.T) {
	b := newInbox()
	b.note(true)
	came := b.queued
	if queued, moved := b.begin(came.Add(s), false); !queued.IsZero() || moved {
		t.Error("a verification takes up a change")
	}
	for _, f := range rules.Families() {
		if p := b.pending(f); !p.Equal(came) {
			t.Errorf("%s is pending since %v, want %v", f, p, came)
		}
	}
	b.done(came.Add(s), came.Add(2*s), rules.Outcomes{})
	if queued, moved := b.begin(came.Add(2*s), true); !queued.Equal(came) || !moved {
		t.Errorf("the next run takes up a change of %v, moved %t", queued, moved)
	}
}

// TestVerificationIsNotStarved: where a change waits at any time, a verification follows a run
// that writes, two periods after the last verification, and is not interrupted.
func TestVerificationIsNotStarved(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.backend.set(func(k *backend) { k.reads = 160 * ms })
		for i := range 600 {
			b.at(time.Duration(i) * 100 * ms)
			b.src.set(someSnapshot(fmt.Sprint(i)))
		}
		b.at(60 * s)
		var verified []time.Duration
		for _, r := range b.seen.all()[1:] {
			if r.Verify && r.Changes.Verified {
				verified = append(verified, r.Start.Sub(b.began))
			}
		}
		if len(verified) != 2 || verified[0] > 22*s || verified[1] > 44*s {
			t.Errorf("verified at %v, want twice, two periods after another", verified)
		}
	})
}

// readers is a Backend one of whose families is known; the other one fails at first.
type readers struct {
	familyBackend
	read []bool // by Sync with verify: the family that is known may be read
}

func (b *readers) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	c, err := b.familyBackend.Sync(ctx, want, verify)
	reading, end := rules.Reading(ctx)
	defer end()
	if verify {
		b.read = append(b.read, reading.Err() == nil)
		c.Interrupted = reading.Err() != nil
		if !c.Interrupted {
			c.VerifyTime = 800 * ms
		}
	}
	return c, err
}

// TestRetriesDoNotVerify: what fails in one family is tried again and again. What the other family
// holds is read only when a verification is due.
func TestRetriesDoNotVerify(t *testing.T) {
	backend := &readers{}
	run(t, with(backend), func(t *testing.T, b *bench) {
		b.at(s)
		backend.set(rules.Outcomes{{}, {Err: errors.New("ip6tables-restore: exit status 3")}})
		b.src.set(someSnapshot("2"))
		b.at(90 * s)
		// The first run; retries at 2 s, 4 s, 8 s, 16 s, 26 s, 36 s, 46 s, 56 s, 66 s, 76 s and
		// 86 s.
		want := []bool{true, false, false, false, false, false, false, true, false, false, false, true}
		if !slices.Equal(backend.read, want) {
			t.Errorf("the healthy family was read: %v, want %v", backend.read, want)
		}
	})
}

// TestFailedStartVerifiesTheOther: a family that fails from the start on does not stop the
// verification of the other one.
func TestFailedStartVerifiesTheOther(t *testing.T) {
	backend := &readers{}
	backend.set(rules.Outcomes{{}, {Err: errors.New("ip6tables-restore: exit status 3")}})
	run(t, with(backend), func(t *testing.T, b *bench) {
		b.at(90 * s)
		if reads := slices.Index(backend.read[1:], true); reads < 0 {
			t.Errorf("the healthy family was read: %v, want it read again", backend.read)
		}
	})
}
