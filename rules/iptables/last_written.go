package iptables

import (
	"iter"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// lastWritten is what a run left in the kernel, as an observed state. It yields one part for each
// Service that has changed, by its pointer or its options, and the part without an owner if it may
// have changed.
type lastWritten render.Desired

func (l lastWritten) parts(want render.Desired) iter.Seq2[render.Block, observedPart] {
	return func(yield func(render.Block, observedPart) bool) {
		last := render.Desired(l)
		if !last.SameFixed(want) {
			if b := want.Fixed(); !yield(b, newWrittenPart(last.Fixed(), b, want.Options)) {
				return
			}
		}
		spelling := last.Options
		spelling.FewComments = want.Options.FewComments // comments are not compared
		respelled := spelling != want.Options
		for before, now := range pairs(last.Rules.Services, want.Rules.Services) {
			if before == now && !respelled {
				continue
			}
			if b := want.Part(now); !yield(b, newWrittenPart(last.Part(before), b, want.Options)) {
				return
			}
		}
	}
}

// writtenPart is what was written of one part.
type writtenPart struct {
	options render.Options
	chains  []render.TableChain
	left    map[render.ChainID][]netfilter.Rule // the chains not yet compared with a desired one
	entries []render.Entry                      // of shared chains; after lacking only the stale ones
	delta   [2]int
}

func newWrittenPart(last, want render.Block, o render.Options) *writtenPart {
	p := &writtenPart{options: o, chains: last.Chains, entries: last.Entries, left: make(map[render.ChainID][]netfilter.Rule, len(last.Chains))}
	for _, c := range last.Chains {
		switch o.Policy(c.ID()).Kind {
		case render.Whole:
			p.left[c.ID()] = c.Rules
		case render.Shared:
			p.entries = c.AppendEntries(p.entries)
		}
	}
	before, after := last.RuleCounts(o), want.RuleCounts(o)
	for t := range p.delta {
		p.delta[t] = after[t] - before[t]
	}
	return p
}

func (p *writtenPart) status(c render.TableChain) chainStatus {
	last, exists := p.left[c.ID()]
	delete(p.left, c.ID())
	switch {
	case !exists:
		return missing
	case slices.EqualFunc(last, c.Rules, netfilter.Rule.Same):
		return equal
	default:
		return different
	}
}

// lacking returns the entries of want that were not written, and leaves the stale ones in
// entries. It ignores their order. A rule is deleted by its whole text, so of entries that
// differ only in their comments identical ones are matched first.
func (p *writtenPart) lacking(want []render.Entry) []render.Entry {
	p.entries, want = unmatched(p.entries, want, func(e render.Entry) render.Entry { return e })
	p.entries, want = unmatched(p.entries, want, decisive)
	return want
}

func (p *writtenPart) surplus(c *change) {
	for _, last := range p.chains {
		if _, left := p.left[last.ID()]; left {
			c.drop = append(c.drop, last.ID())
		}
	}
	c.remove = p.entries
	c.delta = p.delta
}

// unmatched drops, pair by pair, the entries that key makes equal.
func unmatched(from, to []render.Entry, key func(render.Entry) render.Entry) (onlyFrom, onlyTo []render.Entry) {
	have := make(map[render.Entry]int, len(from))
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

// decisive returns an Entry without comment and counter.
func decisive(e render.Entry) render.Entry {
	e.Rule = e.Rule.Decisive()
	return e
}

// pairs walks two sorted lists side by side. A Service without a namesake comes with nil.
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
