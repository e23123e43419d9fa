package iptables

import (
	"bytes"
	"maps"
	"slices"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// deletesMax is how many entries of a shared chain are deleted one by one. With more it is cheaper
// to send the whole chain: iptables-nft-restore 1.8.9 looks each up in the whole chain (2 to 3 ms
// in 5,000 entries), but sends a chain of 5,000 in 170 ms.
const deletesMax = 64

// script collects the input of one iptables-restore. Declarations come first, because
// iptables-nft-restore 1.8.9 reads its list of chains again for each declaration after a rule.
// Entries are added before others are deleted. Chains are removed last, when nothing leads to them
// any more.
type script struct {
	options render.Options
	tables  [netfilter.Other]section // by Table; in mangle only chains are removed
	edits   map[render.ChainID]*edit

	chains, rules int // chains written or removed, and rules written
}

// section is the script of one table, without edits of shared chains.
type section struct {
	create  chainLines // new chains: they have no effect until something leads to them
	write   chainLines // existing chains
	tail    []byte
	destroy []byte
}

// chainLines are declarations of chains and their rules.
type chainLines struct{ declare, fill []byte }

// edit is what changes in a shared chain.
type edit struct {
	insert [][]byte // lines; the first ends up on top
	appnd  []byte
	remove []byte
	removs int
}

func newScript(o render.Options) *script {
	return &script{options: o, edits: map[render.ChainID]*edit{}}
}

func (s *script) take(c change) {
	for _, chain := range c.create {
		s.put(&s.tables[chain.Table].create, chain.Chain)
	}
	for _, chain := range c.write {
		s.put(&s.tables[chain.Table].write, chain.Chain)
	}
	for _, p := range c.drop {
		s.drop(p)
	}
	for _, e := range c.insert {
		s.insert(e.ID(), e.Rule)
	}
	for _, e := range c.remove {
		s.remove(e.ID(), e.Rule)
	}
	for _, r := range c.removeText {
		s.removeText(r.ChainID, r.text)
	}
}

// put declares a chain, which creates or empties it, and fills it.
func (s *script) put(b *chainLines, c netfilter.Chain) {
	b.declare = render.AppendDeclaration(b.declare, c.Name)
	for _, r := range c.Rules {
		b.fill = render.AppendRule(b.fill, "-A ", c.Name, r, s.options.Family)
	}
	s.chains++
	s.rules += len(c.Rules)
}

// empty empties a shared chain, for add to fill.
func (s *script) empty(p render.ChainID) {
	sec := &s.tables[p.Table]
	sec.write.declare = render.AppendDeclaration(sec.write.declare, p.Chain)
	s.chains++
}

// add appends an entry to an emptied shared chain, after all others if it must be last.
func (s *script) add(p render.ChainID, r netfilter.Rule) {
	sec := &s.tables[p.Table]
	if s.options.Policy(p).MustBeLast(r) {
		sec.tail = render.AppendRule(sec.tail, "-A ", p.Chain, r, s.options.Family)
	} else {
		sec.write.fill = render.AppendRule(sec.write.fill, "-A ", p.Chain, r, s.options.Family)
	}
	s.rules++
}

// drop empties and removes a chain.
func (s *script) drop(p render.ChainID) {
	sec := &s.tables[p.Table]
	sec.write.declare = render.AppendDeclaration(sec.write.declare, p.Chain)
	sec.destroy = append(append(append(sec.destroy, "-X "...), p.Chain...), '\n')
	s.chains++
}

// insert puts an entry at the head of a shared chain, after those inserted before it, or at the end
// if it must be last.
func (s *script) insert(p render.ChainID, r netfilter.Rule) {
	e := s.edit(p)
	if s.options.Policy(p).MustBeLast(r) {
		e.appnd = render.AppendRule(e.appnd, "-A ", p.Chain, r, s.options.Family)
	} else {
		e.insert = append(e.insert, render.AppendRule(nil, "-I ", p.Chain, r, s.options.Family))
	}
	s.rules++
}

func (s *script) remove(p render.ChainID, r netfilter.Rule) {
	e := s.edit(p)
	e.remove = render.AppendRule(e.remove, "-D ", p.Chain, r, s.options.Family)
	e.removs++
}

// removeText deletes a rule that iptables-save printed as "-A CHAIN …".
func (s *script) removeText(p render.ChainID, saved string) {
	e := s.edit(p)
	e.remove = append(e.remove, "-D"...)
	e.remove = append(append(e.remove, saved[len("-A"):]...), '\n')
	e.removs++
}

func (s *script) edit(p render.ChainID) *edit {
	e := s.edits[p]
	if e == nil {
		e = &edit{}
		s.edits[p] = e
	}
	return e
}

// heavy returns the shared chains with more than deletesMax deletions. Built-in chains belong to
// other programs too and are never sent.
func (s *script) heavy() []render.ChainID {
	var all []render.ChainID
	for p, e := range s.edits {
		if e.removs > deletesMax && !netfilter.IsBuiltIn(p.Chain) {
			all = append(all, p)
		}
	}
	return all
}

// forget drops the edits of a shared chain that is written whole instead.
func (s *script) forget(p render.ChainID) {
	if e := s.edits[p]; e != nil {
		s.rules -= len(e.insert) + bytes.Count(e.appnd, []byte("\n"))
		delete(s.edits, p)
	}
}

// takeCreated returns the input that creates new chains, and its number of transactions. It
// removes them from the script.
func (s *script) takeCreated() (text []byte, commits uint32) {
	return renderTables(func(b *bytes.Buffer, t netfilter.Table) {
		created := &s.tables[t].create
		b.Write(created.declare)
		b.Write(created.fill)
		*created = chainLines{}
	})
}

// text returns the input for iptables-restore, empty if there is nothing to do, and its number
// of transactions.
func (s *script) text() (text []byte, commits uint32) {
	ids := slices.SortedFunc(maps.Keys(s.edits), render.CompareChainIDs)
	return renderTables(func(b *bytes.Buffer, t netfilter.Table) { s.renderTable(b, t, ids) })
}

// renderTables frames the text of each table, and counts the transactions.
func renderTables(table func(*bytes.Buffer, netfilter.Table)) (text []byte, commits uint32) {
	var b bytes.Buffer
	for t := range netfilter.Other {
		start := b.Len()
		b.WriteString("*" + t.String() + "\n")
		head := b.Len()
		table(&b, t)
		if b.Len() == head {
			b.Truncate(start)
			continue
		}
		b.WriteString("COMMIT\n")
		commits++
	}
	return b.Bytes(), commits
}

func (s *script) renderTable(b *bytes.Buffer, t netfilter.Table, ids []render.ChainID) {
	sec := s.tables[t]
	for _, part := range [][]byte{sec.create.declare, sec.write.declare, sec.create.fill, sec.write.fill, sec.tail} {
		b.Write(part)
	}
	for _, p := range ids {
		if p.Table != t {
			continue
		}
		for _, line := range slices.Backward(s.edits[p].insert) {
			b.Write(line)
		}
		b.Write(s.edits[p].appnd)
	}
	for _, p := range ids {
		if p.Table == t {
			b.Write(s.edits[p].remove)
		}
	}
	b.Write(sec.destroy)
}
