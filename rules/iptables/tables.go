package iptables

import (
	"bytes"
	"io"
	"slices"

	"gridproxy/rules/netfilter"
)

// TableChain is a chain of a table.
type TableChain struct {
	Table netfilter.Table
	netfilter.Chain
}

func (c TableChain) entries() []Entry {
	all := make([]Entry, len(c.Rules))
	for i, r := range c.Rules {
		all[i] = Entry{Table: c.Table, Chain: c.Name, Rule: r}
	}
	return all
}

// Entry is a rule that a Service puts into a chain it shares with others.
type Entry struct {
	Table netfilter.Table
	Chain string
	Rule  netfilter.Rule
}

// Block is what one Service of one family needs: chains of its own, all in nat, and its
// entries in the shared chains. The entries of all Blocks are disjoint matches, so their
// order among each other decides nothing.
type Block struct {
	Chains  []TableChain
	Entries []Entry
}

// Tables are a Ruleset in iptables terms: everything of one family.
type Tables struct {
	Family netfilter.Family
	Tables [2]TableRules // by Table: Filter, NAT
}

// TableRules are the chains of one table.
type TableRules struct {
	// Chains are ours, in the order in which they are printed. KUBE-FIREWALL, last of
	// filter's where it is needed, is the kubelet's too: append its rule where that is
	// absent, never flush it, never delete it.
	Chains []netfilter.Chain
	Jumps  []netfilter.Chain // built-in chains with only our jumps in them, top first
}

// WriteTo writes everything as one text for iptables-restore, in the form of
// iptables-save: every chain is declared, built-in ones with "-", so that no policy
// changes. It is taken with and without --noflush.
func (t Tables) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for table := range netfilter.Table(len(t.Tables)) {
		chains := slices.Concat(t.Tables[table].Jumps, t.Tables[table].Chains)
		b.WriteString("*" + table.String() + "\n")
		for _, c := range chains {
			b.Write(declaration(b.AvailableBuffer(), c.Name))
		}
		for _, c := range chains {
			for _, r := range c.Rules {
				b.Write(ruleLine(b.AvailableBuffer(), "-A ", c.Name, r, t.Family))
			}
		}
		b.WriteString("COMMIT\n")
	}
	return b.WriteTo(w)
}
