package streams

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upgrade replaces the Pods of the DaemonSet one after the other, as a new version does.
func (w *world) upgrade() {
	w.t.Helper()
	before := map[string]int{}
	for _, m := range w.Machines() {
		before[m.Name] = w.pid(m.Name, "gridproxy")
	}
	begin := time.Now()
	w.shell.Run(w.t, "helm upgrade gridproxy deploy/charts/gridproxy --namespace gridproxy --reset-then-reuse-values "+
		"--set 'daemon.extraArgs={--v=1}' --wait --timeout "+waitTimeout.String())
	w.note("helm upgrade, a rolling update of four machines: %s", time.Since(begin).Round(10*time.Millisecond))
	for machine, pid := range before {
		w.must(w.another(machine, pid))
	}
}

// restartAPIServer kills the API server and starts it again; then a new Service must reach the rules.
func (w *world) restartAPIServer() {
	w.t.Helper()
	w.StopAPIServer()
	w.must(w.traffic.Calls.More(w.t.Context(), 10))
	w.StartAPIServer(w.t)
	w.Apply(w.t, `{apiVersion: v1, kind: Service, metadata: {name: after}, spec: {ipFamilyPolicy: RequireDualStack, selector: {app: backend}, ports: [{port: 80, targetPort: 8080}]}}`)
	w.ruled("after")
	w.MustKubectl(w.t, "delete", "service", "after")
}

// startGrids waits for the controllers, which are installed together with the daemon, and makes the manual's
// Grids.
func (w *world) startGrids() {
	w.t.Helper()
	w.MustKubectl(w.t, "-n", "gridproxy", "rollout", "status", "deployment/grid-controller", "--timeout", waitTimeout.String())
	w.ApplyFile(w.t, "../../../deploy/samples/stateless")
	w.rolledOut("deploymentgrid-demo-beijing", "deploymentgrid-demo-guangzhou")
}

// rolledOut waits until Deployments are there, and all their Pods are new and ready.
func (w *world) rolledOut(deployments ...string) {
	w.t.Helper()
	for _, name := range deployments {
		wait.Until(w.t, "Deployment "+name+" is rolled out", func() error {
			d, err := w.Client.AppsV1().Deployments("default").Get(w.t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			s := d.Status
			return wait.Check(s.ObservedGeneration == d.Generation && s.Replicas == 2 && s.UpdatedReplicas == 2 && s.AvailableReplicas == 2, "its status is %+v", s)
		})
	}
}

// leader is who holds the Lease of the controllers: a Pod's name and what it adds to it.
func (w *world) leader() (string, error) {
	leases, err := w.Client.CoordinationV1().Leases("gridproxy").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, l := range leases.Items {
		if l.Spec.HolderIdentity != nil && strings.HasPrefix(*l.Spec.HolderIdentity, "grid-controller-") {
			return *l.Spec.HolderIdentity, nil
		}
	}
	return "", fmt.Errorf("none of %d Leases is held by a grid-controller", len(leases.Items))
}

// failOver changes the template of a Grid and kills the leader at once. The next one goes on with it.
func (w *world) failOver() {
	w.t.Helper()
	first, err := w.leader()
	w.must(err)
	pod, _, _ := strings.Cut(first, "_")
	at, err := w.Pod(w.t.Context(), "gridproxy", pod)
	w.must(err)
	pid := process(at, "grid-controller")
	if pid == 0 {
		w.t.Fatalf("no grid-controller runs in Pod %s, which holds the Lease", pod)
	}
	begin := time.Now()
	w.must(syscall.Kill(pid, syscall.SIGKILL))
	w.MustKubectl(w.t, "patch", "deploymentgrid", "deploymentgrid-demo", "--type=json", "-p",
		`[{"op": "add", "path": "/spec/template/template/metadata/annotations", "value": {"version": "next"}}]`)
	wait.Until(w.t, "another grid-controller leads", func() error {
		now, err := w.leader()
		return errors.Join(err, wait.Check(now != first, "%s does", now))
	})
	w.note("controller failover: another leads after %s", time.Since(begin).Round(10*time.Millisecond))
	for _, unit := range []string{"beijing", "guangzhou"} {
		name := "deploymentgrid-demo-" + unit
		wait.Until(w.t, "the new template is in "+name, func() error {
			d, err := w.Client.AppsV1().Deployments("default").Get(w.t.Context(), name, metav1.GetOptions{})
			return errors.Join(err, wait.Check(d.Spec.Template.Annotations["version"] == "next", "its annotations are %v", d.Spec.Template.Annotations))
		})
		w.rolledOut(name)
	}
}
