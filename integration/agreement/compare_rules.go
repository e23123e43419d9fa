package agreement

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// The one chain whose presence may differ: it is the kubelet's too, and kube-proxy makes
// it, empty, and jumps to it, even where it has no rule for it.
const kubeletFirewall = "KUBE-FIREWALL"

// compareRules holds the two texts against each other rule by rule, comments included:
// what a packet walk does not see (session affinity, names, order) must be the same too,
// so that taking over from kube-proxy rewrites nothing. Apart from counters, equal is:
// the same chains; in a Service's own chains the same rules in the same order; in shared
// chains the same rules, since kube-proxy writes the Services there in random order.
func compareRules(theirs, ours netfilter.Saved) []Difference {
	var all []Difference
	for _, table := range []netfilter.Table{netfilter.Filter, netfilter.NAT} {
		t, o := chainsOf(theirs, table), chainsOf(ours, table)
		for _, name := range names(t, o) {
			if !slices.Equal(t[name], o[name]) {
				all = append(all, Difference{
					Kind:      Rules,
					What:      fmt.Sprintf("%v chain %s/%s", theirs.Family, table, name),
					KubeProxy: strings.Join(t[name], "\n"), Gridproxy: strings.Join(o[name], "\n"),
				})
			}
		}
	}
	return all
}

// chainsOf are the rules of each chain of a table in a comparable spelling.
func chainsOf(s netfilter.Saved, table netfilter.Table) map[string][]string {
	all := map[string][]string{}
	for _, chain := range s.Table(table).Chains {
		if chain.Name == kubeletFirewall && len(chain.Rules) == 0 {
			continue
		}
		lines := []string{"(the chain is there)"}
		if strings.ToUpper(chain.Name) == chain.Name && !strings.HasPrefix(chain.Name, "KUBE-") {
			lines = nil // built-in: there always
		}
		firewall := s.Table(table).Chain(kubeletFirewall)
		for _, r := range chain.Rules {
			if r.Rule.Jump == kubeletFirewall && (firewall == nil || len(firewall.Rules) == 0) || onlyCounts(r.Rule) {
				continue
			}
			lines = append(lines, spell(r, s.Family))
		}
		if isShared(chain.Name) {
			sortEntries(lines)
			lines = slices.Compact(lines) // one health-check ACCEPT for each port of a Service
		}
		if len(lines) > 0 {
			all[chain.Name] = lines
		}
	}
	return all
}

// onlyCounts reports whether a rule is kube-proxy's copy of the rule behind it that
// counts NodePort connections to loopback.
func onlyCounts(r netfilter.Rule) bool {
	return r.NFAcct != "" && r.Dst == netip.MustParsePrefix("127.0.0.0/8")
}

func spell(r netfilter.SavedRule, family netfilter.Family) string {
	if r.Foreign {
		return "cannot be read: " + r.Text
	}
	r.Rule.NFAcct = ""
	return string(r.Rule.Append(nil, family))
}

// isShared reports whether Services put rules of theirs into a chain.
func isShared(chain string) bool {
	return slices.Contains([]string{"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"}, chain)
}

// sortEntries sorts the rules of a shared chain, those that must stand behind all others
// apart: where they do not, they end up among the others and make a difference.
func sortEntries(lines []string) {
	end := len(lines)
	for end > 0 && strings.Contains(lines[end-1], "-j KUBE-NODEPORTS") {
		end--
	}
	slices.Sort(lines[:end])
	slices.Sort(lines[end:])
}

func names(a, b map[string][]string) []string {
	var all []string
	for name := range a {
		all = append(all, name)
	}
	for name := range b {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func countRules(s netfilter.Saved) int {
	n := 0
	for _, table := range s.Tables {
		for _, chain := range table.Chains {
			n += len(chain.Rules)
		}
	}
	return n
}
