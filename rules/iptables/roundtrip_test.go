package iptables

import (
	"os/exec"
	"strings"
	"testing"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
	"pgregory.net/rapid"
)

// TestKernelRoundTrip: what is written is in the kernel, according to iptables-save, with and
// without --noflush. The two texts have the same rules byte for byte, so that a person can compare
// them.
func TestKernelRoundTrip(t *testing.T) {
	private(t)
	rapid.Check(t, func(rt *rapid.T) {
		ns, err := netns.New()
		if err != nil {
			rt.Fatal(err)
		}
		defer ns.Close()
		makeSets(t)
		v := rapid.SampledFrom([]netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy}).Draw(rt, "variant")
		f := rapid.SampledFrom([]netfilter.Family{netfilter.IPv4, netfilter.IPv6}).Draw(rt, "family")
		o := render.Options{ // without NFAcct, whose objects would have to exist
			Family:        f,
			MasqueradeBit: rapid.SampledFrom([]uint8{14, 14, 0, 31}).Draw(rt, "masquerade bit"),
			RandomFully:   rapid.Bool().Draw(rt, "random fully"),
			DropInvalid:   rapid.Bool().Draw(rt, "drop invalid"),
			Names:         rapid.SampledFrom(netfilter.Namings()).Draw(rt, "names"),
			IPVS:          rapid.Bool().Draw(rt, "IPVS mode"),
			WithoutIPVS:   withoutIPVSMatch(),
		}
		text := rendered(rt, rulestest.Ruleset(rt), o)
		flags := rapid.SampledFrom([][]string{nil, {"--noflush"}}).Draw(rt, "flags")
		restore(rt, v, f, text, flags...)
		saved := save(rt, v, f)
		if diff := cmp.Diff(rulesByTable(text), rulesByTable(saved)); diff != "" {
			rt.Fatalf("written and saved text (-written +saved):\n%s", diff)
		}
	})
}

// rulesByTable are the rule lines by table and chain. A chain of ours without rules is there too.
func rulesByTable(text string) map[string][]string {
	all := map[string][]string{}
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "*") {
			table = line
		}
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "-A":
			key := table + " " + words[1]
			all[key] = append(all[key], line)
		case strings.HasPrefix(line, ":") && !netfilter.IsBuiltIn(words[0][1:]):
			all[table+" "+words[0][1:]] = nil
		}
	}
	return all
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func restore(t fataler, v netfilter.Variant, f netfilter.Family, text string, flags ...string) {
	t.Helper()
	cmd := exec.Command(toolName(v, f, "-restore"), flags...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", cmd, err, out, text)
	}
}

// save returns the rules of every table that exists.
func save(t fataler, v netfilter.Variant, f netfilter.Family) string {
	t.Helper()
	cmd := exec.Command(toolName(v, f, "-save"))
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return string(text)
}
