package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	errRefused = errors.New("something is refused")
	errEnded   = errors.New("the controller has ended by itself")
)

// tour is one controller on its way through everything that it does.
type tour struct {
	*plane
	t     *testing.T
	name  string // of its namespace, and the end of the names of what has none
	count *nodes.Count
	err   error

	controller *nodes.GridController // the last that was started
	starts     int
	log        string // of that controller
	said       string // the first line of it that tells of a refusal
}

// run starts a controller that may do so much, takes it through everything, ends it and clears up.
func (p *plane) run(t *testing.T, name string, rights []Right) *tour {
	t.Helper()
	r := &tour{plane: p, t: t, name: "r" + name, count: &nodes.Count{}}
	user := newAccount(t, p.Cluster, "controller-"+name, rights)
	r.prepare()
	for r.err = errEnded; errors.Is(r.err, errEnded) && r.starts < 3; r.starts++ { // as a kubelet would
		r.controller = p.GridController(t, nodes.ControllerOptions{
			Binary: p.binary, User: user, Count: r.count,
			Flags: []string{
				"--leader-elect-resource-namespace=" + home, "--unit-removal-grace=1s", "--leader-elect-retry-period=1s",
				"--healthz-bind-address=", "--metrics-bind-address=", // they are not asked
			},
		})
		r.err = r.everything()
		r.controller.Kill()
		r.log = r.controller.Log()
		if errors.Is(r.err, errEnded) {
			t.Logf("%v; its log:\n%s", r.err, r.log)
		}
	}
	for line := range strings.Lines(r.log) {
		if r.said == "" && strings.Contains(line, "forbidden") {
			r.said = line
		}
	}
	r.clear()
	return r
}

// prepare makes what the controller finds when it starts, so that most of what it does it tries at once.
func (r *tour) prepare() {
	r.t.Helper()
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		r.SetLabels(r.t, n, map[string]string{"zone-" + r.name: "z" + r.name + n})
	}
	r.Apply(r.t, strings.NewReplacer("NAME", r.name, "TEMPLATE", template, "TAKEN", strings.Replace(template, "web", "taken", 1)).Replace(world))
}

const template = `{metadata: {labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: echo, image: "echo:1"}]}}`

// world are three units under one key, one more for every Node, which a group finds, and a Grid of
// each kind, with a template that is not used. Two names of one more Grid are taken, and two of
// its templates are missing: two Events that differ in their text alone, which are a series.
const world = `
{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeUnit, metadata: {name: NAME-a}, spec: {nodes: [n1, n2, ghost]}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeUnit, metadata: {name: NAME-b}, spec: {nodes: [n3]}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeUnit, metadata: {name: NAME-c}, spec: {nodes: [n4]}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeGroup, metadata: {name: site-NAME}, spec: {nodeUnits: [NAME-a, NAME-b, NAME-c]}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeGroup, metadata: {name: zones-NAME}, spec: {autoFindNodeKeys: [zone-NAME]}}
---
apiVersion: superedge.io/v1
kind: DeploymentGrid
metadata: {name: web, namespace: NAME}
spec:
  gridUniqKey: site-NAME
  autoDeleteUnusedTemplate: true
  defaultTemplateName: used
  template: {replicas: 2, selector: {matchLabels: {app: web}}, template: TEMPLATE}
  templatePool:
    used: {replicas: 2, selector: {matchLabels: {app: web}}, template: TEMPLATE}
    unused: {replicas: 1, selector: {matchLabels: {app: web}}, template: TEMPLATE}
---
apiVersion: superedge.io/v1
kind: StatefulSetGrid
metadata: {name: db, namespace: NAME}
spec:
  gridUniqKey: site-NAME
  autoDeleteUnusedTemplate: true
  defaultTemplateName: used
  template: {replicas: 0, serviceName: web, selector: {matchLabels: {app: db}}, template: TEMPLATE}
  templatePool:
    used: {replicas: 0, serviceName: web, selector: {matchLabels: {app: web}}, template: TEMPLATE}
    unused: {replicas: 0, serviceName: web, selector: {matchLabels: {app: web}}, template: TEMPLATE}
---
apiVersion: superedge.io/v1
kind: ServiceGrid
metadata: {name: web, namespace: NAME, annotations: {superedge.io/on-immutable-change: Recreate}}
spec:
  gridUniqKey: site-NAME
  template: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: superedge.io/v1
kind: DeploymentGrid
metadata: {name: taken, namespace: NAME}
spec:
  gridUniqKey: zone-NAME
  template: {replicas: 0, selector: {matchLabels: {app: taken}}, template: TAKEN}
  templates: {zNAMEn3: missing, zNAMEn4: also-missing}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: taken-zNAMEn1, namespace: NAME}
spec: {replicas: 0, selector: {matchLabels: {app: taken}}, template: TAKEN}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: taken-zNAMEn2, namespace: NAME}
spec: {replicas: 0, selector: {matchLabels: {app: taken}}, template: TAKEN}
`

// The kinds in questions.
var (
	units       = schema.GroupVersionResource{Group: "site.superedge.io", Version: "v1alpha2", Resource: "nodeunits"}
	groups      = schema.GroupVersionResource{Group: "site.superedge.io", Version: "v1alpha2", Resource: "nodegroups"}
	grids       = schema.GroupVersionResource{Group: "superedge.io", Version: "v1", Resource: "deploymentgrids"}
	sets        = schema.GroupVersionResource{Group: "superedge.io", Version: "v1", Resource: "statefulsetgrids"}
	services    = schema.GroupVersionResource{Group: "superedge.io", Version: "v1", Resource: "servicegrids"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefuls   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	plain       = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// everything goes on from step to step until something is refused. A step without words changes
// something; each other step waits for what its words say.
func (r *tour) everything() error {
	n := r.name
	for _, step := range []struct {
		what string
		ask  func() error
	}{
		{"the unit of all Nodes is there", r.exists(units, "", "unit-node-all")},
		{"the unit says 2/2", r.says(units, "", n+"-a", "2/2", "status", "readyRate")},
		{"a group finds units", r.exists(units, "", "z"+n+"n4")},
		{"the group has a status", r.has(groups, "", "site-"+n, "status", "unitNumber")},
		{"its Deployment", r.exists(deployments, n, "web-"+n+"-c")},
		{"its StatefulSet", r.exists(statefuls, n, "db-"+n+"-c")},
		{"its Service", r.exists(plain, n, "web-svc")},
		{"a status", r.has(grids, n, "web", "status", "observedGeneration")},
		{"a status", r.has(sets, n, "db", "status", "observedGeneration")},
		{"a status", r.has(services, n, "web", "status", "observedGeneration")},
		{"no unused template", r.lacks(grids, n, "web", "spec", "templatePool", "unused")},
		{"no unused template", r.lacks(sets, n, "db", "spec", "templatePool", "unused")},
		{"Events are counted", r.series},
		{"Pods run on n1 or n2", r.pods("n1 n2", 2)},
		{"", r.disown},
		{"it is adopted", r.has(deployments, n, "web-"+n+"-a", "metadata", "ownerReferences")},
		{"it is adopted", r.has(statefuls, n, "db-"+n+"-a", "metadata", "ownerReferences")},
		{"it is adopted", r.has(plain, n, "web-svc", "metadata", "ownerReferences")},
		{"", r.stray},
		{"it is released", r.lacks(deployments, n, "stray", "metadata", "ownerReferences")},
		{"it is released", r.lacks(statefuls, n, "stray", "metadata", "ownerReferences")},
		{"it is released", r.lacks(plain, n, "stray", "metadata", "ownerReferences")},
		{"", r.leave},
		{"what stood on a lost unit is deleted", r.gone(deployments, n, "web-"+n+"-c")},
		{"what stood on a lost unit is deleted", r.gone(statefuls, n, "db-"+n+"-c")},
		{"a unit that nobody finds is deleted", r.gone(units, "", "z"+n+"n4")},
		{"Pods leave n1", r.pods("n1", 0)},
		{"the Service is made anew", r.headless},
		{"the Lease is renewed", r.renewal()},
	} {
		if step.what != "" {
			if err := r.until(step.what, step.ask); err != nil {
				return err
			}
		} else if err := step.ask(); err != nil {
			return err
		}
	}
	return nil
}

// disown takes the owner from a child of each kind.
func (r *tour) disown() error {
	const orphan = `{"metadata": {"ownerReferences": null}}`
	return errors.Join(
		r.patch(deployments, r.name, "web-"+r.name+"-a", orphan),
		r.patch(statefuls, r.name, "db-"+r.name+"-a", orphan),
		r.patch(plain, r.name, "web-svc", orphan),
	)
}

// stray makes an object of each kind that a Grid controls and that is no unit's. What it is
// released from is read live.
func (r *tour) stray() error {
	pods := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "stray"}}, "replicas": int64(0), "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "stray"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "echo", "image": "echo:1"}}},
	}}
	var errs []error
	for _, s := range []struct {
		of, grid          schema.GroupVersionResource
		kind, owner, name string
		spec              map[string]any
	}{
		{deployments, grids, "Deployment", "DeploymentGrid", "web", pods},
		{statefuls, sets, "StatefulSet", "StatefulSetGrid", "db", pods},
		{plain, services, "Service", "ServiceGrid", "web", map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
	} {
		g, err := r.object(s.grid, r.name, s.name)
		if err != nil {
			return err
		}
		o := &unstructured.Unstructured{Object: map[string]any{"spec": s.spec}}
		o.SetGroupVersionKind(s.of.GroupVersion().WithKind(s.kind))
		o.SetName("stray")
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: s.grid.GroupVersion().String(), Kind: s.owner, Name: s.name, UID: g.GetUID(), Controller: new(true),
		}})
		_, err = r.objects.Resource(s.of).Namespace(r.name).Create(r.t.Context(), o, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leave takes c's Node and one of a's Nodes away, a Node out of its zone, and the Service's address.
func (r *tour) leave() error {
	r.RemoveLabels(r.t, "n4", "zone-"+r.name)
	return errors.Join(
		// It loses all its Nodes, and a Grid names the key: that is to be allowed.
		r.patch(units, "", r.name+"-c", `{"metadata": {"annotations": {"site.superedge.io/allow-removal": "site-`+r.name+`"}}, "spec": {"nodes": ["ghost"]}}`),
		r.patch(units, "", r.name+"-a", `{"spec": {"nodes": ["n2"]}}`),
		r.patch(services, r.name, "web", `{"spec": {"template": {"clusterIP": "None"}}}`),
	)
}

// until asks until there is no error, something was refused, or the controller has ended.
func (r *tour) until(what string, ask func() error) error {
	err := wait.Usual.For(r.t.Context(), func(context.Context) error {
		err := ask()
		select {
		case <-r.controller.Done():
			if err != nil {
				err = wait.Stop(fmt.Errorf("%w: %w", errEnded, err))
			}
		default:
		}
		if len(refused(r.count)) > 0 {
			return wait.Stop(errRefused)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (r *tour) object(of schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return r.objects.Resource(of).Namespace(namespace).Get(r.t.Context(), name, metav1.GetOptions{})
}

func (r *tour) patch(of schema.GroupVersionResource, namespace, name, patch string) error {
	_, err := r.objects.Resource(of).Namespace(namespace).Patch(r.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (r *tour) exists(of schema.GroupVersionResource, namespace, name string) func() error {
	return r.has(of, namespace, name, "metadata")
}

func (r *tour) has(of schema.GroupVersionResource, namespace, name string, path ...string) func() error {
	return func() error {
		o, err := r.object(of, namespace, name)
		if err != nil {
			return err
		}
		_, found, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return wait.Check(found, "%s %s has no %s", of.Resource, name, strings.Join(path, "."))
	}
}

func (r *tour) lacks(of schema.GroupVersionResource, namespace, name string, path ...string) func() error {
	return func() error {
		return wait.Check(r.has(of, namespace, name, path...)() != nil, "%s %s has %s", of.Resource, name, strings.Join(path, "."))
	}
}

func (r *tour) gone(of schema.GroupVersionResource, namespace, name string) func() error {
	return r.lacks(of, namespace, name, "metadata")
}

func (r *tour) says(of schema.GroupVersionResource, namespace, name, want string, path ...string) func() error {
	return func() error {
		o, err := r.object(of, namespace, name)
		if err != nil {
			return err
		}
		got, _, _ := unstructured.NestedString(o.Object, path...)
		return wait.Check(got == want, "%s of %s is %q, want %q", strings.Join(path, "."), name, got, want)
	}
}

// pods: so many of unit a's Pods run on these Nodes.
func (r *tour) pods(nodes string, want int) func() error {
	return func() error {
		list, err := r.Client.CoreV1().Pods(r.name).List(r.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		got := 0
		for _, p := range list.Items {
			if strings.HasPrefix(p.Name, "web-"+r.name+"-a-") && p.Spec.NodeName != "" && strings.Contains(nodes, p.Spec.NodeName) {
				got++
			}
		}
		return wait.Check(got == want, "%d Pods on %s, want %d", got, nodes, want)
	}
}

func (r *tour) headless() error {
	s, err := r.Client.CoreV1().Services(r.name).Get(r.t.Context(), "web-svc", metav1.GetOptions{})
	return errors.Join(err, wait.Check(s.Spec.ClusterIP == "None", "its address is %s", s.Spec.ClusterIP))
}

// renewal: whoever holds the Lease writes to it once more, after the first look. The first renewal comes at once when it
// is acquired.
func (r *tour) renewal() func() error {
	var first time.Time
	return func() error {
		lease, err := r.Client.CoordinationV1().Leases(home).Get(r.t.Context(), "grid-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		at := lease.Spec.RenewTime
		if at == nil {
			return fmt.Errorf("nobody holds the Lease")
		}
		if first.IsZero() {
			first = at.Time
		}
		return wait.Check(at.After(first), "it was renewed at %s, and not since", at)
	}
}

func (r *tour) series() error {
	list, err := r.Client.EventsV1().Events(r.name).List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Series != nil {
			return nil
		}
	}
	return fmt.Errorf("none of %d", len(list.Items))
}

// clear removes what would be in the way of the next: the controller that would do it is dead.
func (r *tour) clear() {
	ctx := context.WithoutCancel(r.t.Context())
	_ = r.Client.CoordinationV1().Leases(home).Delete(ctx, "grid-controller", metav1.DeleteOptions{})
	for _, of := range []schema.GroupVersionResource{grids, sets, services} {
		// The next controller would go on with them while the namespace goes.
		_ = r.objects.Resource(of).Namespace(r.name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	for _, of := range []schema.GroupVersionResource{groups, units} {
		list, err := r.objects.Resource(of).List(ctx, metav1.ListOptions{})
		if err != nil {
			r.t.Error(err)
			continue
		}
		_ = r.objects.Resource(of).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		for _, o := range list.Items {
			_ = r.patch(of, "", o.GetName(), `{"metadata": {"finalizers": null}}`) // it may be gone already
		}
	}
	_ = r.Client.CoreV1().Namespaces().Delete(ctx, r.name, metav1.DeleteOptions{})
}
