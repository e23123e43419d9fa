package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// demo is the DeploymentGrid of SuperEdge's manual, and manualGrid the file with it.
const (
	demo       = "deploymentgrid-demo"
	manualGrid = "../../deploy/samples/canary/deploymentgrid.yaml"
)

// TestDistributionSmoke: a labelled Grid is expanded in the hub and in a cluster that the hub
// cannot reach, its status is on the hub, and its deletion reaches both.
func TestDistributionSmoke(t *testing.T) {
	d := newDistribution(t, west)
	d.run("the hub cannot reach the API server of west", (*distribution).isolated)
	d.run("a labelled Grid is everywhere", (*distribution).distributes)
	d.run("the status is on the hub", (*distribution).aggregates)
	d.run("a deletion reaches every cluster", (*distribution).deletes)
}

// TestDistribution: SuperEdge's example of several clusters, with one that fetches its Grids and
// one that the hub reaches.
func TestDistribution(t *testing.T) {
	d := newDistribution(t, west, east)
	d.run("the hub cannot reach the API server of west", (*distribution).isolated)
	d.run("a labelled Grid is everywhere", (*distribution).distributes)
	d.run("a Node that joins a unit gets its child", (*distribution).supplements)
	d.run("the status is on the hub", (*distribution).aggregates)
	d.run("equal names of units are two rows", (*distribution).twins)
	d.run("edits are reverted", (*distribution).reverts)
	d.run("claims stay when a StatefulSetGrid is deleted", (*distribution).claims)
	d.run("at rest nothing but Leases is written", (*distribution).rests)
	d.run("a deletion reaches every cluster", (*distribution).deletes)
}

// isolated: west's API server answers no client in the hub's network namespace.
func (d *distribution) isolated() {
	outside := rest.CopyConfig(d.west.Admin())
	outside.Dial, outside.Timeout = nil, 2*time.Second
	api, err := discovery.NewDiscoveryClientForConfig(outside)
	must(d.t, err)
	if version, err := api.ServerVersion(); err == nil {
		d.t.Errorf("the API server of west, at %s, tells the hub that it is %s", d.west.API.Addr, version)
	}
}

// distributes is the manual's example: one Node of west is in zone1, none of east in any zone.
func (d *distribution) distributes() {
	d.hub.SetLabels(d.t, "hub-0", map[string]string{"zone": "zone0"})
	d.west.SetLabels(d.t, "west-0", map[string]string{"zone": "zone1"})
	d.hub.ApplyFile(d.t, manualGrid)
	d.hub.Apply(d.t, fmt.Sprintf(demoService, v1alpha1.LabelFederated))
	begin := time.Now()
	d.hub.MustKubectl(d.t, "label", "deploymentgrid", demo, v1alpha1.LabelFederated+"=yes")
	want := map[string]map[string]int32{"hub": {"zone0": 2}, west: {"zone1": 2}, east: {}}
	for _, s := range d.sites() {
		wait.Until(d.t, "the children in "+s.name, func() error { return s.hasChildren(d, demo, want[s.name]) })
		d.t.Logf("Grid and ready children in %s: %s after the label", s.name, time.Since(begin).Round(10*time.Millisecond))
		wait.Until(d.t, "the Service in "+s.name, func() error {
			_, err := s.Kubectl("get", "service", "servicegrid-demo-svc")
			return err
		})
	}
}

const demoService = `
apiVersion: superedge.io/v1
kind: ServiceGrid
metadata: {name: servicegrid-demo, namespace: default, labels: {%s: "yes"}}
spec:
  gridUniqKey: zone
  template:
    selector: {appGrid: echo}
    ports: [{protocol: TCP, port: 80, targetPort: 8080}]
`

// hasChildren is whether a Grid has exactly one Deployment for each unit, with so many ready Pods.
func (s *site) hasChildren(d *distribution, grid string, want map[string]int32) error {
	var list appsv1.DeploymentList
	if err := s.client.List(d.t.Context(), &list, client.InNamespace("default")); err != nil {
		return err
	}
	got := map[string]int32{}
	for _, c := range list.Items {
		if unit, found := strings.CutPrefix(c.Name, grid+"-"); found {
			got[unit] = c.Status.ReadyReplicas
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("ready Pods by units are %v, want %v", got, want)
	}
	_, err := s.grid(d.t.Context(), grid)
	return err
}

// supplements: a Node of east joins zone2, which has three replicas.
func (d *distribution) supplements() {
	d.east.SetLabels(d.t, "east-0", map[string]string{"zone": "zone2"})
	took := d.took("the child of zone2", func() error { return d.east.hasChildren(d, demo, map[string]int32{"zone2": 3}) })
	d.t.Logf("child of a new unit: %s", took.Round(10*time.Millisecond))
}

// aggregates: rows, states and clusters are in the status of the hub's Grid.
func (d *distribution) aggregates() {
	ready := map[string]int32{"zone0": 2, "zone1": 2}
	rate := "1/1"
	if d.east != nil {
		ready["zone2"], rate = 3, "2/2"
	}
	took := d.took("the status of the Grid on the hub", func() error {
		g, err := d.hub.grid(d.t.Context(), demo)
		if err != nil {
			return err
		}
		if g.Status.ClusterRate != rate {
			return fmt.Errorf("clusterRate is %q, want %q: %+v", g.Status.ClusterRate, rate, g.Status.Clusters)
		}
		if names := slices.Sorted(maps.Keys(g.Status.States)); !slices.Equal(names, slices.Sorted(maps.Keys(ready))) {
			return fmt.Errorf("status.states is of %v", names)
		}
		for unit, replicas := range ready {
			var state struct{ ReadyReplicas int32 }
			if err := json.Unmarshal(g.Status.States[unit].JSON, &state); err != nil || state.ReadyReplicas != replicas {
				return fmt.Errorf("status.states.%s says %d replicas are ready, want %d (%w)", unit, state.ReadyReplicas, replicas, err)
			}
		}
		return rowsAre(g, "/zone0", west+"/zone1")
	})
	d.t.Logf("status on the hub: %s", took.Round(10*time.Millisecond))
	d.t.Logf("\n%s%s", d.hub.MustKubectl(d.t, "get", "deploymentgrids", "-o", "wide"), d.hub.MustKubectl(d.t, "get", "fleetclusters"))
}

// rowsAre is whether there is a row in phase Ready for each cluster and unit.
func rowsAre(g *v1.DeploymentGrid, want ...string) error {
	var got []string
	for _, r := range g.Status.Units {
		if r.Phase == v1.UnitReady {
			got = append(got, r.Cluster+"/"+r.Value)
		}
	}
	for _, row := range want {
		if !slices.Contains(got, row) {
			return fmt.Errorf("ready rows are %v, want %s too", got, row)
		}
	}
	return nil
}

// twins: east has a unit of a name that west has.
func (d *distribution) twins() {
	d.east.SetLabels(d.t, "east-1", map[string]string{"zone": "zone1"})
	took := d.took("two rows for zone1", func() error {
		g, err := d.hub.grid(d.t.Context(), demo)
		if err != nil {
			return err
		}
		for _, state := range []string{west + "/zone1", east + "/zone1", "zone2"} {
			if _, found := g.Status.States[state]; !found {
				return fmt.Errorf("status.states has no %s: %v", state, slices.Sorted(maps.Keys(g.Status.States)))
			}
		}
		return rowsAre(g, west+"/zone1", east+"/zone1")
	})
	d.t.Logf("change in a member to row on the hub: %s", took.Round(10*time.Millisecond))
	d.east.RemoveLabels(d.t, "east-1", "zone")
}

// reverts: a child and a Grid are edited in each member.
func (d *distribution) reverts() {
	for _, s := range []*site{d.west, d.east} {
		unit := map[*site]string{d.west: "zone1", d.east: "zone2"}[s]
		d.revertsChild(s, unit)
		d.revertsGrid(s, unit, nil)
	}
}

// revertsChild: what a Deployment is edited to in a member is undone there.
func (d *distribution) revertsChild(s *site, unit string) {
	d.t.Helper()
	s.MustKubectl(d.t, "scale", "deployment", demo+"-"+unit, "--replicas=7")
	took := d.took("the child is reverted in "+s.name, func() error { return s.replicasAre(d, unit) })
	d.t.Logf("edited Deployment in %s reverted: %s", s.name, took.Round(10*time.Millisecond))
}

// revertsGrid: what a Grid is edited to in a member is undone there, whatever happens after the
// edit.
func (d *distribution) revertsGrid(s *site, unit string, then func()) {
	d.t.Helper()
	before, err := s.grid(d.t.Context(), demo)
	must(d.t, err)
	s.MustKubectl(d.t, "patch", "deploymentgrid", demo, "--type=merge", `--patch={"spec":{"templatePool":{"test1":{"replicas":9},"test2":{"replicas":9}}}}`)
	if then != nil {
		then()
	}
	took := d.took("the Grid is reverted in "+s.name, func() error {
		g, err := s.grid(d.t.Context(), demo)
		if err != nil {
			return err
		}
		if g.Generation < before.Generation+2 || !reflect.DeepEqual(g.Spec, before.Spec) {
			return fmt.Errorf("in generation %d, after %d, the Grid is as it was edited", g.Generation, before.Generation)
		}
		return s.replicasAre(d, unit)
	})
	d.t.Logf("edited Grid in %s reverted: %s", s.name, took.Round(10*time.Millisecond))
}

func (s *site) replicasAre(d *distribution, unit string) error {
	want := map[string]int32{"zone1": 2, "zone2": 3}[unit]
	var child appsv1.Deployment
	if err := s.client.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: demo + "-" + unit}, &child); err != nil {
		return err
	}
	return wait.Check(*child.Spec.Replicas == want, "replicas are %d, want %d", *child.Spec.Replicas, want)
}

// claims: the StatefulSets are deleted with their Grid, their claims are not.
func (d *distribution) claims() {
	d.hub.Apply(d.t, fmt.Sprintf(claimingGrid, v1alpha1.LabelFederated))
	claims := func(s *site) (string, error) {
		return s.Kubectl("get", "persistentvolumeclaims", "-o", "name")
	}
	for _, s := range d.sites() {
		wait.Until(d.t, "a claim in "+s.name, func() error {
			names, err := claims(s)
			return errors.Join(err, wait.Check(names != "", "there is none"))
		})
	}
	before, err := claims(d.west)
	must(d.t, err)
	d.hub.MustKubectl(d.t, "delete", "statefulsetgrid", "keeper", "--wait=false")
	for _, s := range d.sites() {
		wait.Until(d.t, "the StatefulSets are gone in "+s.name, func() error {
			names, err := s.Kubectl("get", "statefulsetgrids,statefulsets", "-o", "name")
			return errors.Join(err, wait.Check(names == "", "there are %s", names))
		})
	}
	if after, err := claims(d.west); err != nil || after != before {
		d.t.Errorf("claims were %q and are %q (%v)", before, after, err)
	}
	for _, s := range d.sites() { // for claims without a volume Kubernetes writes Events all the time
		s.MustKubectl(d.t, "delete", "persistentvolumeclaims", "--all", "--wait=false")
	}
}

const claimingGrid = `
apiVersion: superedge.io/v1
kind: StatefulSetGrid
metadata: {name: keeper, namespace: default, labels: {%s: "yes"}}
spec:
  gridUniqKey: zone
  template:
    replicas: 1
    serviceName: keeper
    selector: {matchLabels: {app: keeper}}
    template:
      metadata: {labels: {app: keeper}}
      spec: {containers: [{name: c, image: "echo:1", volumeMounts: [{name: data, mountPath: /data}]}]}
    volumeClaimTemplates:
      - metadata: {name: data}
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// deletes: kubectl waits until the hub's Grid is gone.
func (d *distribution) deletes() {
	begin := time.Now()
	d.hub.MustKubectl(d.t, "delete", "deploymentgrid/"+demo, "servicegrid/servicegrid-demo", "--timeout=60s")
	for _, s := range d.sites() {
		wait.Until(d.t, "nothing is left in "+s.name, func() error {
			names, err := s.Kubectl("get", "deploymentgrids,servicegrids,deployments,services", "-o", "name")
			return errors.Join(err, wait.Check(names == "service/kubernetes\n", "there are %q", names))
		})
		d.t.Logf("gone from %s: %s after the deletion", s.name, time.Since(begin).Round(10*time.Millisecond))
	}
}
