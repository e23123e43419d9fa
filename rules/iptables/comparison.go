package iptables

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// comparison is an index that also remembers what it was shown, so that what differs can be
// printed. Whether a chain differs is the index's word alone.
type comparison struct {
	index *index
	want  written
	found map[place][]foundRule
}

// foundRule is a rule of the kernel, without the Rule itself: a node may have very many.
type foundRule struct {
	text    string
	hash    uint64
	foreign bool
	last    bool // see mustBeLast
}

func newComparison(w written) *comparison {
	return &comparison{index: newIndex(w), want: w, found: map[place][]foundRule{}}
}

// read takes in one line of iptables-save.
func (c *comparison) read(line netfilter.Line) {
	c.index.read(line)
	p := place{line.Table, line.Chain}
	if line.Kind != netfilter.LineRule || !c.index.knows(p) {
		return
	}
	r := foundRule{text: strings.Clone(line.Text), foreign: line.Foreign}
	if !line.Foreign {
		r.hash, r.last = c.index.hash(line.Rule), mustBeLast(c.index.names, p, line.Rule)
	}
	p.chain = strings.Clone(p.chain)
	c.found[p] = append(c.found[p], r)
}

// knows reports whether the index has anything to say about a chain.
func (ix *index) knows(p place) bool {
	_, ordered := ix.ordered[p]
	_, shared := ix.shared[p]
	_, builtin := ix.builtin[p]
	_, guarded := ix.guards[p]
	_, stale := ix.stale[p]
	return ordered || shared || builtin || guarded || stale
}

// differences are the chains that differ, by table and name.
func (c *comparison) differences() []Difference {
	different := c.index.different()
	wanted := wantedRules(c.want, different)
	var all []Difference
	for _, p := range slices.SortedFunc(maps.Keys(different), comparePlaces) {
		d := Difference{Family: c.want.options.Family, Table: p.table, Chain: p.chain}
		switch _, ordered := c.index.ordered[p]; {
		case c.index.stale[p] != nil:
			d.Kernel, d.Desired = c.leftOver(p)
		case ordered:
			d.Kernel, d.Desired = c.inOrder(p, wanted[p])
		default:
			d.Kernel, d.Desired = c.inAnyOrder(p, wanted[p])
		}
		all = append(all, d)
	}
	return all
}

// wantedRules are what some chains are to hold, entries before fixed rules as Render has them.
func wantedRules(w written, of map[place]bool) map[place][]netfilter.Rule {
	all := map[place][]netfilter.Rule{}
	add := func(p place, list ...netfilter.Rule) {
		if of[p] {
			all[p] = append(all[p], list...)
		}
	}
	for _, s := range w.rules.Services {
		b := RenderService(s, w.options)
		for _, chain := range b.Chains {
			add(place{netfilter.NAT, chain.Name}, chain.Rules...)
		}
		for _, e := range b.Entries {
			add(place{e.Table, e.Chain}, e.Rule)
		}
	}
	shared := RenderShared(w.rules, w.options)
	for t := range netfilter.Table(len(shared.Tables)) {
		for _, chain := range slices.Concat(shared.Tables[t].Chains, shared.Tables[t].Jumps) {
			add(place{t, chain.Name}, chain.Rules...)
		}
	}
	return all
}

// leftOver is a chain that nobody wants. One that somebody else uses is only emptied.
func (c *comparison) leftOver(p place) (kernel, desired []string) {
	kernel = declared(p, true)
	for _, r := range c.found[p] {
		kernel = append(kernel, r.text)
	}
	return kernel, declared(p, c.index.stale[p].pinned)
}

// inOrder is a chain of which the order counts.
func (c *comparison) inOrder(p place, wanted []netfilter.Rule) (kernel, desired []string) {
	exists, _ := c.index.compare(p)
	kernel, desired = declared(p, exists), declared(p, true)
	spelled := map[uint64]string{}
	for _, r := range wanted {
		text := c.spell(p, r)
		spelled[c.index.hash(r)] = text
		desired = append(desired, text)
	}
	for _, r := range c.found[p] {
		text, same := spelled[r.hash]
		if r.foreign || !same {
			text = r.text
		}
		kernel = append(kernel, text)
	}
	return kernel, desired
}

// inAnyOrder is a chain of which the order decides nothing but what comes last. What is wanted
// is put into the order that the kernel has, and what the kernel lacks behind the rule that
// stands before it in our own order.
func (c *comparison) inAnyOrder(p place, wanted []netfilter.Rule) (kernel, desired []string) {
	m := newMatching(c, p, wanted)
	extra := map[string]int{}
	for _, r := range c.index.extra {
		if r.place == p {
			extra[r.text]++
		}
	}
	if h, ok := c.index.builtin[p]; ok {
		for _, r := range h.surplus() {
			extra[r.text]++
		}
	}
	var last []string
	kernel, desired = declared(p, c.exists(p)), declared(p, true)
	desired = append(desired, m.takeBehind(-1)...)
	for _, r := range c.found[p] {
		at, is := m.find(r)
		switch {
		case is && r.last:
			kernel, last = append(kernel, m.texts[at]), append(last, m.texts[at])
		case is:
			kernel, desired = append(kernel, m.texts[at]), append(desired, m.texts[at])
		case extra[r.text] > 0:
			extra[r.text]--
			kernel = append(kernel, r.text)
		}
		if is {
			desired = append(desired, m.takeBehind(at)...)
		}
	}
	return kernel, slices.Concat(desired, last, m.last)
}

// exists reports whether the kernel has a chain of which the order decides nothing.
func (c *comparison) exists(p place) bool {
	if g, guarded := c.index.guards[p]; guarded {
		return g.declared
	}
	return c.index.declared(p)
}

func (c *comparison) spell(p place, r netfilter.Rule) string {
	return string(r.Append([]byte("-A "+p.chain+" "), c.want.options.Family))
}

// declared is the line before the rules of a chain, if it is there. The kernel's own have none:
// only a few of their rules are ever looked at.
func declared(p place, exists bool) []string {
	switch {
	case netfilter.IsBuiltIn(p.chain):
		return []string{}
	case !exists:
		return nil
	default:
		return []string{":" + p.chain + " - [0:0]"}
	}
}
