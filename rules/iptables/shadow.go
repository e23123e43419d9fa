package iptables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridproxy/rules"

	"github.com/coreos/go-iptables/iptables"
)

// Shadow compares the calling thread's network namespace with a Ruleset, and writes nothing:
// no rule, no counter, and not even a table by reading it. So it compares a family that a Backend
// leaves out because the kernel has no table nat for it: of legacy there is none before the first
// use, which alone would tell. It implements rules.Backend. One goroutine uses it.
type Shadow struct {
	config      Config
	variant     Variant
	readers     []reader
	limit       time.Duration // readLimit
	differences []Difference
	trial       bool // chains of a trial stand beside ours
}

// reader reads one family.
type reader struct {
	save        saver
	randomFully bool
}

// NewShadow finds the tools.
func NewShadow(ctx context.Context, c Config) (*Shadow, error) {
	c, variant, err := c.complete(ctx)
	if err != nil {
		return nil, err
	}
	s := &Shadow{variant: variant, limit: readLimit}
	s.config, s.readers, err = openFamilies(c, variant, func(f Family) (reader, error) { return newReader(variant, f) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newReader(v Variant, f Family) (reader, error) {
	save, err := findTool(v.tool(f, "-save"))
	if err != nil {
		return reader{}, err
	}
	tool, err := findTool(v.tool(f, ""))
	if err != nil {
		return reader{}, err
	}
	ipt, err := iptables.New(iptables.IPFamily(f.protocol()), iptables.Path(tool)) // asks for its version, no more
	if err != nil {
		return reader{}, fmt.Errorf("asking %s for its version: %w", tool, err)
	}
	return reader{save: saver{path: save, family: f}, randomFully: ipt.HasRandomFully()}, nil
}

// Variant is the variant that is read.
func (s *Shadow) Variant() Variant { return s.variant }

// Families are the address families that are read.
func (s *Shadow) Families() []Family { return slices.Clone(s.config.Families) }

// Sync compares the kernel with want; Differences tells what came of it. What one family fails
// at does not stop the other, and leaves what was found there last.
func (s *Shadow) Sync(ctx context.Context, want rules.Ruleset, _ bool) (rules.Changes, error) {
	before, trial := s.differences, s.trial
	s.differences, s.trial = nil, false
	var errs []error
	for _, r := range s.readers {
		now, err := r.within(ctx, s.limit, want, s.config)
		if err != nil {
			errs = append(errs, fmt.Errorf("comparing %s with iptables-%s: %w", r.save.family, s.variant, err))
			now = findings{slices.DeleteFunc(slices.Clone(before), func(d Difference) bool { return d.Family != r.save.family }), trial}
		}
		s.differences = append(s.differences, now.differences...)
		s.trial = s.trial || now.trial
	}
	if s.trial && !trial {
		warnOfTrial(s.config.Log)
	}
	return rules.Changes{Verified: len(errs) == 0}, errors.Join(errs...)
}

// findings are what a comparison found in one family.
type findings struct {
	differences []Difference
	trial       bool // there are chains of a trial
}

// within gives up after a limit: see readLimit.
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
	o := c.options(r.save.family, r.randomFully, false) // no kernel object of a counter is made
	found := newComparison(written{rules: want, options: o.For(want)})
	for line, err := range r.save.lines(ctx, "") { // to ask legacy for one table would make it
		if err != nil {
			return findings{}, err
		}
		found.read(line)
	}
	return findings{differences: found.differences(), trial: found.index.trial}, nil
}

// Cleanup does nothing: nothing was written.
func (s *Shadow) Cleanup(context.Context) error { return nil }

// Trial reports what Backend.Trial does.
func (s *Shadow) Trial() bool { return s.trial }

// Differences are what the last Sync found, by family, table and chain.
func (s *Shadow) Differences() []Difference { return s.differences }
