package grids

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const serviceGrid = `
apiVersion: superedge.io/v1
kind: ServiceGrid
metadata: {name: web, namespace: default, annotations: {example.com/team: blue}}
spec:
  gridUniqKey: location
  template:
    selector: {app: web}
    ports:
      - {name: http, protocol: TCP, port: 80, targetPort: 8080}
      - {name: admin, protocol: TCP, port: 81, targetPort: 8081}
`

// TestChildren: a Grid's children are made, stay what the Grid says whoever changes them, and keep what others add.
func TestChildren(t *testing.T) {
	nodes.Undelayed(t, "the storm of conflicts never pauses, and would always be quicker")
	w := newWorld(t, map[string]string{"bj-1": "beijing", "bj-2": "beijing", "gz-1": "guangzhou"})
	w.apply(deploymentGrid("web", "replicas: 2"))
	w.apply(serviceGrid)
	w.run("one in each unit", (*world).created)
	w.run("nothing more to do", (*world).quiet)
	w.run("what others change is repaired", (*world).drift)
	w.run("what the Grid drops is dropped", (*world).dropped)
	w.run("a new unit", (*world).newUnit)
	w.run("a Node between two units that others hold", (*world).move)
	w.run("a child's status", (*world).childStatus)
	w.run("a restart", (*world).restart)
	w.run("the children's objects change under the controllers' hands", (*world).conflicts)
	w.run("an unused template", (*world).pruned)
}

// created waits until both Grids report their children.
func (w *world) created() {
	for _, unit := range []string{"beijing", "guangzhou"} {
		w.expectRow("web", unit, v1.UnitProgressing, "")
	}
	wait.Until(w.t, "the ServiceGrid tells its address", func() error {
		g, _ := get(w, &v1.ServiceGrid{}, "web")
		s, _ := get(w, &corev1.Service{}, "web-svc")
		return wait.Check(g.Status.Service == "web-svc" && g.Status.ClusterIP != "" && g.Status.ClusterIP == s.Spec.ClusterIP, "%+v", g.Status)
	})
}

// quiet: after another round nothing is written but what that round is about.
func (w *world) quiet() {
	w.reconciled(&v1.DeploymentGrid{}, "web")
	w.count.Reset()
	w.reconciled(&v1.DeploymentGrid{}, "web")
	w.expectWrites(map[string]int{"patch deploymentgrids.superedge.io/status": 1})
}

// expectWrites compares what the controllers wrote since the last reset, when there is as much of it as is wanted.
func (w *world) expectWrites(want map[string]int) {
	w.t.Helper()
	total := 0
	for _, n := range want {
		total += n
	}
	wait.Until(w.t, fmt.Sprintf("%d writes are counted", total), func() error {
		n := len(w.writes())
		return wait.Check(n >= total, "%v", n)
	})
	if diff := cmp.Diff(want, countKinds(w.writes())); diff != "" {
		w.t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func countKinds(writes []nodes.Request) map[string]int {
	kinds := map[string]int{}
	for _, r := range writes {
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		kinds[what]++
	}
	return kinds
}

// writes are those that are not Events.
func (w *world) writes() []nodes.Request {
	return w.count.Requests(func(r nodes.Request) bool { return r.Write() && !strings.HasPrefix(r.Resource, "events") })
}

// drift: every owned field is ours whatever is done to it (B-23); what is not owned is left (B-13).
func (w *world) drift() {
	w.patch(&appsv1.Deployment{}, "web-beijing", `{"metadata":{"annotations":{"example.com/mine":"1"},"labels":{"mine":"1"},"finalizers":["example.com/mine"]},
		"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	w.patch(&corev1.Service{}, "web-svc", `{"metadata":{"finalizers":["service.kubernetes.io/load-balancer-cleanup"]},"spec":{"sessionAffinity":"ClientIP"}}`)
	for _, c := range []struct {
		what     string
		kind     func() client.Object
		name     string
		patch    string
		patched  types.PatchType
		repaired func(o client.Object) bool
	}{
		{"a changed image", deployment, "web-beijing", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"evil:1"}]`, types.JSONPatchType,
			func(o client.Object) bool {
				return o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image == "echo:1"
			}},
		{"a changed number of replicas", deployment, "web-beijing", `{"spec":{"replicas":9}}`, types.MergePatchType,
			func(o client.Object) bool { return *o.(*appsv1.Deployment).Spec.Replicas == 2 }},
		{"a removed label", deployment, "web-beijing", `{"metadata":{"labels":{"superedge.io/grid-uniq-key":null}}}`, types.MergePatchType,
			func(o client.Object) bool { return o.GetLabels()[v1.LabelKey] == "location" }},
		{"a removed selector label", deployment, "web-guangzhou", `{"metadata":{"labels":{"superedge.io/grid-selector":null}}}`, types.MergePatchType,
			func(o client.Object) bool { return o.GetLabels()[v1.LabelSelector] == "web" }},
		{"a removed owner", deployment, "web-guangzhou", `{"metadata":{"ownerReferences":null}}`, types.MergePatchType,
			func(o client.Object) bool { return len(o.GetOwnerReferences()) == 1 }},
		{"a changed nodeSelector", deployment, "web-guangzhou", `{"spec":{"template":{"spec":{"nodeSelector":{"location":"beijing"}}}}}`, types.MergePatchType,
			func(o client.Object) bool {
				return o.(*appsv1.Deployment).Spec.Template.Spec.NodeSelector["location"] == "guangzhou"
			}},
		{"a removed port", service, "web-svc", `[{"op":"remove","path":"/spec/ports/1"}]`, types.JSONPatchType,
			func(o client.Object) bool { return len(o.(*corev1.Service).Spec.Ports) == 2 }},
		{"a removed topologyKeys", service, "web-svc", `{"metadata":{"annotations":{"topologyKeys":null}}}`, types.MergePatchType,
			func(o client.Object) bool { return o.GetAnnotations()["topologyKeys"] == `["location"]` }},
		{"a changed topologyKeys", service, "web-svc", `{"metadata":{"annotations":{"topologyKeys":"[]"}}}`, types.MergePatchType,
			func(o client.Object) bool { return o.GetAnnotations()["topologyKeys"] == `["location"]` }},
		{"a removed selector", service, "web-svc", `{"spec":{"selector":null}}`, types.MergePatchType,
			func(o client.Object) bool { return o.(*corev1.Service).Spec.Selector["app"] == "web" }},
	} {
		w.run(c.what, func(w *world) {
			o := c.kind()
			o.SetNamespace("default")
			o.SetName(c.name)
			must(w.t, w.client.Patch(w.t.Context(), o, client.RawPatch(c.patched, []byte(c.patch)), client.FieldOwner("somebody")))
			if c.repaired(o) {
				w.t.Fatal("the test changed nothing")
			}
			wait.Until(w.t, c.what+" is repaired", func() error {
				now, _ := get(w, c.kind(), c.name)
				return wait.Check(c.repaired(now), "it is not")
			})
		})
	}
	d, _ := get(w, &appsv1.Deployment{}, "web-beijing")
	if d.Annotations["example.com/mine"] != "1" || d.Labels["mine"] != "1" || len(d.Finalizers) != 1 ||
		d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" {
		w.t.Errorf("fields of somebody else did not survive: %v %v %v %v", d.Annotations, d.Labels, d.Finalizers, d.Spec.Template.Annotations)
	}
	s, _ := get(w, &corev1.Service{}, "web-svc")
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || len(s.Finalizers) != 1 { // B-24
		w.t.Errorf("fields of somebody else did not survive: %s %v", s.Spec.SessionAffinity, s.Finalizers)
	}
}

func deployment() client.Object { return &appsv1.Deployment{} }
func service() client.Object    { return &corev1.Service{} }

// dropped: what is taken out of a Grid is taken out of its children (B-23).
func (w *world) dropped() {
	w.apply(strings.Replace(serviceGrid, "      - {name: admin, protocol: TCP, port: 81, targetPort: 8081}\n", "", 1))
	wait.Until(w.t, "the port is gone", func() error {
		s, _ := get(w, &corev1.Service{}, "web-svc")
		return wait.Check(len(s.Spec.Ports) == 1, "%v", s.Spec.Ports)
	})
	w.settled(&v1.ServiceGrid{}, "web") // no later step counts the write that says so
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"labels":{"team":"blue"}}}`)
	wait.Until(w.t, "the Grid's label is on the children", func() error {
		return unequal("blue", func() string { d, _ := get(w, &appsv1.Deployment{}, "web-beijing"); return d.Labels["team"] }())
	})
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"labels":null}}`)
	wait.Until(w.t, "the label is gone again", func() error {
		return unequal("", func() string { d, _ := get(w, &appsv1.Deployment{}, "web-beijing"); return d.Labels["team"] }())
	})
}

// newUnit: the first Node of a unit costs one child and the status, and the Service nothing.
func (w *world) newUnit() {
	t := w.t
	w.reconciled(&v1.DeploymentGrid{}, "web")
	w.count.Reset()
	must(w.t, w.client.Create(t.Context(), nodeOf("sh-1", w.key, "shanghai")))
	w.expectRow("web", "shanghai", v1.UnitProgressing, "")
	w.expectWrites(map[string]int{"apply deployments.apps": 1, "patch deploymentgrids.superedge.io/status": 1})
}

func (w *world) move() {
	t := w.t
	must(w.t, w.client.Create(t.Context(), nodeOf("sh-2", w.key, "shanghai")))
	wait.Until(w.t, "two Nodes", func() error { return unequal(int32(2), w.row("web", "shanghai").Nodes) })
	w.reconciled(&v1.DeploymentGrid{}, "web") // the status that says so is counted
	w.count.Reset()
	w.label("sh-2", "beijing")
	wait.Until(w.t, "one Node", func() error {
		return errors.Join(unequal(int32(1), w.row("web", "shanghai").Nodes), unequal(int32(3), w.row("web", "beijing").Nodes))
	})
	w.expectWrites(map[string]int{"patch deploymentgrids.superedge.io/status": 1})
}

// childStatus: it costs one write at most.
func (w *world) childStatus() {
	t := w.t
	w.reconciled(&v1.DeploymentGrid{}, "web")
	w.count.Reset()
	d, _ := get(w, &appsv1.Deployment{}, "web-beijing")
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	must(w.t, w.client.Status().Update(t.Context(), d))
	row := w.expectRow("web", "beijing", v1.UnitReady, "")
	if row.Replicas != 2 || row.ReadyReplicas != 2 || row.UpdatedReplicas != 2 {
		t.Errorf("row: %+v", row)
	}
	g, _ := get(w, &v1.DeploymentGrid{}, "web")
	if state := string(g.Status.States["beijing"].JSON); !strings.Contains(state, `"readyReplicas":2`) {
		t.Errorf("states: %s", state)
	}
	w.expectWrites(map[string]int{"patch deploymentgrids.superedge.io/status": 1})
}

// restart: a controller that starts knows what was applied to Deployments before it, changes
// nothing (B-10), and writes no status. The Service is applied once.
func (w *world) restart() {
	versions := func() string {
		return w.kubectl("", "get", "dg,sg,deployments,services", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	}
	w.reconciled(&v1.DeploymentGrid{}, "web")
	before := versions()
	w.stop()
	w.count.Reset()
	w.start()
	w.reconciledAll()
	w.expectWrites(map[string]int{"apply services": 2, "patch servicegrids.superedge.io/status": 1}) // one Service was made by reconciledAll
	if diff := cmp.Diff(before, versions()); diff != "" {
		w.t.Errorf("(-before +after)\n%s", diff)
	}
}

// reconciledAll waits until the controllers are at rest: a new Grid, without units, has been through.
func (w *world) reconciledAll() {
	w.t.Helper()
	w.apply(`{"apiVersion":"superedge.io/v1","kind":"ServiceGrid","metadata":{"name":"last","namespace":"default"},"spec":{"gridUniqKey":"location","template":{"ports":[{"port":80}]}}}`)
	w.settled(&v1.ServiceGrid{}, "last")
	w.kubectl("", "delete", "sg", "last")
	w.kubectl("", "delete", "service", "last-svc")
}

// conflicts: another client writes the same objects as fast as it goes; what fails is tried again
// (B-22).
func (w *world) conflicts() {
	done := make(chan struct{})
	var storm sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(done)
		storm.Wait()
	})
	defer end()
	for _, unit := range []string{"beijing", "guangzhou", "shanghai"} {
		storm.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-" + unit}}
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"storm":"%d"},"labels":{"superedge.io/grid-uniq-key":"storm"}}}`, i)
				if err := w.client.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("storm")); err != nil {
					w.t.Errorf("the storm: %v", err)
				}
			}
		})
	}
	w.apply(deploymentGrid("web", "replicas: 4"))
	wait.Until(w.t, "the change is there in the storm", func() error { return w.allHave(4, "") })
	end()
	wait.Until(w.t, "the drift is repaired", func() error { return w.allHave(4, "location") })
}

func (w *world) allHave(replicas int32, key string) error {
	for _, unit := range []string{"beijing", "guangzhou", "shanghai"} {
		d, _ := get(w, &appsv1.Deployment{}, "web-"+unit)
		if *d.Spec.Replicas != replicas || key != "" && d.Labels[v1.LabelKey] != key {
			return fmt.Errorf("%s: %d replicas, labels %v", unit, *d.Spec.Replicas, d.Labels)
		}
	}
	return nil
}

// pruned: an unused template is removed on request, once: what comes back is left (B-11).
func (w *world) pruned() {
	pool := `{"spec":{"autoDeleteUnusedTemplate":true,"templatePool":{"a/b~c":{"replicas":1,"selector":{"matchLabels":{"app":"x"}}}}}}`
	w.patch(&v1.DeploymentGrid{}, "web", pool)
	templates := func() (inPool, unused, pruned int) {
		g, _ := get(w, &v1.DeploymentGrid{}, "web")
		return len(g.Spec.TemplatePool), len(g.Status.UnusedTemplates), len(g.Status.PrunedTemplates)
	}
	wait.Until(w.t, "it is removed", func() error {
		inPool, unused, pruned := templates()
		return wait.Check(inPool == 0 && unused == 0 && pruned == 1, "%d, %d unused, %d pruned", inPool, unused, pruned)
	})
	w.patch(&v1.DeploymentGrid{}, "web", pool)
	w.settled(&v1.DeploymentGrid{}, "web")
	w.reconciled(&v1.DeploymentGrid{}, "web")
	if inPool, unused, pruned := templates(); inPool != 1 || unused != 1 || pruned != 1 {
		w.t.Errorf("in the pool %d, unused %d, pruned %d: want 1 of each", inPool, unused, pruned)
	}
}
