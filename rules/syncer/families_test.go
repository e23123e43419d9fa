package syncer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gridproxy/rules"
)

// familyBackend writes one family, and fails at the other or leaves it out.
type familyBackend struct {
	mu       sync.Mutex
	outcomes rules.Outcomes
	calls    int
}

func (b *familyBackend) Sync(context.Context, rules.Ruleset, bool) (rules.Changes, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	return rules.Changes{Verified: true, Families: b.outcomes}, b.outcomes.Err()
}

func (b *familyBackend) Cleanup(context.Context) error { return nil }

func (b *familyBackend) set(o rules.Outcomes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes = o
}

// with lets a Syncer begin with a Backend and one Service.
func with(backend rules.Backend) func(*bench, *Config) {
	return func(b *bench, c *Config) {
		c.Backends = []NamedBackend{{"iptables", backend}}
		b.src.set(someSnapshot("1"))
	}
}

// TestFamiliesApart: while one family fails the flows of the other are swept and nothing of it is
// pending. The run as a whole has failed.
func TestFamiliesApart(t *testing.T) {
	broken := errors.New("ip6tables-restore: exit status 3")
	for _, failing := range rules.Families() {
		healthy := rules.IPv4 + rules.IPv6 - failing
		outcomes := rules.Outcomes{}
		outcomes[failing].Err = broken
		backend, swept := &familyBackend{outcomes: outcomes}, &flows{}
		change := func(b *bench, c *Config) { c.Flows = swept; with(backend)(b, c) }
		run(t, change, func(t *testing.T, b *bench) {
			b.at(time.Minute)
			all := b.seen.all()
			if r := all[len(all)-1]; !errors.Is(r.Err, broken) || !errors.Is(r.Changes.Families[failing].Err, broken) || !r.Changes.Families[healthy].Synced() {
				t.Errorf("%s fails: error %v, families %+v", failing, r.Err, r.Changes.Families)
			}
			if of := swept.families(); len(of) == 0 || !of[len(of)-1][healthy] || of[len(of)-1][failing] {
				t.Errorf("%s fails: flows of %v were swept", failing, of)
			}
			if p := b.PendingOf(failing); !p.Equal(b.began) || !b.Pending().Equal(b.began) || !b.LastSuccessOf(failing).IsZero() {
				t.Errorf("%s fails: pending since %v (all: %v), last success %v", failing, p, b.Pending(), b.LastSuccessOf(failing))
			}
			if p := b.PendingOf(healthy); !p.IsZero() || b.LastSuccessOf(healthy).IsZero() {
				t.Errorf("%s fails: of the other one is pending %v", failing, p)
			}
			left := rules.Outcomes{}
			left[failing].LeftOut = errors.New("no such table")
			backend.set(left)
			b.at(2 * time.Minute)
			if !b.PendingOf(failing).IsZero() || !b.Pending().IsZero() || !b.LastSuccessOf(failing).IsZero() {
				t.Errorf("%s is left out: pending since %v, last success %v", failing, b.PendingOf(failing), b.LastSuccessOf(failing))
			}
		})
	}
}

// TestHealthyFamilyDoesNotWait: while one family fails, a change is written for the other at once,
// and no such run reads the kernel back. What failed is tried again when the back-off says so.
func TestHealthyFamilyDoesNotWait(t *testing.T) {
	backend := &familyBackend{outcomes: rules.Outcomes{{}, {Err: errors.New("ip6tables-restore: exit status 3")}}}
	run(t, with(backend), func(t *testing.T, b *bench) {
		for _, at := range []time.Duration{4 * s, 9 * s} {
			b.at(at)
			b.src.set(someSnapshot(at.String()))
		}
		b.at(16 * s)
		type start struct {
			at     time.Duration
			verify bool
		}
		var got []start
		for _, r := range b.seen.all() {
			got = append(got, start{r.Start.Sub(b.began), r.Verify})
		}
		want := []start{{0, true}, {1 * s, true}, {3 * s, true}, {4 * s, false}, {7 * s, true}, {9 * s, false}, {15 * s, true}}
		if !slices.Equal(got, want) {
			t.Errorf("runs began at %v, want %v", got, want)
		}
		backend.set(rules.Outcomes{{Err: errors.New("iptables-restore: exit status 3")}, {Err: errors.New("the same")}})
		b.src.set(someSnapshot("17"))
		b.at(17 * s)
		starts := len(b.seen.all())
		b.src.set(someSnapshot("18"))
		b.at(24 * s)
		for _, r := range b.seen.all()[starts:] {
			if !r.Verify {
				t.Errorf("a change began a run at %v while both families fail, want retries alone", r.Start.Sub(b.began))
			}
		}
	})
}

// TestVerifyAfterFailedStart: a family that has failed from the start and is written by a run that
// does not verify is verified when the other one is, a period after that was written.
func TestVerifyAfterFailedStart(t *testing.T) {
	failed := rules.Outcomes{{}, {Err: errors.New("ip6tables-restore: exit status 3")}}
	backend := &familyBackend{outcomes: failed}
	run(t, with(backend), func(t *testing.T, b *bench) {
		b.at(4 * s) // the next retry is at 7 s
		backend.set(rules.Outcomes{})
		b.src.set(someSnapshot("2"))
		b.at(14500 * ms)
		if all := b.seen.all(); len(all) != 5 || all[3].Verify || !all[4].Verify || all[4].Start.Sub(b.began) != 10*s {
			t.Errorf("%d runs, want the fifth at 10s to verify", len(all))
		}
	})
}

// TestBackoffIsNotInherited: the first failure of a family is tried again after a second, however
// long the other one has failed; and what waits for its retry is no failure.
func TestBackoffIsNotInherited(t *testing.T) {
	broken := errors.New("ip6tables-restore: exit status 3")
	backend := &familyBackend{outcomes: rules.Outcomes{{}, {Err: broken}}}
	run(t, with(backend), func(t *testing.T, b *bench) {
		b.at(61 * s) // IPv6 was tried at 55 s, and is next at 65 s
		b.src.set(someSnapshot("2"))
		b.at(62 * s)
		if all := b.seen.all(); !all[len(all)-1].Waits || all[0].Waits {
			t.Error("want the first run to have failed, and the last one to wait")
		}
		backend.set(rules.Outcomes{{Err: broken}, {Err: broken}})
		b.src.set(someSnapshot("3"))
		b.at(62500 * ms)
		backend.set(rules.Outcomes{{}, {Err: broken}})
		b.at(63500 * ms)
		all := b.seen.all()
		last, before := all[len(all)-1], all[len(all)-2]
		if before.Waits || before.Start.Sub(b.began) != 62*s || last.Start.Sub(b.began) != 63*s || !last.Verify {
			t.Errorf("the last runs began at %v and %v, want 62s and 63s", before.Start.Sub(b.began), last.Start.Sub(b.began))
		}
	})
}

// TestSlowFailureLeavesTime: where a family hangs until its limit, the other one's changes have
// most of the time.
func TestSlowFailureLeavesTime(t *testing.T) {
	end := time.Now()
	failed := rules.Changes{Families: rules.Outcomes{{}, {Err: errors.New("iptables-restore did not end in time")}}}
	for took, want := range map[time.Duration]time.Duration{10 * s: s, 40 * s: 400 * s, 3 * time.Minute: 10 * time.Minute} {
		r := Result{Start: end.Add(-took), End: end, Verify: true, Changes: failed, Err: failed.Families.Err()}
		after := schedule{verification: verification{configured: 10 * s}}.after(r)
		if at, known := after.due(false); !known || at.Sub(end) != want {
			t.Errorf("a run of %v is tried again after %v, want %v", took, at.Sub(end), want)
		}
		if at, _ := after.due(true); !at.Equal(end) {
			t.Errorf("after a run of %v a change is written after %v, want it at once", took, at.Sub(end))
		}
	}
}
