package syncer

import (
	"errors"
	"net/netip"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"
)

// withNamespace is a Snapshot with the same Services and another Namespace, which only DNS reads.
func withNamespace(s topology.Snapshot, name string) topology.Snapshot {
	s.Namespaces = []string{name}
	return s
}

// TestNothingElseToEnforce: a change that leaves the Ruleset equal does not call the Backend.
// Observers are notified. A Backend is called again with what it holds to verify, and after a
// failure.
func TestNothingElseToEnforce(t *testing.T) {
	first := someSnapshot("1")
	run(t, func(b *bench, _ *Config) { b.src.set(first) }, func(t *testing.T, b *bench) {
		b.at(2 * s)
		b.src.set(withNamespace(first, "a"))
		b.at(4 * s)
		b.expectStarts(t, 0)
		runs := b.seen.all()
		last := runs[len(runs)-1]
		if len(runs) != 2 || runs[0].Unchanged || !last.Unchanged || last.Snapshot.Namespaces == nil || last.Err != nil ||
			last.Changes.Families.Synced() != (rules.FamilySet{true, true}) || len(last.Backends) != 1 {
			t.Errorf("%d runs, the last: %+v", len(runs), last)
		}
		if last.Changes.Verified || !b.Pending().IsZero() {
			t.Errorf("verified: %t, pending since %v", last.Changes.Verified, b.Pending())
		}
		b.at(12 * s)
		b.expectStarts(t, 0, 10*s) // it verifies
		b.backend.fail(1)
		b.src.set(someSnapshot("2"))
		b.at(19 * s)
		b.expectStarts(t, 0, 10*s, 12*s, 13*s)
	})
}

// TestFailedIsNotWritten: while a family fails, the other one gets each change, also one that takes
// back what failed.
func TestFailedIsNotWritten(t *testing.T) {
	backend := &familyBackend{}
	run(t, with(backend), func(t *testing.T, b *bench) {
		before := b.here.host
		b.at(2 * s)
		backend.set(rules.Outcomes{{}, {Err: errors.New("ip6tables-restore: exit status 3")}})
		b.here.set(topology.Host{IPv4: true, Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, 0)
		b.at(8 * s) // retries after 1 and 2 s, and the next after 4
		retried := backend.calls
		b.here.set(before, 0)
		b.at(8500 * ms)
		runs := b.seen.all()
		if backend.calls != retried+1 || runs[len(runs)-1].Verify || retried != 4 {
			t.Errorf("%d calls, %d after the change; the last run verified: %t", retried, backend.calls-retried, runs[len(runs)-1].Verify)
		}
	})
}
