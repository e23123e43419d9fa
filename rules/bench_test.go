package rules_test

import (
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// BenchmarkContested: 10,000 Services name one external IP, the oldest one last. The oldest is
// removed, or created again, and the whole is compiled for the first time.
func BenchmarkContested(b *testing.B) {
	size := topologytest.Large{Services: 10000, Endpoints: 1, Nodes: 10}
	s := size.Snapshot()
	for i, svc := range s.Services {
		svc.Spec.ExternalIPs = []string{"203.0.113.7"}
		svc.CreationTimestamp = metav1.Unix(int64(size.Services-i), 0)
	}
	var views topology.Memo
	all := views.Resolve(s, topology.Config{})
	last := size.Services - 1
	s.Services = s.Services[:last]
	without := views.Resolve(s, topology.Config{})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if n := len(rules.Compile(all, rules.Config{}).AddressConflicts); n != last {
				b.Fatalf("%d conflicts, want %d", n, last)
			}
		}
	})
	for _, c := range []struct {
		name string
		left topology.View
	}{{"oldest-removed-or-created", without}, {"all-removed-or-created", topology.View{}}} {
		b.Run(c.name, func(b *testing.B) {
			var memo rules.Memo
			memo.Compile(all, rules.Config{})
			for n := 0; b.Loop(); n++ {
				memo.Compile([]topology.View{c.left, all}[n%2], rules.Config{})
			}
		})
	}
}

// BenchmarkHeld reports what both memos and their last results hold of 10,000 Services.
func BenchmarkHeld(b *testing.B) {
	s := topologytest.Large{Services: 10000, Endpoints: 2, Nodes: 100}.Snapshot()
	before := heap()
	var views topology.Memo
	var memo rules.Memo
	v := views.Resolve(s, topology.Config{})
	rs := memo.Compile(v, rules.Config{})
	b.ReportMetric(float64(heap()-before)/(1<<20), "MB-held")
	runtime.KeepAlive([]any{s, &views, &memo, v, rs})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
