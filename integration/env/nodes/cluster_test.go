package nodes

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const unitKey = "location"

// webIn is a Deployment and its Service, on the Nodes of one unit.
func webIn(unit, image string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {%s: %s}
      containers: [{name: web, image: %q}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`, replicas, unitKey, unit, image)
}

func addUnits(t *testing.T, c *Cluster) {
	t.Helper()
	for name, unit := range map[string]string{"bj-1": "beijing", "bj-2": "beijing", "gz-1": "guangzhou"} {
		c.AddNode(t, name, map[string]string{unitKey: unit})
	}
}

// expectEndpoints waits until the Service's slices of a family hold so many ready endpoints, all on
// Nodes of a unit.
func expectEndpoints(t *testing.T, c *Cluster, service, prefix string, count int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%s has %d endpoints on nodes %s", service, count, prefix), func() error {
		slices, err := c.Client.DiscoveryV1().EndpointSlices("default").List(t.Context(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, s := range slices.Items {
			for _, e := range s.Endpoints {
				if e.NodeName == nil || !strings.HasPrefix(*e.NodeName, prefix) {
					return fmt.Errorf("endpoint %v is on no node of the unit", e.Addresses)
				}
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					seen[e.Addresses[0]] = true
				}
			}
		}
		return wait.Check(len(seen) == count, "ready endpoints: %v", seen)
	})
}

// TestPodsRunWhereTheyBelong goes the whole way: Deployment, scheduler, kubelet, EndpointSlice, a move
// to another unit, an image that is broken, and the end by garbage collection.
func TestPodsRunWhereTheyBelong(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	addUnits(t, c)
	c.Apply(t, webIn("beijing", "echo:1", 3))
	expectEndpoints(t, c, "web", "bj-", 3)
	c.Apply(t, webIn("guangzhou", "echo:1", 2))
	expectEndpoints(t, c, "web", "gz-", 2)
	c.Apply(t, webIn("guangzhou", BrokenImages+"echo:2", 2))
	wait.Until(t, "the new Pod waits for its image", func() error {
		out, err := c.Kubectl("get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}")
		return errors.Join(err, wait.Check(out == "ErrImagePull", "reasons: %s", out))
	})
	expectEndpoints(t, c, "web", "gz-", 2)
	c.MustKubectl(t, "delete", "deployment", "web", "--wait=false")
	expectEndpoints(t, c, "web", "gz-", 0)
	wait.Until(t, "no Pod is left", func() error {
		out, err := c.Kubectl("get", "pods", "-o", "name")
		return wait.Check(err == nil && out == "", "%s, %w", out, err)
	})
}

// TestStatefulSetsCount: a StatefulSet makes its next Pod when the last is ready, and a Pod of the same
// name again.
func TestStatefulSetsCount(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	addUnits(t, c)
	c.Apply(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "echo:1"}]}
`)
	c.MustKubectl(t, "wait", "--for=jsonpath={.status.readyReplicas}=3", "statefulset/db", "--timeout=120s")
	before := c.MustKubectl(t, "get", "pod", "db-0", "-o", "jsonpath={.metadata.uid}")
	c.MustKubectl(t, "delete", "pod", "db-0", "--timeout=120s")
	c.MustKubectl(t, "wait", "--for=create", "pod/db-0", "--timeout=120s")
	c.MustKubectl(t, "wait", "--for=condition=Ready", "pod/db-0", "--timeout=120s")
	if after := c.MustKubectl(t, "get", "pod", "db-0", "-o", "jsonpath={.metadata.uid}"); after == before {
		t.Error("the deleted Pod is still there")
	}
}

// TestOutageOfTheAPIServer: Pods are not touched by it, and everybody works on when it is over.
func TestOutageOfTheAPIServer(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	addUnits(t, c)
	c.Apply(t, webIn("beijing", "echo:1", 2))
	expectEndpoints(t, c, "web", "bj-", 2)
	c.StopAPIServer()
	if _, err := c.Kubectl("get", "--raw", "/readyz", "--request-timeout=5s"); err == nil {
		t.Fatal("a stopped API server answers")
	}
	c.StartAPIServer(t)
	expectEndpoints(t, c, "web", "bj-", 2)
	c.MustKubectl(t, "scale", "deployment", "web", "--replicas=4")
	expectEndpoints(t, c, "web", "bj-", 4)
}

// TestNodesComeAndGo: a label lets a waiting Pod be bound, a Node that is off is NotReady after the grace
// (another is not) and back when it is on, and labels and Nodes can be removed.
func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{NodeGrace: 10 * time.Second})
	c.AddNode(t, "gz-1", nil)
	c.AddNode(t, "bj-1", nil)
	c.Apply(t, webIn("beijing", "echo:1", 1))
	c.SetLabels(t, "bj-1", map[string]string{unitKey: "beijing"})
	expectEndpoints(t, c, "web", "bj-1", 1)
	if err := c.Kubelets.PowerOff("bj-1"); err != nil {
		t.Fatal(err)
	}
	c.MustKubectl(t, "wait", "--for=condition=Ready=Unknown", "node/bj-1", "--timeout=120s")
	expectEndpoints(t, c, "web", "bj-1", 0)
	if ready := c.MustKubectl(t, "get", "node", "gz-1", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); ready != "True" {
		t.Errorf("a node that was not cut off is Ready=%s", ready)
	}
	if err := c.Kubelets.PowerOn(t.Context(), "bj-1"); err != nil {
		t.Fatal(err)
	}
	expectEndpoints(t, c, "web", "bj-1", 1)
	c.RemoveLabels(t, "bj-1", unitKey)
	if out := c.MustKubectl(t, "get", "nodes", "-l", unitKey, "-o", "name"); out != "" {
		t.Errorf("nodes with a label that was removed: %s", out)
	}
	c.DeleteNode(t, "bj-1")
	if out := c.MustKubectl(t, "get", "nodes", "-o", "name"); out != "node/gz-1\n" {
		t.Errorf("nodes that are left: %s", out)
	}
}

// TestOwnersOfOurKinds: with the CRDs applied before the start, the garbage collector knows them.
func TestOwnersOfOurKinds(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{Manifests: []string{"../../../deploy/crds"}})
	c.ApplyFile(t, "../../../deploy/samples/stateless")
	owner := c.MustKubectl(t, "get", "dg", "deploymentgrid-demo", "-o", "jsonpath={.metadata.uid}")
	c.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences: [{apiVersion: superedge.io/v1, kind: DeploymentGrid, name: deploymentgrid-demo, uid: %s, controller: true}]
`, owner))
	c.MustKubectl(t, "delete", "dg", "deploymentgrid-demo", "--timeout=120s")
	c.MustKubectl(t, "wait", "--for=delete", "configmap/child", "--timeout=120s")
}

// TestInANamespace runs the control plane where a lab's nodes can reach it.
func TestInANamespace(t *testing.T) {
	t.Parallel()
	need.Root(t)
	layout := netns.Manual().Only("bj-1")
	l := netns.ForTest(t, layout)
	c := ForTest(t, Options{Namespace: l.Outside, Addrs: l.Outside.Addrs})
	n := layout.Nodes[0]
	c.AddNodes(t, Node{Name: n.Name, Labels: n.Labels, Addrs: n.Addrs, PodCIDRs: n.PodCIDRs})
	c.Apply(t, webIn("beijing", "echo:1", 1))
	expectEndpoints(t, c, "web", "bj-1", 1)
	ip := c.MustKubectl(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].status.podIP}")
	if !strings.HasPrefix(ip, "10.0.0.") {
		t.Errorf("the Pod's address %s is not of its node's range %v", ip, n.PodCIDRs)
	}
}

// TestCountsRequests: a client's own transport and a relay in front of another process count the same.
func TestCountsRequests(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	for _, through := range []string{"transport", "relay"} {
		count := &Count{}
		config, err := c.Counted("", count)
		if err != nil {
			t.Fatal(err)
		}
		if through == "relay" {
			relay, err := c.NewRelay(config)
			if err != nil {
				t.Fatal(err)
			}
			defer relay.Close()
			config = relay.Config()
		}
		api := apiserver.ClientForTest(t, config)
		work(t, api, "count-"+through)
		want := strings.Join([]string{
			"     1 apply configmaps", "     1 create configmaps", "     1 create deployments.apps (dry run)", "     1 delete configmaps", "     1 get configmaps",
			"     1 list configmaps", "     1 list nodes", "     2 patch nodes/status", "     1 watch configmaps",
		}, "\n")
		if got := Tally(count.Requests(nil)); got != want {
			t.Errorf("through the %s were counted:\n%s\nwant:\n%s", through, got, want)
		}
		if got := len(count.Writes()); got != 5 {
			t.Errorf("through the %s %d writes were counted, want 5", through, got)
		}
		if r := count.Writes()[0]; r.Namespace != "default" || r.Code != 201 {
			t.Errorf("the first write is noted as %s", r)
		}
		count.Reset()
		if left := count.Requests(nil); len(left) > 0 {
			t.Errorf("after a reset there are %v", left)
		}
	}
}

// hang makes TestHang be more than nothing.
const hang = "GRIDPROXY_CLUSTER_HANG"

// TestHang is what TestNothingOutlivesTheTest kills: a cluster that says what its processes are.
func TestHang(t *testing.T) {
	if os.Getenv(hang) == "" {
		return
	}
	c := ForTest(t, Options{})
	c.AddNode(t, "bj-1", nil)
	for _, pid := range c.Processes() {
		fmt.Printf("process %d\n", pid)
	}
	fmt.Println("hanging")
	select {}
}

// TestNothingOutlivesTheTest kills a test's process and looks at those that it started.
func TestNothingOutlivesTheTest(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHang$")
	cmd.Env = append(os.Environ(), hang+"=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "hanging" {
		if text, ok := strings.CutPrefix(lines.Text(), "process "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) != 4 {
		t.Fatalf("processes of a cluster: %v, want etcd, API server, controller manager, scheduler", pids)
	}
	for _, pid := range pids {
		if !runs(pid) {
			t.Fatalf("process %d has ended before the test", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all processes end", func() error {
		for _, pid := range pids {
			if runs(pid) {
				return fmt.Errorf("process %d runs", pid)
			}
		}
		return nil
	})
}

// runs says whether a process is there and not waiting for its parent to take note of its end.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
