package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// faultyFleet is a hub and its members, with a Grid that nothing is wrong with.
type faultyFleet struct {
	*distribution
	replicas int32                // of its units
	uids     map[string]types.UID // its UIDs, by the name of the cluster
}

const calmGrid = "calm"

// begin distributes it to a unit of each cluster.
func (w *faultyFleet) begin() {
	w.t.Helper()
	w.hub.SetLabels(w.t, "hub-0", map[string]string{"zone": "zone0"})
	w.west.SetLabels(w.t, "west-0", map[string]string{"zone": "zone1"})
	w.east.SetLabels(w.t, "east-0", map[string]string{"zone": "zone2"})
	w.federate("default", calmGrid)
	w.calm(w.west, w.east)
	w.recover(west, east)
}

func (w *faultyFleet) step(name string, part func()) {
	w.t.Helper()
	begin := time.Now()
	w.run(name, func(*distribution) { part() })
	w.t.Logf("%s: %s", name, time.Since(begin).Round(100*time.Millisecond))
}

// zoned is a DeploymentGrid over zones, with more metadata.
func zoned(namespace, name, metadata string) string {
	text := strings.ReplaceAll(deploymentGrid(name, "replicas: 1"), `"gridUniqKey":"location"`, `"gridUniqKey":"zone"`)
	return strings.Replace(text, `"namespace":"default"`, fmt.Sprintf(`"namespace":%q,%s`, namespace, metadata), 1)
}

// federate creates a DeploymentGrid on the hub that is distributed.
func (w *faultyFleet) federate(namespace, name string) {
	w.t.Helper()
	w.hub.Apply(w.t, zoned(namespace, name, `"labels":{"superedge.io/fed":"yes"}`))
}

// change gives the Pods of calmGrid another number.
func (w *faultyFleet) change() {
	w.t.Helper()
	w.replicas = w.replicas%5 + 1
	w.hub.MustKubectl(w.t, "patch", "deploymentgrid", calmGrid, "--type=merge",
		fmt.Sprintf(`--patch={"spec":{"template":{"replicas":%d}}}`, w.replicas))
}

// calm changes calmGrid on the hub, and sees that in clusters.
func (w *faultyFleet) calm(in ...*site) {
	w.t.Helper()
	w.change()
	w.follows(in...)
}

// follows: clusters have calmGrid as it is on the hub, and never made it again.
func (w *faultyFleet) follows(in ...*site) {
	w.t.Helper()
	for _, s := range in {
		wait.Until(w.t, "the change of another Grid in "+s.name, func() error {
			replicas, err := w.replicasIn(s)
			return errors.Join(err, wait.Check(replicas == w.replicas, "replicas are %d, want %d", replicas, w.replicas))
		})
		w.stays(s)
	}
}

func (w *faultyFleet) replicasIn(s *site) (int32, error) {
	unit := map[*site]string{w.hub: "zone0", w.west: "zone1", w.east: "zone2"}[s]
	var child appsv1.Deployment
	err := s.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: calmGrid + "-" + unit}, &child)
	if err != nil {
		return 0, err
	}
	return *child.Spec.Replicas, nil
}

// stays: calmGrid is the object that it was.
func (w *faultyFleet) stays(s *site) {
	w.t.Helper()
	g, err := s.grid(w.t.Context(), calmGrid)
	must(w.t, err)
	if before, found := w.uids[s.name]; found && before != g.UID {
		w.t.Errorf("the Grid %s of %s was deleted and made again", calmGrid, s.name)
	}
	w.uids[s.name] = g.UID
}

func (w *faultyFleet) fleetCluster(name string) (*v1alpha1.FleetCluster, error) {
	c := &v1alpha1.FleetCluster{}
	return c, w.hub.client.Get(w.t.Context(), client.ObjectKey{Name: name}, c)
}

// recover waits until all Grids in clusters are what the hub has.
func (w *faultyFleet) recover(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.says(name, "Current", v1alpha1.ConditionCurrent, "Current", "Grids in the cluster are what the hub has")
	}
}

// says waits until a FleetCluster has one of some states, and a condition a reason and words in its
// message.
func (w *faultyFleet) says(name, states, condition, reason string, words ...string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("FleetCluster %s is %s, and says %s", name, states, reason), func() error {
		c, err := w.fleetCluster(name)
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(c.Status.Conditions, condition)
		if found == nil || found.Reason != reason || !slices.Contains(strings.Split(states, ", "), c.Status.State) {
			return fmt.Errorf("state is %s: %+v", c.Status.State, c.Status.Conditions)
		}
		return wait.Contains(found.Message, words...)
	})
}

// tells waits until a Grid of the hub, and the row of it in a FleetCluster, say what is wrong
// there.
func (w *faultyFleet) tells(cluster, namespace, grid, state string, words ...string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("%s says %s about %s", grid, state, cluster), func() error {
		var g v1.DeploymentGrid
		if err := w.hub.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: grid}, &g); err != nil {
			return err
		}
		at := slices.IndexFunc(g.Status.Clusters, func(c v1.ClusterStatus) bool { return c.Name == cluster })
		if at < 0 || g.Status.Clusters[at].State != state {
			return fmt.Errorf("status.clusters is %+v", g.Status.Clusters)
		}
		return wait.Contains(g.Status.Clusters[at].Message, words...)
	})
	w.rowTells(cluster, grid, state, words...)
}

func (w *faultyFleet) rowTells(cluster, grid, state string, words ...string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("FleetCluster %s says %s about %s", cluster, state, grid), func() error {
		c, err := w.fleetCluster(cluster)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(c.Status.Grids, func(g v1alpha1.ClusterGrid) bool { return g.Name == grid })
		if at < 0 || c.Status.Grids[at].State != state {
			return fmt.Errorf("status.grids is %+v", c.Status.Grids)
		}
		if current := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionCurrent); !strings.Contains(current.Message, grid+": "+state) {
			return fmt.Errorf("the condition Current says only %q", current.Message)
		}
		return wait.Contains(c.Status.Grids[at].Message, words...)
	})
}

func (w *faultyFleet) gone(name string, from ...*site) {
	w.t.Helper()
	for _, s := range from {
		wait.Until(w.t, name+" is gone from "+s.name, func() error {
			names, err := s.Kubectl("get", "deploymentgrids,deployments", "--all-namespaces", "--output=name")
			return errors.Join(err, wait.Check(!strings.Contains(names, "/"+name), "there are %s", names))
		})
	}
}

func (w *faultyFleet) patchCluster(name, patch string) {
	w.t.Helper()
	w.hub.MustKubectl(w.t, "patch", "fleetcluster", name, "--type=merge", "--patch="+patch)
}

// giveKubeconfig writes the Secret with the kubeconfig of east. The FleetCluster is touched, so
// that it is read at once.
func (w *faultyFleet) giveKubeconfig(text string) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"stringData": map[string]string{"value": text}})
	must(w.t, err)
	w.hub.MustKubectl(w.t, "patch", "secret", "member-kubeconfig", "--namespace=fleet-"+east, "--type=merge", "--patch="+string(patch))
	w.touchEast()
}

// touchEast changes the spec of the FleetCluster, so that its kubeconfig is read at once, and not
// within 30 s.
func (w *faultyFleet) touchEast() {
	w.t.Helper()
	c, err := w.fleetCluster(east)
	must(w.t, err)
	w.patchCluster(east, fmt.Sprintf(`{"spec":{"createNamespace":%t}}`, !c.Spec.CreateNamespace))
}

func (w *faultyFleet) kubeconfigOf(config *rest.Config) string {
	w.t.Helper()
	text, err := os.ReadFile(apiserver.KubeconfigForTest(w.t, config))
	must(w.t, err)
	return string(text)
}

func (w *faultyFleet) command(args ...string) {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), w.binary, append(args, "--kubeconfig="+w.hub.Kubeconfig())...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("grid-controller %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (w *faultyFleet) rejoinEast() {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "member")
	must(w.t, os.WriteFile(file, []byte(w.kubeconfigOf(w.east.Admin())), 0o600))
	w.command("join", "--cluster=east", "--member-kubeconfig="+file)
	w.touchEast()
}
