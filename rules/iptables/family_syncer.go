package iptables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// batch is how many new chains are written in one restore ahead of everything else.
// iptables-nft-restore 1.8.9 looks each new chain up in a linear list, so that 400 Services with 60
// endpoints take a minute in one piece and 4 s in pieces of 1,000 chains.
const batch = 1_000

// readLimit is how long changes may have to wait for the kernel to be read back. It takes a
// second at 5,000 Services, but iptables-nft-save 1.8.9 begins anew whenever somebody else
// commits a change meanwhile, and may then go on for minutes.
const readLimit = 30 * time.Second

// familySyncer keeps one address family equal to what was asked for last.
type familySyncer struct {
	kernel *kernel
	log    *slog.Logger
	limit  time.Duration // readLimit
	chunks chunks        // defaultChunks
	behind bool          // a chunk was written, and more of them are to come
	ended  endings       // where the last chunk ended
	pause  bool          // writeInChunks returns after a chunk of large Services

	reading readings // how long read-backs take

	last   *desired  // what the kernel holds unless others wrote; nil = unknown
	mark   watermark // at which generation it surely did
	rules  [2]int    // by table
	trial  bool      // chains of a trial stand beside ours, by the last read-back
	failed error     // of the last Sync that tried this family

	inserted map[jumpAt]struct{} // jumps that were inserted into built-in chains so far
	unread   string              // why a table could not be read back, as logged last; "" = it was read

	others    rules.OtherWrites // see Backend.OtherWrites
	nftProxy  bool              // see lookForNFTProxy
	unguarded error             // see rules.Changes

	kernelLimits
}

// committedFunc is told of our own transactions since a generation.
type committedFunc func(before, commits uint32)

// write makes the kernel equal to want. Without verify only what differs from what was
// written last is written; should that fail, the kernel is read back at once. A verify that
// takes too long, or that cannot read a table, is given up in favour of just that: the kernel is
// then known to hold the changes, but not that it holds the rest.
func (k *familySyncer) write(ctx context.Context, want desired, verify bool, committed committedFunc) (rules.Changes, error) {
	last := k.last
	k.unguarded = nil
	if last != nil && last.options.LocalhostNodePorts != want.options.LocalhostNodePorts {
		return k.writeGuards(ctx, want, verify, committed)
	}
	if last != nil && (!verify || k.untouched() || k.reading.pause(time.Now())) {
		c, err := k.follow(ctx, want, committed)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		k.log.Warn("the kernel did not take a change, so its rules are read back", "err", err)
		if err := k.refresh(ctx, true); err != nil {
			return c, err
		}
		if c, err = k.rebuild(ctx, ctx, last, want, committed); err != nil {
			k.last = nil // a part of the change may have been written
		}
		return c, err
	}
	if last == nil {
		return k.rebuild(ctx, ctx, last, want, committed)
	}
	reading, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	c, err := k.rebuild(ctx, reading, last, want, committed)
	if err == nil || k.last == nil || ctx.Err() != nil {
		return c, err
	}
	k.logUnread(err)
	return k.follow(ctx, want, committed)
}

// writeGuards is write where NodePorts on loopback addresses begin or end to be served. The chain
// and the jumps that guard them are only made, and removed, where the kernel has been read. While
// it holds a table that cannot be read they stay as they are, and everything else is written.
func (k *familySyncer) writeGuards(ctx context.Context, want desired, verify bool, committed committedFunc) (rules.Changes, error) {
	last := k.last
	if verify || k.unread == "" {
		c, err := k.rebuild(ctx, ctx, nil, want, committed)
		if !isUnreadable(err) {
			return c, err
		}
		k.last = last
		k.logUnread(err)
	}
	if want.options.LocalhostNodePorts {
		k.unguarded = errors.New("a table that cannot be read keeps the guard of loopback addresses from being written: " + k.unread)
	}
	want.options.LocalhostNodePorts = last.options.LocalhostNodePorts
	return k.follow(ctx, want, committed)
}

// untouched reports whether the kernel surely holds what was written last. It starts no
// process.
func (k *familySyncer) untouched() bool {
	now, known := k.kernel.generation()
	return known && k.mark.holds(now)
}

// follow writes what leads from what was written last to want.
func (k *familySyncer) follow(ctx context.Context, want desired, committed committedFunc) (rules.Changes, error) {
	last := *k.last
	k.last = nil
	count := k.rules
	run := k.newRun(ctx, want, committed)
	for c := range changes(want, lastWritten(last)) {
		for t := range count {
			count[t] += c.delta[t]
		}
		if err := run.take(c); err != nil {
			return rules.Changes{}, err
		}
	}
	if err := run.finish(map[chainID]bool{}); err != nil {
		return rules.Changes{}, err
	}
	k.last = &want
	k.rules = count
	return run.changes, nil
}

// rebuild reads the kernel, which ends with reading, and writes what differs from want, whichever
// process wrote it. last is what we had written, nil if unknown; it is still what we know if
// the kernel cannot be read in time, or holds a table that cannot be read.
func (k *familySyncer) rebuild(ctx, reading context.Context, last *desired, want desired, committed committedFunc) (rules.Changes, error) {
	k.last = nil
	k.mark = watermark{}
	begin := time.Now()
	ks, mark, err := k.kernel.state(reading, want)
	k.reading = readings{ended: time.Now(), took: time.Since(begin)}
	if err != nil {
		if reading.Err() != nil || isUnreadable(err) {
			k.last = last
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
	if len(different) > 0 {
		k.logRepair(repaired)
	}
	run := k.newRun(ctx, want, committed)
	if err := run.prepare(ks); err != nil {
		return rules.Changes{}, err
	}
	for c := range changes(want, ks) {
		if err := run.take(c); err != nil {
			return rules.Changes{}, err
		}
	}
	if err := run.finish(ks.sentWhole()); err != nil {
		return rules.Changes{}, err
	}
	k.last = &want
	k.rules = ks.ruleCounts()
	k.others = ks.otherWrites(repaired, k.kernel.family)
	run.changes.Repaired = len(repaired)
	run.changes.Verified = true
	return run.changes, nil
}

// warnOfTrial says that chains with other names stand before ours: those of a trial that has ended go
// on serving its Services from what was right then. They are not removed, because one that goes on
// looks the same.
func warnOfTrial(log *slog.Logger) {
	log.Warn("there are chains of a gridproxy with --service-proxy-name; if none runs here any more, run gridproxy cleanup with that flag, or its Services stay as it has left them", "names", netfilter.GridNames.Prefix())
}

// tampered are those of the different chains that we had written otherwise: not the ones
// in which want differs from what was written last.
func tampered(different map[chainID]bool, last *desired, want desired) []chainID {
	if last == nil || len(different) == 0 {
		return nil
	}
	ours := map[chainID]bool{}
	for c := range changes(want, lastWritten(*last)) {
		for _, id := range c.chains() {
			ours[id] = true
		}
	}
	var all []chainID
	for id := range different {
		if !ours[id] {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, compareChainIDs)
	return all
}

// logRepair names the first few of the chains that somebody else changed.
func (k *familySyncer) logRepair(repaired []chainID) {
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
