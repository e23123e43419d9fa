package iptables

import (
	"iter"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// written is a Ruleset and how it was spelled: with both, everything that was written can
// be rendered again, so that nothing of it has to be kept.
type written struct {
	rules   rules.Ruleset
	options Options
}

// change is what one Service, or the part that no Service owns, needs. It is the unit in
// which a plan is made and carried out.
type change struct {
	create []chainOf // not in the kernel, and nothing there leads to them
	write  []chainOf // in the kernel, with other rules
	drop   []place
	insert []Entry
	remove []Entry
	strike []savedRule // as remove, where only the kernel knows the rule
	delta  [2]int      // by table: rules more or fewer when it is carried out
}

// chainOf is a chain of a table.
type chainOf struct {
	Table netfilter.Table
	netfilter.Chain
}

// changesTo yields what leads from one written state to the next, one change for each Service
// that differs. The Services of both are sorted, and one that is the same pointer in both
// is not looked at unless it would be spelled differently now.
func changesTo(from, to written) iter.Seq[change] {
	return func(yield func(change) bool) {
		shared := diffShared(RenderShared(from.rules, from.options), RenderShared(to.rules, to.options), to.options)
		if !shared.empty() && !yield(shared) {
			return
		}
		respelled := from.options != to.options
		for a, b := range pairs(from.rules.Services, to.rules.Services) {
			if a == b && !respelled {
				continue
			}
			c := diffBlocks(blockOf(a, from), blockOf(b, to))
			if !c.empty() && !yield(c) {
				return
			}
		}
	}
}

// blockOf is what a Service needs; nil needs nothing.
func blockOf(s *rules.Service, w written) Block {
	if s == nil {
		return Block{}
	}
	return RenderService(s, w.options)
}

// pairs walks two sorted lists of Services side by side and yields those of equal name
// together, the others with nil.
func pairs(a, b []*rules.Service) iter.Seq2[*rules.Service, *rules.Service] {
	return func(yield func(a, b *rules.Service) bool) {
		for len(a) > 0 || len(b) > 0 {
			var order int
			switch {
			case len(a) == 0:
				order = 1
			case len(b) == 0:
				order = -1
			case a[0] == b[0]:
			default:
				order = topology.CompareNames(a[0].Name, b[0].Name)
			}
			var x, y *rules.Service
			if order <= 0 {
				x, a = a[0], a[1:]
			}
			if order >= 0 {
				y, b = b[0], b[1:]
			}
			if !yield(x, y) {
				return
			}
		}
	}
}

// diffBlocks is what leads from one spelling of a Service to another.
func diffBlocks(from, to Block) change {
	var c change
	gone := rulesByName(from.Chains)
	for _, next := range to.Chains {
		last, exists := gone[next.Name]
		delete(gone, next.Name)
		switch {
		case !exists:
			c.create = append(c.create, chainOf{netfilter.NAT, next})
		case !sameRules(last, next.Rules):
			c.write = append(c.write, chainOf{netfilter.NAT, next})
		}
		c.delta[netfilter.NAT] += len(next.Rules) - len(last)
	}
	for _, last := range from.Chains {
		if _, is := gone[last.Name]; is {
			c.drop = append(c.drop, place{netfilter.NAT, last.Name})
			c.delta[netfilter.NAT] -= len(last.Rules)
		}
	}
	c.diffEntries(from.Entries, to.Entries)
	return c
}

// diffEntries compares entries of shared chains without regard to their order. Of entries
// that differ in their comments alone the very same stay first, because a rule is deleted
// by its whole text.
func (c *change) diffEntries(from, to []Entry) {
	from, to = unmatched(from, to, func(e Entry) Entry { return e })
	from, to = unmatched(from, to, Entry.decisive)
	for _, e := range to {
		c.insert = append(c.insert, e)
		c.delta[e.Table]++
	}
	for _, e := range from {
		c.remove = append(c.remove, e)
		c.delta[e.Table]--
	}
}

// unmatched takes out of both lists, pair by pair, the entries that key makes equal.
func unmatched(from, to []Entry, key func(Entry) Entry) (onlyFrom, onlyTo []Entry) {
	have := make(map[Entry]int, len(from))
	for _, e := range from {
		have[key(e)]++
	}
	for _, e := range to {
		if k := key(e); have[k] > 0 {
			have[k]--
		} else {
			onlyTo = append(onlyTo, e)
		}
	}
	for _, e := range from {
		if k := key(e); have[k] > 0 {
			have[k]--
			onlyFrom = append(onlyFrom, e)
		}
	}
	return onlyFrom, onlyTo
}

// decisive is the Entry without what decides nothing.
func (e Entry) decisive() Entry {
	e.Rule = decisive(e.Rule)
	return e
}

// decisive is r without what Rule.Same does not look at.
func decisive(r netfilter.Rule) netfilter.Rule {
	r.Comment, r.NFAcct = "", ""
	return r
}

// diffShared is what leads from one set of fixed chains to another. Shared chains of
// which the order decides nothing are edited, the others written whole.
func diffShared(from, to Tables, o Options) change {
	var c change
	for t := range netfilter.Table(len(to.Tables)) {
		before := rulesByName(from.Tables[t].Chains)
		for _, next := range to.Tables[t].Chains {
			last := before[next.Name]
			switch {
			case next.Name == netfilter.ChainFirewall: // only ever completed: see guard
			case o.unordered(place{t, next.Name}):
				c.diffEntries(entriesOf(t, next.Name, last), entriesOf(t, next.Name, next.Rules))
			case !sameRules(last, next.Rules):
				c.write = append(c.write, chainOf{t, next})
				c.delta[t] += len(next.Rules) - len(last)
			}
		}
	}
	return c
}

func entriesOf(t netfilter.Table, chain string, list []netfilter.Rule) []Entry {
	entries := make([]Entry, len(list))
	for i, r := range list {
		entries[i] = Entry{Table: t, Chain: chain, Rule: r}
	}
	return entries
}

// places are the chains that the change touches.
func (c change) places() iter.Seq[place] {
	return func(yield func(place) bool) {
		for _, list := range [][]chainOf{c.create, c.write} {
			for _, chain := range list {
				if !yield(place{chain.Table, chain.Name}) {
					return
				}
			}
		}
		for _, p := range c.drop {
			if !yield(p) {
				return
			}
		}
		for _, list := range [][]Entry{c.insert, c.remove} {
			for _, e := range list {
				if !yield(place{e.Table, e.Chain}) {
					return
				}
			}
		}
	}
}

func (c change) empty() bool {
	return len(c.create)+len(c.write)+len(c.drop)+len(c.insert)+len(c.remove)+len(c.strike) == 0
}

func rulesByName(chains []netfilter.Chain) map[string][]netfilter.Rule {
	m := make(map[string][]netfilter.Rule, len(chains))
	for _, c := range chains {
		m[c.Name] = c.Rules
	}
	return m
}

func sameRules(a, b []netfilter.Rule) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Same(b[i]) {
			return false
		}
	}
	return true
}
