package iptables

import (
	"context"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// What a kernel takes is found out in chains that nothing leads to, so that no packet meets
// them and no rule in force changes. A process that is killed meanwhile leaves them behind: the
// next verify removes them.

// scratchTables are the tables in which rules are tried. nat is first: what it refuses leaves
// filter untouched.
var scratchTables = [...]netfilter.Table{netfilter.NAT, netfilter.Filter}

// scratchInput puts the rules of Services into the scratch chains, which it empties first.
// owner says for each line of the input, from 1, to which of them it belongs; others are not in
// it.
func scratchInput(list []*rules.Service, o Options) (input []byte, owner map[int]int) {
	owner = map[int]int{}
	chain := o.Names.Chain(netfilter.ChainScratch)
	blocks := make([]Block, len(list))
	for i, s := range list {
		blocks[i] = RenderService(s, o)
	}
	line := 0
	for _, t := range scratchTables {
		input = append(append(append(input, '*'), t.String()...), '\n')
		input = declaration(input, chain)
		line += 2
		for i, b := range blocks {
			for _, r := range b.rulesIn(t) {
				input = append(scratchRule(chain).Append(input, r, o.Family), '\n')
				line++
				owner[line] = i
			}
		}
		input = append(input, "COMMIT\n"...)
		line++
	}
	return input, owner
}

// placeInput writes the chains of Services as they should be, and nothing that leads to them.
// owner is as that of scratchInput.
func placeInput(list []*rules.Service, o Options) (input []byte, owner map[int]int) {
	owner = map[int]int{}
	input = append(input, "*nat\n"...)
	line := 1
	blocks := make([]Block, len(list))
	for i, s := range list {
		blocks[i] = RenderService(s, o)
		for _, c := range blocks[i].Chains {
			input = declaration(input, c.Name)
			line++
		}
	}
	for i, b := range blocks {
		for _, c := range b.Chains {
			for _, r := range c.Rules {
				input = append(append(append(input, "-A "...), c.Name...), ' ')
				input = append(r.Append(input, o.Family), '\n')
				line++
				owner[line] = i
			}
		}
	}
	return append(input, "COMMIT\n"...), owner
}

// scratchRule is the name of the chain that a rule is put into.
type scratchRule string

// Append spells a rule of a scratch chain. Where a chain of its Service would be called, it
// returns: the chain is not there.
func (chain scratchRule) Append(b []byte, r netfilter.Rule, f netfilter.Family) []byte {
	if r.Target == netfilter.TargetJump {
		r.Target, r.Jump = netfilter.TargetReturn, ""
	}
	b = append(append(append(b, "-A "...), chain...), ' ')
	return r.Append(b, f)
}

// rulesIn are the rules that a Service has in a table.
func (b Block) rulesIn(t netfilter.Table) []netfilter.Rule {
	var list []netfilter.Rule
	if t == netfilter.NAT {
		for _, c := range b.Chains {
			list = append(list, c.Rules...)
		}
	}
	for _, e := range b.Entries {
		if e.Table == t {
			list = append(list, e.Rule)
		}
	}
	return list
}

// scratchRemoval removes the scratch chains.
func scratchRemoval(n netfilter.Naming) (input []byte) {
	chain := n.Chain(netfilter.ChainScratch)
	for _, t := range scratchTables {
		input = append(append(append(input, '*'), t.String()...), '\n')
		input = declaration(input, chain)
		input = append(append(append(input, "-X "...), chain...), "\nCOMMIT\n"...)
	}
	return input
}

// scratch writes scratch chains. Error: as restorer.run.
func (k *keeper) scratch(ctx context.Context, input []byte, committed committedFunc) error {
	k.scratched = true
	return k.try(ctx, input, uint32(len(scratchTables)), committed)
}

// try writes an input that takes some commits. Error: as restorer.run.
func (k *keeper) try(ctx context.Context, input []byte, commits uint32, committed committedFunc) error {
	tool := k.kernel.restore
	tool.record = nil
	k.spent++
	before, known := k.kernel.generation()
	err := tool.run(ctx, input)
	switch after, _ := k.kernel.generation(); {
	case err == nil:
		committed(before, commits)
	case known && after != before:
		committed(before, 1) // nat, and then filter was refused
	}
	return err
}

// endScratch removes the scratch chains, if there are any. What remains is removed at the next
// verify.
func (k *keeper) endScratch(ctx context.Context, names netfilter.Naming, committed committedFunc) {
	if !k.scratched {
		return
	}
	err := k.scratch(ctx, scratchRemoval(names), committed)
	k.spent--
	if err != nil {
		k.log.Warn("the chains in which rules were tried are removed at the next verify", "err", err)
	}
	k.scratched = false
}
