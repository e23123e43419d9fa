package iptables

import (
	"fmt"
	"log/slog"
	"slices"
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
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	s, err := NewShadow(t.Context(), Config{Variant: v, Families: []netfilter.Family{f}, MasqueradeBit: 14, Log: log})
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

// Against the rules of kube-proxy, only what closure changes differs.
func TestShadowBesideKubeProxy(t *testing.T) {
	all := []string{"10.180.0.1:80", "10.180.0.3:80", "10.180.0.4:80"}
	eachVariant(t, func(t *testing.T, v netfilter.Variant) {
		err := ensureAcct() // as kube-proxy does
		need.That(t, err == nil, fmt.Sprintf("this kernel has no nfacct: %v", err))
		install(t, v, netfilter.IPv4, kubeProxyRules(t, "kube-proxy.rules"), kubeProxyJumps)
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
