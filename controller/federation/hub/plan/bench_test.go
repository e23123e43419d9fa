package plan

import (
	"fmt"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
)

// fleetAtRest is a hub with so many clusters of so many Grids of so many units each, in which there
// is nothing to do.
func fleetAtRest(clusters, grids, units int) Observed {
	o := Observed{Hub: hubUID, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range grids {
		o.Grids = append(o.Grids, Read(hubUID, gridState{fed: true, ref: Ref{
			Kind: "DeploymentGrid", Namespace: fmt.Sprintf("tenant-%d", i/max(5, grids/10)), Name: fmt.Sprintf("grid-%d", i), UID: fmt.Sprintf("uid-%d", i),
		}}.object()))
		o.Grids[i].Finalizer = true
	}
	var values []string
	for i := range units {
		values = append(values, fmt.Sprintf("unit-%d", i))
	}
	for i := range clusters {
		c := newFleetCluster(fmt.Sprintf("cluster-%d", i), "a")
		c.Finalizers = []string{v1alpha1.Finalizer}
		cluster := Cluster{Object: c, Namespace: true, Bundles: map[string]string{}, Heartbeat: &Heartbeat{
			Heartbeat: v1alpha1.Heartbeat{ClusterUID: c.Name, Nodes: 10}, Renewal: "now", Heard: o.Now,
		}}
		for _, g := range o.Grids {
			cluster.Reports = append(cluster.Reports, Report{
				Object: g.UID, From: hubUID + "/" + g.UID, Revision: g.Content.Revision, Observed: true,
				Kind: g.Kind, Namespace: g.Namespace, Name: g.Name, Units: values,
			})
		}
		o.Clusters = append(o.Clusters, cluster)
	}
	for range 4 {
		for _, c := range Decide(o).Clusters {
			for at := range o.Clusters {
				if o.Clusters[at].Object.Name != c.Name {
					continue
				}
				o.Clusters[at].Object.Status = c.Status
				for namespace, bundle := range c.Write {
					o.Clusters[at].Bundles[namespace] = bundle.Revision
				}
			}
		}
	}
	return o
}

// BenchmarkFleetAtRest is what one decision costs in a large fleet in which nothing changes.
func BenchmarkFleetAtRest(b *testing.B) {
	o := fleetAtRest(100, 20, 50)
	b.ReportAllocs()
	for b.Loop() {
		p := Decide(o)
		for _, c := range p.Clusters {
			if len(c.Write)+len(c.Remove) > 0 || c.Status.State != "Current" || c.Status.Units != 50 {
				b.Fatalf("there is something to do: %+v", c)
			}
		}
	}
}

// BenchmarkFullFleet is what it costs when tenants have more Grids than a cluster can have.
func BenchmarkFullFleet(b *testing.B) {
	o := fleetAtRest(100, 2000, 1)
	b.ReportAllocs()
	for b.Loop() {
		if p := Decide(o); len(p.Faults) == 0 || len(p.Clusters[0].Write) > 0 {
			b.Fatal("all are sent, or some are sent again")
		}
	}
}
