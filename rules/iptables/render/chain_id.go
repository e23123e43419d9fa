package render

import (
	"cmp"
	"strings"

	"gridproxy/rules/netfilter"
)

// ChainID names a chain of a table.
type ChainID struct {
	Table netfilter.Table
	Chain string
}

func (id ChainID) String() string { return id.Table.String() + "/" + id.Chain }

// CompareChainIDs orders chains by table, then by name.
func CompareChainIDs(a, b ChainID) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Chain, b.Chain))
}

// Clone copies the name, which may be part of a longer text.
func (id ChainID) Clone() ChainID { return ChainID{id.Table, strings.Clone(id.Chain)} }

// ID returns the name of the chain, with its table.
func (c TableChain) ID() ChainID { return ChainID{c.Table, c.Name} }

// ID returns the chain that the entry is in.
func (e Entry) ID() ChainID { return ChainID{e.Table, e.Chain} }
