package iptables

import (
	"iter"
	"maps"
	"slices"

	"gridproxy/rules/netfilter"
)

// repair yields what makes the kernel equal to w again, after ix has read the kernel: the
// same units of change as changesTo does. Shared chains that are sent whole anyhow are left
// out. It takes what is missing from ix, so it is walked once.
func repair(ix *index, w written) iter.Seq[change] {
	whole := ix.whole()
	return func(yield func(change) bool) {
		if c := ix.repairFixed(w); !c.empty() && !yield(c) {
			return
		}
		for _, s := range w.rules.Services {
			var c change
			b := RenderService(s, w.options)
			for _, chain := range b.Chains {
				ix.repairOrdered(&c, chainOf{netfilter.NAT, chain})
			}
			for _, e := range b.Entries {
				ix.repairEntry(&c, e, whole)
			}
			if !c.empty() && !yield(c) {
				return
			}
		}
	}
}

// repairFixed is what the chains that no Service owns need, and what nobody wants.
func (ix *index) repairFixed(w written) change {
	var c change
	whole := ix.whole()
	shared := RenderShared(w.rules, w.options)
	for t := range netfilter.Table(len(shared.Tables)) {
		for _, chain := range shared.Tables[t].Chains {
			p := place{t, chain.Name}
			switch {
			case chain.Name == netfilter.ChainFirewall: // only ever completed: see guard
			case w.options.unordered(p):
				for _, e := range entriesOf(t, chain.Name, chain.Rules) {
					ix.repairEntry(&c, e, whole)
				}
			default:
				ix.repairOrdered(&c, chainOf{t, chain})
			}
		}
	}
	for _, r := range ix.extra {
		if !whole[r.place] {
			c.strike = append(c.strike, r)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(ix.stale), comparePlaces) {
		switch s := ix.stale[p]; {
		case !s.pinned:
			c.drop = append(c.drop, p)
		case s.rules > 0:
			c.write = append(c.write, chainOf{p.table, netfilter.Chain{Name: p.chain}})
		}
	}
	return c
}

func (ix *index) repairOrdered(c *change, chain chainOf) {
	declared, equal := ix.compare(place{chain.Table, chain.Name})
	switch {
	case equal:
	case declared:
		c.write = append(c.write, chain)
	default:
		c.create = append(c.create, chain)
	}
}

func (ix *index) repairEntry(c *change, e Entry, whole map[place]bool) {
	p := place{e.Table, e.Chain}
	if e.Rule.NFAcct != "" || whole[p] {
		return
	}
	missing := ix.shared[p].missing
	if h := ix.hash(e.Rule); missing[h] > 0 {
		missing[h]--
		c.insert = append(c.insert, e)
	}
}
