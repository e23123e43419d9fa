package iptables

import (
	"io"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// Difference is a chain whose observed state is not the desired one. Both sides are lines in the
// form of iptables-save, the declaration first. Comments and counters are no difference: a rule
// that does what a desired one does is spelled as that one.
type Difference struct {
	Family  netfilter.Family
	Table   netfilter.Table
	Chain   string
	Kernel  []string // nil = the chain does not exist; of a built-in chain and KUBE-FIREWALL only the relevant rules
	Desired []string // nil = the chain should not exist
}

// WriteTo writes a unified diff from the observed chain to the desired one.
func (d Difference) WriteTo(w io.Writer) (int64, error) {
	return netfilter.WriteUnified(w, d.Family.String()+"/"+render.ChainID{Table: d.Table, Chain: d.Chain}.String(), d.Kernel, d.Desired)
}

// differences returns the chains that differ, by table and name.
func (rs *recordedState) differences() []Difference {
	different := rs.state.different()
	wanted := map[render.ChainID][]netfilter.Rule{}
	for id, r := range rs.want.RulesOf(different) {
		wanted[id] = append(wanted[id], r)
	}
	var all []Difference
	for _, id := range slices.SortedFunc(maps.Keys(different), render.CompareChainIDs) {
		d := Difference{Family: rs.want.Options.Family, Table: id.Table, Chain: id.Chain}
		switch c := rs.state.chain(id); c.kind {
		case render.Stale:
			d.Kernel, d.Desired = rs.staleLines(id, c)
		case render.Whole:
			d.Kernel, d.Desired = rs.wholeLines(id, c, wanted[id])
		default:
			d.Kernel, d.Desired = rs.alignedLines(id, c, wanted[id])
		}
		all = append(all, d)
	}
	return all
}

// Services returns the Services that the difference is about, sorted, as NAMESPACE/NAME. They
// come from the comments of the rules. For a shared chain only missing and surplus rules count.
func (d Difference) Services() []string {
	names := map[string]struct{}{}
	own := slices.ContainsFunc(netfilter.Namings(), func(n netfilter.Naming) bool { return n.IsServiceChain(d.Table, d.Chain) })
	for _, lines := range [][2][]string{{d.Kernel, d.Desired}, {d.Desired, d.Kernel}} {
		common := map[string]int{}
		for _, line := range lines[1] {
			common[line]++
		}
		for _, line := range lines[0] {
			if common[line]--; own || common[line] < 0 {
				if name := serviceIn(line); name != "" {
					names[name] = struct{}{}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// serviceIn returns the Service that the comment of a line names; "" = none. In kube-proxy's
// comments and ours it is the word NAMESPACE/NAME:PORT, and no other word has a slash.
func serviceIn(line string) string {
	_, rest, _ := strings.Cut(line, "--comment ")
	comment, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
	if !strings.HasPrefix(rest, `"`) {
		comment, _, _ = strings.Cut(rest, " ") // one word has no quotes
	}
	words := strings.Fields(comment)
	at := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "/") })
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(words[at], ":")
	return name
}
