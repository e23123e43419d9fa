package rules_test

import (
	"net/netip"
	"slices"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"
)

// BenchmarkChange: from the Snapshot to the Ruleset after one change among 10,000 Services, with
// both memos.
func BenchmarkChange(b *testing.B) {
	size := topologytest.Large{Services: 10000, Endpoints: 2, Nodes: 100}
	config := rules.Config{DetectLocal: rules.DetectLocal{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for _, c := range []struct {
		name   string
		change func(s topology.Snapshot, n int) topology.Snapshot
	}{
		{"nothing", func(s topology.Snapshot, _ int) topology.Snapshot { return s }},
		{"endpoints", func(s topology.Snapshot, n int) topology.Snapshot { return size.Move(s, 17, 1+n%2) }},
		{"service-added-or-removed", func(s topology.Snapshot, n int) topology.Snapshot {
			if n%2 == 0 {
				s.Services = append(slices.Clone(s.Services), size.Service(size.Services))
			} else {
				s.Services = s.Services[:size.Services]
			}
			return s
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := size.Snapshot()
			var views topology.Memo
			var memo rules.Memo
			run := func() {
				v := views.Resolve(s, topology.Config{})
				s.LastKeys = v.LastKeys
				memo.Compile(v, config)
			}
			run()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				s = c.change(s, n)
				b.StartTimer()
				run()
			}
		})
	}
}
