package node

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// counting is a match that only counts.
var counting = regexp.MustCompile(`-m nfacct --nfacct-name +\S+ `)

// recomment replaces each rule of one Service's chain by the same rule with another comment, and
// takes the counting match out of the rule that kube-proxy wrote with one.
func (w *takenNode) recomment() map[string]string {
	w.t.Helper()
	for _, family := range families {
		if !strings.Contains(w.save(family), "nfacct") {
			w.t.Logf("%s: kube-proxy wrote no counting match: this kernel has none", family)
		}
		tool := fmt.Sprintf("%s-%s", family, w.variant)
		changed := 0
		for chain, rules := range chainsOf(w.save(family)) {
			table, ours := commented(chain)
			chain = bare(chain)
			for i, rule := range rules {
				changedRule, differs := otherComment(rule)
				if !ours || !differs {
					continue
				}
				script := fmt.Sprintf("*%s\n-R %s %d %s\nCOMMIT\n", table, chain, i+1, changedRule)
				_, err := w.node.Run(w.ctx, strings.NewReader(script), tool+"-restore", "--noflush")
				must(w.t, err)
				changed++
			}
		}
		if changed < 5 {
			w.t.Fatalf("only %d comments of %s were changed: this tests nothing", changed, family)
		}
	}
	for family, save := range w.saves() {
		if counting.MatchString(chainText(save, "KUBE-FORWARD")) {
			w.t.Fatalf("the counting match of %s is still there: this tests nothing", family)
		}
	}
	return w.saves()
}

func chainText(save, chain string) string {
	return strings.Join(chainsOf(save)["filter/"+chain], "\n")
}

// commented says in which table a chain is, and whether its comments are to be changed.
func commented(chain string) (table string, yes bool) {
	if chain == "filter/KUBE-FORWARD" {
		return "filter", true
	}
	return "nat", strings.HasPrefix(chain, "KUBE-SVC-")
}

// chainsOf returns the rules of a save by chain. The table stands before the names of shared
// chains, since both tables may have one.
func chainsOf(save string) map[string][]string {
	chains, table := map[string][]string{}, ""
	for line := range strings.Lines(save) {
		line = strings.TrimSpace(line)
		switch rest, isRule := strings.CutPrefix(line, "-A "); {
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		case isRule:
			chain, rule, _ := strings.Cut(rest, " ")
			if isShared(chain) {
				chain = table + "/" + chain
			}
			chains[chain] = append(chains[chain], rule)
		}
	}
	return chains
}

// isShared: chains of a single Service have its hash behind a prefix of three letters.
func isShared(chain string) bool {
	for _, own := range []string{"KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-SEP-", "KUBE-FW-"} {
		if strings.HasPrefix(bare(chain), own) {
			return false
		}
	}
	return true
}

// bare is a chain's name without the table that chainsOf puts before those of shared chains.
func bare(chain string) string { return chain[strings.LastIndex(chain, "/")+1:] }

// owners are the names of the Services that chains belong to: first by the shared entries that lead to
// them, whose comments begin with the Service's name, then from chain to chain.
func owners(chains map[string][]string) map[string]string {
	owner := map[string]string{}
	for changed := true; changed; {
		changed = false
		for from, rules := range chains {
			for _, rule := range rules {
				_, target, jumps := strings.Cut(rule, "-j ")
				if !jumps || isShared(target) || owner[target] != "" {
					continue
				}
				name := owner[from]
				if isShared(from) {
					name = namedIn(rule)
				}
				if name != "" {
					owner[target], changed = name, true
				}
			}
		}
	}
	return owner
}

// namedIn is the Service of namespace default that a rule's comment names first; "?" = none.
func namedIn(rule string) string {
	_, comment, _ := strings.Cut(rule, "default/")
	return strings.FieldsFunc(comment+" ?", func(r rune) bool { return strings.ContainsRune(`: "`, r) })[0]
}

func union(a, b map[string][]string) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for chain := range maps.Keys(a) {
			if !yield(chain) {
				return
			}
		}
		for chain := range maps.Keys(b) {
			if !yield(chain) {
				return
			}
		}
	}))
}

// without are the rules of a that b does not have.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(rule string) bool { return slices.Contains(b, rule) })
}

func otherComment(rule string) (string, bool) {
	out := counting.ReplaceAllString(rule, "")
	out = strings.ReplaceAll(out, "--comment \"", "--comment \"formerly ")
	return out, out != rule
}

// expectOnlyClosedChanged compares chain by chain. Shared chains may differ in the entries of closed
// Services only; every other chain that differs must be a closed Service's.
func (w *takenNode) expectOnlyClosedChanged(before, after map[string]string) {
	w.t.Helper()
	for _, family := range families {
		old, now := chainsOf(before[family]), chainsOf(after[family])
		owner := owners(old)
		maps.Copy(owner, owners(now)) // chains that only came with closure
		changed := 0
		for _, chain := range union(old, now) {
			if slices.Equal(old[chain], now[chain]) {
				continue
			}
			changed++
			if isShared(chain) {
				w.expectOnlyClosedEntries(family, chain, old[chain], now[chain])
			} else if name := owner[chain]; !isClosed(name) {
				w.t.Errorf("%s: chain %s of Service %q changed:\n%s", family, chain, name, cmp.Diff(old[chain], now[chain]))
			}
		}
		if changed < 10 {
			w.t.Errorf("%s: only %d chains changed: closure did not take effect", family, changed)
		}
	}
}

func (w *takenNode) expectOnlyClosedEntries(family, chain string, old, now []string) {
	w.t.Helper()
	for _, rule := range append(without(old, now), without(now, old)...) {
		if !strings.Contains(rule, "default/closed-") {
			w.t.Errorf("%s: %s has changed at %q", family, chain, rule)
		}
	}
}
