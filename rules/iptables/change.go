package iptables

import (
	"iter"
	"slices"
)

// change is what one part of the desired state needs. A run is planned and carried out by changes.
type change struct {
	create     []TableChain // not in the kernel, so no rule there leads to them
	write      []TableChain // in the kernel, with other rules
	drop       []chainID
	insert     []Entry
	remove     []Entry
	removeText []savedRule // to remove, known only as text
	delta      [2]int      // by table: difference in rules to what was written last
}

// savedRule is a rule as iptables-save prints it.
type savedRule struct {
	chainID
	text string // "-A CHAIN …"
}

// observed is the state before a run: of the kernel (kernelState), or what was written last
// (lastWritten), which needs no read-back.
type observed interface {
	// parts yields the parts of want that may differ, with their observed state. What is stale
	// comes with one of them.
	parts(want desired) iter.Seq2[Block, observedPart]
}

// observedPart is the observed state of one part.
type observedPart interface {
	// status decides about a chain whose rules have an order.
	status(TableChain) chainStatus
	// lacking returns the entries of shared chains that are missing. It is called once.
	lacking([]Entry) []Entry
	// surplus adds what is stale to the change. It is called last.
	surplus(*change)
}

// chainStatus says whether a chain is right.
type chainStatus uint8

const (
	equal chainStatus = iota
	missing
	different
)

// changes yields what makes the observed state equal to want, one change for each part that needs
// one. It may be ranged over once.
func changes(want desired, from observed) iter.Seq[change] {
	return func(yield func(change) bool) {
		for b, there := range from.parts(want) {
			if c := changeOf(b, there, want.options); !c.empty() && !yield(c) {
				return
			}
		}
	}
}

// changeOf returns what one part needs. Completed and built-in chains are left to
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
			entries = chain.appendEntries(entries)
		}
	}
	c.insert = there.lacking(entries)
	there.surplus(&c)
	return c
}

func (c change) empty() bool {
	return len(c.create)+len(c.write)+len(c.drop)+len(c.insert)+len(c.remove)+len(c.removeText) == 0
}

// chains returns the chains that the change touches.
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
