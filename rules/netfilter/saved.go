package netfilter

import (
	"fmt"
	"io"
	"slices"
)

// Saved is one text's content of tables filter, nat and mangle.
type Saved struct {
	Family Family
	Tables [3]SavedTable // by Table
}

// SavedTable is one table, with our chains and those of other programs.
type SavedTable struct {
	Chains []SavedChain // in the order of their declarations

	at map[string]int // into Chains, by name
}

// SavedChain is one chain. It may hold rules of other programs that no Rule can express.
type SavedChain struct {
	Name   string
	Policy Target // of a built-in chain: TargetAccept or TargetDrop; TargetNone = unknown
	Rules  []SavedRule
}

// SavedRule is one rule as it was read.
type SavedRule struct {
	Rule    Rule   // unless Foreign
	Foreign bool   // no Rule can express it
	Text    string // the whole line, without leading counters
}

// Chain finds a chain by its name; nil = it does not exist.
func (t SavedTable) Chain(name string) *SavedChain {
	if i, ok := t.at[name]; ok {
		return &t.Chains[i]
	}
	return nil
}

// Parse reads a whole text: what iptables-save prints, or what iptables-restore --noflush makes of
// its input in empty tables. It fails where Scan does, and if one of the three tables has rules
// that the text does not contain.
func Parse(r io.Reader, f Family) (Saved, error) {
	s := Saved{Family: f}
	for line, err := range Scan(r, f) {
		if err != nil {
			return Saved{}, err
		}
		if line.Kind == LineIncompatible && line.Table != Other {
			return Saved{}, fmt.Errorf("the text has no rules of table %s, although there are some: %s", line.Table, line.Text)
		}
		if int(line.Table) < len(s.Tables) {
			s.Tables[line.Table].Read(line)
		}
	}
	return s, nil
}

// Read adds one line of this table.
func (t *SavedTable) Read(l Line) {
	switch l.Kind {
	case LineChain:
		c := t.ensure(l.Chain)
		if l.Policy != TargetNone {
			c.Policy = l.Policy
		}
		if !IsBuiltIn(l.Chain) {
			c.Rules = nil
		}
	case LineRule:
		c := t.ensure(l.Chain)
		c.Rules = append(c.Rules, SavedRule{Rule: l.Rule, Foreign: l.Foreign, Text: l.Text})
	case LineDelete:
		t.remove(l.Chain)
	}
}

func (t *SavedTable) ensure(chain string) *SavedChain {
	if c := t.Chain(chain); c != nil {
		return c
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	t.at[chain] = len(t.Chains)
	t.Chains = append(t.Chains, SavedChain{Name: chain})
	return &t.Chains[len(t.Chains)-1]
}

// remove removes a chain and moves all later ones. That takes time for each of them, but
// iptables-save prints no -X: only inputs of iptables-restore have it.
func (t *SavedTable) remove(chain string) {
	i, ok := t.at[chain]
	if !ok {
		return
	}
	delete(t.at, chain)
	t.Chains = slices.Delete(t.Chains, i, i+1)
	for j, c := range t.Chains[i:] {
		t.at[c.Name] = i + j
	}
}

// Table returns a table of s. For Other it returns an empty table.
func (s *Saved) Table(t Table) *SavedTable {
	if int(t) < len(s.Tables) {
		return &s.Tables[t]
	}
	return &SavedTable{}
}
