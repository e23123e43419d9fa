package render

import (
	"bytes"
	"io"
	"slices"

	"gridproxy/rules/netfilter"
)

// Tables are a whole Ruleset as iptables rules of one family.
type Tables struct {
	Family netfilter.Family
	Tables [2]TableRules // by Table: Filter, NAT
}

// TableRules are the chains of one table.
type TableRules struct {
	// Chains are ours, in the order in which they are printed. KUBE-FIREWALL, the last of filter where
	// needed, is the kubelet's too: add its rule if missing, never flush or delete it.
	Chains []netfilter.Chain
	Jumps  []netfilter.Chain // built-in chains with only our jumps, top first
}

// WriteTo writes one text for iptables-restore, with or without --noflush, in the form of
// iptables-save. Every chain is declared, built-in ones with "-", so that no policy changes.
func (t Tables) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for table := range netfilter.Table(len(t.Tables)) {
		chains := slices.Concat(t.Tables[table].Jumps, t.Tables[table].Chains)
		b.WriteString("*" + table.String() + "\n")
		for _, c := range chains {
			b.Write(AppendDeclaration(b.AvailableBuffer(), c.Name))
		}
		for _, c := range chains {
			for _, r := range c.Rules {
				b.Write(AppendRule(b.AvailableBuffer(), "-A ", c.Name, r, t.Family))
			}
		}
		b.WriteString("COMMIT\n")
	}
	return b.WriteTo(w)
}

// AppendRule appends the line by which command ("-A ", "-I ", "-D ") adds or deletes a rule.
func AppendRule(b []byte, command, chain string, r netfilter.Rule, f netfilter.Family) []byte {
	b = append(append(append(b, command...), chain...), ' ')
	return append(r.Append(b, f), '\n')
}

// AppendDeclaration appends the line that creates a chain, or empties it.
func AppendDeclaration(b []byte, chain string) []byte {
	return append(append(append(b, ':'), chain...), " - [0:0]\n"...)
}
