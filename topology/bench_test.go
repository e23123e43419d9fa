package topology_test

import (
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"k8s.io/apimachinery/pkg/labels"
)

// Sizes for which costs are promised.
var (
	manyEndpoints = topologytest.Large{Services: 5000, Endpoints: 100, Nodes: 5000}
	manyServices  = topologytest.Large{Services: 10000, Endpoints: 2, Nodes: 100}
)

// BenchmarkResolveUnchanged: one run over 500,000 endpoints on 5,000 Nodes without a change.
// It also reports what Memo and View hold.
func BenchmarkResolveUnchanged(b *testing.B) {
	s := manyEndpoints.Snapshot()
	before := heap()
	var memo topology.Memo
	view := memo.Resolve(s, topology.Config{})
	s.LastKeys = view.LastKeys
	held := heap() - before
	b.ReportAllocs()
	for b.Loop() {
		view = memo.Resolve(s, topology.Config{})
		s.LastKeys = view.LastKeys
	}
	b.ReportMetric(float64(held)/(1<<20), "MB-held")
	runtime.KeepAlive(view)
}

// BenchmarkResolveChange: one run after one change.
func BenchmarkResolveChange(b *testing.B) {
	relabel := func(s topology.Snapshot, node, key, value string) topology.Snapshot {
		s.Nodes = maps.Clone(s.Nodes)
		s.Nodes[node] = labels.Merge(s.Nodes[node], labels.Set{key: value})
		return s
	}
	for _, c := range []struct {
		name   string
		size   topologytest.Large
		change func(l topologytest.Large, s topology.Snapshot, n int) topology.Snapshot
	}{
		{"endpoints-of-1-in-10000", manyServices, func(l topologytest.Large, s topology.Snapshot, n int) topology.Snapshot { return l.Move(s, 17, 1+n%2) }},
		{"service-1-in-10000", manyServices, func(l topologytest.Large, s topology.Snapshot, _ int) topology.Snapshot {
			all := append(s.Services[:0:0], s.Services...)
			all[17] = l.Service(17)
			s.Services = all
			return s
		}},
		{"other-label-of-1-in-5000-nodes", manyEndpoints, func(_ topologytest.Large, s topology.Snapshot, n int) topology.Snapshot {
			return relabel(s, "node-00777", "colour", string(rune('a'+n%2)))
		}},
		{"zone-of-1-in-5000-nodes", manyEndpoints, func(_ topologytest.Large, s topology.Snapshot, n int) topology.Snapshot {
			return relabel(s, "node-00777", "zone", string(rune('a'+n%2)))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := c.size.Snapshot()
			var memo topology.Memo
			s.LastKeys = memo.Resolve(s, topology.Config{}).LastKeys
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				s = c.change(c.size, s, n)
				b.StartTimer()
				s.LastKeys = memo.Resolve(s, topology.Config{}).LastKeys
			}
		})
	}
}

// BenchmarkResolveManySlices: all EndpointSlices of one Service are replaced in one run, as after a
// watch that was away. Anybody may create slices; the cost must grow with them, not with their
// square.
func BenchmarkResolveManySlices(b *testing.B) {
	for _, count := range []int{5000, 20000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			s := topologytest.Large{Services: 1, Endpoints: 1, Nodes: 10}.Snapshot()
			lists := [2][]*topology.Slice{}
			for i := range lists {
				for n := range count {
					slice := *s.Slices[0]
					slice.Name = fmt.Sprintf("many-%06d", n)
					lists[i] = append(lists[i], &slice)
				}
			}
			var memo topology.Memo
			for n := 0; b.Loop(); n++ {
				s.Slices = lists[n%2]
				memo.Resolve(s, topology.Config{})
			}
		})
	}
}
