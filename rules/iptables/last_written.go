package iptables

import (
	"iter"
	"slices"

	"gridproxy/rules/netfilter"
)

// lastWritten is what a run left in the kernel, as an observed state. It yields one part for each
// Service that has changed, by its pointer or its options, and the part without an owner if it may
// have changed.
type lastWritten desired

func (l lastWritten) parts(want desired) iter.Seq2[Block, observedPart] {
	return func(yield func(Block, observedPart) bool) {
		last := desired(l)
		if !last.sameFixed(want) {
			if b := want.fixed(); !yield(b, newWrittenPart(last.fixed(), b, want.options)) {
				return
			}
		}
		spelling := last.options
		spelling.FewComments = want.options.FewComments // comments are not compared
		respelled := spelling != want.options
		for before, now := range pairs(last.rules.Services, want.rules.Services) {
			if before == now && !respelled {
				continue
			}
			if b := want.part(now); !yield(b, newWrittenPart(last.part(before), b, want.options)) {
				return
			}
		}
	}
}

// writtenPart is what was written of one part.
type writtenPart struct {
	options Options
	chains  []TableChain
	left    map[chainID][]netfilter.Rule // the chains not yet compared with a desired one
	entries []Entry                      // of shared chains; after lacking only the stale ones
	delta   [2]int
}

func newWrittenPart(last, want Block, o Options) *writtenPart {
	p := &writtenPart{options: o, chains: last.Chains, entries: last.Entries, left: make(map[chainID][]netfilter.Rule, len(last.Chains))}
	for _, c := range last.Chains {
		switch o.policy(c.id()).kind {
		case whole:
			p.left[c.id()] = c.Rules
		case shared:
			p.entries = c.appendEntries(p.entries)
		}
	}
	before, after := last.ruleCounts(o), want.ruleCounts(o)
	for t := range p.delta {
		p.delta[t] = after[t] - before[t]
	}
	return p
}

func (p *writtenPart) status(c TableChain) chainStatus {
	last, exists := p.left[c.id()]
	delete(p.left, c.id())
	switch {
	case !exists:
		return missing
	case sameRules(last, c.Rules):
		return equal
	default:
		return different
	}
}

// lacking compares entries regardless of their order. A rule is deleted by its whole text, so of
// entries that differ only in their comments identical ones are matched first.
func (p *writtenPart) lacking(want []Entry) []Entry {
	p.entries, want = unmatched(p.entries, want, func(e Entry) Entry { return e })
	p.entries, want = unmatched(p.entries, want, Entry.decisive)
	return want
}

func (p *writtenPart) surplus(c *change) {
	for _, last := range p.chains {
		if _, left := p.left[last.id()]; left {
			c.drop = append(c.drop, last.id())
		}
	}
	c.remove = p.entries
	c.delta = p.delta
}

// unmatched drops, pair by pair, the entries that key makes equal.
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

// decisive returns the Entry without comment and counter.
func (e Entry) decisive() Entry {
	e.Rule = e.Rule.Decisive()
	return e
}

func sameRules(a, b []netfilter.Rule) bool { return slices.EqualFunc(a, b, netfilter.Rule.Same) }
