package ipvs

import (
	"errors"
	"fmt"

	"gridproxy/rules"

	"golang.org/x/sys/unix"
)

// mostErrors is how many errors of one Sync are told in full.
const mostErrors = 5

// turn is one Sync: what it did, and what failed.
type turn struct {
	backend *Backend
	changes rules.Changes
	errs    []error // the first of them
	failed  int
	// refused are virtual servers that the kernel did not take, and why; nil = such an Op fails.
	refused map[ServerKey]error
}

// run does Ops one after the other. One that fails does not stop those after it.
func (t *turn) run(ops []Op) {
	for _, op := range ops {
		if _, refused := t.refused[op.Destination.Server]; refused || t.backend.planner.Skip(op) {
			continue
		}
		switch err := t.backend.kernel.do(op); {
		case errors.Is(err, errForeign):
			t.run(t.backend.planner.Conflict(op.Destination.Server))
		case err != nil && !t.refuse(op, err):
			t.fail(err)
		case err != nil:
		default:
			t.backend.planner.Done(op)
			t.note(op)
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

func (t *turn) fail(err error) {
	t.failed++
	if len(t.errs) < mostErrors {
		t.errs = append(t.errs, err)
	}
}

// err is what failed; nil = nothing.
func (t *turn) err() error {
	errs := t.errs
	if more := t.failed - len(errs); more > 0 {
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

// count adds what was done to the chains.
func (t *turn) count(c rules.Changes) {
	t.changes.Chains += c.Chains
	t.changes.Rules += c.Rules
	t.changes.Repaired += c.Repaired
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
