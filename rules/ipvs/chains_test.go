package ipvs

import (
	"testing"

	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
)

// This file alone uses the real driver of the chains, for tests of what both write together.

var (
	_ interface {
		familyOpener
		restorer
	} = (*iptables.Backend)(nil)
	_ familyOpener = (*iptables.Shadow)(nil)
)

// newTables is the skeleton's backend.
func newTables(t testing.TB, v netfilter.Variant) *iptables.Backend {
	t.Helper()
	b, err := iptables.New(t.Context(), iptables.Config{Variant: v, IPVS: true})
	must(t, err)
	return b
}

// newShadowTables is the skeleton's shadow, or that of iptables mode.
func newShadowTables(t testing.TB, v netfilter.Variant, ipvs bool) *iptables.Shadow {
	t.Helper()
	s, err := iptables.NewShadow(t.Context(), iptables.Config{Variant: v, IPVS: ipvs})
	must(t, err)
	return s
}

// onlyRestoring is a backend of chains that opens no family.
func onlyRestoring(v netfilter.Variant) restorer {
	return iptables.NewCleaner(iptables.Config{Variant: v})
}
