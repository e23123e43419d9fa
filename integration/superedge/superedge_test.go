package superedge

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// world is a cluster in which SuperEdge's own controller has made the children of the manual's Grids.
type world struct {
	*nodes.Cluster
	t         *testing.T
	whole     *testing.T // t is a part of it
	shell     shell
	superEdge apiserver.SuperEdge
	running   *apiserver.Child // SuperEdge's controller; nil: it does not run
	ours      *nodes.GridController
}

// standIns are SuperEdge's Deployments as far as the document's commands see them. What they run is not in them: the test
// starts and stops the real controller as they are scaled.
const standIns = `
apiVersion: v1
kind: Namespace
metadata: {name: edge-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: application-grid-controller, namespace: edge-system}
spec:
  selector: {matchLabels: {app: application-grid-controller}}
  template:
    metadata: {labels: {app: application-grid-controller}}
    spec: {containers: [{name: controller, image: stand-in}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: site-manager, namespace: edge-system}
spec:
  selector: {matchLabels: {app: site-manager}}
  template:
    metadata: {labels: {app: site-manager}}
    spec: {containers: [{name: manager, image: stand-in}]}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	need.Root(t)
	need.Tools(t, "run `apt-get install util-linux mount`", "unshare", "mount")
	superEdge, err := apiserver.EnsureSuperEdge(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, whole: t, superEdge: superEdge}
	w.Cluster = nodes.ForTest(t, nodes.Options{Manifests: []string{superEdge.CRDs()}})
	w.shell = newShell(t, w.Tools(), w.Admin())
	for name, value := range map[string]string{"bj-1": "beijing", "bj-2": "beijing", "gz-1": "guangzhou", "gz-2": "guangzhou"} {
		w.AddNode(t, name, map[string]string{"location": value})
	}
	w.Apply(t, standIns)
	t.Cleanup(func() { w.stopSuperEdge() })
	return w
}

// in is the world with the test that a failure ends.
func (w *world) in(t *testing.T) *world {
	w.t = t
	return w
}

func (w *world) startSuperEdge() {
	w.t.Helper()
	var err error
	if w.running, err = apiserver.StartChild(w.superEdge.Controller(w.Kubeconfig(), w.Dir())); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stopSuperEdge() {
	if w.running != nil {
		w.running.Stop(os.Kill, time.Minute)
		w.running = nil
	}
}

// startOurs starts the controller with the rights that the document's commands have given it.
func (w *world) startOurs() {
	w.t.Helper()
	w.ours = w.GridController(w.whole, nodes.ControllerOptions{
		Binary: w.shell.controller, User: "system:serviceaccount:gridproxy:grid-controller",
		Flags: []string{"--leader-elect-resource-namespace=gridproxy"},
	})
	w.ours.WaitReady(w.t)
}

// moveOver does what the document says.
func (w *world) moveOver() {
	w.t.Helper()
	const image = "registry.example.com/gridproxy:1.0"
	w.shell.Env = []string{"IMAGE=" + image}
	w.shell.follow(w.t, "Prepare the image")
	w.shell.follow(w.t, "Stop SuperEdge")
	w.stopSuperEdge()
	w.t.Log(w.shell.follow(w.t, "Replace the definitions"))
	w.shell.follow(w.t, "Start grid-controller")
	if got := w.MustKubectl(w.t, "--namespace=gridproxy", "get", "deployment", "grid-controller", "-o", "jsonpath={.spec.template.spec.containers[*].image}"); got != image {
		w.t.Errorf("grid-controller runs image %s", got)
	}
	w.startOurs()
	w.t.Log(w.shell.follow(w.t, "Check"))
}

// get is what kubectl says of one object or kind, by a JSONPath.
func (w *world) get(what, path string) string {
	w.t.Helper()
	return w.MustKubectl(w.t, "get", what, "-o", "jsonpath="+path)
}

// identity is what must stay of every child: by kind and name, UID, generation, and the UIDs of its Pods or its address.
func (w *world) identity() map[string]string {
	w.t.Helper()
	ids := map[string]string{}
	pods := map[string][]string{}
	list, err := w.Client.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range list.Items {
		for name := p.Name; ; name = name[:strings.LastIndex(name, "-")] {
			pods[name] = append(pods[name], string(p.UID))
			if !strings.Contains(name, "-") {
				break
			}
		}
	}
	for _, kind := range []string{"deployment", "statefulset"} {
		for line := range strings.Lines(w.get(kind, `{range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`)) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			slices.Sort(pods[name])
			ids[kind+" "+name] = fmt.Sprint(rest, " ", pods[name])
		}
	}
	ids["service"] = w.get("service/servicegrid-demo-svc", "{.metadata.uid} {.spec.clusterIP}")
	return ids
}

func (w *world) same(before, after map[string]string) {
	w.t.Helper()
	if !maps.Equal(before, after) {
		for name := range before {
			if before[name] != after[name] {
				w.t.Errorf("%s was %s and is %s", name, before[name], after[name])
			}
		}
		for name := range after {
			if _, found := before[name]; !found {
				w.t.Errorf("there is %s", name)
			}
		}
	}
}

func (w *world) managers(what string) []string {
	w.t.Helper()
	var entries []metav1.ManagedFieldsEntry
	text := w.MustKubectl(w.t, "get", what, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields}")
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource))
	}
	return names
}

// guide is the document that is proved.
func guide() document.Document {
	return document.Document{Path: "../../docs/migrate-from-superedge.md"}
}

// shell is where the commands of the document are run: in a folder that has what the repository
// has, with kubectl and grid-controller in PATH.
type shell struct {
	document.Shell
	controller string
}

func newShell(t *testing.T, tools apiserver.Tools, admin *rest.Config) shell {
	t.Helper()
	controller := program.ForTest(t, program.GridController)
	s := shell{controller: controller, Shell: document.NewShell(t, admin, map[string]string{
		"kubectl": tools.Path("kubectl"), "grid-controller": controller,
	})}
	s.Link(t, "deploy", "../../deploy")
	return s
}

// follow runs the commands below a heading of the document, and returns what they printed.
func (s shell) follow(t *testing.T, heading string) string {
	t.Helper()
	return s.Follow(t, guide(), heading)
}
