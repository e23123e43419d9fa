package grids

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/integration/env/wait"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// generator writes what members write on a hub: their reports, and each minute their Leases.
type generator struct {
	*fleet
	hub string // the UID of the Namespace kube-system

	mu    sync.Mutex
	names []string // of the clusters that have joined, in the order of that
	count int      // Leases that were renewed since reset
}

// newGenerator begins to renew the Leases of the clusters that join. It ends with the test.
func newGenerator(f *fleet) *generator {
	f.t.Helper()
	system := &corev1.Namespace{}
	must(f.t, f.client.Get(f.t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system))
	g := &generator{fleet: f, hub: string(system.UID)}
	ctx, done := f.t.Context(), make(chan struct{})
	go func() {
		defer close(done)
		next := 0
		for tick := time.NewTicker(time.Minute / largeClusters); ; next++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if all := g.clusters(); len(all) > 0 {
				g.renew(ctx, all[next%len(all)])
			}
		}
	}()
	f.t.Cleanup(func() { <-done })
	return g
}

func (g *generator) clusters() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

func (g *generator) renewed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

func (g *generator) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count = 0
}

// renew renews the Lease of a cluster as its agent does. One that fails is renewed a minute later.
func (g *generator) renew(ctx context.Context, cluster string) {
	patch := fmt.Appendf(nil, `{"spec": {"renewTime": %q}}`, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
	lease := &coordinationv1.Lease{ObjectMeta: g.meta(cluster, v1alpha1.HeartbeatLease)}
	err := g.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch))
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.count++
	}
}

func (g *generator) meta(cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: v1alpha1.NamespacePrefix + cluster, Name: name, Labels: map[string]string{v1alpha1.LabelCluster: cluster},
	}
}

// join makes FleetClusters that fetch their Grids, with their namespaces and Leases, until there
// are so many.
func (g *generator) join(known, n int) {
	g.t.Helper()
	ctx := g.t.Context()
	must(g.t, abreast(n-known, func(i int) error {
		name := fmt.Sprintf("cluster-%02d", known+i)
		namespace := &corev1.Namespace{ObjectMeta: g.meta(name, "")}
		namespace.Name, namespace.Namespace = namespace.Namespace, ""
		now := metav1.NowMicro()
		lease := &coordinationv1.Lease{ObjectMeta: g.meta(name, v1alpha1.HeartbeatLease), Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
		lease.Annotations = map[string]string{v1alpha1.AnnotationHeartbeat: fmt.Sprintf(`{"clusterUID":"uid-of-%s","version":"test","nodes":%d}`, name, largeUnits)}
		cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FleetClusterSpec{Pull: true}}
		for _, o := range []client.Object{namespace, lease, cluster} {
			if err := g.client.Create(ctx, o); err != nil {
				return err
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.names = append(g.names, name)
		return nil
	}))
}

// report says that clusters have what was sent to them, and that all is ready there.
func (g *generator) report(sent map[string][]v1alpha1.ClusterGrid) {
	g.t.Helper()
	var all []*v1alpha1.GridReport
	for cluster, grids := range sent {
		for _, grid := range grids {
			all = append(all, g.ready(cluster, grid))
		}
	}
	must(g.t, abreast(len(all), func(i int) error { return g.client.Create(g.t.Context(), all[i]) }))
}

// ready is a report of a Grid that is ready in all units.
func (g *generator) ready(cluster string, grid v1alpha1.ClusterGrid) *v1alpha1.GridReport {
	from := g.hub + "/" + grid.UID
	name := delivery.ReportName(delivery.Key{Kind: grid.Kind, Namespace: grid.Namespace, Name: grid.Name}, from)
	r := &v1alpha1.GridReport{ObjectMeta: g.meta(cluster, name), Spec: v1alpha1.GridReportSpec{
		Format: v1alpha1.ReportFormat, From: from, Revision: grid.Revision, Kind: grid.Kind, Namespace: grid.Namespace, Name: grid.Name,
		Observed: true, ReadyUnits: largeUnits, States: map[string]v1.State{},
	}}
	s := &r.Spec.Status
	s.ObservedGeneration, s.UnitNumber, s.ReadyRate = 1, largeUnits, fmt.Sprintf("%[1]d/%[1]d", largeUnits)
	for _, c := range []metav1.Condition{
		{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "50 of 50 units are ready"},
		{Type: "Progressing", Status: metav1.ConditionFalse, Reason: "Ready", Message: "50 of 50 units are ready"},
		{Type: "Degraded", Status: metav1.ConditionFalse, Reason: "Ready", Message: "50 of 50 units are ready"},
	} {
		c.LastTransitionTime, c.ObservedGeneration = metav1.Now(), 1
		s.Conditions = append(s.Conditions, c)
	}
	for unit := range largeUnits {
		value := fmt.Sprintf("%s-unit-%02d", cluster, unit)
		child := grid.Name + "-" + value
		s.Units = append(s.Units, v1.UnitStatus{
			Value: value, Child: child, Nodes: 1, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Phase: v1.UnitReady,
		})
		r.Spec.States[value] = v1.State{JSON: fmt.Appendf(nil, readyDeployment, child)}
	}
	return r
}

// readyDeployment is the status of a Deployment as its controller writes it.
const readyDeployment = `{"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2, "conditions": [
	{"type": "Available", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
	 "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."},
	{"type": "Progressing", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
	 "reason": "NewReplicaSetAvailable", "message": "ReplicaSet \"%s-5d4f8c7b9d\" has successfully progressed."}]}`

// change reports that a unit of a Grid in a cluster is progressing, and returns when it began to.
func (g *generator) change(cluster, grid string) time.Time {
	g.t.Helper()
	var list v1alpha1.GridReportList
	must(g.t, g.client.List(g.t.Context(), &list, client.InNamespace(v1alpha1.NamespacePrefix+cluster)))
	at := slices.IndexFunc(list.Items, func(r v1alpha1.GridReport) bool { return r.Spec.Name == grid })
	if at < 0 {
		g.t.Fatalf("%s has reported nothing about %s", cluster, grid)
	}
	r := &list.Items[at]
	u := &r.Spec.Status.Units[largeUnits/2]
	u.ReadyReplicas, u.Phase = 1, v1.UnitProgressing
	r.Spec.ReadyUnits--
	begin := time.Now()
	must(g.t, g.client.Update(g.t.Context(), r))
	return begin
}

// abreast calls f with each number below n, several at a time.
func abreast(n int, f func(int) error) error {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return wait.Each(numbers, f)
}
