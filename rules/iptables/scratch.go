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
	b := trialInput{options: o, owner: map[int]int{}}
	blocks := b.blocks(list)
	for _, t := range scratchTables {
		chain := chainID{t, o.Names.Chain(netfilter.ChainScratch)}
		b.add("*" + t.String())
		b.add(":" + chain.chain + " - [0:0]")
		for i, block := range blocks {
			for id, r := range block.rules() {
				if id.table == t {
					b.addRule(i, chain, withoutJump(r))
				}
			}
		}
		b.add("COMMIT")
	}
	return b.text, b.owner
}

// placeInput writes the chains of Services as they should be, and nothing that leads to them.
// owner is as that of scratchInput.
func placeInput(list []*rules.Service, o Options) (input []byte, owner map[int]int) {
	b := trialInput{options: o, owner: map[int]int{}}
	blocks := b.blocks(list)
	b.add("*nat")
	for _, block := range blocks {
		for _, c := range block.Chains {
			b.add(":" + c.Name + " - [0:0]")
		}
	}
	for i, block := range blocks {
		for id, r := range (Block{Chains: block.Chains}).rules() {
			b.addRule(i, id, r)
		}
	}
	b.add("COMMIT")
	return b.text, b.owner
}

// trialInput is an input for iptables-restore. It remembers which Service each rule belongs to.
type trialInput struct {
	options Options
	text    []byte
	line    int
	owner   map[int]int
}

func (b *trialInput) blocks(list []*rules.Service) []Block {
	blocks := make([]Block, len(list))
	for i, s := range list {
		blocks[i] = RenderService(s, b.options)
	}
	return blocks
}

func (b *trialInput) add(line string) {
	b.text = append(append(b.text, line...), '\n')
	b.line++
}

func (b *trialInput) addRule(owner int, id chainID, r netfilter.Rule) {
	b.text = ruleLine(b.text, "-A ", id.chain, r, b.options.Family)
	b.line++
	b.owner[b.line] = owner
}

// withoutJump is a rule that returns instead of jumping to a chain that the kernel may not have.
func withoutJump(r netfilter.Rule) netfilter.Rule {
	if r.Target == netfilter.TargetJump {
		r.Target, r.Jump = netfilter.TargetReturn, ""
	}
	return r
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
func (k *familySyncer) scratch(ctx context.Context, input []byte, committed committedFunc) error {
	k.scratched = true
	return k.try(ctx, input, uint32(len(scratchTables)), committed)
}

// try writes an input that takes some commits. Error: as restorer.run.
func (k *familySyncer) try(ctx context.Context, input []byte, commits uint32, committed committedFunc) error {
	k.spent++
	before, known := k.kernel.generation()
	err := k.kernel.restore.run(ctx, input)
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
func (k *familySyncer) endScratch(ctx context.Context, names netfilter.Naming, committed committedFunc) {
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
