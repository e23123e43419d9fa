package iptables

import (
	"io"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// Difference is a chain that the kernel does not hold as it is wanted. Both sides are lines in
// the form of iptables-save, the declaration first. A rule that does what a wanted one does is
// spelled as that one: comments and counters are no difference.
type Difference struct {
	Family  netfilter.Family
	Table   netfilter.Table
	Chain   string
	Kernel  []string // nil = there is no such chain; of a built-in chain, and KUBE-FIREWALL, only the rules that matter
	Desired []string // nil = there should be none
}

// WriteTo writes the difference as one unified diff from what the kernel holds to what is wanted.
func (d Difference) WriteTo(w io.Writer) (int64, error) {
	return netfilter.WriteUnified(w, d.Family.String()+"/"+place{d.Table, d.Chain}.String(), d.Kernel, d.Desired)
}

// Services are the Services that the difference is about, sorted, as NAMESPACE/NAME: those that
// the comments of rules name. A shared chain is about those of which a rule is missing or too
// much.
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

// serviceIn is the Service that the comment of a line names; "" = none. kube-proxy's comments
// and ours have NAMESPACE/NAME:PORT as one of their words, and no other word with a slash.
func serviceIn(line string) string {
	_, rest, _ := strings.Cut(line, "--comment ")
	comment, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
	if !strings.HasPrefix(rest, `"`) {
		comment, _, _ = strings.Cut(rest, " ") // one word stands without quotes
	}
	words := strings.Fields(comment)
	at := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "/") })
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(words[at], ":")
	return name
}
