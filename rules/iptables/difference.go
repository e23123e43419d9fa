package iptables

import (
	"context"
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

// recordedState is a kernelState that also keeps the rules, so that a difference can be printed.
// Only the kernelState decides whether a chain differs.
type recordedState struct {
	state *kernelState
	want  render.Desired
	found map[render.ChainID][]foundRule
}

// foundRule is an observed rule, without the Rule itself because a node may have very many.
type foundRule struct {
	text    string
	hash    uint64
	foreign bool
	last    bool // see ChainPolicy.MustBeLast
}

func newRecordedState(ctx context.Context, want render.Desired) (*recordedState, error) {
	state, err := stateAgainst(ctx, want)
	if err != nil {
		return nil, err
	}
	return &recordedState{state: state, want: want, found: map[render.ChainID][]foundRule{}}, nil
}

func (rs *recordedState) read(line netfilter.Line) {
	rs.state.read(line)
	id := render.ChainID{Table: line.Table, Chain: line.Chain}
	c := rs.state.chain(id)
	if line.Kind != netfilter.LineRule || c == nil {
		return
	}
	r := foundRule{text: strings.Clone(line.Text), foreign: line.Foreign}
	if !line.Foreign {
		r.hash = rs.state.hash(line.Rule)
		r.last = c.kind == render.Shared && c.policy.MustBeLast(line.Rule)
	}
	id = id.Clone()
	rs.found[id] = append(rs.found[id], r)
}

// staleLines returns the lines of a stale chain. One that another program uses is only emptied.
func (rs *recordedState) staleLines(id render.ChainID, c *chainState) (kernel, desired []string) {
	kernel = declarationLines(id, true)
	for _, r := range rs.found[id] {
		kernel = append(kernel, r.text)
	}
	return kernel, declarationLines(id, len(c.leftover.pins) > 0)
}

// wholeLines returns the lines of a chain whose rules have an order.
func (rs *recordedState) wholeLines(id render.ChainID, c *chainState, wanted []netfilter.Rule) (kernel, desired []string) {
	kernel, desired = declarationLines(id, c.declared), declarationLines(id, true)
	spelled := map[uint64]string{}
	for _, r := range wanted {
		text := rs.spell(id, r)
		spelled[rs.state.hash(r)] = text
		desired = append(desired, text)
	}
	for _, r := range rs.found[id] {
		text, same := spelled[r.hash]
		if r.foreign || !same {
			text = r.text
		}
		kernel = append(kernel, text)
	}
	return kernel, desired
}

// alignedLines returns the lines of a chain in which only the last entry has a fixed place.
// Desired rules are shown in the kernel's order, and missing ones after their predecessor in our
// own order.
func (rs *recordedState) alignedLines(id render.ChainID, c *chainState, wanted []netfilter.Rule) (kernel, desired []string) {
	a := rs.align(id, c, wanted)
	extra := map[string]int{}
	for _, text := range c.extra {
		extra[text]++
	}
	for _, copied := range c.jumps.surplus() {
		extra[copied.text]++
	}
	var last []string
	kernel, desired = declarationLines(id, c.declared), declarationLines(id, true)
	desired = append(desired, a.behind[-1]...)
	for _, r := range rs.found[id] {
		at, is := a.find(r)
		switch {
		case is && r.last:
			kernel, last = append(kernel, a.texts[at]), append(last, a.texts[at])
		case is:
			kernel, desired = append(kernel, a.texts[at]), append(desired, a.texts[at])
		case extra[r.text] > 0:
			extra[r.text]--
			kernel = append(kernel, r.text)
		}
		if is {
			desired = append(desired, a.behind[at]...)
		}
	}
	return kernel, slices.Concat(desired, last, a.last)
}

// alignment matches the desired rules of a chain with the observed ones.
type alignment struct {
	texts  []string
	hashes map[uint64][]int // indexes into texts, of rules not found yet
	behind map[int][]string // missing rules, by the found one before them; -1 = none
	last   []string         // missing rules that must come last
}

// align finds out which desired rules the chain holds. Rules that only count are never missed.
func (rs *recordedState) align(id render.ChainID, c *chainState, wanted []netfilter.Rule) *alignment {
	a := &alignment{hashes: map[uint64][]int{}, behind: map[int][]string{}}
	have := map[uint64]int{}
	for _, r := range rs.found[id] {
		if !r.foreign {
			have[r.hash]++
		}
	}
	before := -1
	for i, r := range wanted {
		text := rs.spell(id, r)
		a.texts = append(a.texts, text)
		h := rs.state.hash(r)
		switch {
		case have[h] > 0:
			have[h]--
			a.hashes[h] = append(a.hashes[h], i)
			before = i
		case r.NFAcct != "":
		case c.policy.MustBeLast(r):
			a.last = append(a.last, text)
		default:
			a.behind[before] = append(a.behind[before], text)
		}
	}
	return a
}

// find takes a desired rule that equals an observed one; false = none is left. at is in texts.
func (a *alignment) find(r foundRule) (at int, is bool) {
	all := a.hashes[r.hash]
	if r.foreign || len(all) == 0 {
		return 0, false
	}
	a.hashes[r.hash] = all[1:]
	return all[0], true
}

func (rs *recordedState) spell(id render.ChainID, r netfilter.Rule) string {
	return string(r.Append([]byte("-A "+id.Chain+" "), rs.want.Options.Family))
}

// declarationLines returns the declaration of a chain; nil = it does not exist. Built-in chains
// have an empty one, because only a few of their rules matter.
func declarationLines(id render.ChainID, exists bool) []string {
	switch {
	case netfilter.IsBuiltIn(id.Chain):
		return []string{}
	case !exists:
		return nil
	default:
		return []string{":" + id.Chain + " - [0:0]"}
	}
}
