package grids

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/wait"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDistributionFaults: a member is cut off, and everything that distributes is killed.
func TestDistributionFaults(t *testing.T) {
	d := newDistribution(t, west, east)
	d.run("a labelled Grid is everywhere", (*distribution).distributes)
	d.run("a Node that joins a unit gets its child", (*distribution).supplements)
	d.run("the status is on the hub", (*distribution).aggregates)
	d.run("a cluster is cut off for two minutes", (*distribution).cutOff)
	d.run("controllers and engines are killed", (*distribution).kills)
}

// outage is how long west is cut off.
const outage = 2 * time.Minute

// cutOff: west goes on without the hub, even if its controller is killed meanwhile, and has what
// changed on the hub when the link is back.
func (d *distribution) cutOff() {
	before := d.pods(d.west)
	begin := time.Now()
	d.uplink.Cut()
	d.setReplicas(4)
	d.west.SetLabels(d.t, "west-1", map[string]string{"zone": "zone5"})
	alone := func() error {
		if pods := d.pods(d.west); len(pods) != 4 {
			return fmt.Errorf("west has %d Pods, want 4", len(pods))
		}
		return d.west.hasChildren(d, demo, map[string]int32{"zone1": 2, "zone5": 2})
	}
	wait.Until(d.t, "west goes on without the hub", alone)
	d.kept(before, "since the link was cut")
	d.revertsChild(d.west, "zone1")
	d.revertsGrid(d.west, "zone1", nil)
	d.revertsGrid(d.west, "zone1", func() {
		d.west.controller.Kill()
		d.startController(d.west)
	})
	d.revertsChild(d.west, "zone1")
	took := d.took("the hub says that west is silent, and keeps its rows", d.stale)
	d.t.Logf("silent for the hub after %s\n%s", took.Round(time.Second), d.hub.MustKubectl(d.t, "get", "fleetclusters"))
	pauseFor(d.t, time.Until(begin.Add(outage)))
	wait.Until(d.t, "west has what it had", alone)
	before = d.pods(d.west) // which Pods went when edits of replicas were reverted, Kubernetes chose
	d.uplink.Pass()
	took = d.took("west has what changed meanwhile", func() error {
		return d.west.hasChildren(d, demo, map[string]int32{"zone1": 4, "zone5": 4})
	})
	d.t.Logf("what changed meanwhile is in west %s after the link", took.Round(10*time.Millisecond))
	took = d.took("the hub hears west", func() error { return d.areReady("4/4") })
	d.t.Logf("the hub hears west again: %s", took.Round(10*time.Millisecond))
	d.kept(before, "since the link is back")
}

// kept: no Pod of west was replaced.
func (d *distribution) kept(before []types.UID, since string) {
	d.t.Helper()
	now := d.pods(d.west)
	for _, pod := range before {
		if !slices.Contains(now, pod) {
			d.t.Errorf("Pod %s of west was replaced %s", pod, since)
		}
	}
}

// areReady is whether the hub says that its Grid is ready in both members, in so many units of all
// clusters.
func (d *distribution) areReady(units string) error {
	g, err := d.hub.grid(d.t.Context(), demo)
	return errors.Join(err, wait.Check(g.Status.ClusterRate == "2/2" && g.Status.ReadyRate == units && meta.IsStatusConditionTrue(g.Status.Conditions, v1.ConditionReady), "clusterRate is %q, readyRate %q: %+v", g.Status.ClusterRate, g.Status.ReadyRate, g.Status))
}

// stale is whether west is silent for the hub: the rows it had are there with the time of that, the
// Grid is not ready.
func (d *distribution) stale() error {
	var c v1alpha1.FleetCluster
	if err := d.hub.client.Get(d.t.Context(), client.ObjectKey{Name: west}, &c); err != nil {
		return err
	}
	if c.Status.State != "Stale" || c.Status.SilentSince == nil {
		return fmt.Errorf("FleetCluster west is %s, silent since %s", c.Status.State, c.Status.SilentSince)
	}
	since := c.Status.SilentSince.UTC()
	g, err := d.hub.grid(d.t.Context(), demo)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(g.Status.Clusters, func(c v1.ClusterStatus) bool { return c.Name == west })
	if at < 0 {
		return fmt.Errorf("west is not in status.clusters: %+v", g.Status.Clusters)
	}
	if c := g.Status.Clusters[at]; c.State != "Stale" || c.HeardAt == nil || !c.HeardAt.UTC().Equal(since) || c.ReadyUnits != 0 {
		return fmt.Errorf("west, silent since %s, is %+v", since, c)
	}
	rows := 0
	for _, r := range g.Status.Units {
		if r.Cluster != west {
			continue
		}
		if rows++; r.Value != "zone1" || r.Phase != v1.UnitStale || !strings.Contains(r.Message, since.Format(time.RFC3339)) {
			return fmt.Errorf("a row of west, silent since %s, is %+v", since, r)
		}
	}
	return wait.Check(rows == 1 && meta.IsStatusConditionFalse(g.Status.Conditions, v1.ConditionReady), "there are %d rows of west, and the conditions are %+v", rows, g.Status.Conditions)
}

// setReplicas changes the template of all units but zone2 on the hub.
func (d *distribution) setReplicas(replicas int) {
	d.t.Helper()
	d.hub.MustKubectl(d.t, "patch", "deploymentgrid", demo, "--type=merge", fmt.Sprintf(`--patch={"spec":{"templatePool":{"test1":{"replicas":%d}}}}`, replicas))
}

// pods are the UIDs of the Grid's Pods that are not being deleted.
func (d *distribution) pods(s *site) []types.UID {
	d.t.Helper()
	list, err := s.Client.CoreV1().Pods("default").List(d.t.Context(), metav1.ListOptions{LabelSelector: "appGrid=echo"})
	must(d.t, err)
	var all []types.UID
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			all = append(all, p.UID)
		}
	}
	return all
}
