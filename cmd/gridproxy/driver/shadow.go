package driver

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
)

// Shadow is a Driver that compares and writes nothing. It reports a difference only after it was
// found twice, because the proxy that writes the rules may not be done yet.
type Shadow struct {
	rules.Backend
	chains *iptables.Shadow
	names  netfilter.Naming
	layers []layer // in the order in which diff prints their differences

	compared bool              // a comparison has succeeded
	last     []tableDifference // by the last one that succeeded
	steady   bool              // the one before found the same
}

// layer is what one backend compares. The backend decides the order of its differences.
type layer struct {
	tables []string // all that are compared, even if they do not differ
	found  func() []tableDifference
}

// tableDifference is a Difference with the table and family that metrics count it under.
type tableDifference struct {
	Difference
	table, family string
}

// Difference is a chain, or a part of virtual servers, that is not as desired. It prints a unified
// diff.
type Difference interface {
	io.WriterTo
	Services() []string // NAMESPACE/NAME
}

// settling is the time after which a shadow that is not steady compares again.
const settling = 2 * time.Second

// Sync compares, and asks to be called again unless the comparison before found the same. One
// that fails does not count: its differences may be old.
func (s *Shadow) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	changes, err := s.Backend.Sync(ctx, want, verify)
	if err != nil {
		return changes, err
	}
	before, now := s.last, s.found()
	s.steady = s.compared && reflect.DeepEqual(before, now)
	s.compared, s.last = true, now
	if !s.steady {
		changes.Again = settling
	}
	return changes, nil
}

func (s *Shadow) found() []tableDifference {
	var all []tableDifference
	for _, l := range s.layers {
		all = append(all, l.found()...)
	}
	return all
}

// Differences returns what the last Sync found, in the order in which diff prints it.
func (s *Shadow) Differences() []Difference {
	var all []Difference
	for _, f := range s.found() {
		all = append(all, f.Difference)
	}
	return all
}

// services returns the Services that the differences belong to, sorted.
func (s *Shadow) services() []string {
	var names []string
	for _, f := range s.found() {
		names = append(names, f.Services()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Written reports whether there are chains of a service proxy, or the kernel cannot be asked.
func (s *Shadow) Written() bool { return chainsWritten(s.Variant(), s.names) }

// Variant returns which iptables is read.
func (s *Shadow) Variant() netfilter.Variant { return s.chains.Variant() }

// Counts returns what metrics ask of a shadow.
func (s *Shadow) Counts() metrics.Kernel {
	return metrics.Kernel{Packets: countPackets, Shadow: s.counts, Trial: s.chains.Trial}
}

// counts returns how many chains differ in every table and family, 0 included.
func (s *Shadow) counts() metrics.Shadow {
	counts := metrics.Shadow{Services: len(s.services())}
	for _, f := range s.chains.Families() {
		for _, l := range s.layers {
			for _, table := range l.tables {
				counts.Chains = append(counts.Chains, metrics.ChainCount{Table: table, Family: f.String()})
			}
		}
	}
	for _, f := range s.found() {
		at := slices.IndexFunc(counts.Chains, func(c metrics.ChainCount) bool { return c.Table == f.table && c.Family == f.family })
		if at < 0 { // the family is not compared any more
			at = len(counts.Chains)
			counts.Chains = append(counts.Chains, metrics.ChainCount{Table: f.table, Family: f.family})
		}
		counts.Chains[at].Chains++
	}
	return counts
}

// Observers returns one that logs what differs.
func (s *Shadow) Observers(_ *event.Reporter, log *slog.Logger) []syncer.Observer {
	return []syncer.Observer{&shadowObserver{log: log, kernel: s}}
}

// shadowObserver logs the differences each time that their number or their Services change.
type shadowObserver struct {
	log    *slog.Logger
	kernel *Shadow
	logged bool
	count  int
	names  []string
}

// mostNames is how many Services one line of the log names.
const mostNames = 20

// Synced logs what differs, if that has changed and the shadow is steady.
func (o *shadowObserver) Synced(r syncer.Result) {
	if r.Err != nil || !o.kernel.steady {
		return
	}
	count, names := len(o.kernel.found()), o.kernel.services()
	if o.logged && count == o.count && slices.Equal(names, o.names) {
		return
	}
	o.logged, o.count, o.names = true, count, names
	if count == 0 {
		o.log.Info("the kernel holds what gridproxy would write")
		return
	}
	o.log.Info("the kernel differs from what gridproxy would write; `gridproxy diff` shows how",
		"differences", count, "services", len(names), "first", names[:min(mostNames, len(names))])
}
