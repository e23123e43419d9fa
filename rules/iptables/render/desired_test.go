package render

import (
	"net/netip"
	"reflect"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSameFixed: the fixed part is not rendered again only where it is the same. Draws in which it
// is rendered again are skipped: rapid fails when too few of them are left.
func TestSameFixed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sample := rulestest.Draw(rt)
		rs, changed := sample.Ruleset(), sample.Change(rt).Ruleset()
		o := Options{
			Family:      rapid.SampledFrom([]netfilter.Family{netfilter.IPv4, netfilter.IPv6}).Draw(rt, "family"),
			IPVS:        rapid.Bool().Draw(rt, "IPVS"),
			DropInvalid: rapid.Bool().Draw(rt, "drop invalid"),
		}
		rs.LocalDNS = drawLocalDNS(rt)
		changed.LocalDNS = rs.LocalDNS
		before, now := Desired{rs, o.For(rs)}, Desired{changed, o.For(changed)}
		switch rapid.IntRange(0, 5).Draw(rt, "changed setting") {
		case 0:
			now.Rules.LocalDNS = drawLocalDNS(rt)
			now.Options = o.For(now.Rules)
		case 1:
			now.Options.IPVS = !o.IPVS
		case 2:
			now.Options.DropInvalid = !o.DropInvalid
		}
		if !before.SameFixed(now) {
			rt.Skip("it is rendered again")
		}
		if diff := cmp.Diff(before.Fixed(), now.Fixed(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			rt.Fatalf("not the same (-before +now):\n%s", diff)
		}
	})
}

// drawLocalDNS draws none, or an address of each family with or without clients.
func drawLocalDNS(t *rapid.T) rules.LocalDNS {
	if !rapid.Bool().Draw(t, "local DNS") {
		return rules.LocalDNS{}
	}
	clients := rapid.SampledFrom([][]netip.Prefix{
		nil, {netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd00:244:1::/64")},
	})
	return rules.LocalDNS{
		Addrs:   []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")},
		Clients: clients.Draw(t, "clients"),
	}
}
