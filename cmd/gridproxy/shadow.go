package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
)

// shadow stands in the place of what writes into the kernel: it compares, and writes nothing.
// Whoever writes there may not be done yet: what is found once is no difference worth telling.
type shadow struct {
	rules.Backend
	tables  *iptables.Shadow
	servers *ipvs.Shadow // nil = virtual servers are somebody else's business

	compared bool         // a comparison has succeeded
	found    []difference // by the last one that succeeded
	steady   bool         // the one before found the same
}

// settling is in what time a shadow asks to be called again when it is not steady.
const settling = 2 * time.Second

// Sync compares. A comparison that fails is none: what it found may be what was there long ago.
func (s *shadow) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	changes, err := s.Backend.Sync(ctx, want, verify)
	if err != nil {
		return changes, err
	}
	before, found := s.found, s.Differences()
	s.steady = s.compared && reflect.DeepEqual(before, found)
	s.compared, s.found = true, found
	if !s.steady {
		changes.Again = settling
	}
	return changes, nil
}

// difference is one thing that the kernel does not hold as it is wanted.
type difference interface {
	io.WriterTo
	Services() []string // NAMESPACE/NAME
}

// newShadow compares what newMechanism would keep.
func newShadow(ctx context.Context, o options.Options, log *slog.Logger) (*shadow, error) {
	tables, err := iptables.NewShadow(ctx, tablesConfig(o, log))
	if err != nil {
		return nil, fmt.Errorf("starting the comparison of iptables: %w", err)
	}
	config, ours := serversConfig(o, tables, log)
	if !ours {
		return &shadow{Backend: tables, tables: tables}, nil
	}
	servers, err := ipvs.NewShadow(config)
	if err != nil {
		return nil, fmt.Errorf("starting the comparison of virtual servers: %w", err)
	}
	return &shadow{Backend: servers, tables: tables, servers: servers}, nil
}

// Differences are what the last Sync found.
func (s *shadow) Differences() []difference {
	var all []difference
	if s.servers != nil {
		for _, d := range s.servers.Differences() {
			all = append(all, d)
		}
	}
	for _, d := range s.tables.Differences() {
		all = append(all, d)
	}
	return all
}

// services are those that the differences are about, sorted.
func (s *shadow) services() []string {
	names := map[string]struct{}{}
	for _, d := range s.Differences() {
		for _, name := range d.Services() {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// counts is what metrics asks. What does not differ is there too.
func (s *shadow) counts() metrics.Shadow {
	counts := metrics.Shadow{Services: len(s.services())}
	add := func(table, family string, different bool) {
		at := slices.IndexFunc(counts.Chains, func(c metrics.ChainCount) bool { return c.Table == table && c.Family == family })
		if at < 0 {
			at = len(counts.Chains)
			counts.Chains = append(counts.Chains, metrics.ChainCount{Table: table, Family: family})
		}
		if different {
			counts.Chains[at].Chains++
		}
	}
	for _, f := range s.tables.Families() {
		add(netfilter.Filter.String(), f.String(), false)
		add(netfilter.NAT.String(), f.String(), false)
		for _, part := range ipvs.Parts() {
			if s.servers != nil {
				add(part.Name, f.String(), false)
			}
		}
	}
	for _, d := range s.tables.Differences() {
		add(d.Table.String(), d.Family.String(), true)
	}
	if s.servers != nil {
		for _, d := range s.servers.Differences() {
			add(d.Part, d.Family.String(), true)
		}
	}
	return counts
}

// shadowObserver logs what differs, each time that there are more or fewer differences or that
// they are about other Services.
type shadowObserver struct {
	log    *slog.Logger
	kernel *shadow
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
	count, names := len(o.kernel.Differences()), o.kernel.services()
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
