package iptables

import (
	"testing"

	"gridproxy/rules/netfilter"
)

// A changed endpoint is written without a read-back. docs/design.md says how the coverage of the
// two parts shows which files such a change runs.
func TestWayOfOneEndpoint(t *testing.T) {
	for _, part := range []string{"start", "change"} {
		t.Run(part, func(t *testing.T) {
			private(t)
			b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
			list := services(3, 2)
			mustSync(t, b, ruleset(list), false)
			if part == "start" {
				return
			}
			list = with(list, 1)
			if c := mustSync(t, b, ruleset(list), false); c.Verified || c.Chains == 0 {
				t.Errorf("%+v, want the change written without a read-back", c)
			}
		})
	}
}
