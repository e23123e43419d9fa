package grids

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/wait"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletedUnseen: a finalizer keeps the Grid until the controller is back.
func (w *faultyFleet) deletedUnseen() {
	w.federate("default", "unseen")
	for _, s := range []*site{w.west, w.east} {
		wait.Until(w.t, "the Grid in "+s.name, func() error { _, err := s.grid(w.t.Context(), "unseen"); return err })
	}
	w.recover(west, east)
	w.hub.controller.Kill()
	w.hub.MustKubectl(w.t, "delete", "deploymentgrid", "unseen", "--wait=false")
	w.startController(w.hub)
	w.gone("unseen", w.hub, w.west, w.east)
	w.calm(w.west, w.east)
	w.recover(west, east)
}

// restored: the backup is older than a Grid, which therefore holds the clusters that have it until
// it is released. It is also older than what west wrote last, by which west finds it; and where
// Flux works for east knows nothing of the Grid.
func (w *faultyFleet) restored() {
	backup := filepath.Join(w.t.TempDir(), "backup")
	must(w.t, w.hub.Backup(wait.Usual.Context(w.t), backup))
	before := w.heard(west)
	wait.Until(w.t, "west is heard after the backup", func() error { return wait.Check(w.heard(west) != before, "not yet") })
	w.age()
	w.federate("default", "young")
	for _, s := range []*site{w.west, w.east} {
		wait.Until(w.t, "a Grid younger than the backup in "+s.name, func() error { _, err := s.grid(w.t.Context(), "young"); return err })
	}
	w.recover(west, east)
	lost := w.lost(w.west)
	w.hub.controller.Stop()
	w.hub.engine.Stop(syscall.SIGKILL, 0)
	must(w.t, w.hub.Restore(wait.Usual.Context(w.t), backup))
	w.startController(w.hub)
	for _, s := range []*site{w.west, w.east} {
		w.says(s.name, "Held", v1alpha1.ConditionDistributionHeld, "UnknownGrids", "default/young", "if they may be removed there, run: kubectl annotate fleetcluster "+s.name)
		w.says(s.name, "Held", v1alpha1.ConditionCurrent, "DistributionHeld", "namespace default is left as it is in cluster "+s.name)
	}
	replicasBefore := w.replicas
	w.calm(w.hub)
	for _, s := range []*site{w.west, w.east} {
		if replicas, err := w.replicasIn(s); err != nil || replicas != replicasBefore {
			w.t.Errorf("%s has %d replicas (%v), and is held", s.name, replicas, err)
		}
		if _, err := s.grid(w.t.Context(), "young"); err != nil {
			w.t.Errorf("the Grid that the hub does not know left %s: %v", s.name, err)
		}
	}
	w.release(w.west)
	w.gone("young", w.west)
	w.follows(w.west)
	wait.Until(w.t, "west notices that the hub was restored", func() error { return wait.Check(w.lost(w.west) != lost, "it does not say so") })
	if _, err := w.east.grid(w.t.Context(), "young"); err != nil {
		w.t.Errorf("the Grid left %s, which was not released: %v", east, err)
	}
	w.release(w.east)
	wait.Until(w.t, "east is not held", func() error {
		c, err := w.fleetCluster(east)
		return errors.Join(err, wait.Check(meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionDistributionHeld), "its conditions are %+v", c.Status.Conditions))
	})
	w.startEngine(w.hub)
	w.gone("young", w.east)
	w.follows(w.east)
	w.recover(west, east)
}

// age raises the versions of the hub so far that watches which go on after a restore would miss all
// that the test does.
func (w *faultyFleet) age() {
	w.t.Helper()
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = "default", "age"
	must(w.t, w.hub.client.Create(w.t.Context(), m))
	for i := range 2000 {
		m.Data = map[string]string{"age": fmt.Sprint(i)}
		must(w.t, w.hub.client.Update(w.t.Context(), m))
	}
}

// lost is how often a member has said that its hub has lost something.
func (w *faultyFleet) lost(s *site) int {
	return strings.Count(s.controller.Log(), "the hub has lost what was written to it")
}

// heard is the version of the Lease in which a member says that it works.
func (w *faultyFleet) heard(name string) string {
	w.t.Helper()
	var lease coordinationv1.Lease
	must(w.t, w.hub.client.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.NamespacePrefix + name, Name: v1alpha1.HeartbeatLease}, &lease))
	return lease.ResourceVersion
}

// release runs the command that a FleetCluster gives.
func (w *faultyFleet) release(s *site) {
	w.t.Helper()
	c, err := w.fleetCluster(s.name)
	must(w.t, err)
	held := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionDistributionHeld)
	_, command, found := strings.Cut(held.Message, "run: kubectl ")
	if !found {
		w.t.Fatalf("there is no command in %q", held.Message)
	}
	w.hub.MustKubectl(w.t, strings.Fields(command)...)
}

// leaves: Grids stay in a cluster that leaves, unless its FleetCluster says Remove.
func (w *faultyFleet) leaves() {
	w.command("leave", "--cluster=east")
	w.calm(w.hub, w.west)
	w.stays(w.east)
	w.patchCluster(west, `{"spec":{"onDelete":"Remove"}}`)
	w.command("leave", "--cluster=west")
	w.gone(calmGrid, w.west)
	wait.Until(w.t, "the hub has no FleetCluster", func() error {
		names, err := w.hub.Kubectl("get", "fleetclusters,gridbundles,gridreports", "--all-namespaces", "--output=name")
		return errors.Join(err, wait.Check(names == "", "there are %s", names))
	})
	w.calm(w.hub)
	w.stays(w.east)
	wait.Until(w.t, "the Grid of the hub has no finalizer", func() error {
		g, err := w.hub.grid(w.t.Context(), calmGrid)
		return errors.Join(err, wait.Check(!strings.Contains(strings.Join(g.Finalizers, " "), v1alpha1.Finalizer), "it has it"))
	})
}
