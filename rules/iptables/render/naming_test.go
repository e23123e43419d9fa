package render

import (
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Apart from the names, all rules are the same under each Naming.
func TestNamingsSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family")))
		rs := rulestest.Ruleset(t)
		o.Names = netfilter.KubeNames
		kube := rendered(t, Ruleset(rs, o))
		o.Names = netfilter.GridNames
		grid := rendered(t, Ruleset(rs, o))
		if strings.Contains(strings.ReplaceAll(grid, netfilter.ChainFirewall, ""), "KUBE-") && !o.IPVS { // IPVS sets have the same names
			t.Fatalf("a chain of kube-proxy's names in:\n%s", grid)
		}
		same := strings.NewReplacer("GRID-", "KUBE-").Replace(grid)
		if diff := cmp.Diff(strings.ReplaceAll(kube, "GRID-", "KUBE-"), same); diff != "" {
			t.Fatalf("(-KUBE- +GRID-):\n%s", diff)
		}
	})
}

// However two proxies share the Services of one Ruleset, and whichever comes first, a packet ends
// as with one proxy. So does masquerading, for which both use the same mark.
func TestSideBySideMeansTheRuleset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rulestest.Ruleset(t)
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family")))
		o.IPVS = false
		texts := make([]string, len(netfilter.Namings()))
		shares := make([]rules.Ruleset, len(netfilter.Namings()))
		for _, s := range rs.Services {
			n := rapid.IntRange(0, len(shares)-1).Draw(t, "whose")
			shares[n].Services = append(shares[n].Services, s)
		}
		for i, n := range netfilter.Namings() {
			o.Names = n
			share := rs
			share.Services = shares[i].Services
			texts[i] = rendered(t, Ruleset(share, o))
		}
		if rapid.Bool().Draw(t, "GRID- first") {
			slices.Reverse(texts)
		}
		checkMeaning(t, rs, parsed(t, strings.Join(texts, ""), o.Family))
	})
}
