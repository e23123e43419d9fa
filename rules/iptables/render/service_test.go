package render

import (
	"net/netip"
	"slices"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// If chains hold the Route from Any of one external Frontend, and a virtual server that of another,
// the chain that both share has it, whichever comes last.
func TestExternalFrontendsDiffer(t *testing.T) {
	whole := []rules.Route{{From: rules.Node, Masquerade: rules.Always}, {From: rules.Any}}
	s := countedService(1, 2, false)
	ranged := rules.Frontend{Addr: netip.MustParseAddrPort("10.97.0.1:80"), Kind: rules.LoadBalancer, Routes: whole}
	ranged.Allow = []netip.Prefix{loopback(netfilter.IPv4)}
	served := rules.Frontend{Addr: netip.MustParseAddrPort("0.0.0.0:30001"), Kind: rules.NodePort, Routes: whole[:1]}
	entry := func(list ...rules.Frontend) []netfilter.Rule {
		s.Frontends = list
		for _, c := range Service(s, Options{IPVS: true}).Chains {
			if c.Name == externalChain(netfilter.KubeNames, s.Name) {
				return c.Rules
			}
		}
		return nil
	}
	want := entry(ranged)
	if got := entry(ranged, served); !slices.Equal(got, want) || len(want) != 3 {
		t.Errorf("got %+v, want the three of %+v", got, want)
	}
	if got := entry(served); len(got) != 2 {
		t.Errorf("what a virtual server holds alone is in the chain too: %+v", got)
	}
}
