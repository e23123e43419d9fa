package syncer

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
)

// TestReservedLater: an API server that becomes known while the process runs is reserved in the
// next run, although the Snapshot is the same.
func TestReservedLater(t *testing.T) {
	var known atomic.Pointer[[]netip.AddrPort]
	known.Store(&[]netip.AddrPort{})
	run(t, func(b *bench, c *Config) {
		c.Reserved = func() []netip.AddrPort { return *known.Load() }
		b.src.set(someSnapshot("1"))
	}, func(t *testing.T, b *bench) {
		b.at(5 * s)
		server := netip.MustParseAddrPort("192.0.2.9:6443")
		if got := b.seen.all()[0].Ruleset.APIServers; slices.Contains(got, server) {
			t.Errorf("reserved at first: %v", got)
		}
		known.Store(&[]netip.AddrPort{server})
		notify(b.src.changed)
		b.at(10 * s)
		all := b.seen.all()
		if got := all[len(all)-1].Ruleset.APIServers; !slices.Contains(got, server) {
			t.Errorf("reserved then: %v", got)
		}
	})
}
