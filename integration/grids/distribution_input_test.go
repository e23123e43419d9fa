package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
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

// TestDistributionInput: whatever is wrong with a cluster, its FleetCluster or the Grid says so and
// what to do, and nothing else suffers: a Grid that nothing is wrong with stays, and goes on to be
// distributed.
func TestDistributionInput(t *testing.T) {
	w := &faultyFleet{distribution: newDistribution(t, west, east), uids: map[string]types.UID{}}
	w.begin()
	w.step("a Grid of the cluster has the name", w.collides)
	w.step("a Grid of another hub has the name", w.anotherHub)
	w.step("the namespace is missing", w.noNamespace)
	w.step("reports cannot be read, and the clock is wrong", w.reports)
	w.step("the objects of Flux are deleted", w.lostEngineObjects)
	w.step("Flux is not installed", w.noEngine)
	w.step("the Flux of a cluster is killed", w.killsEngine)
	w.step("a definition is missing", w.noDefinition)
	w.step("a definition is old", w.oldDefinition)
	w.step("the kubeconfig cannot be used", w.badKubeconfig)
	w.step("the kubeconfig is of another cluster", w.replaced)
	w.step("that Flux does not react is noticed", w.idleEngine)
	w.step("a cluster is suspended", w.suspends)
	w.step("a cluster is suspended in the middle of a removal", w.suspendsRemoval)
	w.step("a Grid is deleted while no controller runs", w.deletedUnseen)
	w.step("the hub is restored from a backup", w.restored)
	w.step("clusters leave", w.leaves)
}

// collides: west keeps its own Grid, and gets the hub's when that one is gone.
func (w *faultyFleet) collides() {
	w.west.Apply(w.t, zoned("default", "taken", `"labels":{"mine":"yes"}`))
	w.federate("default", "taken")
	w.tells(west, "default", "taken", "NameCollision", "belongs to the cluster itself", "rename one of the two")
	w.calm(w.west, w.east)
	g, err := w.west.grid(w.t.Context(), "taken")
	must(w.t, err)
	if g.Labels["mine"] != "yes" || g.Annotations[v1alpha1.AnnotationFrom] != "" {
		w.t.Errorf("the Grid of west was taken over: %v %v", g.Labels, g.Annotations)
	}
	w.says(east, "Current", v1alpha1.ConditionCurrent, "Current")
	w.west.MustKubectl(w.t, "delete", "deploymentgrid", "taken")
	w.recover(west)
	w.hub.MustKubectl(w.t, "delete", "deploymentgrid", "taken", "--timeout=60s")
}

// anotherHub: a Grid that another hub has sent is left to it, also when the hub's own is deleted.
func (w *faultyFleet) anotherHub() {
	const from = "11111111-other-hub/22222222-grid"
	w.west.Apply(w.t, zoned("default", "theirs", fmt.Sprintf(`"annotations":{%q:%q}`, v1alpha1.AnnotationFrom, from)))
	w.federate("default", "theirs")
	w.tells(west, "default", "theirs", "NameCollision", "belongs to another hub", "rename one of the two")
	w.calm(w.west, w.east)
	w.hub.MustKubectl(w.t, "delete", "deploymentgrid", "theirs", "--timeout=60s")
	w.gone("theirs", w.hub, w.east)
	w.recover(west, east)
	g, err := w.west.grid(w.t.Context(), "theirs")
	must(w.t, err)
	if g.Annotations[v1alpha1.AnnotationFrom] != from {
		w.t.Errorf("the Grid of another hub was taken over: %v", g.Annotations)
	}
}

// noNamespace: one cluster gets the namespace by hand, the other by its FleetCluster: no privileged
// Pod runs there, since none does in the hub's.
func (w *faultyFleet) noNamespace() {
	w.hub.MustKubectl(w.t, "create", "namespace", "shop")
	w.hub.MustKubectl(w.t, "label", "namespace", "shop", "pod-security.kubernetes.io/enforce=restricted")
	w.federate("shop", "till")
	for _, name := range []string{west, east} {
		w.tells(name, "shop", "till", "NamespaceMissing", "no namespace shop", "create it there, or set createNamespace: true")
	}
	w.calm(w.west, w.east)
	w.west.MustKubectl(w.t, "create", "namespace", "shop")
	w.patchCluster(east, `{"spec":{"createNamespace":true}}`)
	w.recover(west, east)
	const privileged = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"root","namespace":"shop"},"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i"}]}}`
	out, err := w.east.KubectlIn(w.t.Context(), strings.NewReader(privileged), "create", "--dry-run=server", "--filename=-")
	if err == nil || !strings.Contains(fmt.Sprint(err), "violates PodSecurity") {
		w.t.Errorf("a privileged Pod in a namespace that was made for the hub's tenant: %s, %v", out, err)
	}
}

// reports: what is written while west's controller is down is as a later version, or another
// program, would write it. The controller puts it right.
func (w *faultyFleet) reports() {
	w.west.controller.Kill()
	w.rewrite(func(r *v1alpha1.GridReport) { r.Spec.Format = 99 })
	w.rowTells(west, calmGrid, "UnreadableReport", "format is 99", "update the grid-controller of the hub")
	w.rewrite(func(r *v1alpha1.GridReport) {
		r.Spec.Format = v1alpha1.ReportFormat
		r.Spec.States = map[string]v1.State{"zone1": {JSON: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", v1alpha1.MaxReport))}}
	})
	wait.Until(w.t, "the hub deletes a report that is too large", func() error {
		var list v1alpha1.GridReportList
		err := w.hub.client.List(w.t.Context(), &list, client.InNamespace("fleet-"+west))
		return errors.Join(err, wait.Check(!slices.ContainsFunc(list.Items, func(r v1alpha1.GridReport) bool { return r.Spec.Name == calmGrid }), "it is there"))
	})
	w.renewAt(time.Now().Add(-time.Hour), 77)
	w.renewAt(time.Now().Add(time.Hour), 78)
	w.startController(w.west)
	w.recover(west)
	w.calm(w.west, w.east)
}

// rewrite changes west's report on calmGrid on the hub.
func (w *faultyFleet) rewrite(edit func(*v1alpha1.GridReport)) {
	w.t.Helper()
	wait.Until(w.t, "a report is written", func() error {
		var list v1alpha1.GridReportList
		if err := w.hub.client.List(w.t.Context(), &list, client.InNamespace("fleet-"+west)); err != nil {
			return err
		}
		at := slices.IndexFunc(list.Items, func(r v1alpha1.GridReport) bool { return r.Spec.Name == calmGrid })
		if at < 0 {
			return errors.New("there is none")
		}
		edit(&list.Items[at])
		return w.hub.client.Update(w.t.Context(), &list.Items[at])
	})
}

// renewAt renews west's Lease with a wrong clock: the hub hears it, and does not call it old or
// new.
func (w *faultyFleet) renewAt(at time.Time, nodes int32) {
	w.t.Helper()
	wait.Until(w.t, "the Lease is renewed", func() error {
		lease, err := w.hub.Client.CoordinationV1().Leases("fleet-"+west).Get(w.t.Context(), v1alpha1.HeartbeatLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var beat v1alpha1.Heartbeat
		if err := json.Unmarshal([]byte(lease.Annotations[v1alpha1.AnnotationHeartbeat]), &beat); err != nil {
			return err
		}
		beat.Nodes = nodes
		text, err := json.Marshal(beat)
		if err != nil {
			return err
		}
		lease.Annotations[v1alpha1.AnnotationHeartbeat], lease.Spec.RenewTime = string(text), &metav1.MicroTime{Time: at}
		_, err = w.hub.Client.CoordinationV1().Leases("fleet-"+west).Update(w.t.Context(), lease, metav1.UpdateOptions{})
		return err
	})
	wait.Until(w.t, "the hub hears west", func() error {
		c, err := w.fleetCluster(west)
		return errors.Join(err, wait.Check(c.Status.Nodes == nodes, "status.nodes is %d, want %d", c.Status.Nodes, nodes))
	})
	c, err := w.fleetCluster(west)
	must(w.t, err)
	if c.Status.SilentSince != nil || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReachable) {
		w.t.Errorf("with a clock at %s, FleetCluster west is %+v", at, c.Status)
	}
}

// lostEngineObjects: the agent makes them again, and no Grid is removed.
func (w *faultyFleet) lostEngineObjects() {
	for _, kind := range []string{"kustomizations.kustomize.toolkit.fluxcd.io", "externalartifacts.source.toolkit.fluxcd.io", "gridbundles"} {
		names := strings.Fields(w.west.MustKubectl(w.t, "get", kind, "--namespace=gridproxy", "--output=name"))
		if len(names) == 0 {
			w.t.Fatalf("there are no %s in west", kind)
		}
		w.west.MustKubectl(w.t, append([]string{"delete", "--namespace=gridproxy"}, names...)...)
		wait.Until(w.t, "they are made again", func() error {
			again, err := w.west.Kubectl("get", kind, "--namespace=gridproxy", "--output=name")
			if got := strings.Fields(again); err == nil && !slices.Equal(got, names) {
				err = fmt.Errorf("there are %v, want %v", got, names)
			}
			return err
		})
		w.calm(w.west, w.east)
	}
	w.recover(west, east)
}

// noEngine: what is applied stays without Flux, and is its again when it is back.
func (w *faultyFleet) noEngine() {
	w.west.MustKubectl(w.t, "delete", "customresourcedefinition", "kustomizations.kustomize.toolkit.fluxcd.io")
	w.says(west, "NoEngine", v1alpha1.ConditionEngineMissing, "EngineMissing", "Flux is not installed: kubectl apply -k deploy/federation/flux")
	w.calm(w.east)
	w.stays(w.west)
	w.west.MustKubectl(w.t, "apply", "--server-side", "--filename="+w.flux.CRDs())
	w.follows(w.west)
	w.recover(west)
}

// noDefinition: a StatefulSetGrid waits for its definition, and the others of its namespace do not
// wait for it.
func (w *faultyFleet) noDefinition() {
	w.east.MustKubectl(w.t, "delete", "customresourcedefinition", "statefulsetgrids.superedge.io")
	w.hub.Apply(w.t, fmt.Sprintf(claimingGrid, v1alpha1.LabelFederated))
	w.rowTells(east, "keeper", "KindMissing", "does not know the kind StatefulSetGrid", "kubectl apply --server-side -k deploy/crds")
	w.calm(w.east)
	w.east.MustKubectl(w.t, "apply", "--server-side", "--filename="+crds)
	w.recover(east)
	w.east.MustKubectl(w.t, "get", "statefulsetgrid", "keeper")
}

// oldDefinition: the definition of east does not know a field.
func (w *faultyFleet) oldDefinition() {
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/autoDeleteUnusedTemplate"
	w.east.MustKubectl(w.t, "patch", "customresourcedefinition", "deploymentgrids.superedge.io", "--type=json",
		`--patch=[{"op":"remove","path":"`+field+`"}]`)
	w.hub.MustKubectl(w.t, "patch", "deploymentgrid", "till", "--namespace=shop", "--type=merge", `--patch={"spec":{"autoDeleteUnusedTemplate":true}}`)
	w.tells(east, "shop", "till", "ApplyFailed", "if it does not know a field, run there: kubectl apply --server-side -k deploy/crds")
	w.calm(w.east)
	w.east.MustKubectl(w.t, "apply", "--server-side", "--force-conflicts", "--filename="+crds)
	w.recover(east)
}

const rejoinEast = "grid-controller join --cluster east --member-kubeconfig FILE"

// badKubeconfig: nothing of east changes while its kubeconfig is no kubeconfig, or is not accepted.
func (w *faultyFleet) badKubeconfig() {
	w.giveKubeconfig("no kubeconfig")
	w.says(east, "Unreachable, Stale", v1alpha1.ConditionReachable, "KubeConfigInvalid", rejoinEast)
	expired := w.east.Bearer(w.east.API.Addr, "expired")
	w.giveKubeconfig(w.kubeconfigOf(expired))
	w.says(east, "Unreachable, Stale", v1alpha1.ConditionReachable, "Unreachable", rejoinEast, "provide credentials")
	w.change()
	w.follows(w.hub)
	w.stays(w.east)
	w.rejoinEast()
	w.follows(w.east)
	w.recover(east)
}

// replaced: under east's name the hub answers, whose Grids stay what they are.
func (w *faultyFleet) replaced() {
	before, err := w.hub.grid(w.t.Context(), calmGrid)
	must(w.t, err)
	w.giveKubeconfig(w.kubeconfigOf(w.hub.Admin()))
	w.says(east, "Replaced", v1alpha1.ConditionClusterReplaced, "OtherUID", "nothing is sent", "if the cluster was made again", "join")
	w.says(east, "Replaced", v1alpha1.ConditionCurrent, "ClusterReplaced", "nothing is sent")
	wait.Until(w.t, "Flux is suspended", func() error {
		text, err := w.hub.Kubectl("get", "kustomizations.kustomize.toolkit.fluxcd.io", "--namespace=fleet-"+east, "--output=jsonpath={.items[*].spec.suspend}")
		return errors.Join(err, wait.Check(text != "" && !strings.Contains(text, "false"), "spec.suspend is %q", text))
	})
	w.change()
	w.follows(w.hub)
	after, err := w.hub.grid(w.t.Context(), calmGrid)
	must(w.t, err)
	if after.Annotations[v1alpha1.AnnotationFrom] != "" || after.Generation != before.Generation+1 || after.Labels[v1alpha1.LabelFederated] == "" {
		w.t.Errorf("the Grid of the hub was applied to: %+v", after.ObjectMeta)
	}
	w.stays(w.east)
	w.rejoinEast()
	w.follows(w.east)
	w.recover(east)
}

// killsEngine: west waits from now on. It takes two minutes until that is a problem; see
// idleEngine.
func (w *faultyFleet) killsEngine() {
	w.west.engine.Stop(syscall.SIGKILL, 0)
	w.calm(w.east)
}

// idleEngine: west's Flux was stopped a while ago, and there were changes.
func (w *faultyFleet) idleEngine() {
	w.says(west, "Behind", v1alpha1.ConditionCurrent, "EngineIdle", "does not react", "see whether kustomize-controller runs", "ExternalArtifact=true")
	w.stays(w.west)
	w.startEngine(w.west)
	w.follows(w.west)
	w.recover(west)
}

// suspends: only the cluster that is suspended keeps what it has.
func (w *faultyFleet) suspends() {
	before := w.replicas
	w.patchCluster(west, `{"spec":{"suspend":true}}`)
	w.says(west, "Suspended", v1alpha1.ConditionCurrent, "Suspended", "nothing is changed in the cluster", "set spec.suspend to false")
	w.calm(w.hub, w.east)
	if replicas, err := w.replicasIn(w.west); err != nil || replicas != before {
		w.t.Errorf("west has %d replicas (%v), and is suspended", replicas, err)
	}
	w.patchCluster(west, `{"spec":{"suspend":false}}`)
	w.follows(w.west)
	w.recover(west)
}

// suspendsRemoval: what has not been removed when a cluster is suspended stays until that ends,
// also when Flux, which was to remove it, comes back meanwhile.
func (w *faultyFleet) suspendsRemoval() {
	uid := w.west.MustKubectl(w.t, "get", "deploymentgrid", "till", "--namespace=shop", "--output=jsonpath={.metadata.uid}")
	w.west.engine.Stop(syscall.SIGKILL, 0)
	w.hub.MustKubectl(w.t, "delete", "deploymentgrid", "till", "--namespace=shop", "--wait=false")
	w.fluxOfShop("Flux is told to remove the Grids of a namespace", "deleted")
	w.patchCluster(west, `{"spec":{"suspend":true}}`)
	w.fluxOfShop("Flux is told to leave them", "deleted suspended")
	w.startEngine(w.west)
	w.fluxOfShop("Flux has let them go", "")
	w.west.MustKubectl(w.t, "get", "deployment", "till-zone1", "--namespace=shop")
	if now := w.west.MustKubectl(w.t, "get", "deploymentgrid", "till", "--namespace=shop", "--output=jsonpath={.metadata.uid}{.metadata.deletionTimestamp}"); now != uid {
		w.t.Errorf("the Grid of west was %s, and is %s", uid, now)
	}
	w.patchCluster(west, `{"spec":{"suspend":false}}`)
	w.gone("till", w.west, w.hub)
	w.recover(west)
}

// fluxOfShop waits until Flux in west has been told this about the namespace shop; "": nothing.
func (w *faultyFleet) fluxOfShop(what, want string) {
	w.t.Helper()
	wait.Until(w.t, what, func() error {
		out, err := w.west.Kubectl("get", "kustomizations.kustomize.toolkit.fluxcd.io", "grids-shop", "--namespace=gridproxy", "--ignore-not-found",
			"--output=go-template={{if .metadata.deletionTimestamp}}deleted{{else}}here{{end}}{{if .spec.suspend}} suspended{{end}}")
		return errors.Join(err, wait.Check(out == want, "it is %q, want %q", out, want))
	})
}
