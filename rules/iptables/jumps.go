package iptables

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// jumpSet are our jumps in one built-in chain, desired and observed.
type jumpSet struct {
	jumps []wantedJump // top first
	seen  int          // rules read so far
	more  bool         // a jump has more copies than recorded
}

// wantedJump is a jump that a built-in chain must have once.
type wantedJump struct {
	rule   netfilter.Rule
	at     int // position in the chain, from 1; 0 = missing
	copies []jumpCopy
}

// want adds a desired jump, below those before it.
func (s *jumpSet) want(r netfilter.Rule) { s.jumps = append(s.jumps, wantedJump{rule: r}) }

func (s *jumpSet) read(line netfilter.Line) {
	s.seen++
	if line.Foreign {
		return
	}
	for i := range s.jumps {
		if s.jumps[i].rule.Same(line.Rule) {
			s.readCopy(&s.jumps[i], line.Text)
			return
		}
	}
}

func (s *jumpSet) lacks() bool {
	return slices.ContainsFunc(s.jumps, func(j wantedJump) bool { return j.at == 0 })
}

// builtIns yields the built-in chains that must have jumps, in the order of a packet's path.
func (ks *kernelState) builtIns() iter.Seq2[render.ChainID, *chainState] {
	return func(yield func(render.ChainID, *chainState) bool) {
		for _, t := range []netfilter.Table{netfilter.Filter, netfilter.NAT} {
			for _, chain := range netfilter.BuiltInChains() {
				id := render.ChainID{Table: t, Chain: chain}
				if c := ks.chain(id); c != nil && !yield(id, c) {
					return
				}
			}
		}
	}
}

func (ks *kernelState) lacksJumps() bool {
	for _, c := range ks.builtIns() {
		if c.jumps.lacks() {
			return true
		}
	}
	return false
}

// undeclaredTargets returns the chains that desired jumps lead to and that do not exist.
func (ks *kernelState) undeclaredTargets() map[render.ChainID]bool {
	all := map[render.ChainID]bool{}
	for id, c := range ks.builtIns() {
		for _, j := range c.jumps.jumps {
			if to := (render.ChainID{Table: id.Table, Chain: j.rule.Jump}); !ks.declared(to) {
				all[to] = true
			}
		}
	}
	return all
}

// insertion is a rule and its position in the chain.
type insertion struct {
	rule netfilter.Rule
	at   int
}

// insertions returns the missing jumps, each directly after its predecessor in kube-proxy's
// order, the first on top. They are to be inserted in the given order.
func (s *jumpSet) insertions() []insertion {
	var all []insertion
	before := 0
	for _, j := range s.jumps {
		if j.at > 0 {
			before = j.at + len(all)
			continue
		}
		before++
		all = append(all, insertion{rule: j.rule, at: before})
	}
	return all
}

// insertMissing inserts the missing jumps for which may returns true, given the jump's
// arguments. It returns how many it inserted.
func (k *kernel) insertMissing(ctx context.Context, ks *kernelState, may func(jumpAt, []string) bool) (int, error) {
	n := 0
	for id, c := range ks.builtIns() {
		for _, in := range c.jumps.insertions() {
			args := in.rule.Args(k.family)
			if !may(jumpAt{id, in.rule.Jump}, args) {
				continue
			}
			if err := k.command.insert(ctx, id.Table, id.Chain, in.at, args); err != nil {
				return n, fmt.Errorf("inserting the jump to %s into %s: %w", in.rule.Jump, id, err)
			}
			n++
		}
	}
	return n, nil
}
