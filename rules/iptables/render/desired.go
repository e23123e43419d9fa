package render

import (
	"iter"
	"reflect"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Desired is a Ruleset with the options by which it is rendered. Every desired chain can be
// rendered again from both, so no rule has to be kept.
type Desired struct {
	Rules   rules.Ruleset
	Options Options
}

// Parts yields everything desired, one part for each owner. The part without an owner comes first,
// with a nil Service: the shared chains, and the jumps from built-in chains. Every
// comparison with the kernel loops over them.
func (d Desired) Parts() iter.Seq2[*rules.Service, Block] {
	return func(yield func(*rules.Service, Block) bool) {
		if !yield(nil, d.Fixed()) {
			return
		}
		for _, s := range d.Rules.Services {
			if !yield(s, Service(s, d.Options)) {
				return
			}
		}
	}
}

// Fixed returns the part without an owner.
func (d Desired) Fixed() Block {
	tables := Fixed(d.Rules, d.Options).Tables
	n := 0
	for _, of := range tables {
		n += len(of.Chains) + len(of.Jumps)
	}
	b := Block{Chains: make([]TableChain, 0, n)}
	for t, of := range tables {
		for _, list := range [...][]netfilter.Chain{of.Chains, of.Jumps} {
			for _, c := range list {
				b.Chains = append(b.Chains, TableChain{netfilter.Table(t), c}) //nolint:gosec // two tables
			}
		}
	}
	return b
}

// SameFixed reports whether Fixed is surely the same as that of other: the rules of health checks
// name ports of Services, so with any of them it may differ.
func (d Desired) SameFixed(other Desired) bool {
	a, b := d.Rules, other.Rules
	return d.Options == other.Options && len(a.HealthChecks)+len(b.HealthChecks) == 0 &&
		reflect.DeepEqual(a.NodePorts, b.NodePorts) && reflect.DeepEqual(a.LocalDNS, b.LocalDNS)
}

// Part returns the part of a Service; that of nil is empty.
func (d Desired) Part(s *rules.Service) Block {
	if s == nil {
		return Block{}
	}
	return Service(s, d.Options)
}

// RulesOf yields the desired rules of some chains. As in Ruleset, entries of Services come first.
func (d Desired) RulesOf(ids map[ChainID]bool) iter.Seq2[ChainID, netfilter.Rule] {
	return func(yield func(ChainID, netfilter.Rule) bool) {
		var fixed Block
		for s, b := range d.Parts() {
			if s == nil {
				fixed = b
			} else if !b.yieldRules(ids, yield) {
				return
			}
		}
		fixed.yieldRules(ids, yield)
	}
}

// yieldRules yields the rules in some chains, and reports whether to go on.
func (b Block) yieldRules(ids map[ChainID]bool, yield func(ChainID, netfilter.Rule) bool) bool {
	for id, r := range b.Rules() {
		if ids[id] && !yield(id, r) {
			return false
		}
	}
	return true
}

// Rules yields every rule with its chain.
func (b Block) Rules() iter.Seq2[ChainID, netfilter.Rule] {
	return func(yield func(ChainID, netfilter.Rule) bool) {
		for _, c := range b.Chains {
			for _, r := range c.Rules {
				if !yield(c.ID(), r) {
					return
				}
			}
		}
		for _, e := range b.Entries {
			if !yield(e.ID(), e.Rule) {
				return
			}
		}
	}
}

// RuleCounts counts our rules by table, without the kubelet's and jumps from built-in chains.
func (b Block) RuleCounts(o Options) (n [2]int) {
	for _, c := range b.Chains {
		if kind := o.Policy(c.ID()).Kind; kind == Whole || kind == Shared {
			n[c.Table] += len(c.Rules)
		}
	}
	for _, e := range b.Entries {
		n[e.Table]++
	}
	return n
}
