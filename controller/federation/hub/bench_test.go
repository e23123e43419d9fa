package hub

import (
	"fmt"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkRest is a decision at rest about 100 clusters with 20 Grids of 50 units each: what a
// member that renews its Lease costs.
func BenchmarkRest(b *testing.B) {
	const clusters, grids, units = 100, 20, 50
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var l lists
	for g := range grids {
		grid := newGrid("shop", fmt.Sprint("grid-", g))
		grid.Finalizers = []string{v1alpha1.Finalizer}
		l.grids = append(l.grids, grid)
	}
	for c := range clusters {
		name := fmt.Sprint("cluster-", c)
		l.clusters = append(l.clusters, v1alpha1.FleetCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}}, Spec: v1alpha1.FleetClusterSpec{Pull: true}})
		l.namespaces = append(l.namespaces, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NamespacePrefix + name}})
		l.leases = append(l.leases, *newLease(name, now, `{"clusterUID":"a","nodes":4}`))
		l.bundles = append(l.bundles, v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.NamespacePrefix + name, Name: "shop", UID: types.UID("bundle-" + name), Labels: map[string]string{v1alpha1.LabelCluster: name}}})
		for _, g := range l.grids {
			r := newReport(name, g.(*v1.DeploymentGrid))
			for u := range units {
				r.Spec.Status.Units = append(r.Spec.Status.Units, v1.UnitStatus{Value: fmt.Sprint("unit-", u), Nodes: 1, Phase: v1.UnitReady})
			}
			l.reports = append(l.reports, *r)
		}
	}
	m := &memory{}
	for range 3 { // Grids are listed, and sent
		for _, c := range plan.Decide(m.observe(l, "hub", now)).Clusters {
			for at := range l.clusters {
				if l.clusters[at].Name == c.Name {
					l.clusters[at].Status = c.Status
				}
			}
			if w, written := c.Write["shop"]; written {
				for at := range l.bundles {
					if l.bundles[at].Namespace == v1alpha1.NamespacePrefix+c.Name {
						l.bundles[at].Annotations = map[string]string{v1alpha1.AnnotationRevision: w.Revision}
					}
				}
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		p := plan.Decide(m.observe(l, "hub", now))
		for _, c := range p.Clusters {
			if len(c.Write)+len(c.Remove) > 0 || len(c.Status.Grids) != grids {
				b.Fatalf("not at rest: %d bundles, %d rows", len(c.Write), len(c.Status.Grids))
			}
		}
	}
}
