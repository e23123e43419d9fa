package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"
)

// errStopped is the cause of a run's context that ended with stopGrace.
var errStopped = errors.New("the sync was interrupted because gridproxy is stopping")

// finishing returns the context of a run. It ends stopGrace after ctx. Every table is written
// as a whole or not at all, and a later start reads the kernel back. Call the func at the end
// of the run.
func finishing(ctx context.Context) (context.Context, func()) {
	run, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-run.Done():
		case <-time.After(stopGrace):
			end(errStopped)
		}
	})
	return run, func() {
		stop()
		end(nil)
	}
}

// step makes one run, from the whole Snapshot to the Observers, or none if the Source has no
// whole one. dirty reports whether a change made the run due: a change that came since may have
// to wait for the minimum period.
func (s *Syncer) step(ctx context.Context, start time.Time, dirty bool) {
	ctx, end := finishing(ctx)
	defer end()
	ctx = rules.WithProgress(ctx, s.inbox.step)
	p := s.schedule.plan(start, dirty)
	queued, hostMoved := s.inbox.begin(start, !p.alone)
	s.hostKnown = s.hostKnown && !hostMoved && s.config.HostMoved != nil
	r := Result{Start: start, Queued: queued, Verify: p.verify, plan: p}
	if !queued.IsZero() || !s.hostKnown || !s.hasDecided {
		var whole bool
		if r.Snapshot, whole = s.config.Source.Snapshot(); !whole {
			s.inbox.forget() // the Source tells when it has one
			return
		}
		if r.Err = s.readHost(); r.Err == nil {
			s.decide(&r)
		}
	} else { // only the kernel may have changed, or something that was begun there goes on
		r.Snapshot, r.View, r.Ruleset = s.decided.Snapshot, s.decided.View, s.decided.Ruleset
		r.Snapshot.LastKeys = r.View.LastKeys
	}
	if r.Err == nil {
		reading, endReading := s.reading(ctx, p.reading)
		s.enforce(reading, &r)
		endReading()
		if p.reading == skipped {
			r.Changes.Interrupted = false
		}
	}
	r.Changes.Families = r.Changes.Families.With(r.Err)
	r.End = time.Now()
	r.Waits = s.schedule.waits(r)
	s.log(ctx, r)
	s.schedule = s.schedule.after(r)
	r.VerifyPeriod = s.schedule.verification.period()
	s.inbox.done(r.Start, r.End, r.Changes.Families)
	for _, o := range s.config.Observers {
		o.Synced(r)
	}
}

// reading returns ctx with the rules.Reading that a plan allows. Call the func at its end.
func (s *Syncer) reading(ctx context.Context, allowed reading) (context.Context, func()) {
	if allowed == toTheEnd {
		return ctx, func() {}
	}
	until, end := context.WithCancel(ctx)
	stop := func() {}
	if allowed == untilChange {
		stop = s.inbox.onChange(end)
	} else {
		end()
	}
	return rules.WithReading(ctx, until), func() { stop(); end() }
}

// readHost asks the machine about itself if it moved since it was last asked.
func (s *Syncer) readHost() error {
	if s.hostKnown {
		return nil
	}
	host, err := s.config.Host()
	if err != nil {
		return fmt.Errorf("reading this machine's addresses: %w", err)
	}
	s.host, s.hostKnown = host, true
	return nil
}

// decide computes what the kernel should hold, the pure part of a run, and puts it into r.
func (s *Syncer) decide(r *Result) {
	r.Snapshot.Host = s.host
	if s.hasDecided { // else they are those of the Source, if it has any
		r.Snapshot.LastKeys = s.decided.View.LastKeys
	}
	r.View = s.resolver.Resolve(r.Snapshot, s.config.Topology)
	if s.config.Reserved != nil {
		s.config.Rules.APIServers = s.config.Reserved()
	}
	r.Ruleset = s.compiler.Compile(r.View, s.config.Rules)
	s.decided, s.hasDecided = *r, true
}

// enforce makes every Backend hold the Ruleset, and then gives it to the flows.
func (s *Syncer) enforce(ctx context.Context, r *Result) {
	if !r.Verify && s.written != nil && s.written.Ruleset.Same(r.Ruleset) {
		r.Unchanged, r.Changes.Families = true, s.written.Changes.Families
		for _, b := range s.written.Backends {
			r.Backends = append(r.Backends, BackendResult{Name: b.Name, Changes: rules.Changes{Families: b.Changes.Families}})
		}
	} else {
		s.sync(ctx, r)
	}
	if s.config.Flows == nil || s.noteEarlier(*r) {
		return
	}
	synced := r.Changes.Families.Synced() // also without any: Flows take note of what they miss
	begin, f := time.Now(), &r.Flows
	f.Deleted, f.Outlived, f.Err = s.config.Flows.Clean(ctx, r.Ruleset, r.View, synced, r.Changes.Repaired > 0 || r.Changes.Late)
	f.Took = time.Since(begin)
}

// sync gives the Ruleset to every Backend, even if another one fails.
func (s *Syncer) sync(ctx context.Context, r *Result) {
	var errs []error
	r.Changes.Verified = len(s.config.Backends) > 0
	for _, b := range s.config.Backends {
		begin := time.Now()
		changes, err := b.Sync(ctx, r.Ruleset, r.Verify)
		changes.Families = changes.Families.With(err)
		if err != nil {
			errs = append(errs, fmt.Errorf("writing %s rules: %w", b.Name, err))
		}
		r.Backends = append(r.Backends, BackendResult{Name: b.Name, Took: time.Since(begin), Changes: changes, Err: err})
		r.Changes = sum(r.Changes, changes)
	}
	r.Err = errors.Join(errs...)
	s.written = nil
	if r.Err == nil && r.Changes.Again == 0 && r.Changes.Unguarded == nil {
		s.written = &Result{Ruleset: r.Ruleset, Backends: r.Backends, Changes: r.Changes}
	}
}

// noteEarlier gives Flows what was enforced before the cluster was read. True = it still is not, so
// that no flow may be deleted.
func (s *Syncer) noteEarlier(r Result) bool {
	if !r.Snapshot.Saved.IsZero() {
		s.config.Flows.Remember(r.Ruleset.Services)
		s.notedEarlier = true
		return true
	}
	if !s.notedEarlier && !s.config.Saved.Saved.IsZero() {
		saved := s.config.Saved
		saved.Host = s.host
		s.config.Flows.Remember(rules.Compile(topology.Resolve(saved, s.config.Topology), s.config.Rules).Services)
	}
	s.notedEarlier = true
	return false
}

func sum(a, b rules.Changes) rules.Changes {
	return rules.Changes{
		Chains:     a.Chains + b.Chains,
		Rules:      a.Rules + b.Rules,
		Repaired:   a.Repaired + b.Repaired,
		Verified:   a.Verified && b.Verified,
		Late:       a.Late || b.Late,
		VerifyTime: a.VerifyTime + b.VerifyTime,
		WriteTime:  a.WriteTime + b.WriteTime,
		Again:      soonest(a.Again, b.Again),
		Families:   a.Families.Join(b.Families),

		Interrupted: a.Interrupted || b.Interrupted,
		Unguarded:   errors.Join(a.Unguarded, b.Unguarded),
	}
}

// soonest returns the shorter of two waits. A wait of 0 does not count.
func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b)
	}
	return min(a, b)
}

// familyNames returns the families in a set, for messages: "IPv4,IPv6", or "none".
func familyNames(set rules.FamilySet) string {
	var names []string
	for _, f := range rules.Families() {
		if set[f] {
			names = append(names, f.String())
		}
	}
	return cmp.Or(strings.Join(names, ","), "none")
}

// log writes the outcome of a run to the log. A run's errors are logged nowhere else.
func (s *Syncer) log(ctx context.Context, r Result) {
	took := r.End.Sub(r.Start)
	switch {
	case r.Err != nil && errors.Is(context.Cause(ctx), errStopped):
		s.config.Log.Warn("interrupted the running sync because gridproxy is stopping; the next start reads the kernel back", "err", r.Err, "took", took)
		return
	case r.Waits:
		s.config.Log.Debug("synced, except for what failed before",
			"synced", familyNames(r.Changes.Families.Synced()), "retryIn", s.schedule.retry.Sub(r.End), "took", took)
	case r.Err != nil:
		after := s.schedule.after(r)
		s.config.Log.Error("sync failed; the rules in force stay",
			"err", r.Err, "synced", familyNames(r.Changes.Families.Synced()), "failures", after.failures, "retryIn", after.retry.Sub(r.End), "took", took)
		return
	case s.schedule.failures > 0:
		s.config.Log.Info("sync works again", "failures", s.schedule.failures, "took", took)
	case s.schedule.ended.IsZero():
		s.config.Log.Info("first sync done", "services", len(r.Ruleset.Services), "chains", r.Changes.Chains, "took", took)
	case r.plan.alone && r.Changes.Interrupted:
		s.config.Log.Debug("interrupted a verification, because a change is to be written first", "took", took)
	default:
		s.config.Log.Debug("synced", "verify", r.Verify, "chains", r.Changes.Chains, "rules", r.Changes.Rules, "took", took)
	}
	for _, b := range r.Backends {
		if b.Changes.Repaired > 0 {
			s.config.Log.Warn("repaired rules that another process changed", "backend", b.Name, "chains", b.Changes.Repaired)
		}
	}
	if r.Flows.Err != nil {
		s.config.Log.Warn("some stale flows could not be deleted; the next sync retries", "err", r.Flows.Err)
	}
	if r.Flows.Deleted > 0 || r.Flows.Outlived > 0 {
		s.config.Log.Info("flows swept", "udpDeleted", r.Flows.Deleted, "outlivedClosure", r.Flows.Outlived, "took", r.Flows.Took)
	}
}
