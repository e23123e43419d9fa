package daemon

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/rules"
	"gridproxy/rules/conntrack"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/prometheus/client_golang/prometheus"
)

// pipeline is one run of everything that does not read or write the kernel's rules.
type pipeline struct {
	views     topology.Memo
	compiler  rules.Memo
	flows     syncer.Flows
	observers []syncer.Observer
}

func newPipeline() *pipeline {
	quarantined := func() []event.Quarantined { return nil }
	reporter := event.NewReporter(slog.New(slog.DiscardHandler), nil)
	return &pipeline{
		flows: &quarantineFlows{Flows: &conntrack.Cleaner{}, quarantined: quarantined},
		observers: []syncer.Observer{
			portObserver{healthcheck.New(func(rules.Family) bool { return true }), reporter, quarantined},
			metrics.New(prometheus.NewRegistry(), time.Now(), metrics.Kernel{}),
			reporter,
			&nodeObserver{log: slog.New(slog.DiscardHandler)},
		},
	}
}

func (p *pipeline) run(b *testing.B, s topology.Snapshot, decide bool, last syncer.Result) syncer.Result {
	r := last
	r.Start = time.Now()
	if decide {
		r.Snapshot = s
		r.Snapshot.LastKeys = last.View.LastKeys
		r.View = p.views.Resolve(r.Snapshot, topology.Config{})
		r.Ruleset = p.compiler.Compile(r.View, rules.Config{DetectLocal: rules.DetectLocal{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}})
	}
	if _, _, err := p.flows.Clean(context.Background(), r.Ruleset, r.View, rules.FamilySet{true, true}, false); err != nil {
		b.Fatal(err)
	}
	r.End = time.Now()
	for _, o := range p.observers {
		o.Synced(r)
	}
	return r
}

// BenchmarkRun: what one run among 10,000 Services costs, without reading and writing the kernel's
// rules. At rest nothing has changed, and nothing is decided.
func BenchmarkRun(b *testing.B) {
	size := topologytest.Large{Services: 10000, Endpoints: 2, Nodes: 100}
	for _, c := range []struct {
		name   string
		change func(s topology.Snapshot, n int) topology.Snapshot // nil = at rest
	}{
		{"at-rest", nil},
		{"endpoints", func(s topology.Snapshot, n int) topology.Snapshot { return size.Move(s, 17, 1+n%2) }},
		{"service-added-or-removed", func(s topology.Snapshot, n int) topology.Snapshot {
			s.Services = slices.Clone(s.Services[:size.Services])
			if n%2 == 0 {
				s.Services = append(s.Services, size.Service(size.Services))
			}
			return s
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := size.Snapshot()
			p := newPipeline()
			last := p.run(b, s, true, syncer.Result{})
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if c.change != nil {
					b.StopTimer()
					s = c.change(s, n)
					b.StartTimer()
				}
				last = p.run(b, s, c.change != nil, last)
			}
		})
	}
}
