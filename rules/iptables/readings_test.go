package iptables

import (
	"testing"
	"time"

	"gridproxy/rules/netfilter"
)

// TestSlowReadBackPauses: after a slow read-back, as with a tenant's Service of 100,000 chains, the
// next verify does not read again at once, so that changes of others do not wait.
func TestSlowReadBackPauses(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	rs := ruleset(services(2, 1))
	mustSync(t, b, rs, false)
	k := b.syncers[0]
	for _, tc := range []struct {
		took, ago time.Duration
		want      bool
	}{
		{time.Second, 0, true},
		{30 * time.Second, time.Second, false},
		{30 * time.Second, time.Hour, true},
	} {
		run(t, "iptables-nft -t nat -F KUBE-MARK-MASQ") // another process writes
		k.reading = readings{ended: time.Now().Add(-tc.ago), took: tc.took}
		if c := mustSync(t, b, rs, true); c.Verified != tc.want {
			t.Errorf("the last read-back took %s and ended %s ago: verified %v, want %v", tc.took, tc.ago, c.Verified, tc.want)
		}
	}
	wantEqual(t, t, b, rs)
}
