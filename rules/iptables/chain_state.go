package iptables

import "gridproxy/rules/netfilter"

// chainState is what the kernel has of one chain, against what is desired there. A node has tens of
// thousands of whole chains, so these have no more than hashes.
type chainState struct {
	kind     chainKind
	declared bool
	hashes   foldedRules // of a whole chain
	*chainDetail
}

// chainDetail is what a chain of any other kind has.
type chainDetail struct {
	policy chainPolicy

	// Of shared and completed chains: how often each desired rule is still to be seen, by hash.
	missing map[uint64]int
	extra   []string // not desired, as iptables-save prints it; of built-in chains too

	found      bool // one of the desired entries has been seen
	sawLast    bool // an entry that must be last has been seen
	misordered bool // and another one behind it

	rules    []netfilter.Rule // of a completed chain, to add those that it lacks
	jumps    jumpSet          // of a built-in chain
	leftover leftover         // of a stale chain
}

func newChainState(p chainPolicy) chainState {
	s := chainState{kind: p.kind}
	switch p.kind {
	case whole:
	case shared, completed:
		s.chainDetail = &chainDetail{policy: p, missing: map[uint64]int{}}
	default:
		s.chainDetail = &chainDetail{policy: p}
	}
	return s
}

// want takes in a rule that the chain must have.
func (s *chainState) want(hash uint64, r netfilter.Rule) {
	switch s.kind {
	case whole:
		s.hashes.want(hash)
	case builtIn:
		s.jumps.want(r)
	case completed:
		s.missing[hash]++
		s.rules = append(s.rules, r)
	default:
		s.missing[hash]++
	}
}

// status is the one decision whether a chain is right.
func (s *chainState) status() chainStatus {
	var right bool
	switch s.kind {
	case stale:
		right = s.leftover.pin != "" && s.leftover.rules == 0
	case builtIn:
		right = !s.jumps.lacks() && len(s.jumps.surplus()) == 0 && len(s.extra) == 0
	case whole:
		right = s.hashes.got == s.hashes.wanted
	default:
		right = !s.misordered && !s.lacks() && len(s.extra) == 0
	}
	switch {
	case s.kind != builtIn && !s.declared:
		return missing
	case right:
		return equal
	default:
		return different
	}
}

// wants reports whether a rule with a hash is one of the desired ones.
func (s *chainState) wants(hash uint64) bool {
	_, is := s.missing[hash]
	return is
}

// take reports whether a desired rule is still to be seen, which it then is.
func (s *chainState) take(hash uint64) bool {
	if s.missing[hash] <= 0 {
		return false
	}
	s.missing[hash]--
	s.found = true
	return true
}

// lacks reports whether a desired rule has not been seen.
func (s *chainState) lacks() bool {
	for _, n := range s.missing {
		if n > 0 {
			return true
		}
	}
	return false
}

// sendWhole reports whether a shared chain is written whole: if it does not exist, if its entry that
// must be last is not, or if it holds nothing of what it should, as after a flush: rules that only
// count come back with the others.
func (s *chainState) sendWhole() bool {
	return s.kind == shared && (!s.declared || s.misordered || !s.found && len(s.missing) > 0)
}

// foreign reports whether another process has written a rule there. A chain that only lacks rules,
// such as after a flush, is none.
func (s *chainState) foreign() bool {
	switch s.kind {
	case whole:
		return s.hashes.foreign()
	case stale:
		return s.leftover.rules > 0
	default:
		return len(s.extra) > 0
	}
}

// leftover is a stale chain.
type leftover struct {
	rules int
	pin   string   // a rule in a chain that is not ours leads to it, so it cannot be removed; "" = none
	leads []string // to these chains, with scope removing
}

// foldedRules are the rules of a chain, in their order, as hashes.
type foldedRules struct {
	wanted, got uint64
	known       hashSet // of the desired rules
	balance     uint64  // the hashes of the rules in the kernel, less those of the desired ones
	surplus     int32   // how many rules more than desired the kernel has
	unknown     bool    // the kernel has a rule that is not desired
}

// want takes in a rule that the chain must have.
func (f *foldedRules) want(h uint64) {
	f.wanted = mix(f.wanted, h)
	f.known = f.known.with(h)
	f.balance -= h
	f.surplus--
}

// read takes in a rule that the kernel has.
func (f *foldedRules) read(h uint64) {
	f.got = mix(f.got, h)
	f.unknown = f.unknown || f.known.lacks(h)
	f.balance += h
	f.surplus++
}

// foreign reports whether the kernel has a rule there that we had not written: as many rules as we,
// but others, or more. Where there are fewer it may be overlooked, as hashSet says.
func (f *foldedRules) foreign() bool {
	return f.surplus > 0 || f.surplus == 0 && f.balance != 0 || f.surplus < 0 && f.unknown
}

// mix folds the hash of the next rule into that of those before it. No rules are 0, and no rule's
// hash is absorbed.
func mix(sum, h uint64) uint64 { return (sum+1)*0x100000001b3 ^ h }

// hashSet remembers about which hashes it has seen, in 64 bits: what it lacks was never added, and
// of few hashes nearly all others are lacking.
type hashSet uint64

func (s hashSet) with(h uint64) hashSet { return s | 1<<(h>>58) | 1<<(h>>52&63) }

func (s hashSet) lacks(h uint64) bool { return s.with(h) != s }
