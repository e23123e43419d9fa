package iptables

import (
	"log/slog"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
)

// TestNFTProxyIsNamed: the table of a kube-proxy in mode nftables is logged once, with what to do,
// until it is gone. A trial may run beside it.
func TestNFTProxyIsNamed(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		b, _ := newBackend(t, netfilter.VariantNFT, f)
		var log strings.Builder
		b.syncers[0].log = slog.New(slog.NewTextHandler(&log, nil))
		table := nftFamily(f) + " kube-proxy"
		const found = "a kube-proxy in mode nftables has rules on this node"
		check := func(step string, errors, gone int) {
			t.Helper()
			mustSync(t, b, ruleset(services(1, 1)), true)
			if strings.Count(log.String(), found) != errors || strings.Count(log.String(), "are gone") != gone {
				t.Errorf("%s: want it logged %d times, and %d times that it is gone:\n%s", step, errors, gone, log.String())
			}
		}
		check("no table", 0, 0)
		run(t, "nft add table "+table)
		check("its table", 1, 0)
		check("still there", 1, 0)
		if !strings.Contains(log.String(), `delete="nft delete table `+table+`"`) {
			t.Errorf("the log does not say what to do:\n%s", log.String())
		}
		run(t, "nft delete table "+table)
		check("deleted", 1, 1)
		run(t, "nft add table "+table)
		b.config.Names = netfilter.GridNames
		check("in a trial", 1, 1)
	})
}
