package iptables

import (
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// OtherWrites are the chains into which another process had written, as far as the last Sync
// read the kernel back and repaired them.
func (b *Backend) OtherWrites() rules.OtherWrites {
	var all rules.OtherWrites
	for _, k := range b.keepers {
		all = all.Add(k.others)
	}
	return all
}

// otherWrites are those of the repaired chains that held a rule that we had not written. A
// chain that only lacked rules, such as after a flush, is none of them.
func (ix *index) otherWrites(repaired []place, f netfilter.Family) rules.OtherWrites {
	var names []string
	for _, p := range repaired {
		if ix.otherWrote(p) {
			names = append(names, f.String()+" "+p.String())
		}
	}
	return rules.NewOtherWrites(names)
}

func (ix *index) otherWrote(p place) bool {
	switch kube, _ := ix.names.Kube(p.chain); kube {
	case netfilter.ChainMarkMasq, netfilter.ChainPostrouting, netfilter.ChainFirewall:
		return false // kubelets write these too: before 1.28 all three, after it the last
	case netfilter.ChainTry:
		return false // any gridproxy that starts in mode ipvs makes it
	}
	if i, ok := ix.ordered[p]; ok {
		return ix.sums[i].other()
	}
	if s, ok := ix.stale[p]; ok {
		return s.rules > 0
	}
	for _, r := range ix.extra {
		if r.place == p {
			return true
		}
	}
	return false
}

// hashSet remembers about which hashes it has seen, in 64 bits: what it lacks was never added,
// and of few hashes nearly all others are lacking.
type hashSet uint64

func (s hashSet) with(h uint64) hashSet { return s | 1<<(h>>58) | 1<<(h>>52&63) }

func (s hashSet) lacks(h uint64) bool { return s.with(h) != s }

// wantRule takes in a rule that the chain must have.
func (s *sum) wantRule(h uint64) {
	s.want = mix(s.want, h)
	s.known = s.known.with(h)
	s.balance -= h
	s.surplus--
}

// readRule takes in a rule that the kernel has.
func (s *sum) readRule(h uint64) {
	s.got = mix(s.got, h)
	s.unknown = s.unknown || s.known.lacks(h)
	s.balance += h
	s.surplus++
}

// other reports whether the kernel has a rule there that we had not written: as many rules as
// we, but others, or more. Where there are fewer it may be overlooked, as hashSet says.
func (s *sum) other() bool {
	return s.surplus > 0 || s.surplus == 0 && s.balance != 0 || s.surplus < 0 && s.unknown
}
