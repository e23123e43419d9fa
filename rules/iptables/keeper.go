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

// keeper keeps one address family equal to what was asked for last.
type keeper struct {
	kernel *kernel
	log    *slog.Logger
	limit  time.Duration // readLimit
	pieces pieces        // defaultPieces
	behind bool          // a piece was written, and more of them are to come
	ended  endings       // where the last piece ended
	pause  bool          // syncInPieces returns after a piece of large Services

	reading readings // how long read-backs take

	last   *written  // what the kernel holds unless others wrote; nil = unknown
	mark   watermark // at which generation it surely did
	rules  [2]int    // by table
	trial  bool      // chains of a trial stand beside ours, by the last read-back
	failed error     // of the last Sync that tried this family

	inserted map[jumpAt]struct{} // jumps that were inserted into built-in chains so far
	unread   string              // why a table could not be read back, as logged last; "" = it was read

	others    rules.OtherWrites // see Backend.OtherWrites
	nftProxy  bool              // see lookForNFTProxy
	unguarded error             // see rules.Changes

	refusals
}

// committedFunc is told of our own transactions since a generation.
type committedFunc func(before, commits uint32)

// write makes the kernel equal to want. Without verify only what differs from what was
// written last is written; should that fail, the kernel is read back at once. A verify that
// takes too long, or that cannot read a table, is given up in favour of just that: the kernel is
// then known to hold the changes, but not that it holds the rest.
func (k *keeper) write(ctx context.Context, want written, verify bool, committed committedFunc) (rules.Changes, error) {
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
func (k *keeper) writeGuards(ctx context.Context, want written, verify bool, committed committedFunc) (rules.Changes, error) {
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
func (k *keeper) untouched() bool {
	now, known := k.kernel.generation()
	return known && k.mark.holds(now)
}

// follow writes what leads from what was written last to want.
func (k *keeper) follow(ctx context.Context, want written, committed committedFunc) (rules.Changes, error) {
	last := *k.last
	k.last = nil
	count := k.rules
	w := k.writing(ctx, want, committed)
	for c := range changesTo(last, want) {
		for t := range count {
			count[t] += c.delta[t]
		}
		if err := w.take(c); err != nil {
			return rules.Changes{}, err
		}
	}
	if err := w.finish(map[place]bool{}); err != nil {
		return rules.Changes{}, err
	}
	k.last = &want
	k.rules = count
	return w.changes, nil
}

// rebuild reads the kernel, which ends with reading, and writes what differs from want,
// whoever wrote it. last is what we had written, nil if unknown; it is still what we know if
// the kernel cannot be read in time, or holds a table that cannot be read.
func (k *keeper) rebuild(ctx, reading context.Context, last *written, want written, committed committedFunc) (rules.Changes, error) {
	k.last = nil
	k.mark = watermark{}
	begin := time.Now()
	ix, mark, err := k.kernel.compare(reading, want)
	k.reading = readings{ended: time.Now(), took: time.Since(begin)}
	if err != nil {
		if reading.Err() != nil || isUnreadable(err) {
			k.last = last
		}
		return rules.Changes{}, fmt.Errorf("reading the rules back: %w", err)
	}
	k.wasRead()
	if last == nil {
		want = ix.postpone(want, k.pieces)
	}
	k.mark = mark
	if ix.trial && !k.trial {
		warnOfTrial(k.log)
	}
	k.trial = ix.trial
	different := ix.different()
	repaired := tampered(different, last, want)
	if len(different) > 0 {
		k.logRepair(repaired)
	}
	w := k.writing(ctx, want, committed)
	if err := w.prepare(ix); err != nil {
		return rules.Changes{}, err
	}
	for c := range repair(ix, want) {
		if err := w.take(c); err != nil {
			return rules.Changes{}, err
		}
	}
	if err := w.finish(ix.whole()); err != nil {
		return rules.Changes{}, err
	}
	k.last = &want
	k.rules = ix.ruleCounts()
	k.others = ix.otherWrites(repaired, k.kernel.family)
	w.changes.Repaired = len(repaired)
	w.changes.Verified = true
	return w.changes, nil
}

// warnOfTrial says that chains with other names stand before ours: those of a trial that has ended go
// on serving its Services from what was right then. They are not removed, because one that goes on
// looks the same.
func warnOfTrial(log *slog.Logger) {
	log.Warn("there are chains of a gridproxy with --service-proxy-name; if none runs here any more, run gridproxy cleanup with that flag, or its Services stay as it has left them", "names", netfilter.GridNames.Prefix())
}

// tampered are those of the different chains that we had written otherwise: not the ones
// in which want differs from what was written last.
func tampered(different map[place]bool, last *written, want written) []place {
	if last == nil || len(different) == 0 {
		return nil
	}
	ours := map[place]bool{}
	for c := range changesTo(*last, want) {
		for p := range c.places() {
			ours[p] = true
		}
	}
	var all []place
	for p := range different {
		if !ours[p] {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, comparePlaces)
	return all
}

// logRepair names the first few of the chains that somebody else changed.
func (k *keeper) logRepair(repaired []place) {
	if len(repaired) == 0 {
		return
	}
	const shown = 5
	var names []string
	for _, p := range repaired[:min(shown, len(repaired))] {
		names = append(names, p.String())
	}
	k.log.Warn("something else changed our rules; they are put right", "chains", len(repaired), "first", names)
}

// writing carries a plan out.
type writing struct {
	k         *keeper
	ctx       context.Context
	want      written
	committed committedFunc
	script    *script
	pending   int            // chains to create that are still in script
	made      map[place]bool // chains that prepare made, empty
	changes   rules.Changes
}

func (k *keeper) writing(ctx context.Context, want written, committed committedFunc) *writing {
	return &writing{k: k, ctx: ctx, want: want, committed: committed, script: newScript(k.kernel.family, want.options.Names)}
}

// take adds one change, writing new chains ahead in batches where that is the faster way.
func (w *writing) take(c change) error {
	c = w.late(c)
	if w.k.kernel.variant == netfilter.VariantNFT {
		if w.pending+len(c.create) > batch {
			c.create = dependenciesFirst(c.create, w.want.options.Names)
		}
		for w.pending+len(c.create) > batch {
			n := batch - w.pending
			w.script.take(change{create: c.create[:n]})
			if err := w.send(w.script.takeCreated()); err != nil {
				return err
			}
			c.create, w.pending = c.create[n:], 0
		}
	}
	w.script.take(c)
	w.pending += len(c.create)
	return nil
}

// late keeps new chains that lead to shared ones from being written ahead of these, as
// KUBE-SERVICES of IPVS mode would be: shared chains come last.
func (w *writing) late(c change) change {
	leads := func(chain chainOf) bool {
		return slices.ContainsFunc(chain.Rules, func(r netfilter.Rule) bool {
			return r.Jump != "" && w.want.options.unordered(place{chain.Table, r.Jump})
		})
	}
	for _, chain := range c.create {
		if leads(chain) {
			c.write = append(slices.Clone(c.write), chain)
		}
	}
	if slices.ContainsFunc(c.create, leads) {
		c.create = slices.DeleteFunc(slices.Clone(c.create), leads)
	}
	return c
}

// prepare makes the jumps from built-in chains that the kernel lacks, to chains that are
// still empty where it lacks these too. It comes first, because a single command takes
// the longer the more rules there are, and because KUBE-FIREWALL must stand before
// anything routes loopback addresses.
func (w *writing) prepare(ix *index) error {
	k := w.k.kernel
	if err := w.single(func() (int, error) { return k.completeGuards(w.ctx, ix) }); err != nil {
		return err
	}
	if err := w.removeSurplus(ix); err != nil {
		return err
	}
	if !ix.lacksJumps() {
		return nil
	}
	s := newScript(k.family, w.want.options.Names)
	w.made = ix.undeclaredTargets()
	for p := range w.made {
		s.empty(p)
	}
	if err := w.send(s.text()); err != nil {
		return err
	}
	return w.single(func() (int, error) { return w.k.insertJumps(w.ctx, ix) })
}

// finish writes what is left, and the given shared chains whole.
func (w *writing) finish(whole map[place]bool) error {
	for _, p := range w.script.heavy() {
		whole[p] = true
	}
	w.script.replace(whole, w.made, w.want)
	chains, rules := w.script.counts()
	w.changes.Chains += chains
	w.changes.Rules += rules
	return w.send(w.script.text())
}

// send restores a text, if there is any.
func (w *writing) send(text []byte, commits uint32) error {
	if len(text) == 0 {
		return nil
	}
	before, _ := w.k.kernel.generation()
	if err := w.k.kernel.restore.run(w.ctx, text); err != nil {
		return err
	}
	w.committed(before, commits)
	return nil
}

// single does something that makes single rules or chains and says how many.
func (w *writing) single(do func() (int, error)) error {
	before, _ := w.k.kernel.generation()
	n, err := do()
	w.changes.Rules += n
	if n > 0 && err == nil {
		w.committed(before, uint32(n)) //nolint:gosec // a handful
	}
	return err
}

// replace makes the script write shared chains whole. Their entries are rendered anew,
// because nothing keeps them. One that was just made and stays empty is not written: the
// kernel would not count that as a transaction.
func (s *script) replace(whole, made map[place]bool, w written) {
	if len(whole) == 0 {
		return
	}
	for p := range whole {
		s.forget(p)
	}
	filled := map[place]bool{}
	for e := range allEntries(w) {
		if p := (place{e.Table, e.Chain}); whole[p] {
			s.add(p, e.Rule)
			filled[p] = true
		}
	}
	for p := range whole {
		if filled[p] || !made[p] {
			s.empty(p)
		}
	}
}

// allEntries yields what the shared chains of w hold.
func allEntries(w written) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, s := range w.rules.Services {
			for _, e := range RenderService(s, w.options).Entries {
				if !yield(e) {
					return
				}
			}
		}
		shared := RenderShared(w.rules, w.options)
		for t := range netfilter.Table(len(shared.Tables)) {
			for _, c := range shared.Tables[t].Chains {
				if !w.options.unordered(place{t, c.Name}) {
					continue
				}
				for _, r := range c.Rules {
					if !yield(Entry{Table: t, Chain: c.Name, Rule: r}) {
						return
					}
				}
			}
		}
	}
}
