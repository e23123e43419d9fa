package iptables

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// familySyncer keeps one address family equal to the last desired state.
type familySyncer struct {
	kernel    *kernel
	log       *slog.Logger
	committed func(before, commits uint32) // called after our own transactions since generation before
	limit     time.Duration                // readTimeout
	chunks    chunks                       // defaultChunks
	behind    bool                         // chunks are still to be written
	ended     endings                      // where the last chunk ended
	pause     bool                         // return after each chunk of large Services

	verifyTime  time.Duration // see rules.Changes, of this Sync
	interrupted bool          // see rules.Changes, of this Sync

	last   *render.Desired // what the kernel holds unless others wrote; nil = unknown
	mark   watermark       // the generation at which it surely did
	rules  [2]int          // by table
	trial  bool            // the last read-back found chains of a trial
	failed error           // error of the last Sync that tried this family

	inserted map[jumpAt]struct{} // jumps inserted into built-in chains so far
	unread   string              // the last logged read-back error; "" = none

	others    rules.OtherWrites // see Backend.OtherWrites
	nftProxy  bool              // see lookForNFTProxy
	unguarded error             // see rules.Changes
}

// Sync makes the kernel equal to want, large Services after all others; see chunks.
func (k *familySyncer) Sync(ctx context.Context, want render.Desired, verify bool) (rules.Changes, error) {
	first := want
	if k.last != nil { // otherwise only a read-back can tell what the kernel holds of them: see postpone
		first, _, _ = k.towards(want, 0)
	}
	c, err := k.write(ctx, first, verify)
	if err != nil || holdsServices(k.last, want) {
		return c, err
	}
	return k.writeLarge(ctx, want, c)
}

// holdsServices reports whether last has all Services of want.
func holdsServices(last *render.Desired, want render.Desired) bool {
	return slices.Equal(last.Rules.Services, want.Rules.Services)
}

// write makes the kernel equal to want. Without verify it writes only what differs from what was
// written last; if that fails, it reads the kernel back at once.
func (k *familySyncer) write(ctx context.Context, want render.Desired, verify bool) (rules.Changes, error) {
	last := k.last
	k.unguarded = nil
	if last != nil && !sameJumps(last.Options, want.Options) {
		return k.writeJumps(ctx, want, verify)
	}
	if last != nil && (!verify || k.untouched()) {
		return k.followOrRebuild(ctx, want)
	}
	if last == nil {
		return k.rebuild(ctx, ctx, last, want)
	}
	return k.verify(ctx, *last, want)
}

// untouched reports whether the kernel surely holds what was written last. It starts no process.
func (k *familySyncer) untouched() bool {
	now, known := k.kernel.generation()
	return known && k.mark.holds(now)
}

// followOrRebuild writes the change as follow does. If the kernel refuses it, it calls rebuild:
// another process may have removed what the change builds on.
func (k *familySyncer) followOrRebuild(ctx context.Context, want render.Desired) (rules.Changes, error) {
	last := k.last
	c, err := k.follow(ctx, want)
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	k.log.Warn("the kernel refused a change; reading its rules back", "err", err)
	if err := k.refresh(ctx); err != nil {
		return c, err
	}
	if c, err = k.rebuild(ctx, ctx, last, want); err != nil {
		k.last = nil // the change may have been written in part
	}
	return c, err
}

// follow writes the difference between what was written last and want. On failure last is nil.
func (k *familySyncer) follow(ctx context.Context, want render.Desired) (rules.Changes, error) {
	last := *k.last
	k.last = nil
	count := k.rules
	run := k.newRun(ctx, want)
	for c := range changes(want, lastWritten(last)) {
		for t := range count {
			count[t] += c.delta[t]
		}
		if err := run.take(c); err != nil {
			return rules.Changes{}, err
		}
	}
	if err := run.finish(map[render.ChainID]bool{}); err != nil {
		return rules.Changes{}, err
	}
	k.last = &want
	k.rules = count
	return run.changes, nil
}

// verify reads the kernel back although it is known what was written last. If that is interrupted,
// takes too long or cannot read a table, it falls back to follow: the kernel then surely holds the
// changes, but maybe not the rest.
func (k *familySyncer) verify(ctx context.Context, last, want render.Desired) (rules.Changes, error) {
	reading, end := rules.Reading(ctx)
	defer end()
	limited, cancel := context.WithTimeout(reading, k.limit)
	defer cancel()
	c, err := k.rebuild(ctx, limited, &last, want)
	if err == nil || k.last == nil || ctx.Err() != nil {
		return c, err
	}
	if rules.Interrupted(limited) {
		k.interrupted = true
		return k.followOrRebuild(ctx, want)
	}
	k.logUnread(err)
	return k.follow(ctx, want)
}

// rebuild reads the kernel and writes what differs from want, whichever process wrote it. reading
// is the context of the read-back. last is what we wrote, nil if unknown. It stays known, as does
// the watermark, if the kernel cannot be read in time, or if a table cannot be read.
func (k *familySyncer) rebuild(ctx, reading context.Context, last *render.Desired, want render.Desired) (rules.Changes, error) {
	before := k.mark
	k.last = nil
	k.mark = watermark{}
	ks, mark, err := k.readBack(reading, want)
	if err != nil {
		if reading.Err() != nil || isUnreadable(err) {
			k.last, k.mark = last, before
		}
		return rules.Changes{}, fmt.Errorf("reading the rules back: %w", err)
	}
	k.wasRead()
	if last == nil {
		want = ks.postpone(want, k.chunks)
	}
	k.mark = mark
	if ks.trial && !k.trial {
		warnOfTrial(k.log)
	}
	k.trial = ks.trial
	different := ks.different()
	repaired := tampered(different, last, want)
	k.logRepair(repaired)
	run := k.newRun(ctx, want)
	if err := run.prepare(ks); err != nil {
		return rules.Changes{}, err
	}
	if len(different) > 0 { // else rendering everything once more would find no change
		for c := range changes(want, ks) {
			if err := run.take(c); err != nil {
				return rules.Changes{}, err
			}
		}
	}
	if err := run.finish(ks.chainsThat((*chainState).sendWhole)); err != nil {
		return rules.Changes{}, err
	}
	k.last = &want
	k.rules = ks.ruleCounts()
	k.others = ks.otherWrites(repaired, k.kernel.family)
	run.changes.Repaired = len(repaired)
	run.changes.Verified = true
	return run.changes, nil
}

// readBack reads the kernel as kernel.state does, and counts what that costs.
func (k *familySyncer) readBack(ctx context.Context, want render.Desired) (*kernelState, watermark, error) {
	before := host.ProcessorTime()
	defer func() { k.verifyTime += host.ProcessorTime() - before }()
	return k.kernel.state(ctx, want)
}

// tampered returns the different chains that another process changed: not those in which want
// differs from what was written last. It returns nil if last is unknown.
func tampered(different map[render.ChainID]bool, last *render.Desired, want render.Desired) []render.ChainID {
	if last == nil || len(different) == 0 {
		return nil
	}
	ours := map[render.ChainID]bool{}
	for c := range changes(want, lastWritten(*last)) {
		for _, id := range c.chains() {
			ours[id] = true
		}
	}
	var all []render.ChainID
	for id := range different {
		if !ours[id] {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, render.CompareChainIDs)
	return all
}

func (k *familySyncer) logRepair(repaired []render.ChainID) {
	if len(repaired) == 0 {
		return
	}
	const shown = 5
	var names []string
	for _, id := range repaired[:min(shown, len(repaired))] {
		names = append(names, id.String())
	}
	k.log.Warn("repaired rules that another process changed", "chains", len(repaired), "first", names)
}

// Try writes an input of iptables-restore that takes so many transactions, and reports those
// that were committed, also after an error.
func (k *familySyncer) Try(ctx context.Context, input []byte, commits uint32) error {
	before, known := k.kernel.generation()
	err := k.kernel.restore.run(ctx, input)
	switch after, _ := k.kernel.generation(); {
	case err == nil:
		k.committed(before, commits)
	case known && after != before:
		k.committed(before, 1) // nat was committed, then filter was refused
	}
	return err
}

// NAT yields what iptables-save prints of table nat.
func (k *familySyncer) NAT(ctx context.Context) iter.Seq2[netfilter.Line, error] {
	return k.kernel.save.lines(ctx, netfilter.NAT.String(), netfilter.NAT)
}

// warnOfTrial warns of chains of a trial, which take precedence over ours. A trial that has ended
// keeps serving its Services with stale endpoints. Its chains are not removed, because a running
// trial looks the same.
func warnOfTrial(log *slog.Logger) {
	log.Warn("found chains of a gridproxy with --service-proxy-name; if it no longer runs here, run gridproxy cleanup with that flag, "+
		"because its rules are stale but stay in force", "names", netfilter.GridNames.Prefix())
}

// sameJumps reports whether the built-in chains have the same jumps of ours.
func sameJumps(a, b render.Options) bool {
	return a.LocalhostNodePorts == b.LocalhostNodePorts && a.LocalDNS == b.LocalDNS
}

// writeJumps writes want when NodePorts on loopback addresses, or the rules of local DNS, are
// switched on or off. Their jumps are created or removed only after a successful read-back.
// While a table cannot be read, they stay as they are and everything else is written.
func (k *familySyncer) writeJumps(ctx context.Context, want render.Desired, verify bool) (rules.Changes, error) {
	last := k.last
	if verify || k.unread == "" {
		c, err := k.rebuild(ctx, ctx, nil, want)
		if !isUnreadable(err) {
			return c, err
		}
		k.last = last
		k.logUnread(err)
	}
	if want.Options.LocalhostNodePorts && !last.Options.LocalhostNodePorts {
		k.unguarded = errors.New("cannot write the guard of loopback addresses, because a table cannot be read: " + k.unread)
	}
	want.Options.LocalhostNodePorts, want.Options.LocalDNS = last.Options.LocalhostNodePorts, last.Options.LocalDNS
	return k.follow(ctx, want)
}
