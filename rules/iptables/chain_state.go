package iptables

import (
	"gridproxy/rules/netfilter"

	"gridproxy/rules/iptables/render"
)

// chainState is the observed state of one chain against the desired one. A node has tens of
// thousands of whole chains, so these have only hashes.
type chainState struct {
	kind         render.ChainKind
	declared     bool
	hashes       foldedRules // of a whole chain
	leftover     *leftover   // of a stale chain
	*chainDetail             // of any other
}

// chainDetail is the state of a shared, completed or built-in chain.
type chainDetail struct {
	policy render.ChainPolicy

	// Of shared and completed chains: how often each desired rule is still to be found, by hash.
	missing map[uint64]int
	extra   []string // rules that are not desired, as iptables-save prints them; of built-in chains too

	found      bool // a desired entry has been found
	sawLast    bool // an entry that must be last has been found
	misordered bool // and another one after it

	rules []netfilter.Rule // of a completed chain: the desired ones
	jumps jumpSet          // of a built-in chain
}

func newChainState(p render.ChainPolicy) chainState {
	s := chainState{kind: p.Kind}
	switch p.Kind {
	case render.Whole:
	case render.Stale:
		s.leftover = &leftover{}
	case render.Shared, render.Completed:
		s.chainDetail = &chainDetail{policy: p, missing: map[uint64]int{}}
	default:
		s.chainDetail = &chainDetail{policy: p}
	}
	return s
}

func (s *chainState) want(hash uint64, r netfilter.Rule) {
	switch s.kind {
	case render.Whole:
		s.hashes.want(hash)
	case render.BuiltIn:
		s.jumps.want(r)
	case render.Completed:
		s.missing[hash]++
		s.rules = append(s.rules, r)
	default:
		s.missing[hash]++
	}
}

// status compares the chain with the desired one. Nothing else decides whether it is right.
func (s *chainState) status() chainStatus {
	var right bool
	switch s.kind {
	case render.Stale:
		right = len(s.leftover.pins) > 0 && s.leftover.rules == 0
	case render.BuiltIn:
		right = !s.jumps.lacks() && len(s.jumps.surplus()) == 0 && len(s.extra) == 0
	case render.Whole:
		right = s.hashes.got == s.hashes.wanted
	default:
		right = !s.misordered && !s.lacks() && len(s.extra) == 0
	}
	switch {
	case s.kind != render.BuiltIn && !s.declared:
		return missing
	case right:
		return equal
	default:
		return different
	}
}

func (s *chainState) wants(hash uint64) bool {
	_, is := s.missing[hash]
	return is
}

// take reports whether a desired rule is still to be found, and marks it as found.
func (s *chainState) take(hash uint64) bool {
	if s.missing[hash] <= 0 {
		return false
	}
	s.missing[hash]--
	s.found = true
	return true
}

func (s *chainState) lacks() bool {
	for _, n := range s.missing {
		if n > 0 {
			return true
		}
	}
	return false
}

// sendWhole reports whether a shared chain is written whole: it is missing, its last entry is
// misplaced, or it holds no desired entry, as after a flush. Rules that only count come with the
// others.
func (s *chainState) sendWhole() bool {
	return s.kind == render.Shared && (!s.declared || s.misordered || !s.found && len(s.missing) > 0)
}

// foreign reports whether another process has written a rule there. Missing rules, as after a
// flush, do not count.
func (s *chainState) foreign() bool {
	switch s.kind {
	case render.Whole:
		return s.hashes.foreign()
	case render.Stale:
		return s.leftover.rules > 0
	default:
		return len(s.extra) > 0
	}
}

type leftover struct {
	rules int
	// pins are rules of other programs that lead to it, so that it cannot be removed. With scope
	// repairing there is only the first.
	pins  []string
	leads []string // the chains that it leads to; only with scope removing
}

// foldedRules are the rules of a chain, folded in order into hashes.
type foldedRules struct {
	wanted, got uint64
	known       hashSet // of the desired rules
	balance     uint64  // sum of the hashes in the kernel, minus that of the desired ones
	surplus     int32   // rules in the kernel, minus desired ones
	unknown     bool    // the kernel has a rule that is not desired
}

func (f *foldedRules) want(h uint64) {
	f.wanted = mix(f.wanted, h)
	f.known = f.known.with(h)
	f.balance -= h
	f.surplus--
}

func (f *foldedRules) read(h uint64) {
	f.got = mix(f.got, h)
	f.unknown = f.unknown || f.known.lacks(h)
	f.balance += h
	f.surplus++
}

// foreign reports whether the kernel has a rule that we did not write: more rules than desired, as
// many but others, or an unknown one. If rules are missing it may overlook one, as hashSet says.
func (f *foldedRules) foreign() bool {
	return f.surplus > 0 || f.surplus == 0 && f.balance != 0 || f.surplus < 0 && f.unknown
}

// mix folds in the hash of the next rule. The fold of no rules is 0, and every rule changes it.
func mix(sum, h uint64) uint64 { return (sum+1)*0x100000001b3 ^ h }

// hashSet remembers hashes in 64 bits: what it lacks was never added. Few hashes rarely collide.
type hashSet uint64

func (s hashSet) with(h uint64) hashSet { return s | 1<<(h>>58) | 1<<(h>>52&63) }

func (s hashSet) lacks(h uint64) bool { return s.with(h) != s }
