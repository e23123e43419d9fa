package topology

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMerge: of the entries of one address, one that is ready and does not terminate wins, whatever
// the names of their slices are. Among others the last one that does not terminate wins.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []candidate
		for i := range rapid.IntRange(1, 6).Draw(t, "entries") {
			all = append(all, candidate{Endpoint: Endpoint{
				Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 2).Draw(t, "address"))}), 80), Node: string(rune('a' + i)),
				Ready: rapid.Bool().Draw(t, "ready"), Terminating: rapid.Bool().Draw(t, "terminating"),
			}})
		}
		merged := merge(all)
		for i, got := range merged {
			if i > 0 && merged[i-1].Addr == got.Addr {
				t.Fatalf("%s is there twice", got.Addr)
			}
			of := keep(all, func(e candidate) bool { return e.Addr == got.Addr })
			best := keep(of, func(e candidate) bool { return e.Ready && !e.Terminating })
			if len(best) == 0 {
				best = keep(of, func(e candidate) bool { return !e.Terminating })
			}
			want := of[0]
			if len(best) > 0 {
				want = best[len(best)-1]
			}
			if got.Endpoint != want.Endpoint {
				t.Fatalf("of %+v %+v is used, not %+v", of, got, want)
			}
		}
		for _, e := range all {
			if !slices.ContainsFunc(merged, func(m candidate) bool { return m.Addr == e.Addr }) {
				t.Fatalf("%s is lost", e.Addr)
			}
		}
	})
}
