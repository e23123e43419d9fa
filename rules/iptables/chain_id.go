package iptables

import (
	"cmp"
	"strings"

	"gridproxy/rules/netfilter"
)

// chainID is a chain of a table.
type chainID struct {
	table netfilter.Table
	chain string
}

func (id chainID) String() string { return id.table.String() + "/" + id.chain }

func compareChainIDs(a, b chainID) int {
	return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.chain, b.chain))
}

// clone copies the name, which may be part of a longer text.
func (id chainID) clone() chainID { return chainID{id.table, strings.Clone(id.chain)} }

func (c TableChain) id() chainID { return chainID{c.Table, c.Name} }

// id returns the chain that the entry is in.
func (e Entry) id() chainID { return chainID{e.Table, e.Chain} }
