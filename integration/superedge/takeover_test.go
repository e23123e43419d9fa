package superedge

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"
)

// children are what the manual's Grids come to, besides the Service.
func children() []string {
	return []string{
		"deployment/deploymentgrid-demo-beijing", "deployment/deploymentgrid-demo-guangzhou",
		"statefulset/statefulsetgrid-demo-beijing", "statefulset/statefulsetgrid-demo-guangzhou",
	}
}

const theService = "service/servicegrid-demo-svc"

// gridHash is where SuperEdge writes the label in a Grid, hash where it writes it in a child.
const (
	gridHash = `{.spec.template.template.metadata.labels.superedge\.io/template-hash-key}`
	hash     = `{.spec.template.metadata.labels.superedge\.io/template-hash-key}`
)

// manual is the manual's DeploymentGrid, StatefulSetGrid and ServiceGrid, each with a label, and a Service with two ports.
func manual(t *testing.T) string {
	t.Helper()
	var texts []string
	for _, file := range []string{"stateless/deploymentgrid.yaml", "stateful/statefulsetgrid.yaml", "stateless/servicegrid.yaml"} {
		text, err := os.ReadFile("../../deploy/samples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	text := strings.Join(texts, "---\n")
	text = replace(t, text, "  namespace: default\n", "  namespace: default\n  labels:\n    team: edge\n")
	return replace(t, text, "    - protocol: TCP\n      port: 80\n      targetPort: 8080\n",
		"    - name: http\n      protocol: TCP\n      port: 80\n      targetPort: 8080\n    - name: metrics\n      port: 9090\n")
}

func replace(t *testing.T, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("the manual's Grids have no %q", old)
	}
	return strings.ReplaceAll(text, old, new)
}

// TestTakeover moves the manual's Grids over from SuperEdge's own controller, back, and over again.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, step := range []struct {
		name string
		do   func(*world)
	}{
		{"SuperEdge makes the children", (*world).made},
		{"over", (*world).over},
		{"a Grid without SuperEdge's label", (*world).unlabelled},
		{"back, and over again", (*world).back},
		{"what leaves the Grids leaves the children", (*world).removals},
		{"back after changes", (*world).backAfterChanges},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(w.in(t)) }) {
			t.Fatalf("the steps after %q rest on it", step.name)
		}
	}
}

func (w *world) made() {
	w.startSuperEdge()
	w.Apply(w.t, manual(w.t))
	w.standing()
	for _, child := range children() {
		if got := w.get(child, hash); got == "" {
			w.t.Errorf("%s has no label of SuperEdge's in its Pod template", child)
		}
	}
}

// standing waits until every child has all its Pods.
func (w *world) standing() {
	w.t.Helper()
	wait.Until(w.t, "every child has its Pods", func() error {
		var missing []error
		for _, child := range children() {
			got, err := w.Kubectl("get", child, "-o", "jsonpath={.spec.replicas} {.status.readyReplicas} {.status.updatedReplicas}")
			if want := "2 2 2"; err == nil && got != want && got != "3 3 3" {
				err = fmt.Errorf("%s has %q, want all of them ready", child, got)
			}
			missing = append(missing, err)
		}
		_, err := w.Kubectl("get", theService)
		return errors.Join(append(missing, err)...)
	})
}

// over: every Deployment and StatefulSet keeps its UID, generation and Pods, the Service its UID and address, and nothing
// of them is SuperEdge's any more.
func (w *world) over() {
	before := w.identity()
	if got := w.shell.follow(w.t, "Look"); got != "" {
		w.t.Errorf("the children would be changed:\n%s", got)
	}
	w.moveOver()
	w.same(before, w.identity())
	w.owned()
}

// owned: SuperEdge's controller is the manager of no field.
func (w *world) owned() {
	w.t.Helper()
	for _, child := range append(children(), theService) {
		if got := w.managers(child); slices.Contains(got, "application-grid-controller Update ") || !slices.Contains(got, "grid-controller Apply ") {
			w.t.Errorf("the managers of %s are %q", child, got)
		}
	}
}

// unlabelled: tools that replace a Grid as a whole remove SuperEdge's label from it, which replaces no Pod.
func (w *world) unlabelled() {
	before := w.identity()
	w.MustKubectl(w.t, "patch", "deploymentgrid", "deploymentgrid-demo", "--type=json",
		"-p", `[{"op": "remove", "path": "/spec/template/template/metadata/labels/superedge.io~1template-hash-key"},
			{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]`)
	wait.Until(w.t, "the change has reached the children", func() error {
		got := w.get("deployment", "{.items[*].metadata.labels.seen}")
		return wait.Check(got == "yes yes", "their labels say %q", got)
	})
	w.same(before, w.identity())
	if got := w.get(children()[0], hash); got == "" {
		w.t.Error("SuperEdge's label has gone from the Pod template")
	}
}

// back: SuperEdge's controller replaces nothing where nothing was changed, and what it owns then is taken over again.
func (w *world) back() {
	before := w.identity()
	w.shell.follow(w.t, "The way back")
	w.ours.Stop()
	w.startSuperEdge()
	wait.Until(w.t, "SuperEdge's controller has written its label into the Grid", func() error {
		got := w.get("deploymentgrid/deploymentgrid-demo", gridHash)
		return wait.Check(got != "", "it has not")
	})
	w.MustKubectl(w.t, "patch", "servicegrid", "servicegrid-demo", "--type=json",
		"-p", `[{"op": "add", "path": "/spec/template/ports/-", "value": {"name": "extra", "port": 9191}}]`)
	wait.Until(w.t, "SuperEdge's controller has added a port", func() error {
		got := w.get(theService, "{.spec.ports[*].port}")
		return wait.Check(got == "80 9090 9191", "the ports are %s", got)
	})
	w.standing()
	w.same(before, w.identity())
	w.moveOver()
	w.same(before, w.identity())
	w.owned()
}

// removals: an environment variable, a label and Service ports are removed, and a port is changed.
func (w *world) removals() {
	text := manual(w.t)
	text = replace(w.t, text, "            - name: POD_IP\n              valueFrom:\n                fieldRef:\n                  fieldPath: status.podIP\n", "")
	text = replace(w.t, text, "  labels:\n    team: edge\n", "")
	text = replace(w.t, text, "    - name: metrics\n      port: 9090\n", "")
	text = replace(w.t, text, "port: 80\n", "port: 81\n")
	w.Apply(w.t, text)
	wait.Until(w.t, "they have gone from the children", func() error {
		var left []error
		want := func(child, path, want string) {
			if got := w.get(child, path); got != want {
				left = append(left, fmt.Errorf("%s has %s = %q, want %q", child, path, got, want))
			}
		}
		for _, child := range children() {
			want(child, "{.spec.template.spec.containers[0].env[*].name}", "NODE_NAME POD_NAME POD_NAMESPACE")
			want(child, "{.metadata.labels.team}", "")
			want(child, hash, "")
			want(child, `{.metadata.annotations.superedge\.io/grid-value}`, child[strings.LastIndex(child, "-")+1:])
		}
		want(theService, "{.metadata.labels.team}", "")
		want(theService, "{.spec.ports[*].port}", "81")
		return errors.Join(left...)
	})
	w.standing()
}

// backAfterChanges: where a Pod template was changed, SuperEdge's controller puts its label into it, which replaces the
// Pods of the same Deployments and StatefulSets.
func (w *world) backAfterChanges() {
	before := w.identity()
	w.shell.follow(w.t, "The way back")
	w.ours.Stop()
	w.startSuperEdge()
	wait.Until(w.t, "SuperEdge's controller has changed every template", func() error {
		for _, child := range children() {
			if w.get(child, hash) == "" {
				return fmt.Errorf("%s has no label of SuperEdge's", child)
			}
		}
		return nil
	})
	w.standing()
	for name, now := range w.identity() {
		was, is := strings.Fields(before[name]), strings.Fields(now)
		if was[0] != is[0] {
			w.t.Errorf("%s was %s and is %s", name, was, is)
		}
		if name != "service" && was[1] == is[1] {
			w.t.Errorf("%s has not changed: generation %s", name, is[1])
		}
	}
}
