package ipvs

import (
	"context"
	"errors"
	"fmt"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"golang.org/x/sys/unix"
)

// mostErrors is how many errors of one Sync are told in full.
const mostErrors = 5

// turn is one Sync: what it did, and what failed.
type turn struct {
	backend *Backend
	ctx     context.Context // of the Sync, for rules.Progress
	changes rules.Changes
	chains  rules.Outcomes // of the families' chains
	failed  [2]failures    // of the Ops, by family
	ended   error          // why no more Ops are done: the kernel hangs, or the Sync is to end
	unset   error          // what virtual servers need and could not be set
	// refused are virtual servers that the kernel did not take, and why; nil = such an Op fails.
	refused map[ServerKey]error
}

// run does Ops one after the other. One that fails does not stop those after it, unless the
// kernel does not answer.
func (t *turn) run(ops []Op) {
	for _, op := range ops {
		if t.ended == nil {
			t.ended = context.Cause(t.ctx)
		}
		if t.ended != nil {
			return
		}
		if _, refused := t.refused[op.Destination.Server]; refused || t.backend.planner.Skip(op) {
			continue
		}
		switch err := t.backend.kernel.do(op); {
		case errors.Is(err, errForeign):
			t.run(t.backend.planner.Conflict(op.Destination.Server))
		case hangs(err):
			t.ended = err
		case err != nil && !t.refuse(op, err):
			t.fail(op.family(), err)
		case err != nil:
		default:
			t.backend.planner.Done(op)
			t.note(op)
			rules.Progress(t.ctx)
		}
	}
}

// grow does what run does, and returns the virtual servers that the kernel did not take, with its
// words. Chains can take their place, so they are no failures.
func (t *turn) grow(ops []Op) map[ServerKey]error {
	t.refused = map[ServerKey]error{}
	t.run(ops)
	refused := t.refused
	t.refused = nil
	return refused
}

// refuse notes which virtual servers cannot be because the kernel refused an Op; false = none, or
// what the kernel is believed to hold is not there, which is to be read back.
func (t *turn) refuse(op Op, err error) bool {
	stale := errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) || op.Kind == AddEntry && errors.Is(err, unix.ENOENT)
	if stale || t.refused == nil {
		return false
	}
	needing := t.backend.planner.Needing(op)
	for _, key := range needing {
		t.refused[key] = err
	}
	return len(needing) > 0
}

func (t *turn) fail(f netfilter.Family, err error) { t.failed[f].add(err) }

// outcomes are those of the whole Sync. err is an error of both families.
func (t *turn) outcomes(err error) rules.Outcomes {
	all := t.chains
	for f := range all {
		if failed := errors.Join(t.failed[f].err(), all[f].Err, t.ended, t.unset, err); failed != nil {
			all[f] = rules.Outcome{Err: failed}
		}
	}
	return all
}

// err is what Ops failed with; nil = nothing.
func (t *turn) err() error { return errors.Join(t.failed[0].err(), t.failed[1].err(), t.ended) }

// failures are what Ops of one family failed with.
type failures struct {
	errs  []error // the first of them
	count int
}

func (f *failures) add(err error) {
	f.count++
	if len(f.errs) < mostErrors {
		f.errs = append(f.errs, err)
	}
}

// err is what failed; nil = nothing.
func (f *failures) err() error {
	errs := f.errs
	if more := f.count - len(errs); more > 0 {
		errs = append(errs[:len(errs):len(errs)], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// note counts an Op that was done.
func (t *turn) note(op Op) {
	switch op.Kind {
	case AddServer, UpdateServer, DeleteServer:
		t.changes.Chains++
	case AddDestination, UpdateDestination, DeleteDestination:
		t.changes.Rules++
	}
}

// count adds what was done to the chains, and how that ended.
func (t *turn) count(c rules.Changes, err error) {
	t.chains = t.chains.Join(c.Families.With(err))
	t.changes.Chains += c.Chains
	t.changes.Rules += c.Rules
	t.changes.Repaired += c.Repaired
	t.changes.Unguarded = c.Unguarded
	t.changes.Verified = t.changes.Verified && c.Verified
}

// repairs counts, by what they belong to, the Ops that put right what we had written.
func (t *turn) repairs(ops []Op) {
	repaired := map[any]struct{}{}
	for _, op := range ops {
		switch op.Kind {
		case AddAddress, DeleteAddress:
			repaired[op.Addr] = struct{}{}
		case AddEntry, DeleteEntry:
			repaired[op.Entry] = struct{}{}
		default:
			repaired[op.Destination.Server] = struct{}{}
		}
	}
	t.changes.Repaired += len(repaired)
}
