package iptables

import (
	"iter"
	"slices"
)

// change is what one part of what is desired needs. It is the unit in which a run is planned and
// carried out.
type change struct {
	create     []TableChain // not in the kernel, and nothing there leads to them
	write      []TableChain // in the kernel, with other rules
	drop       []chainID
	insert     []Entry
	remove     []Entry
	removeText []savedRule // as remove, where only the kernel knows the rule
	delta      [2]int      // by table: rules more or fewer than were written last
}

// savedRule is a rule as iptables-save prints it.
type savedRule struct {
	chainID
	text string // "-A CHAIN …"
}

// observed tells what there is before a run: in the kernel (kernelState), or in what was written
// last (desired), for which nothing is read.
type observed interface {
	// parts yields what of want may differ, and what there is of it. What is not desired any more
	// comes with one of them.
	parts(want desired) iter.Seq2[Block, observedPart]
}

// observedPart tells what there is of one part.
type observedPart interface {
	// status decides about a chain whose rules have an order.
	status(TableChain) chainStatus
	// lacking are those of the entries of shared chains that are not there. It is asked once.
	lacking([]Entry) []Entry
	// surplus adds to the change what is there and not desired. It is asked last.
	surplus(*change)
}

// chainStatus is the answer to whether a chain is right.
type chainStatus uint8

const (
	equal chainStatus = iota
	missing
	different
)

// changes yields what makes that which was observed equal to want, one change for each part that
// needs one. It may be walked once.
func changes(want desired, from observed) iter.Seq[change] {
	return func(yield func(change) bool) {
		for b, there := range from.parts(want) {
			if c := changeOf(b, there, want.options); !c.empty() && !yield(c) {
				return
			}
		}
	}
}

// changeOf is what one part needs. Chains that are completed, and built-in ones, are not in it: see
// syncRun.prepare.
func changeOf(want Block, there observedPart, o Options) change {
	var c change
	entries := want.Entries
	for _, chain := range want.Chains {
		switch o.policy(chain.id()).kind {
		case whole:
			switch there.status(chain) {
			case equal:
			case missing:
				c.create = append(c.create, chain)
			case different:
				c.write = append(c.write, chain)
			}
		case shared:
			entries = append(entries, chain.entries()...)
		}
	}
	c.insert = there.lacking(entries)
	there.surplus(&c)
	return c
}

func (c change) empty() bool {
	return len(c.create)+len(c.write)+len(c.drop)+len(c.insert)+len(c.remove)+len(c.removeText) == 0
}

// chains are those that the change touches.
func (c change) chains() []chainID {
	all := slices.Clone(c.drop)
	for _, chain := range slices.Concat(c.create, c.write) {
		all = append(all, chain.id())
	}
	for _, e := range slices.Concat(c.insert, c.remove) {
		all = append(all, e.id())
	}
	return all
}
