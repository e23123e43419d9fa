package driver

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// Shadow stands in the place of what writes into the kernel: it compares, and writes nothing.
// Whoever writes there may not be done yet: what is found once is no difference worth telling.
type Shadow struct {
	rules.Backend
	layers   []layer // in the order in which their differences are printed
	families func() []rules.Family
	trial    func() bool
	written  func() bool

	compared bool              // a comparison has succeeded
	last     []tableDifference // by the last one that succeeded
	steady   bool              // the one before found the same
}

// layer is what one backend compares.
type layer struct {
	tables []string // all that are compared, also those that do not differ
	found  func() []tableDifference
}

// tableDifference is a Difference with the table and family that metrics count it under.
type tableDifference struct {
	Difference
	table, family string
}

// Difference is one thing that the kernel does not hold as it is wanted.
type Difference interface {
	io.WriterTo
	Services() []string // NAMESPACE/NAME
}

// settling is in what time a shadow asks to be called again when it is not steady.
const settling = 2 * time.Second

// Sync compares. A comparison that fails is none: what it found may be what was there long ago.
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

// Differences are what the last Sync found.
func (s *Shadow) Differences() []Difference {
	var all []Difference
	for _, f := range s.found() {
		all = append(all, f.Difference)
	}
	return all
}

// services are those that the differences are about, sorted.
func (s *Shadow) services() []string {
	names := map[string]struct{}{}
	for _, f := range s.found() {
		for _, name := range f.Services() {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Written asks the kernel as the driver that writes does.
func (s *Shadow) Written() bool { return s.written() }

// Counts are what differs.
func (s *Shadow) Counts() metrics.Kernel {
	return metrics.Kernel{Packets: countPackets, Shadow: s.counts, Trial: s.trial}
}

// counts has what does not differ too.
func (s *Shadow) counts() metrics.Shadow {
	counts := metrics.Shadow{Services: len(s.services())}
	for _, f := range s.families() {
		for _, l := range s.layers {
			for _, table := range l.tables {
				counts.Chains = append(counts.Chains, metrics.ChainCount{Table: table, Family: f.String()})
			}
		}
	}
	for _, f := range s.found() {
		at := slices.IndexFunc(counts.Chains, func(c metrics.ChainCount) bool { return c.Table == f.table && c.Family == f.family })
		if at < 0 { // a family that is not compared any more
			at = len(counts.Chains)
			counts.Chains = append(counts.Chains, metrics.ChainCount{Table: f.table, Family: f.family})
		}
		counts.Chains[at].Chains++
	}
	return counts
}

// Observers log what differs.
func (s *Shadow) Observers(_ *event.Reporter, log *slog.Logger) []syncer.Observer {
	return []syncer.Observer{&shadowObserver{log: log, kernel: s}}
}

// shadowObserver logs what differs, each time that there are more or fewer differences or that
// they are about other Services.
type shadowObserver struct {
	log    *slog.Logger
	kernel *Shadow
	told   bool
	count  int
	names  []string
}

// namesTold is how many Services one line of the log names.
const namesTold = 20

// Synced waits until the shadow is steady.
func (o *shadowObserver) Synced(r syncer.Result) {
	if r.Err != nil || !o.kernel.steady {
		return
	}
	count, names := len(o.kernel.found()), o.kernel.services()
	if o.told && count == o.count && slices.Equal(names, o.names) {
		return
	}
	o.told, o.count, o.names = true, count, names
	if count == 0 {
		o.log.Info("the kernel holds what gridproxy would write")
		return
	}
	o.log.Info("the kernel differs from what gridproxy would write; `gridproxy diff` shows how",
		"differences", count, "services", len(names), "first", names[:min(namesTold, len(names))])
}
