package matrix

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"
)

// BenchmarkMatrix is for 1,000 Services, closed by zone, with an endpoint in each of 100 zones, and
// 1,000 Nodes. The target is 2 s and 200 MiB, printing included. sys-MiB is the most memory that
// the process ever had from the kernel, the Snapshot included; B/op counts garbage too.
func BenchmarkMatrix(b *testing.B) {
	const units = 100
	s := topologytest.Large{Services: 1000, Endpoints: units, Nodes: 10 * units}.Snapshot()
	for i, node := range slices.Sorted(maps.Keys(s.Nodes)) { // endpoints are on Nodes in a sequence
		s.Nodes[node]["zone"] = fmt.Sprintf("zone-%d", i%units)
	}
	for _, test := range []struct {
		name  string
		print func(Matrix) error
	}{
		{"table", func(m Matrix) error { return m.WriteTable(io.Discard) }},
		{"html", func(m Matrix) error { return m.WriteHTML(io.Discard) }},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := New(s, topology.Config{}, s.Services)
				if n := len(m.Services) * len(m.Units); n != 1000*units {
					b.Fatal(fmt.Errorf("%d cells", n))
				}
				if err := test.print(m); err != nil {
					b.Fatal(err)
				}
			}
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.Sys)/(1<<20), "sys-MiB")
		})
	}
}
