package render

import (
	"bytes"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
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

// plainly returns every chain with its rules, but not what iptables-save may print in another way:
// the order of chains, empty chains that are not ours, policies and line texts.
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

// asWritten returns what plainly must return for Tables.
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
		tables := Ruleset(rulestest.Ruleset(t), o)
		got, err := netfilter.Parse(strings.NewReader(rendered(t, tables)), o.Family)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asWritten(tables), plainly(got), compareRules); diff != "" {
			t.Fatalf("written and read back (-written +read):\n%s", diff)
		}
	})
}

var compareRules = cmp.Comparer(func(a, b netfilter.Rule) bool { return a == b })
