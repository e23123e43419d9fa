package iptables

import (
	"context"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// syncRun carries out the changes of one run.
type syncRun struct {
	k       *familySyncer
	ctx     context.Context
	want    render.Desired
	script  *script
	pending int                     // new chains still in script
	made    map[render.ChainID]bool // chains that prepare created, empty
	changes rules.Changes
}

func (k *familySyncer) newRun(ctx context.Context, want render.Desired) *syncRun {
	return &syncRun{k: k, ctx: ctx, want: want, script: newScript(want.Options)}
}

// take adds one change. It writes new chains ahead in batches where that is faster.
func (run *syncRun) take(c change) error {
	c = run.late(c)
	if run.k.kernel.variant == netfilter.VariantNFT {
		if run.pending+len(c.create) > createMax {
			c.create = dependenciesFirst(c.create, run.want.Options.Names)
		}
		for run.pending+len(c.create) > createMax {
			n := createMax - run.pending
			run.script.take(change{create: c.create[:n]})
			if err := run.send(run.script.takeCreated()); err != nil {
				return err
			}
			c.create, run.pending = c.create[n:], 0
		}
	}
	run.script.take(c)
	run.pending += len(c.create)
	return nil
}

// dependenciesFirst puts the endpoints' chains of one Service port before those that lead to them,
// so that a restore only creates chains that lead to existing ones.
func dependenciesFirst(chains []render.TableChain, n netfilter.Naming) []render.TableChain {
	rank := func(c render.TableChain) int {
		if strings.HasPrefix(c.Name, n.Chain(netfilter.PrefixEndpoint)) {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(chains), func(a, b render.TableChain) int { return rank(a) - rank(b) })
}

// late moves new chains that lead to shared ones, such as KUBE-SERVICES of IPVS mode, from
// create to write. So they are not written ahead of these, because shared chains come last.
func (run *syncRun) late(c change) change {
	leads := func(chain render.TableChain) bool {
		return slices.ContainsFunc(chain.Rules, func(r netfilter.Rule) bool {
			return r.Jump != "" && run.want.Options.Policy(render.ChainID{Table: chain.Table, Chain: r.Jump}).Kind == render.Shared
		})
	}
	if slices.ContainsFunc(c.create, leads) {
		stays := func(chain render.TableChain) bool { return !leads(chain) }
		c.write = slices.Concat(c.write, slices.DeleteFunc(slices.Clone(c.create), stays))
		c.create = slices.DeleteFunc(slices.Clone(c.create), leads)
	}
	return c
}

// prepare inserts missing jumps from built-in chains, and creates missing targets as empty chains.
// It comes first for two reasons: a single command takes longer the more rules there are, and
// KUBE-FIREWALL must exist before anything routes loopback addresses.
func (run *syncRun) prepare(ks *kernelState) error {
	k := run.k.kernel
	if err := run.single(func() (int, error) { return k.completeGuards(run.ctx, ks) }); err != nil {
		return err
	}
	if err := run.removeSurplus(ks); err != nil {
		return err
	}
	if !ks.lacksJumps() {
		return nil
	}
	s := newScript(run.want.Options)
	run.made = ks.undeclaredTargets()
	for id := range run.made {
		s.empty(id)
	}
	if err := run.send(s.text()); err != nil {
		return err
	}
	return run.single(func() (int, error) { return run.k.insertJumps(run.ctx, ks) })
}

// finish writes the rest of the script, and the shared chains in sent whole. It adds to sent
// those with too many deletions.
func (run *syncRun) finish(sent map[render.ChainID]bool) error {
	for _, id := range run.script.heavy() {
		sent[id] = true
	}
	run.script.replace(sent, run.made, run.want)
	run.changes.Chains += run.script.chains + len(run.script.edits) // an edited shared chain counts as one
	run.changes.Rules += run.script.rules
	return run.send(run.script.text())
}

func (run *syncRun) send(text []byte, commits uint32) error {
	if len(text) == 0 {
		return nil
	}
	logInput(run.ctx, run.k.log, text)
	before, _ := run.k.kernel.generation()
	begin := host.ProcessorTime()
	err := run.k.kernel.restore.run(run.ctx, text)
	run.changes.WriteTime += host.ProcessorTime() - begin
	if err != nil {
		return err
	}
	run.k.committed(before, commits)
	return nil
}

// single calls do, which writes single rules or chains and returns how many. It counts them,
// and advances the watermarks unless do failed.
func (run *syncRun) single(do func() (int, error)) error {
	before, _ := run.k.kernel.generation()
	n, err := do()
	run.changes.Rules += n
	if n > 0 && err == nil {
		run.k.committed(before, uint32(n)) //nolint:gosec // a handful
	}
	return err
}

// replace writes shared chains whole. Their entries are rendered again, because they are not kept.
// A chain that prepare created and that stays empty is not written: the kernel would not count a
// transaction.
func (s *script) replace(chains, made map[render.ChainID]bool, want render.Desired) {
	if len(chains) == 0 {
		return
	}
	for id := range chains {
		s.forget(id)
	}
	filled := map[render.ChainID]bool{}
	for id, r := range want.RulesOf(chains) {
		s.add(id, r)
		filled[id] = true
	}
	for id := range chains {
		if filled[id] || !made[id] {
			s.empty(id)
		}
	}
}
