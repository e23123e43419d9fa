package iptables

import (
	"context"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// kernelState is the observed state of the kernel against the desired one. Rules are a stream that
// is folded into hashes and not kept. It exists only during a read-back and its repair.
type kernelState struct {
	seed    maphash.Seed
	options render.Options
	scope   scope

	at     map[render.ChainID]int32 // into chains
	chains []chainState

	trial bool   // there are chains of a trial
	rules [2]int // by table: how many rules are desired, without those that only count

	// Rules that only count (see render.ChainPolicy.OnlyCounts) matter only to ruleCounts.
	countersWanted, countersSeen int
}

// scope says which chains are stale if they are not desired.
type scope uint8

const (
	repairing scope = iota // ours that a change of Services or of the mode leaves behind
	removing               // all of ours; under KubeNames those of every Naming
	ignoring               // none
)

// newKernelState makes a state without any chain; chains is about how many will be desired.
func newKernelState(o render.Options, s scope, chains int) *kernelState {
	return &kernelState{
		seed: maphash.MakeSeed(), options: o, scope: s,
		at: make(map[render.ChainID]int32, chains), chains: make([]chainState, 0, chains),
	}
}

// stateAgainst returns the state of a kernel without any desired chain. It renders everything
// desired, until ctx ends, which is an error.
func stateAgainst(ctx context.Context, want render.Desired) (*kernelState, error) {
	ks := newKernelState(want.Options, repairing, 4*len(want.Rules.Services))
	for _, b := range want.Parts() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		ks.want(b)
	}
	return ks, nil
}

// want adds to what is desired. Chains come before their entries.
func (ks *kernelState) want(b render.Block) {
	for _, c := range b.Chains {
		s := ks.add(c.ID(), ks.options.Policy(c.ID()))
		for _, r := range c.Rules {
			ks.wantRule(s, c.Table, r)
		}
	}
	for _, e := range b.Entries {
		ks.wantRule(ks.chain(e.ID()), e.Table, e.Rule)
	}
}

func (ks *kernelState) wantRule(s *chainState, t netfilter.Table, r netfilter.Rule) {
	if s.kind == render.Shared && r.NFAcct != "" {
		ks.countersWanted++
		return
	}
	if s.kind == render.Whole || s.kind == render.Shared {
		ks.rules[t]++
	}
	s.want(ks.hash(r), r)
}

func (ks *kernelState) add(id render.ChainID, p render.ChainPolicy) *chainState {
	ks.at[id] = int32(len(ks.chains)) //nolint:gosec // a kernel has fewer chains
	ks.chains = append(ks.chains, newChainState(p))
	return &ks.chains[len(ks.chains)-1]
}

// chain returns the state of a chain that is desired or ours, else nil. It is valid until the
// next add.
func (ks *kernelState) chain(id render.ChainID) *chainState {
	if i, ok := ks.at[id]; ok {
		return &ks.chains[i]
	}
	return nil
}

func (ks *kernelState) read(line netfilter.Line) {
	id := render.ChainID{Table: line.Table, Chain: line.Chain}
	switch line.Kind {
	case netfilter.LineChain:
		ks.readChain(id)
	case netfilter.LineRule:
		ks.readRule(id, line)
	}
}

func (ks *kernelState) readChain(id render.ChainID) {
	if c := ks.chain(id); c != nil {
		c.declared = true
	} else if ks.scope.removes(id, ks.options.Names) {
		ks.add(id.Clone(), render.ChainPolicy{Kind: render.Stale}).declared = true
	} else if ks.options.Names == netfilter.KubeNames && netfilter.GridNames.IsOurs(id.Table, id.Chain) {
		ks.trial = true
	}
}

// removes reports whether a chain that is not desired is stale where it is found.
func (s scope) removes(id render.ChainID, names netfilter.Naming) bool {
	switch s {
	case removing:
		return netfilter.GridNames.IsOurs(id.Table, id.Chain) || names == netfilter.KubeNames && names.IsOurs(id.Table, id.Chain)
	case repairing: // kube-proxy's canary is left to cleaning up
		return (id.Table == netfilter.Filter || id.Table == netfilter.NAT) && id.Chain != netfilter.ChainProxyCanary && names.IsOurs(id.Table, id.Chain)
	default:
		return false
	}
}

func (ks *kernelState) readRule(id render.ChainID, line netfilter.Line) {
	c := ks.chain(id)
	if c != nil {
		switch c.kind {
		case render.Whole:
			c.hashes.read(ks.hashOf(line))
			return
		case render.Shared:
			ks.readEntry(c, line)
			return
		case render.Stale:
			c.leftover.rules++
			if to := jumpTarget(line); ks.scope == removing && to != "" {
				c.leftover.leads = append(c.leftover.leads, strings.Clone(to))
			}
			return
		case render.BuiltIn:
			c.jumps.read(line)
		case render.Completed:
			c.take(ks.hashOf(line))
		}
	}
	if ks.isMisplaced(id, line) {
		if c == nil {
			c = ks.add(id.Clone(), render.ChainPolicy{Kind: render.BuiltIn})
		}
		c.extra = append(c.extra, strings.Clone(line.Text))
		return
	}
	to := ks.chain(render.ChainID{Table: id.Table, Chain: jumpTarget(line)})
	if to != nil && to.kind == render.Stale && (ks.scope == removing || len(to.leftover.pins) == 0) {
		to.leftover.pins = append(to.leftover.pins, strings.Clone(line.Text))
	}
}

func (ks *kernelState) readEntry(c *chainState, line netfilter.Line) {
	switch {
	case line.Foreign:
	case c.take(ks.hashOf(line)):
		last := c.policy.MustBeLast(line.Rule)
		c.misordered = c.misordered || c.sawLast && !last
		c.sawLast = c.sawLast || last
		return
	case c.policy.OnlyCounts(line.Rule, func(r netfilter.Rule) bool { return c.wants(ks.hash(r)) }):
		ks.countersSeen++
		return
	}
	c.extra = append(c.extra, strings.Clone(line.Text))
}

// isMisplaced reports whether a line is a jump from a built-in chain that a change of mode removes,
// as kube-proxy's IPVS mode writes them: to a stale chain, to a chain that only our chains jump to,
// or to the firewall for more than new connections. A foreign rule belongs to another program and
// stays.
func (ks *kernelState) isMisplaced(id render.ChainID, line netfilter.Line) bool {
	if line.Foreign || !netfilter.IsBuiltIn(id.Chain) || line.Rule.Target != netfilter.TargetJump {
		return false
	}
	to := render.ChainID{Table: id.Table, Chain: line.Rule.Jump}
	if c := ks.chain(to); c != nil && c.kind == render.Stale {
		return true
	}
	if ks.scope != repairing {
		return false
	}
	name := ks.options.Names.Chain
	switch to {
	case render.ChainID{Table: netfilter.NAT, Chain: name(netfilter.ChainIPVSChains)},
		render.ChainID{Table: netfilter.Filter, Chain: name(netfilter.ChainIPVSFilter)}:
		return true
	case render.ChainID{Table: netfilter.Filter, Chain: name(netfilter.ChainProxyFirewall)}:
		return line.Rule.Same(netfilter.Rule{Target: netfilter.TargetJump, Jump: to.Chain})
	}
	return false
}

// declared reports whether the kernel has a desired chain. A completed one exists once it has been
// completed.
func (ks *kernelState) declared(id render.ChainID) bool {
	c := ks.chain(id)
	return c != nil && (c.declared || c.kind == render.Completed)
}

// different returns our chains, and built-in ones with our jumps, that are not as desired.
func (ks *kernelState) different() map[render.ChainID]bool {
	return ks.chainsThat(func(c *chainState) bool { return c.status() != equal })
}

func (ks *kernelState) chainsThat(holds func(*chainState) bool) map[render.ChainID]bool {
	all := map[render.ChainID]bool{}
	for id, at := range ks.at {
		if holds(&ks.chains[at]) {
			all[id] = true
		}
	}
	return all
}

// sorted returns the chains of one kind, sorted by table and name.
func (ks *kernelState) sorted(kind render.ChainKind) []render.ChainID {
	is := func(c *chainState) bool { return c.kind == kind }
	return slices.SortedFunc(maps.Keys(ks.chainsThat(is)), render.CompareChainIDs)
}

// ruleCounts returns the number of rules by table after the repair.
func (ks *kernelState) ruleCounts() [2]int {
	counts := ks.rules
	if c := ks.chain(render.ChainID{Table: netfilter.NAT, Chain: ks.options.Names.Chain(netfilter.ChainNodePorts)}); c != nil && c.sendWhole() {
		counts[netfilter.NAT] += ks.countersWanted
	} else {
		counts[netfilter.NAT] += ks.countersSeen
	}
	return counts
}

// parts yields everything desired: after a read-back any part may differ.
func (ks *kernelState) parts(want render.Desired) iter.Seq2[render.Block, observedPart] {
	return func(yield func(render.Block, observedPart) bool) {
		first, other := &kernelPart{ks, true}, &kernelPart{ks, false} // not one allocation for each Service
		for s, b := range want.Parts() {
			part := other
			if s == nil {
				part = first
			}
			if !yield(b, part) {
				return
			}
		}
	}
}

// kernelPart is the observed state of one part. What is stale comes with the first one.
type kernelPart struct {
	*kernelState
	first bool
}

func (p *kernelPart) status(c render.TableChain) chainStatus { return p.chain(c.ID()).status() }

// lacking omits entries of chains that are written whole, and rules that only count.
func (p *kernelPart) lacking(entries []render.Entry) (all []render.Entry) {
	for _, e := range entries {
		c := p.chain(e.ID())
		if e.Rule.NFAcct == "" && !c.sendWhole() && c.take(p.hash(e.Rule)) {
			all = append(all, e)
		}
	}
	return all
}

func (p *kernelPart) surplus(c *change) {
	if p.first {
		p.removeUndesired(c)
	}
}

// removeUndesired adds what is stale to the change. A stale chain that a rule of another program
// leads to can only be emptied; with scope removing it stays as it is.
func (ks *kernelState) removeUndesired(c *change) {
	stay := ks.staying()
	for _, id := range ks.sorted(render.Stale) {
		switch s := ks.chain(id); {
		case !stay[id]:
			c.drop = append(c.drop, id)
		case ks.scope == repairing && s.leftover.rules > 0:
			c.write = append(c.write, render.TableChain{Table: id.Table, Chain: netfilter.Chain{Name: id.Chain}})
		}
	}
	for _, kind := range []render.ChainKind{render.Shared, render.BuiltIn} {
		for _, id := range ks.sorted(kind) {
			if s := ks.chain(id); !s.sendWhole() {
				for _, text := range s.extra {
					c.removeText = append(c.removeText, savedRule{id, text})
				}
			}
		}
	}
}

// staying returns the stale chains that cannot be removed: those that a rule of another program
// leads to, and, with scope removing, those that these lead to.
func (ks *kernelState) staying() map[render.ChainID]bool {
	stay := map[render.ChainID]bool{}
	var keep func(render.ChainID)
	keep = func(id render.ChainID) {
		c := ks.chain(id)
		if c == nil || c.kind != render.Stale || stay[id] {
			return
		}
		stay[id] = true
		for _, to := range c.leftover.leads {
			keep(render.ChainID{Table: id.Table, Chain: to})
		}
	}
	for id := range ks.chainsThat(func(c *chainState) bool { return c.kind == render.Stale && len(c.leftover.pins) > 0 }) {
		keep(id)
	}
	return stay
}

// foreignHash is the hash of a rule that does not parse. If a rule of ours had the same hash, one
// chain would be rewritten needlessly.
const foreignHash = 0x9e3779b97f4a7c15

func (ks *kernelState) hashOf(line netfilter.Line) uint64 {
	if line.Foreign {
		return foreignHash
	}
	return ks.hash(line.Rule)
}

func (ks *kernelState) hash(r netfilter.Rule) uint64 {
	return maphash.Comparable(ks.seed, r.Decisive())
}

// jumpTarget returns the chain that a saved rule leads to; "" = none.
func jumpTarget(line netfilter.Line) string {
	if !line.Foreign {
		return line.Rule.Jump
	}
	words := strings.Fields(line.Text)
	for i := 0; i+1 < len(words); i++ {
		if words[i] == "-j" || words[i] == "-g" {
			return words[i+1]
		}
	}
	return ""
}
