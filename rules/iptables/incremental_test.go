package iptables

import (
	"flag"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/vishvananda/netns"
	"pgregory.net/rapid"
)

// After any sequence of syncs, verified or not, in either mode, both families of the kernel hold
// what rendering the last Ruleset from scratch gives.
func TestIncrementalIsFromScratch(t *testing.T) {
	private(t)
	// A case starts some 80 programs. With -rapid.checks, as in walks-chains, more are drawn.
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("17")
		defer func() { _ = checks.Value.Set(checks.DefValue) }()
	}
	var backends []*Backend
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		for _, ipvs := range []bool{false, true} {
			b, _ := newBackendOf(t, v, ipvs)
			backends = append(backends, b)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		ns, err := netns.New()
		if err != nil {
			rt.Fatal(err)
		}
		defer ns.Close()
		b := backends[rapid.IntRange(0, len(backends)-1).Draw(rt, "variant and mode")]
		for _, k := range b.syncers {
			k.last, k.mark = nil, watermark{} // another namespace, another kernel
		}
		syncOften(rt, t, b)
	})
}

// syncOften syncs to a random Ruleset and to several changes of it.
func syncOften(rt *rapid.T, t *testing.T, b *Backend) {
	var memo rules.Memo
	small := rulestest.Residual{}
	sample := rulestest.Draw(rt)
	if b.config.IPVS {
		makeSets(t)
	}
	next := func(verify bool) rules.Ruleset {
		rs := memo.Compile(sample.View, sample.Config)
		if b.config.IPVS {
			rs = small.Of(rs)
		}
		c, err := trySync(t, b, rs, verify)
		if err != nil {
			rt.Fatal(err)
		}
		if c.Repaired > 0 {
			rt.Fatalf("%d chains were repaired that no other process had touched", c.Repaired)
		}
		return rs
	}
	for range rapid.IntRange(1, 8).Draw(rt, "changes") {
		next(rapid.Bool().Draw(rt, "verify"))
		sample = sample.Change(rt)
	}
	wantEqual(rt, t, b, next(false))
	wantCounts(rt, t, b)
}

// wantCounts fails the test unless RuleCounts is what the kernel holds.
func wantCounts(rt interface{ Fatalf(string, ...any) }, t *testing.T, b *Backend) {
	var kernel [2]netfilter.Saved
	for f := range kernel {
		kernel[f] = saved(t, b.variant, netfilter.Family(f))
	}
	for _, c := range b.RuleCounts() {
		n := 0
		for _, chain := range kernel[c.Family].Tables[c.Table].Chains {
			if netfilter.KubeNames.IsOurs(c.Table, chain.Name) {
				n += len(chain.Rules)
			}
		}
		if n != c.Rules {
			rt.Fatalf("%s %s: RuleCounts says %d rules, the kernel has %d", c.Family, c.Table, c.Rules, n)
		}
	}
}
