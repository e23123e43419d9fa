package iptables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/iptables/refusal"
	"gridproxy/rules/netfilter"
)

// families opens the configured address families. A family that could not be opened stays closed,
// with its outcome, and is tried again. An open family stays open.
type families[T any] struct {
	variant netfilter.Variant
	exists  func(netfilter.Family) bool
	open    func(context.Context, netfilter.Family) (T, error)
	log     *slog.Logger
	closed  []closedFamily // sorted by Family
}

type closedFamily struct {
	family  netfilter.Family
	tried   bool
	outcome rules.Outcome
	message string // of the outcome that was logged last
}

func newFamilies[T any](c Config, v netfilter.Variant, open func(context.Context, netfilter.Family) (T, error)) *families[T] {
	fs := &families[T]{variant: v, exists: c.HasFamily, open: open, log: c.Log}
	for _, f := range slices.Sorted(slices.Values(c.Families)) {
		fs.closed = append(fs.closed, closedFamily{family: f})
	}
	return fs
}

// start opens families for the first time, and returns those that it opened. It fails if no
// family is open and waiting cannot help: all are left out, this process may not use the tools,
// or the kernel lacks a match that every Service needs.
func (fs *families[T]) start(ctx context.Context) ([]T, error) {
	opened := fs.try(ctx, true, false)
	if len(opened) > 0 {
		return opened, nil
	}
	var errs []error
	for _, c := range fs.closed {
		if c.outcome.Err != nil && !isHopeless(c.outcome.Err) {
			return nil, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.family, errors.Join(c.outcome.Err, c.outcome.LeftOut)))
	}
	return nil, fmt.Errorf("iptables-%s works for no address family: %w", fs.variant, errors.Join(errs...))
}

// try opens the closed families that can be opened now, and returns these. Why others stay
// closed is logged and in outcomes. Only with again does it retry missing tables, which costs
// two processes, and a family that failed while another one works, which may take minutes.
func (fs *families[T]) try(ctx context.Context, again, works bool) []T {
	var opened []T
	closed := fs.closed[:0]
	for _, c := range fs.closed {
		if c.outcome.Err != nil && works && !again {
			closed = append(closed, c)
			continue
		}
		t, err := fs.tryOne(ctx, c, again)
		if err == nil {
			if c.tried {
				fs.log.Info("an address family can be written now", "family", c.family.String(), "variant", string(fs.variant))
			}
			opened = append(opened, t)
			continue
		}
		c.tried = true
		c.outcome = outcomeOf(err, fs.variant, c.family)
		c.logChange(fs.log)
		closed = append(closed, c)
	}
	fs.closed = closed
	return opened
}

func (fs *families[T]) tryOne(ctx context.Context, c closedFamily, again bool) (T, error) {
	var none T
	if fs.exists != nil && !fs.exists(c.family) {
		return none, absentError{missingFamily(c.family)}
	}
	if before := c.outcome.LeftOut; !again && errors.As(before, new(missingTableError)) {
		return none, before
	}
	return fs.open(ctx, c.family)
}

func missingFamily(f netfilter.Family) error {
	if f == netfilter.IPv6 {
		return errors.New("this kernel does not have IPv6, or sysctl net.ipv6.conf.all.disable_ipv6 is 1")
	}
	return fmt.Errorf("this kernel does not have %s", f)
}

// logChange logs why a family is closed, if the reason has changed.
func (c *closedFamily) logChange(log *slog.Logger) {
	err := c.outcome.LeftOut
	text := "an address family is left out; each verification looks for it again"
	if err == nil {
		err, text = c.outcome.Err, "an address family cannot be written; it is retried after a back-off"
	}
	if err.Error() == c.message {
		return
	}
	c.message = err.Error()
	log.Warn(text, "family", c.family.String(), "err", err)
}

// outcomes returns the outcomes of the closed families. Open ones have the zero value. A family
// that is not configured is left out.
func (fs *families[T]) outcomes(configured []netfilter.Family) rules.Outcomes {
	var all rules.Outcomes
	for f := range all {
		if !slices.Contains(configured, netfilter.Family(f)) {
			all[f].LeftOut = errors.New("the family is not configured")
		}
	}
	for _, c := range fs.closed {
		all[c.family] = c.outcome
	}
	return all
}

// absentError says that this machine lacks a family's tool or kernel support.
type absentError struct{ error }

// missingTableError is an absentError of the kernel that only running a tool reveals.
type missingTableError struct{ error }

func (e missingTableError) Unwrap() error { return e.error }

// outcomeOf returns the outcome of a family that could not be opened. Only an absent family is
// left out.
func outcomeOf(err error, v netfilter.Variant, f netfilter.Family) rules.Outcome {
	if errors.As(err, new(absentError)) || errors.As(err, new(missingTableError)) || errors.Is(err, exec.ErrNotFound) {
		return rules.Outcome{LeftOut: err}
	}
	return rules.Outcome{Err: fmt.Errorf("opening %s with iptables-%s: %w", f, v, err)}
}

// missingTable is what the tools print on a kernel without a family's tables: iptables-legacy,
// iptables-nft without nf_tables, and both without the family.
var missingTable = []string{
	"Table does not exist",
	"Could not fetch rule set generation id: Invalid argument",
	"Address family not supported by protocol",
	"Protocol not supported",
}

// whetherMissing returns a missingTableError if a tool's error is about a missing table, else
// that error.
func whetherMissing(err error) error {
	if slices.ContainsFunc(missingTable, func(text string) bool { return strings.Contains(err.Error(), text) }) {
		return missingTableError{err}
	}
	return err
}

// isHopeless reports whether waiting cannot help: a permission or a needed match is missing.
func isHopeless(err error) bool {
	return strings.Contains(err.Error(), "Permission denied") || errors.As(err, new(refusal.MissingMatchError))
}
