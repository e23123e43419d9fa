package iptables

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
	"pgregory.net/rapid"
)

// drawOptions draws Options, but never NFAcct, whose objects would have to exist.
func drawOptions(t *rapid.T, f netfilter.Family) Options {
	return Options{
		Family:        f,
		MasqueradeBit: rapid.SampledFrom([]uint8{14, 14, 0, 31}).Draw(t, "masquerade bit"),
		RandomFully:   rapid.Bool().Draw(t, "random fully"),
		DropInvalid:   rapid.Bool().Draw(t, "drop invalid"),
		Names:         rapid.SampledFrom(netfilter.Namings()).Draw(t, "names"),
		IPVS:          rapid.Bool().Draw(t, "IPVS mode"),
	}
}

func rendered(t interface{ Fatal(...any) }, tables Tables) string {
	var b bytes.Buffer
	if _, err := tables.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// plainly is every chain with its rules, without what iptables-save may print differently: the
// order of chains, empty chains that are not ours, policies and line texts.
func plainly(s netfilter.Saved) map[string][]netfilter.Rule {
	all := map[string][]netfilter.Rule{}
	for table := range s.Tables {
		for _, c := range s.Tables[table].Chains {
			if len(c.Rules) == 0 && netfilter.IsBuiltIn(c.Name) {
				continue
			}
			list := make([]netfilter.Rule, len(c.Rules))
			for i, r := range c.Rules {
				list[i] = r.Rule
				if r.Foreign {
					list[i] = netfilter.Rule{Comment: "FOREIGN " + r.Text}
				}
			}
			all[netfilter.Table(table).String()+" "+c.Name] = list
		}
	}
	return all
}

// asWritten is what plainly must return for Tables.
func asWritten(tables Tables) map[string][]netfilter.Rule {
	all := map[string][]netfilter.Rule{}
	for table := range tables.Tables {
		for _, chains := range [][]netfilter.Chain{tables.Tables[table].Chains, tables.Tables[table].Jumps} {
			for _, c := range chains {
				all[netfilter.Table(table).String()+" "+c.Name] = append([]netfilter.Rule{}, c.Rules...)
			}
		}
	}
	return all
}

// TestTextRoundTrip: what is written is read back, comments too.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family")))
		o.NFAcct = rapid.Bool().Draw(t, "nfacct")
		tables := Render(rulestest.Ruleset(t), o)
		got, err := netfilter.Parse(strings.NewReader(rendered(t, tables)), o.Family)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asWritten(tables), plainly(got), compareRules); diff != "" {
			t.Fatalf("written and read back (-written +read):\n%s", diff)
		}
	})
}

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
		o := drawOptions(rt, f)
		o.WithoutIPVS = withoutIPVSMatch()
		tables := Render(rulestest.Ruleset(rt), o)
		flags := rapid.SampledFrom([][]string{nil, {"--noflush"}}).Draw(rt, "flags")
		text := rendered(rt, tables)
		restore(rt, v, f, text, flags...)
		saved := save(rt, v, f)
		got, err := netfilter.Parse(strings.NewReader(saved), f)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(asWritten(tables), plainly(got), compareRules); diff != "" {
			rt.Fatalf("written and saved (-written +saved):\n%s", diff)
		}
		if diff := cmp.Diff(rulesByTable(text), rulesByTable(saved)); diff != "" {
			rt.Fatalf("written and saved text (-written +saved):\n%s", diff)
		}
	})
}

var compareRules = cmp.Comparer(func(a, b netfilter.Rule) bool { return a == b })

// rulesByTable are the rule lines by table and chain.
func rulesByTable(text string) map[string][]string {
	all := map[string][]string{}
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "*") {
			table = line
		}
		if words := strings.Fields(line); len(words) > 1 && words[0] == "-A" {
			key := table + " " + words[1]
			all[key] = append(all[key], line)
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
