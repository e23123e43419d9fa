package iptables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/iptables/refusal"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// Shadow compares the calling thread's network namespace with a Ruleset. It writes nothing: no
// rule, no counter, and no table as a side effect of reading it. So it also compares a family that
// a Backend leaves out because the kernel has no table nat: the legacy one does not exist before
// its first use. It implements rules.Backend. One goroutine uses it.
type Shadow struct {
	config      Config
	variant     netfilter.Variant
	families    *families[reader] // not open yet
	readers     []reader          // open, sorted by family
	opened      bool              // families were tried since the last Sync
	limit       time.Duration     // readTimeout
	differences []Difference
	trial       bool // there are chains of a trial
}

// reader reads one family.
type reader struct {
	save        saver
	randomFully bool
}

// NewShadow finds the tools. It fails if no family is open and waiting cannot help.
func NewShadow(ctx context.Context, c Config) (*Shadow, error) {
	c, variant, err := c.complete(ctx)
	if err != nil {
		return nil, err
	}
	s := &Shadow{config: c, variant: variant, limit: readTimeout}
	s.families = newFamilies(c, variant, func(ctx context.Context, f netfilter.Family) (reader, error) { return newReader(ctx, variant, f) })
	if s.readers, err = s.families.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newReader(ctx context.Context, v netfilter.Variant, f netfilter.Family) (reader, error) {
	save, err := findTool(toolName(v, f, "-save"))
	if err != nil {
		return reader{}, err
	}
	tool, err := findTool(toolName(v, f, ""))
	if err != nil {
		return reader{}, err
	}
	version, err := probeVersion(ctx, command{path: tool}, v)
	if err != nil {
		return reader{}, err
	}
	return reader{save: saver{path: save, variant: v, family: f}, randomFully: version.randomFully()}, nil
}

// Variant returns the variant that is read.
func (s *Shadow) Variant() netfilter.Variant { return s.variant }

// Families returns the address families that are read.
func (s *Shadow) Families() []netfilter.Family {
	open := []netfilter.Family{}
	for _, r := range s.readers {
		open = append(open, r.save.family)
	}
	return open
}

// Open tries to open the families that are not open yet. The next Sync does not try again.
func (s *Shadow) Open(ctx context.Context, _ bool) {
	s.opened = true
	s.readers = append(s.readers, s.families.try(ctx, true, len(s.readers) > 0)...)
	slices.SortFunc(s.readers, func(a, b reader) int { return cmp.Compare(a.save.family, b.save.family) })
}

// Sync compares the kernel with want; see Differences. An error in one family does not stop the
// other, and keeps the family's last differences.
func (s *Shadow) Sync(ctx context.Context, want rules.Ruleset, _ bool) (rules.Changes, error) {
	if !s.opened {
		s.Open(ctx, true)
	}
	s.opened = false
	before, trial := s.differences, s.trial
	s.differences, s.trial = nil, false
	outcomes := s.families.outcomes(s.config.Families)
	for _, r := range s.readers {
		now, err := r.within(ctx, s.limit, want, s.config)
		if err != nil {
			outcomes[r.save.family].Err = fmt.Errorf("comparing %s with iptables-%s: %w", r.save.family, s.variant, err)
			now = findings{slices.DeleteFunc(slices.Clone(before), func(d Difference) bool { return d.Family != r.save.family }), trial}
		}
		s.differences = append(s.differences, now.differences...)
		s.trial = s.trial || now.trial
	}
	if s.trial && !trial {
		warnOfTrial(s.config.Log)
	}
	err := outcomes.Err()
	if err == nil && len(s.readers) == 0 {
		err = fmt.Errorf("iptables-%s works for no address family: %w", s.variant, outcomes.LeftOut())
	}
	return rules.Changes{Verified: err == nil, Families: outcomes}, err
}

// findings are the result of comparing one family.
type findings struct {
	differences []Difference
	trial       bool // there are chains of a trial
}

// within compares as compare does, with a limit: see readTimeout.
func (r reader) within(ctx context.Context, limit time.Duration, want rules.Ruleset, c Config) (findings, error) {
	reading, cancel := inTime(ctx, limit)
	defer cancel()
	found, err := r.compare(reading, want, c)
	if err != nil && ctx.Err() == nil && reading.Err() != nil {
		return findings{}, fmt.Errorf("%w: %w", context.Cause(reading), err)
	}
	return found, err
}

func (r reader) compare(ctx context.Context, want rules.Ruleset, c Config) (findings, error) {
	o := c.options(r.save.family, r.randomFully, false) // it creates no nfacct object
	w := render.Desired{Rules: want, Options: o.For(want)}
	w.Options.FewComments = false // a difference tells its Services by them; they are not compared
	found, evidence, err := r.compareWith(ctx, w)
	if err == nil && evidence.Any() {
		c.Log.Warn("the kernel refuses some Services in part or whole; comparing with what is in force instead",
			"family", o.Family.String(), "quarantined", len(evidence.Quarantined), "withoutAffinity", len(evidence.WithoutAffinity), "withoutIPVS", evidence.WithoutIPVS)
		found, _, err = r.compareWith(ctx, evidence.Apply(w))
	}
	if err != nil {
		return findings{}, err
	}
	return findings{differences: found.differences(), trial: found.state.trial}, nil
}

// compareWith reads the kernel once. Evidence is what our rules say about refused Services.
func (r reader) compareWith(ctx context.Context, w render.Desired) (*recordedState, refusal.Evidence, error) {
	evidence := refusal.NewEvidence()
	found, err := newRecordedState(ctx, w)
	if err != nil {
		return nil, evidence, err
	}
	for line, err := range r.save.lines(ctx, "", netfilter.Filter, netfilter.NAT) { // legacy would create a named table
		if err != nil {
			return nil, evidence, err
		}
		found.read(line)
		if w.Options.Names.IsOurs(line.Table, line.Chain) {
			evidence.Read(line)
		}
	}
	return found, evidence, nil
}

// ReadEvidence reads Evidence from this machine's rules, of both families. It writes nothing. A
// family without tools has no rules.
func ReadEvidence(ctx context.Context, v netfilter.Variant, n netfilter.Naming) (refusal.Evidence, error) {
	found := refusal.NewEvidence()
	var errs []error
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		path, err := findTool(toolName(v, f, "-save"))
		if err != nil {
			continue
		}
		for line, err := range (saver{path: path, family: f}).lines(ctx, "") {
			if err != nil {
				errs = append(errs, fmt.Errorf("reading the rules of %s: %w", f, err))
				break
			}
			if n.IsOurs(line.Table, line.Chain) {
				found.Read(line)
			}
		}
	}
	return found, errors.Join(errs...)
}

// Cleanup does nothing, because nothing was written.
func (s *Shadow) Cleanup(context.Context) error { return nil }

// Trial reports whether the last Sync found chains of a trial; see Backend.Trial.
func (s *Shadow) Trial() bool { return s.trial }

// Differences returns those of the last Sync, by family, table and chain.
func (s *Shadow) Differences() []Difference { return s.differences }
