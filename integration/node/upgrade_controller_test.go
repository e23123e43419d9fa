package node

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
)

// grids are one Grid of each kind that has children.
const grids = `
apiVersion: superedge.io/v1
kind: DeploymentGrid
metadata: {name: web, namespace: default}
spec:
  gridUniqKey: location
  template:
    replicas: 2
    selector: {matchLabels: {appGrid: web}}
    strategy: {}
    template:
      metadata: {labels: {appGrid: web}}
      spec: {containers: [{name: web, image: "echo:1"}]}
---
apiVersion: superedge.io/v1
kind: StatefulSetGrid
metadata: {name: db, namespace: default}
spec:
  gridUniqKey: location
  template:
    replicas: 1
    serviceName: db
    selector: {matchLabels: {appGrid: db}}
    template:
      metadata: {labels: {appGrid: db}}
      spec: {containers: [{name: db, image: "echo:1"}]}
---
apiVersion: superedge.io/v1
kind: ServiceGrid
metadata: {name: web, namespace: default}
spec:
  gridUniqKey: location
  template:
    selector: {appGrid: web}
    ports: [{protocol: TCP, port: 80, targetPort: 8080}]
`

// children is what an upgrade must not change: whose objects they are, their names, and all of
// their specs.
const children = "{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.labels} {.metadata.annotations} {.metadata.ownerReferences} {.spec}\n{end}"

// TestController: from the older controller to today's and back, with the definitions of each. No
// child is changed or made again, except the fingerprint that only newer controllers write, and
// each controller rolls out a change to children that the other has made.
func TestController(t *testing.T) {
	need.Root(t)
	before, today := releases(t)
	c := nodes.ForTest(t, nodes.Options{})
	c.AddNodes(t,
		nodes.Node{Name: "bj-1", Labels: map[string]string{"location": "beijing"}},
		nodes.Node{Name: "gz-1", Labels: map[string]string{"location": "guangzhou"}})
	image := "echo:1"
	running := start(t, c, before)
	c.Apply(t, grids)
	ready(t, c, image)
	for i, next := range []release{today, before, today} {
		was := childrenNow(t, c)
		running.Stop()
		running = start(t, c, next)
		running.WaitReady(t)
		// A template that no unit uses changes no child; once it is observed, the controller has looked
		// at the Grid.
		observed(t, c, fmt.Sprintf("seen-by-%d", i))
		if diff := cmp.Diff(was, childrenNow(t, c)); diff != "" {
			t.Errorf("%s controller changed children (-before +after):\n%s", next.name, diff)
		}
		image = fmt.Sprintf("echo:%d", i+2)
		c.MustKubectl(t, "patch", "dg/web", "--type=merge",
			"-p", `{"spec":{"template":{"template":{"spec":{"containers":[{"name":"web","image":"`+image+`"}]}}}}}`)
		ready(t, c, image)
	}
}

// childrenNow are the children, without the label that says what was applied to them.
func childrenNow(t *testing.T, c *nodes.Cluster) string {
	t.Helper()
	text := c.MustKubectl(t, "get", "deployment,statefulset,service", "-o", "jsonpath="+children)
	return regexp.MustCompile(`"superedge.io/grid-fingerprint":"[0-9a-f]+",?`).ReplaceAllString(text, "")
}

// start applies the definitions and rights of a release, and starts its controller.
func start(t *testing.T, c *nodes.Cluster, r release) *nodes.GridController {
	t.Helper()
	c.MustKubectl(t, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(r.source, "deploy", "crds"))
	o := nodes.AsShipped()
	o.Binary = r.controller
	for i, file := range o.Manifests {
		o.Manifests[i] = filepath.Join(r.source, strings.TrimPrefix(file, "../../"))
	}
	return c.GridController(t, o)
}

// ready waits until every unit has its children, with that image, and the Grids say so. Generations
// are compared since the Pods of before are as many and as ready.
func ready(t *testing.T, c *nodes.Cluster, image string) {
	t.Helper()
	wait.Until(t, "the Grids are rolled out with "+image, func() error {
		got, err := c.Kubectl("get", "deployment", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.template.spec.containers[*].image} {.metadata.generation}={.status.observedGeneration} {.status.replicas} {.status.updatedReplicas} {.status.readyReplicas}\n{end}")
		if err != nil {
			return err
		}
		want := regexp.MustCompile(fmt.Sprintf(`^web-beijing %[1]s (\d+)=(\d+) 2 2 2\nweb-guangzhou %[1]s (\d+)=(\d+) 2 2 2\n$`, image))
		if n := want.FindStringSubmatch(got); n == nil || n[1] != n[2] || n[3] != n[4] {
			return fmt.Errorf("the Deployments are %q, want %q and equal generations", got, want)
		}
		got, err = c.Kubectl("get", "dg,ssg", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.generation}={.status.observedGeneration} {.status.conditions[?(@.type=="Ready")].status}`+"\n{end}")
		n := regexp.MustCompile(`^\w+ (\d+)=(\d+) True\n\w+ (\d+)=(\d+) True\n$`).FindStringSubmatch(got)
		return errors.Join(err, wait.Check(n != nil && n[1] == n[2] && n[3] == n[4], "the Grids say %q", got))
	})
}

// observed adds a template that no unit uses, and waits until the controller has seen it.
func observed(t *testing.T, c *nodes.Cluster, name string) {
	t.Helper()
	pool := fmt.Sprintf(`{"spec":{"templatePool":{%q:{"replicas":1,"selector":{"matchLabels":{"appGrid":"web"}},"template":{"metadata":{"labels":{"appGrid":"web"}},"spec":{"containers":[{"name":"web","image":"echo:1"}]}}}}}}`, name)
	c.MustKubectl(t, "patch", "dg/web", "--type=merge", "-p", pool)
	wait.Until(t, "the controller has looked at the Grid", func() error {
		got, err := c.Kubectl("get", "dg/web", "-o", "jsonpath={.metadata.generation} {.status.observedGeneration}")
		if generation, seen, found := strings.Cut(got, " "); err == nil && (!found || generation != seen) {
			err = fmt.Errorf("its generation and the one observed are %q", got)
		}
		return err
	})
}

// TestTaintsOfUnits: what the older controller has set on a Node without a record goes with its
// unit after the upgrade, and what today's has set goes after the way back.
func TestTaintsOfUnits(t *testing.T) {
	need.Root(t)
	before, today := releases(t)
	c := nodes.ForTest(t, nodes.Options{})
	c.AddNodes(t, nodes.Node{Name: "bj-1"})
	carries := func(want string) {
		t.Helper()
		wait.Until(t, "what the unit sets is on its Node: "+want, func() error {
			got, err := c.Kubectl("get", "node/bj-1", "-o", `jsonpath={.spec.taints[*].key} {.metadata.labels.rack\.k8s\.io/x}`)
			return errors.Join(err, wait.Check(strings.TrimSpace(got) == want, "%q", got))
		})
	}
	running := start(t, c, before)
	for _, next := range []release{today, before} {
		running.WaitReady(t)
		c.Apply(t, `{apiVersion: site.superedge.io/v1alpha2, kind: NodeUnit, metadata: {name: beijing}, spec: {nodes: [bj-1], setNode: {
			labels: {rack.k8s.io/x: "7"}, taints: [{key: edge, effect: NoSchedule}]}}}`)
		carries("edge 7")
		running.Stop()
		running = start(t, c, next)
		c.MustKubectl(t, "wait", "nodeunit/beijing", "--for=jsonpath={.status.readyRate}=1/1", "--timeout=180s")
		if next.name == today.name {
			c.MustKubectl(t, "wait", "nodeunit/beijing", "--for=jsonpath={.status.restrictedRecorded}=true", "--timeout=180s")
		}
		c.MustKubectl(t, "delete", "nodeunit/beijing")
		carries("")
	}
}
