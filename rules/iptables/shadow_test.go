package iptables

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// shadowed are the differences of a new Shadow in the test's namespace. It fails the test if the
// Shadow left a trace there.
func shadowed(t *testing.T, v netfilter.Variant, f netfilter.Family, rs rules.Ruleset) []Difference {
	t.Helper()
	mustBePrivate(t)
	before := everything(t, v, f)
	s, err := NewShadow(t.Context(), Config{Variant: v, Families: []netfilter.Family{f}, MasqueradeBit: 14, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Sync(t.Context(), rs, true)
	if err != nil {
		t.Fatal(err)
	}
	c.Families = rules.Outcomes{} // one family is not configured
	if want := (rules.Changes{Verified: true}); c != want {
		t.Errorf("a shadow says that it did %+v, want %+v", c, want)
	}
	if after := everything(t, v, f); after != before {
		t.Errorf("a shadow changed the kernel; before:\n%s\nafter:\n%s", before, after)
	}
	return s.Differences()
}

// Every kind of change by another process is shown, chain by chain, and nothing else.
func TestShadowSeesTampering(t *testing.T) {
	list := append(services(4, 2), nodePortService(4), service(5, 0, 0))
	rs := ruleset(list)
	svc := clusterChain(netfilter.KubeNames, list[1].Name)
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		ns := here(t)
		if none := shadowed(t, v, f, rs); len(none) == 0 {
			t.Error("an empty kernel holds what is wanted")
		}
		b, _ := newBackend(t, v, f)
		mustSync(t, b, rs, true)
		if same := shadowed(t, v, f, rs); len(same) > 0 {
			t.Errorf("after a sync:\n%s", unified(t, same))
		}
		sep := endpointChain(netfilter.KubeNames, list[1].Name, list[1].Sets[f].Endpoints[0])
		other := endpointChain(netfilter.KubeNames, list[2].Name, list[2].Sets[f].Endpoints[0])
		for _, tc := range tamperings(svc, sep, other, f) {
			if tc.ip4 && f != netfilter.IPv4 {
				continue
			}
			t.Run(tc.name, func(t *testing.T) {
				enter(t, ns)
				tool := toolName(v, f, "") + " -w 5"
				commands := strings.NewReplacer("$T", tool, "$N", tool+" -t nat")
				run(t, commands.Replace(tc.do))
				defer func() { mustSync(t, b, rs, true); run(t, commands.Replace(tc.undo)) }()
				found := shadowed(t, v, f, rs)
				var chains []string
				for _, d := range found {
					chains = append(chains, chainID{d.Table, d.Chain}.String())
				}
				if len(found) == 0 || tc.want != nil && !slices.Equal(chains, tc.want) {
					t.Errorf("differences in %v, want %v:\n%s", chains, tc.want, unified(t, found))
				}
			})
		}
	})
}

// Against the rules of kube-proxy, only what closure changes differs.
func TestShadowBesideKubeProxy(t *testing.T) {
	all := []string{"10.180.0.1:80", "10.180.0.3:80", "10.180.0.4:80"}
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		t.Run(string(v), func(t *testing.T) {
			private(t)
			err := ensureAcct() // as kube-proxy does
			need.That(t, err == nil, fmt.Sprintf("this kernel has no nfacct: %v", err))
			install(t, v, kubeProxyRules(t))
			if same := shadowed(t, v, netfilter.IPv4, takenOver(all...)); len(same) > 0 {
				t.Errorf("without a closed Service:\n%s", unified(t, same))
			}
			found := shadowed(t, v, netfilter.IPv4, takenOver(all[1:]...))
			var services []string
			for _, d := range found {
				services = append(services, d.Services()...)
			}
			services = slices.Compact(services)
			if len(found) != 2 || !slices.Equal(services, []string{"ns1/closed"}) {
				t.Errorf("closure changes %v:\n%s", services, unified(t, found))
			}
		})
	}
}
