package refusal

import (
	"context"
	"fmt"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// Rules are tried in scratch chains that nothing leads to, so that no packet and no rule in force
// is affected. If the process is killed before it removes them, the next verify does.

// scratchTables are the tables in which rules are tried. If nat refuses, filter stays untouched.
var scratchTables = [...]netfilter.Table{netfilter.NAT, netfilter.Filter}

// scratchInput returns an input that puts the rules of Services into the scratch chains, which
// it empties first. owner is the index of a rule's Service by line of the input, from 1.
func scratchInput(list []*rules.Service, o render.Options) (input []byte, owner map[int]int) {
	b := trialInput{options: o, owner: map[int]int{}}
	blocks := b.blocks(list)
	for _, t := range scratchTables {
		chain := render.ChainID{Table: t, Chain: o.Names.Chain(netfilter.ChainScratch)}
		b.add("*" + t.String())
		b.add(":" + chain.Chain + " - [0:0]")
		for i, block := range blocks {
			for id, r := range block.Rules() {
				if id.Table == t {
					b.addRule(i, chain, withoutJump(r))
				}
			}
		}
		b.add("COMMIT")
	}
	return b.text, b.owner
}

// placeInput returns an input that writes only the Services' own chains; see scratchInput.
func placeInput(list []*rules.Service, o render.Options) (input []byte, owner map[int]int) {
	b := trialInput{options: o, owner: map[int]int{}}
	blocks := b.blocks(list)
	b.add("*nat")
	for _, block := range blocks {
		for _, c := range block.Chains {
			b.add(":" + c.Name + " - [0:0]")
		}
	}
	for i, block := range blocks {
		for id, r := range (render.Block{Chains: block.Chains}).Rules() {
			b.addRule(i, id, r)
		}
	}
	b.add("COMMIT")
	return b.text, b.owner
}

// trialInput is an input for iptables-restore with the owners of its lines.
type trialInput struct {
	options render.Options
	text    []byte
	line    int
	owner   map[int]int
}

func (b *trialInput) blocks(list []*rules.Service) []render.Block {
	blocks := make([]render.Block, len(list))
	for i, s := range list {
		blocks[i] = render.Service(s, b.options)
	}
	return blocks
}

func (b *trialInput) add(line string) {
	b.text = append(append(b.text, line...), '\n')
	b.line++
}

func (b *trialInput) addRule(owner int, id render.ChainID, r netfilter.Rule) {
	b.text = render.AppendRule(b.text, "-A ", id.Chain, r, b.options.Family)
	b.line++
	b.owner[b.line] = owner
}

// withoutJump replaces a jump by RETURN, because its target may not exist.
func withoutJump(r netfilter.Rule) netfilter.Rule {
	if r.Target == netfilter.TargetJump {
		r.Target, r.Jump = netfilter.TargetReturn, ""
	}
	return r
}

func scratchRemoval(n netfilter.Naming) (input []byte) {
	chain := n.Chain(netfilter.ChainScratch)
	for _, t := range scratchTables {
		input = fmt.Appendf(input, "*%s\n:%s - [0:0]\n-X %s\nCOMMIT\n", t, chain, chain)
	}
	return input
}

func (r *Refusals) scratch(ctx context.Context, input []byte) error {
	r.scratched = true
	return r.try(ctx, input, uint32(len(scratchTables)))
}

// try writes an input that takes some commits, and counts it.
func (r *Refusals) try(ctx context.Context, input []byte, commits uint32) error {
	r.spent++
	return r.inner.Try(ctx, input, commits)
}

// tryServices tries the rules of Services in the scratch chains, or with inPlace in their own.
// See scratchInput for owner. refusalOf tells whether err is a refusal.
func (r *Refusals) tryServices(ctx context.Context, list []*rules.Service, o render.Options, inPlace bool) (owner map[int]int, err error) {
	if inPlace {
		input, owner := placeInput(list, o)
		return owner, r.try(ctx, input, 1)
	}
	input, owner := scratchInput(list, o)
	return owner, r.scratch(ctx, input)
}

// endScratch removes the scratch chains. If that fails, the next verify removes them.
func (r *Refusals) endScratch(ctx context.Context, names netfilter.Naming) {
	if !r.scratched {
		return
	}
	err := r.scratch(ctx, scratchRemoval(names))
	r.spent--
	if err != nil {
		r.log.Warn("cannot remove the scratch chains now; the next verify removes them", "err", err)
	}
	r.scratched = false
}
