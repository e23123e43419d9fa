package iptables

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

// canonical is what matters of a Saved: its rules as text by chain, without comments and counters.
// Shared chains are sorted, except for entries that must be last. Built-in chains have only the
// jumps to ours. KUBE-FIREWALL counts only if guarded.
func canonical(s netfilter.Saved, o render.Options, guarded bool) map[string][]string {
	all := map[string][]string{}
	for t := range netfilter.NAT + 1 {
		for _, c := range s.Tables[t].Chains {
			p := render.ChainID{Table: t, Chain: c.Name}
			switch {
			case c.Name == netfilter.ChainFirewall && !guarded:
			case c.Name == netfilter.ChainProxyCanary: // kube-proxy's: not written and ignored
			case netfilter.IsBuiltIn(c.Name):
				for _, r := range c.Rules {
					if o.Names.IsOurs(t, r.Rule.Jump) || guarded && r.Rule.Jump == netfilter.ChainFirewall {
						all[p.String()] = append(all[p.String()], ruleText(r, s.Family))
					}
				}
			case o.Names.IsOurs(t, c.Name) || c.Name == netfilter.ChainFirewall:
				all[p.String()] = chainText(o, p, c.Rules)
			}
		}
	}
	return all
}

func chainText(o render.Options, p render.ChainID, list []netfilter.SavedRule) []string {
	texts := []string{} // a chain without rules exists too
	last := 0
	for _, r := range list {
		if r.Rule.NFAcct == render.AcctLocalhostAccepted {
			continue // only counts
		}
		texts = append(texts, ruleText(r, o.Family))
		if o.Policy(p).MustBeLast(r.Rule) {
			last++
		}
	}
	if o.Policy(p).Kind == render.Shared {
		slices.Sort(texts[:len(texts)-last])
		slices.Sort(texts[len(texts)-last:])
	}
	return texts
}

func ruleText(r netfilter.SavedRule, f netfilter.Family) string {
	if r.Foreign {
		return r.Text
	}
	return string(r.Rule.Decisive().Append(nil, f))
}

// wantEqual fails the test unless the kernel holds exactly what render.Ruleset renders.
func wantEqual(t fataler, tb testing.TB, b *Backend, rs rules.Ruleset) {
	t.Helper()
	for _, k := range b.syncers {
		f := k.kernel.family
		o := render.Options{
			Family: f, MasqueradeBit: 14, RandomFully: true, DropInvalid: true,
			Names: b.config.Names, IPVS: b.config.IPVS, WithoutIPVS: b.config.IPVS && withoutIPVSMatch(),
		}
		want, err := netfilter.Parse(strings.NewReader(rendered(t, rs, o)), f)
		if err != nil {
			t.Fatalf("%v", err)
		}
		guarded := rs.NodePorts.Localhost && f == netfilter.IPv4
		got := saved(tb, b.variant, f)
		if diff := cmp.Diff(canonical(want, o, guarded), canonical(got, o, guarded)); diff != "" {
			t.Fatalf("%s: the kernel differs from Render (-want +got):\n%s", f, diff)
		}
	}
}

// touched are the chains that inputs for iptables-restore write to, sorted.
func touched(inputs []string) []string {
	set := map[string]bool{}
	for _, input := range inputs {
		table := ""
		for line := range strings.Lines(input) {
			word := strings.Fields(line)
			switch {
			case line[0] == '*':
				table = strings.TrimSpace(line[1:])
			case line[0] == ':':
				set[table+"/"+word[0][1:]] = true
			case line[0] == '-':
				set[table+"/"+word[1]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}
