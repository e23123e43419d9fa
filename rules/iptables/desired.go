package iptables

import (
	"iter"
	"reflect"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// desired is a Ruleset with the options by which it is rendered. Every desired chain can be
// rendered again from both, so no rule has to be kept.
type desired struct {
	rules   rules.Ruleset
	options Options
}

// parts yields everything desired, one part for each owner. The part without an owner comes first,
// with a nil Service: the shared chains, and the jumps from built-in chains. Every
// comparison with the kernel loops over them.
func (d desired) parts() iter.Seq2[*rules.Service, Block] {
	return func(yield func(*rules.Service, Block) bool) {
		if !yield(nil, d.fixed()) {
			return
		}
		for _, s := range d.rules.Services {
			if !yield(s, RenderService(s, d.options)) {
				return
			}
		}
	}
}

// fixed returns the part without an owner.
func (d desired) fixed() Block {
	tables := RenderShared(d.rules, d.options).Tables
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

// sameFixed reports whether fixed is surely the same as that of other: the rules of health checks
// name ports of Services, so with any of them it may differ.
func (d desired) sameFixed(other desired) bool {
	a, b := d.rules, other.rules
	return d.options == other.options && len(a.HealthChecks)+len(b.HealthChecks) == 0 &&
		reflect.DeepEqual(a.NodePorts, b.NodePorts) && reflect.DeepEqual(a.LocalDNS, b.LocalDNS)
}

// part returns the part of a Service; that of nil is empty.
func (d desired) part(s *rules.Service) Block {
	if s == nil {
		return Block{}
	}
	return RenderService(s, d.options)
}

// rulesOf yields the desired rules of some chains. As in Render, entries of Services come first.
func (d desired) rulesOf(ids map[chainID]bool) iter.Seq2[chainID, netfilter.Rule] {
	return func(yield func(chainID, netfilter.Rule) bool) {
		var fixed Block
		for s, b := range d.parts() {
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
func (b Block) yieldRules(ids map[chainID]bool, yield func(chainID, netfilter.Rule) bool) bool {
	for id, r := range b.rules() {
		if ids[id] && !yield(id, r) {
			return false
		}
	}
	return true
}

// rules yields every rule with its chain.
func (b Block) rules() iter.Seq2[chainID, netfilter.Rule] {
	return func(yield func(chainID, netfilter.Rule) bool) {
		for _, c := range b.Chains {
			for _, r := range c.Rules {
				if !yield(c.id(), r) {
					return
				}
			}
		}
		for _, e := range b.Entries {
			if !yield(e.id(), e.Rule) {
				return
			}
		}
	}
}

// ruleCounts counts our rules by table, without the kubelet's and jumps from built-in chains.
func (b Block) ruleCounts(o Options) (n [2]int) {
	for _, c := range b.Chains {
		if kind := o.policy(c.id()).kind; kind == whole || kind == shared {
			n[c.Table] += len(c.Rules)
		}
	}
	for _, e := range b.Entries {
		n[e.Table]++
	}
	return n
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
