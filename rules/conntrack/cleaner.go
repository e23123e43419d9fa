package conntrack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/changes"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// dumpAttempts is how often a listing that the kernel says a change has interrupted is made.
const dumpAttempts = 5

// sweepLimit is how long the sweep of all tables may take: a million flows take seconds. What
// was deleted by then stays deleted, and the next call sweeps again.
const sweepLimit = time.Minute

var errLate = fmt.Errorf("sweeping flows took more than %s; it continues at the next sync", sweepLimit)

// Cleaner keeps the kernel's flows in accord with the Ruleset that the kernel enforces. The
// zero value works on the network namespace of the calling thread. One goroutine uses it.
type Cleaner struct {
	families [2]swept // by rules.Family
}

// swept is what is known of one family.
type swept struct {
	last   []*rules.Service // what the table was last swept for
	missed bool             // since then a family's rules were not in force
}

// Remember notes Services that an earlier process enforced. Before the first Clean it takes the
// place of an earlier one that swept for them.
func (c *Cleaner) Remember(services []*rules.Service) {
	for i := range c.families {
		c.families[i].last = services
	}
}

// Clean sweeps the table if the UDP part of want differs from the last sweep. At the first call it
// sweeps if want has a UDP part. With force it always sweeps: rules were missing for a time, so
// flows may have passed untranslated. view is what want was compiled from. Only the families in
// synced are swept, because the kernel must hold their part of want already. The others are swept
// when they are synced again.
//
// deleted counts UDP flows. outlived counts TCP and SCTP flows whose endpoint was in the unit at
// the last call and is outside now. After an error some flows may have been missed, and the next
// call sweeps again.
func (c *Cleaner) Clean(
	ctx context.Context, want rules.Ruleset, view topology.View, synced rules.FamilySet, force bool,
) (deleted, outlived int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLimit, errLate)
	defer cancel()
	var errs []error
	for _, f := range rules.Families() {
		family := &c.families[f]
		family.missed = family.missed || force || !synced[f]
		if !synced[f] {
			continue
		}
		d, o, err := family.clean(ctx, f, want, view)
		deleted += d
		outlived += o
		errs = append(errs, err)
	}
	return deleted, outlived, errors.Join(errs...)
}

func (s *swept) clean(ctx context.Context, f rules.Family, want rules.Ruleset, view topology.View) (deleted, outlived int, err error) {
	udp := s.missed || !sameUDP(s.last, want.Services)
	sweep := NewSweep(s.last, want, view, udp, rules.FamilySet{f == rules.IPv4, f == rules.IPv6})
	var errs []error
	for _, table := range sweep.Tables() {
		d, o, err := sweepTable(ctx, table, sweep.Judge)
		deleted += d
		outlived += o
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return deleted, 0, err
	}
	s.last, s.missed = want.Services, false
	return deleted, outlived, nil
}

// sameUDP compares the UDP Services by pointer. In a Ruleset, equal pointers mean that nothing
// changed.
func sameUDP(a, b []*rules.Service) bool {
	for old, now := range changes.Between(a, b, compareServices) {
		if isUDP(old) || isUDP(now) {
			return false
		}
	}
	return true
}

func isUDP(s *rules.Service) bool { return s != nil && s.Name.Protocol == corev1.ProtocolUDP }

func compareServices(a, b *rules.Service) int { return topology.CompareNames(a.Name, b.Name) }

// sweepTable lists one table and deletes what is stale, again where the listing was
// interrupted.
func sweepTable(ctx context.Context, table Table, judge func(Flow) Verdict) (deleted, outlived int, err error) {
	for range dumpAttempts {
		var stale [][]byte
		outlived = 0
		err = dump(table, func(f Flow, message []byte) bool {
			switch judge(f) {
			case Stale:
				stale = append(stale, bytes.Clone(message))
			case Outlived:
				outlived++
			}
			return ctx.Err() == nil
		})
		n, removeErr := removeAll(ctx, table, stale)
		deleted += n
		if err = errors.Join(err, removeErr, context.Cause(ctx)); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return deleted, outlived, err
}

// EndFlows deletes the flows of a table that are to go, and returns how many did.
func EndFlows(ctx context.Context, t Table, goes func(Flow) bool) (deleted int, err error) {
	deleted, _, err = sweepTable(ctx, t, func(f Flow) Verdict { return staleIf(goes(f)) })
	return deleted, err
}

// removeAll deletes the flows of these messages, and returns how many it deleted. It continues
// after a failure, unless the kernel does not answer. The kernel refuses to delete a flow that
// is offloaded to hardware, and the other flows must not wait for it.
func removeAll(ctx context.Context, table Table, stale [][]byte) (deleted int, err error) {
	var failed int
	for _, raw := range stale {
		if ctx.Err() != nil {
			break
		}
		switch ok, removeErr := remove(table, raw); {
		case errors.Is(removeErr, unix.EAGAIN): // the kernel did not answer; each other one would wait as long
			return deleted, removeErr
		case removeErr != nil:
			failed++
			err = removeErr
		case ok:
			deleted++
		}
	}
	if failed > 1 {
		err = fmt.Errorf("%d of %d flows failed, the last: %w", failed, len(stale), err)
	}
	return deleted, err
}
