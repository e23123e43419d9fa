package assign_test

import (
	"fmt"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"
)

// BenchmarkDecide: 2,000 Nodes in 200 units that select them, in one group, at rest.
func BenchmarkDecide(b *testing.B) {
	c := newCluster(b)
	for i := range 2000 {
		c.node(fmt.Sprintf("n-%04d", i), "kubelet", fmt.Sprintf("rack=%d", i%200), "kubernetes.io/os=linux")
	}
	for i := range 200 {
		c.unit(fmt.Sprintf("u-%03d", i), fmt.Sprintf(`{"selector": {"matchLabels": {"rack": "%d"}}}`, i)).Labels = map[string]string{"in": "g"}
	}
	c.group("g", `{"selector": {"matchLabels": {"in": "g"}}}`)
	c.settle()
	observed := assign.Observed{Groups: []*v1alpha2.NodeGroup{c.groups["g"]}}
	for _, u := range c.units {
		observed.Units = append(observed.Units, u)
	}
	for _, n := range c.nodes {
		assign.Trim(n)
	}
	b.ReportAllocs()
	for b.Loop() {
		observed.Nodes = observed.Nodes[:0]
		for _, n := range c.nodes {
			observed.Nodes = append(observed.Nodes, assign.ReadNode(n))
		}
		if p := assign.Decide(observed); len(p.Nodes)+len(p.Units)+len(p.Groups) > 0 {
			b.Fatal("not at rest")
		}
	}
}
