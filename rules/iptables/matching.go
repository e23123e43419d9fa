package iptables

import "gridproxy/rules/netfilter"

// matching are the rules wanted in a chain of which the order decides nothing, while they are
// matched with those found there.
type matching struct {
	texts  []string
	hashes map[uint64][]int // those not found: into texts
	behind map[int][]string // those not found, by the found one that stands before them; -1 = none
	last   []string         // those not found that must stand behind all others
}

// newMatching sorts what is wanted by what the chain holds. Rules that only count are never
// missed.
func newMatching(c *comparison, p place, wanted []netfilter.Rule) *matching {
	m := &matching{hashes: map[uint64][]int{}, behind: map[int][]string{}}
	have := map[uint64]int{}
	for _, r := range c.found[p] {
		if !r.foreign {
			have[r.hash]++
		}
	}
	before := -1
	for i, r := range wanted {
		text := c.spell(p, r)
		m.texts = append(m.texts, text)
		h := c.index.hash(r)
		switch {
		case have[h] > 0:
			have[h]--
			m.hashes[h] = append(m.hashes[h], i)
			before = i
		case r.NFAcct != "":
		case mustBeLast(c.index.names, p, r):
			m.last = append(m.last, text)
		default:
			m.behind[before] = append(m.behind[before], text)
		}
	}
	return m
}

// find takes the wanted rule that a found one is, if there is one left.
func (m *matching) find(r foundRule) (at int, is bool) {
	all := m.hashes[r.hash]
	if r.foreign || len(all) == 0 {
		return 0, false
	}
	m.hashes[r.hash] = all[1:]
	return all[0], true
}

// takeBehind are the wanted rules that are to stand directly behind a found one.
func (m *matching) takeBehind(at int) []string { return m.behind[at] }
