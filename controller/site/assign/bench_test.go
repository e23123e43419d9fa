package assign_test

import (
	"fmt"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"
)

// BenchmarkDecide: Nodes in units that select them, in one group, at rest. The Nodes are read once,
// as the controller does it.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []struct{ nodes, units int }{{2000, 200}, {10000, 1000}} {
		b.Run(fmt.Sprintf("nodes=%d/units=%d", size.nodes, size.units), func(b *testing.B) {
			observed := atRest(b, size.nodes, size.units)
			b.ReportAllocs()
			for b.Loop() {
				if p := assign.Decide(observed); len(p.Nodes)+len(p.Units)+len(p.Groups) > 0 {
					b.Fatal("not at rest")
				}
			}
		})
	}
}

func atRest(b *testing.B, nodes, units int) assign.Observed {
	c := newCluster(b)
	for i := range nodes {
		c.node(fmt.Sprintf("n-%05d", i), "kubelet", fmt.Sprintf("rack=%d", i%units), "kubernetes.io/os=linux",
			"kubernetes.io/arch=amd64", "beta.kubernetes.io/os=linux", fmt.Sprintf("kubernetes.io/hostname=n-%05d", i))
	}
	for i := range units {
		c.unit(fmt.Sprintf("u-%04d", i), fmt.Sprintf(`{"selector": {"matchLabels": {"rack": "%d"}}}`, i)).Labels = map[string]string{"in": "g"}
	}
	c.unit("all", `{"selector": {"matchLabels": {"kubernetes.io/os": "linux"}}}`)
	c.group("g", `{"selector": {"matchLabels": {"in": "g"}}}`)
	c.settle()
	observed := assign.Observed{Groups: []*v1alpha2.NodeGroup{c.groups["g"]}, Uses: c.observed.Uses}
	for _, u := range c.units {
		observed.Units = append(observed.Units, u)
	}
	for _, n := range c.nodes {
		assign.Trim(n)
		observed.Nodes = append(observed.Nodes, assign.ReadNode(n))
	}
	return observed
}
