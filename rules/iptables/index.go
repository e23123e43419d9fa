package iptables

import (
	"hash/maphash"
	"net/netip"
	"strings"

	"gridproxy/rules/netfilter"
)

// index is what a read-back of the kernel is compared with: hashes of the rules that
// each chain of ours must have, and what was seen instead. It exists only while the
// kernel is read, and holds no rules.
type index struct {
	seed  maphash.Seed
	names netfilter.Naming

	ordered map[place]int // into sums: chains whose rules must be these, in this order
	sums    []sum

	// shared are the chains whose order decides nothing: how often each entry is still
	// to be seen, by hash.
	shared map[place]*entries

	builtin map[place]*hooks
	guards  map[place]*guard
	stale   map[place]*leftover
	extra   []savedRule // not wanted: in shared chains, and jumps from built-in ones
	trial   bool        // there are chains of a trial beside ours
	rules   [2]int      // by table: how many rules there must be, those that only count aside

	// Rules of kube-proxy that count packets on their way to where they go anyhow are
	// neither missed nor mended: wanted and seen are only for ruleCounts. counted is the
	// address that they match; none where NodePorts do not answer on loopback.
	counted                      netip.Prefix
	countersWanted, countersSeen int
}

// sum is a chain of which the order counts.
type sum struct {
	want, got uint64
	known     hashSet // of the rules in want
	balance   uint64  // the hashes of the rules in the kernel, less those of the wanted ones
	surplus   int32   // how many rules more than wanted the kernel has
	unknown   bool    // the kernel has a rule that is not wanted
	declared  bool
}

// entries is a shared chain.
type entries struct {
	missing    map[uint64]int
	declared   bool
	found      bool // one of them at least has been seen
	sawLast    bool // an entry that must come last has been seen
	misordered bool // and another one behind it
}

// leftover is a chain of ours that nobody wants.
type leftover struct {
	rules  int
	pinned bool // a chain that is not ours leads to it, so it cannot be removed
}

// savedRule is a rule as iptables-save prints it.
type savedRule struct {
	place
	text string
}

// saved is a copy of a line of a rule.
func savedOf(l netfilter.Line) savedRule {
	return savedRule{place{l.Table, strings.Clone(l.Chain)}, strings.Clone(l.Text)}
}

// emptyIndex wants nothing yet; chains is about how many chains it will want.
func emptyIndex(n netfilter.Naming, chains int) *index {
	return &index{
		seed:    maphash.MakeSeed(),
		names:   n,
		ordered: make(map[place]int, chains),
		shared:  map[place]*entries{},
		builtin: map[place]*hooks{},
		guards:  map[place]*guard{},
		stale:   map[place]*leftover{},
	}
}

// newIndex is the index of everything that w wants.
func newIndex(w written) *index {
	ix := emptyIndex(w.options.Names, 4*len(w.rules.Services))
	if w.options.LocalhostNodePorts {
		ix.counted = loopback(w.options.Family)
	}
	shared := RenderShared(w.rules, w.options)
	for t := range netfilter.Table(len(shared.Tables)) {
		for _, c := range shared.Tables[t].Chains {
			ix.wantFixed(w.options, t, c)
		}
		for _, c := range shared.Tables[t].Jumps {
			ix.builtin[place{t, c.Name}] = newHooks(c.Rules)
		}
	}
	for _, s := range w.rules.Services {
		b := RenderService(s, w.options)
		for _, c := range b.Chains {
			ix.wantOrdered(netfilter.NAT, c)
		}
		for _, e := range b.Entries {
			ix.wantEntry(e)
		}
	}
	return ix
}

func (ix *index) wantFixed(o Options, t netfilter.Table, c netfilter.Chain) {
	p := place{t, c.Name}
	switch {
	case c.Name == netfilter.ChainFirewall:
		ix.guards[p] = &guard{rules: c.Rules}
	case o.unordered(p):
		ix.shared[p] = &entries{missing: map[uint64]int{}}
		for _, r := range c.Rules {
			ix.wantEntry(Entry{Table: t, Chain: c.Name, Rule: r})
		}
	default:
		ix.wantOrdered(t, c)
	}
}

func (ix *index) wantOrdered(t netfilter.Table, c netfilter.Chain) {
	var s sum
	for _, r := range c.Rules {
		s.wantRule(ix.hash(r))
	}
	ix.ordered[place{t, c.Name}] = len(ix.sums)
	ix.sums = append(ix.sums, s)
	ix.rules[t] += len(c.Rules)
}

func (ix *index) wantEntry(e Entry) {
	if e.Rule.NFAcct != "" {
		ix.countersWanted++
		return
	}
	ix.rules[e.Table]++
	ix.shared[place{e.Table, e.Chain}].missing[ix.hash(e.Rule)]++
}

// read takes in one line of iptables-save.
func (ix *index) read(line netfilter.Line) {
	p := place{line.Table, line.Chain}
	switch line.Kind {
	case netfilter.LineChain:
		ix.readChain(p)
	case netfilter.LineRule:
		ix.readRule(p, line)
	}
}

func (ix *index) readChain(p place) {
	if i, ok := ix.ordered[p]; ok {
		ix.sums[i].declared = true
	} else if e, ok := ix.shared[p]; ok {
		e.declared = true
	} else if g, ok := ix.guards[p]; ok {
		g.declared = true
	} else if mayBeStale(ix.names, p) {
		ix.stale[place{p.table, strings.Clone(p.chain)}] = &leftover{}
	} else if ix.names == netfilter.KubeNames && netfilter.GridNames.IsOurs(p.table, p.chain) {
		ix.trial = true
	}
}

func (ix *index) readRule(p place, line netfilter.Line) {
	if i, ok := ix.ordered[p]; ok {
		h := uint64(foreignHash)
		if !line.Foreign {
			h = ix.hash(line.Rule)
		}
		ix.sums[i].readRule(h)
		return
	}
	if e, ok := ix.shared[p]; ok {
		ix.readEntry(p, e, line)
		return
	}
	if s, ok := ix.stale[p]; ok {
		s.rules++
		return
	}
	if h, ok := ix.builtin[p]; ok {
		h.read(line)
	}
	if ix.misplaced(p, line) {
		ix.extra = append(ix.extra, savedOf(line))
		return
	}
	if g, ok := ix.guards[p]; ok {
		g.read(line)
	}
	if s, ok := ix.stale[place{p.table, jumpOf(line)}]; ok {
		s.pinned = true
	}
}

func (ix *index) readEntry(p place, e *entries, line netfilter.Line) {
	if !line.Foreign {
		last := mustBeLast(ix.names, p, line.Rule)
		h := ix.hash(line.Rule)
		if e.missing[h] > 0 {
			e.missing[h]--
			e.found = true
			e.misordered = e.misordered || e.sawLast && !last
			e.sawLast = e.sawLast || last
			return
		}
		if ix.onlyCounts(p, e, line.Rule) {
			ix.countersSeen++
			return
		}
	}
	ix.extra = append(ix.extra, savedOf(line))
}

// onlyCounts reports whether a rule is one of kube-proxy's that counts packets on their
// way to a chain that they reach anyhow, by the entry of the same port. Without that entry it
// would decide, and hold a chain that is to be removed with the entry.
func (ix *index) onlyCounts(p place, e *entries, r netfilter.Rule) bool {
	if r.NFAcct == "" || !ix.counted.IsValid() || r.Dst != ix.counted || p != (place{netfilter.NAT, ix.names.Chain(netfilter.ChainNodePorts)}) {
		return false
	}
	r.Dst = netip.Prefix{}
	_, wanted := e.missing[ix.hash(r)]
	return wanted
}

// compare reports on a chain whose order counts.
func (ix *index) compare(p place) (declared, equal bool) {
	s := ix.sums[ix.ordered[p]]
	return s.declared, s.declared && s.got == s.want
}

// declared reports whether the kernel has a chain that is wanted, or that the kubelet
// keeps too and has been completed.
func (ix *index) declared(p place) bool {
	if e, ok := ix.shared[p]; ok {
		return e.declared
	}
	if i, ok := ix.ordered[p]; ok {
		return ix.sums[i].declared
	}
	_, guarded := ix.guards[p]
	return guarded
}

// ruleCounts is how many rules each table has once it is repaired.
func (ix *index) ruleCounts() [2]int {
	counts := ix.rules
	if ix.whole()[place{netfilter.NAT, ix.names.Chain(netfilter.ChainNodePorts)}] {
		counts[netfilter.NAT] += ix.countersWanted
	} else {
		counts[netfilter.NAT] += ix.countersSeen
	}
	return counts
}

// whole are the shared chains that are sent whole: those that do not exist, those in which
// an entry that must come last does not, and those that hold nothing of what they should,
// as after a flush: rules that only count come back with them.
func (ix *index) whole() map[place]bool {
	all := map[place]bool{}
	for p, e := range ix.shared {
		if !e.declared || e.misordered || !e.found && len(e.missing) > 0 {
			all[p] = true
		}
	}
	return all
}

// different are the chains of ours, built-in ones that lack a jump included, that are not
// as they must be.
func (ix *index) different() map[place]bool {
	all := ix.whole()
	for p := range ix.ordered {
		if _, equal := ix.compare(p); !equal {
			all[p] = true
		}
	}
	for p, e := range ix.shared {
		for _, n := range e.missing {
			if n > 0 {
				all[p] = true
				break
			}
		}
	}
	for _, r := range ix.extra {
		all[r.place] = true
	}
	for p, s := range ix.stale {
		if !s.pinned || s.rules > 0 {
			all[p] = true
		}
	}
	for p, h := range ix.builtin {
		if h.lacks() || len(h.surplus()) > 0 {
			all[p] = true
		}
	}
	for p, g := range ix.guards {
		if g.lacks() {
			all[p] = true
		}
	}
	return all
}

// foreignHash stands for a rule that does not parse. Were a rule of ours to hash to it,
// one chain would be rewritten for nothing.
const foreignHash = 0x9e3779b97f4a7c15

func (ix *index) hash(r netfilter.Rule) uint64 { return maphash.Comparable(ix.seed, decisive(r)) }

// mix folds the hash of the next rule into that of those before it. No rules are 0, and no
// rule's hash is absorbed.
func mix(sum, h uint64) uint64 { return (sum+1)*0x100000001b3 ^ h }

// unordered reports whether a chain holds entries of many Services, disjoint matches whose
// order decides nothing.
func (o Options) unordered(p place) bool {
	switch kube, _ := o.Names.Kube(p.chain); kube {
	case netfilter.ChainServices:
		return p.table == netfilter.Filter || p.chain == o.serviceChain()
	case netfilter.ChainNodePorts:
		return true
	case netfilter.ChainExternalServices, netfilter.ChainProxyFirewall:
		return p.table == netfilter.Filter
	case netfilter.ChainIPVSChains:
		return p.table == netfilter.NAT
	}
	return false
}

// mustBeLast reports whether an entry of a shared chain has to stand behind all others:
// a NodePort answers only where no cluster IP or external address does, and what has a
// verdict of its own is no unknown port of a virtual server's address.
func mustBeLast(n netfilter.Naming, p place, r netfilter.Rule) bool {
	if r.Target != netfilter.TargetJump {
		return false
	}
	switch p {
	case place{netfilter.NAT, n.Chain(netfilter.ChainServices)}, place{netfilter.NAT, n.Chain(netfilter.ChainIPVSChains)}:
		return r.Jump == n.Chain(netfilter.ChainNodePorts)
	case place{netfilter.Filter, n.Chain(netfilter.ChainExternalServices)}:
		return r.Jump == n.Chain(netfilter.ChainIPVSFilter)
	}
	return false
}

// jumpOf is the chain that a saved rule leads to, "" if none.
func jumpOf(line netfilter.Line) string {
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
