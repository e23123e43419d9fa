package analyze

import (
	"testing"

	"gridproxy/topology/topologytest"
)

// BenchmarkAnalyze is for 1,000 Services, closed by zone, with an endpoint in each of 100 zones,
// and 50 Nodes in each zone. Most of the time is spent in package matrix.
func BenchmarkAnalyze(b *testing.B) {
	s := topologytest.Large{Services: 1000, Endpoints: 100, Nodes: 5000}.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		Analyze(s, Config{})
	}
}
