package main

import (
	"io"
	"log/slog"
	"maps"
	"slices"

	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
)

// shadow stands in the place of what writes into the kernel: it compares, and writes nothing.
type shadow struct {
	rules.Backend
	tables *iptables.Shadow
}

// difference is one thing that the kernel does not hold as it is wanted.
type difference interface {
	io.WriterTo
	Services() []string // NAMESPACE/NAME
}

func newShadow(o options.Options, here topology.Host, log *slog.Logger) (shadow, error) {
	tables, err := iptables.NewShadow(tablesConfig(o, here, log))
	if err != nil {
		return shadow{}, err
	}
	return shadow{Backend: tables, tables: tables}, nil
}

// Differences are what the last Sync found.
func (s shadow) Differences() []difference {
	var all []difference
	for _, d := range s.tables.Differences() {
		all = append(all, d)
	}
	return all
}

// services are those that the differences are about, sorted.
func (s shadow) services() []string {
	names := map[string]struct{}{}
	for _, d := range s.Differences() {
		for _, name := range d.Services() {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// counts is what metrics asks. A table of which nothing differs is there too.
func (s shadow) counts() metrics.Shadow {
	counts := metrics.Shadow{Services: len(s.services())}
	for _, f := range s.tables.Families() {
		for _, t := range []iptables.Table{iptables.Filter, iptables.NAT} {
			n := 0
			for _, d := range s.tables.Differences() {
				if d.Family == f && d.Table == t {
					n++
				}
			}
			counts.Chains = append(counts.Chains, metrics.ChainCount{Table: t.String(), Family: f.String(), Chains: n})
		}
	}
	return counts
}

// shadowObserver logs what differs, each time that becomes something else.
type shadowObserver struct {
	log    *slog.Logger
	kernel shadow
	told   bool
	chains int
	names  []string
}

// namesTold is how many Services one line of the log names.
const namesTold = 20

// Synced waits until two comparisons have found the same: what another proxy is just writing is
// no difference worth telling.
func (o *shadowObserver) Synced(r syncer.Result) {
	if r.Err != nil || r.Backends == nil || r.Changes.Again > 0 {
		return
	}
	chains, names := len(o.kernel.Differences()), o.kernel.services()
	if o.told && chains == o.chains && slices.Equal(names, o.names) {
		return
	}
	o.told, o.chains, o.names = true, chains, names
	if chains == 0 {
		o.log.Info("the kernel holds what gridproxy would write")
		return
	}
	o.log.Info("the kernel differs from what gridproxy would write; `gridproxy diff` shows how",
		"chains", chains, "services", len(names), "first", names[:min(namesTold, len(names))])
}
