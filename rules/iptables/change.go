package iptables

import (
	"iter"
	"slices"

	"gridproxy/rules/iptables/render"
)

// change is what one part of the desired state needs. A run is planned and carried out by changes.
type change struct {
	create     []render.TableChain // not in the kernel, so no rule there leads to them
	write      []render.TableChain // in the kernel, with other rules
	drop       []render.ChainID
	insert     []render.Entry
	remove     []render.Entry
	removeText []savedRule // to remove, known only as text
	delta      [2]int      // by table: difference in rules to what was written last
}

// savedRule is a rule as iptables-save prints it.
type savedRule struct {
	render.ChainID
	text string // "-A CHAIN …"
}

// observed is the state before a run: of the kernel (kernelState), or what was written last
// (lastWritten), which needs no read-back.
type observed interface {
	// parts yields the parts of want that may differ, with their observed state. What is stale
	// comes with one of them.
	parts(want render.Desired) iter.Seq2[render.Block, observedPart]
}

// observedPart is the observed state of one part.
type observedPart interface {
	// status decides about a chain whose rules have an order.
	status(render.TableChain) chainStatus
	// lacking returns the entries of shared chains that are missing. It is called once.
	lacking([]render.Entry) []render.Entry
	// surplus adds what is stale to the change. It is called last.
	surplus(*change)
}

type chainStatus uint8

const (
	equal chainStatus = iota
	missing
	different
)

// changes yields what makes the observed state equal to want, one change for each part that needs
// one. It may be ranged over once.
func changes(want render.Desired, from observed) iter.Seq[change] {
	return func(yield func(change) bool) {
		for b, there := range from.parts(want) {
			if c := changeOf(b, there, want.Options); !c.empty() && !yield(c) {
				return
			}
		}
	}
}

// changeOf returns what one part needs. Completed and built-in chains are left to
// syncRun.prepare.
func changeOf(want render.Block, there observedPart, o render.Options) change {
	var c change
	entries := want.Entries
	for _, chain := range want.Chains {
		switch o.Policy(chain.ID()).Kind {
		case render.Whole:
			switch there.status(chain) {
			case equal:
			case missing:
				c.create = append(c.create, chain)
			case different:
				c.write = append(c.write, chain)
			}
		case render.Shared:
			entries = chain.AppendEntries(entries)
		}
	}
	c.insert = there.lacking(entries)
	there.surplus(&c)
	return c
}

func (c change) empty() bool {
	return len(c.create)+len(c.write)+len(c.drop)+len(c.insert)+len(c.remove)+len(c.removeText) == 0
}

func (c change) chains() []render.ChainID {
	all := slices.Clone(c.drop)
	for _, chain := range slices.Concat(c.create, c.write) {
		all = append(all, chain.ID())
	}
	for _, e := range slices.Concat(c.insert, c.remove) {
		all = append(all, e.ID())
	}
	return all
}
