package grids

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
)

const stateless = "../../deploy/samples/stateless"

// terminal is where a user of grid-controller types, before a real API server. Nothing changes but
// what the test does.
type terminal struct {
	*testing.T
	cluster *apiserver.Cluster
	binary  string
}

// newTerminal is before an API server that has nothing yet.
func newTerminal(t *testing.T, c *apiserver.Cluster) *terminal {
	t.Helper()
	return &terminal{T: t, cluster: c, binary: program.ForTest(t, program.GridController)}
}

// twoUnits is a terminal before an API server with the CRDs and two units of Nodes.
func twoUnits(t *testing.T) *terminal {
	t.Helper()
	c := apiserver.ForTest(t, apiserver.Options{})
	w := newTerminal(t, c)
	w.call("", "apply", "--server-side", "-f", "../../deploy/crds")
	c.WaitForDefinitions(t)
	w.node("bj-1", "beijing")
	w.node("gz-1", "guangzhou")
	return w
}

func (w *terminal) call(stdin string, args ...string) string {
	w.Helper()
	out, err := w.cluster.KubectlIn(w.Context(), strings.NewReader(stdin), args...)
	must(w, err)
	return out
}

func (w *terminal) node(name, location string) {
	w.Helper()
	w.call(fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {location: %s}}}", name, location), "apply", "-f", "-")
}

func (w *terminal) run(args ...string) (out, problems string, code int) {
	w.Helper()
	return w.outcome(exec.CommandContext(w.Context(), w.binary, args...))
}

func (w *terminal) outcome(cmd *exec.Cmd) (out, problems string, code int) {
	w.Helper()
	var o, p bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &p
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return o.String(), p.String(), cmd.ProcessState.ExitCode()
}

func (w *terminal) control(done func() error) {
	w.Helper()
	running := w.start("run", "--kubeconfig", w.cluster.Kubeconfig(), "--leader-elect=false", "--metrics-bind-address=", "--healthz-bind-address=")
	err := wait.Usual.For(w.Context(), func(context.Context) error { return done() })
	if code := running.stop(w.T); code != 0 || err != nil {
		w.Fatalf("the controller ended with code %d: %v\n%s", code, err, running.log.String())
	}
}

// diff runs expand --diff and wants its exit code.
func (w *terminal) diff(code int, args ...string) (out, problems string) {
	w.Helper()
	out, problems, got := w.run(append([]string{"expand", "--diff", "--kubeconfig", w.cluster.Kubeconfig()}, args...)...)
	if got != code {
		w.Fatalf("exit code %d, want %d\n%s%s", got, code, out, problems)
	}
	return out, problems
}

// edited is the sample DeploymentGrid with a change, as a file.
func (w *terminal) edited(old, changed string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(stateless, "deploymentgrid.yaml"))
	must(w, err)
	if !bytes.Contains(text, []byte(old)) {
		w.Fatalf("the sample has no %q", old)
	}
	return w.file(strings.Replace(string(text), old, changed, 1))
}

func (w *terminal) file(text string) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), "file.yaml")
	must(w, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *terminal) equal(what, want, got string) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// all is everything that a diff could write, with its versions.
func (w *terminal) all() string {
	w.Helper()
	return w.call("", "get", "dg,sg,deployments,services,nodes,events", "-A", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

// TestDiff goes through what a user asks before and after an apply.
func TestDiff(t *testing.T) {
	w := twoUnits(t)
	before := w.all()
	out, problems := w.diff(1, "-f", stateless)
	w.equal("headers of what would be made", `--- live Deployment default/deploymentgrid-demo-beijing
+++ wanted Deployment default/deploymentgrid-demo-beijing
--- live Deployment default/deploymentgrid-demo-guangzhou
+++ wanted Deployment default/deploymentgrid-demo-guangzhou
--- live Service default/servicegrid-demo-svc
+++ wanted Service default/servicegrid-demo-svc
`, grep(out, `(?m)^(---|\+\+\+) .*\n`))
	w.equal("warnings", "", problems)
	again, _ := w.diff(1, "-f", stateless)
	w.equal("the same question", out, again)
	if made := regexp.MustCompile("clusterIP|progressDeadlineSeconds").FindString(out); made != "" {
		t.Errorf("what would be made has a %s, which nobody asked for:\n%s", made, out)
	}
	w.equal("objects after a diff", before, w.all())

	w.call("", "apply", "-f", stateless)
	w.control(func() error {
		var missing []error
		for _, name := range []string{"deploymentgrid-demo-beijing", "deploymentgrid-demo-guangzhou", "servicegrid-demo-svc"} {
			if found := w.call("", "get", "deployments,services", "-o", "name"); !strings.Contains(found, name) {
				missing = append(missing, errors.New(name+" is missing"))
			}
		}
		return errors.Join(missing...)
	})

	before = w.all()
	out, problems = w.diff(0, "-f", stateless)
	w.equal("a diff after the controller", "", out+problems)
	out, _ = w.diff(1, "-f", w.edited("replicas: 2", "replicas: 5"))
	w.equal("another number of replicas", `--- live Deployment default/deploymentgrid-demo-beijing
+++ wanted Deployment default/deploymentgrid-demo-beijing
-  replicas: 2
+  replicas: 5
--- live Deployment default/deploymentgrid-demo-guangzhou
+++ wanted Deployment default/deploymentgrid-demo-guangzhou
-  replicas: 2
+  replicas: 5
`, signed(out))
	out, _ = w.diff(0, "-f", w.edited("    replicas: 2\n", ""))
	w.equal("replicas that leave the template stay as they are", "", out)
	out, _ = w.diff(1, "-f", stateless, "-f", w.file("{apiVersion: v1, kind: Node, metadata: {name: a, labels: {location: wuhan}}}"))
	w.equal("Nodes of the files", "+++ wanted Deployment default/deploymentgrid-demo-wuhan\n", grep(out, `(?m)^\+\+\+ .*\n`))
	_, problems = w.diff(3, "-f", w.edited("- name: POD_IP", "- name: POD_NAME"))
	if n := strings.Count(problems, "error: DeploymentGrid default/deploymentgrid-demo, unit"); n != 2 ||
		!strings.Contains(problems, "unit beijing: Deployment default/deploymentgrid-demo-beijing: the API server would refuse it: ") {
		t.Errorf("%d errors for a template that the API server refuses, want 2:\n%s", n, problems)
	}
	w.equal("objects after all diffs", before, w.all())
}

// TestDiffOfDrift: changes of others to owned fields are shown, and their additions are not. A name
// that a foreign object has is an error, and does not hide the rest.
func TestDiffOfDrift(t *testing.T) {
	w := twoUnits(t)
	w.call("", "apply", "-f", stateless)
	foreign := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: deploymentgrid-demo-guangzhou}, spec: " +
		"{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"
	w.call(foreign, "apply", "-f", "-")
	for _, object := range []string{"deploymentgrid-demo-beijing", "servicegrid-demo-svc"} {
		w.call(child(w, object), "apply", "--server-side", "--field-manager=grid-controller", "-f", "-")
	}
	w.call("", "annotate", "service", "servicegrid-demo-svc", "topologyKeys-", "mine=kept")
	w.call("", "label", "deployment", "deploymentgrid-demo-beijing", "mine=kept")

	out, problems := w.diff(3, "-f", stateless)
	if !strings.HasPrefix(problems, "error: DeploymentGrid default/deploymentgrid-demo, unit guangzhou: Deployment deploymentgrid-demo-guangzhou exists and ") {
		t.Errorf("what is said of a name that is taken:\n%s", problems)
	}
	// The two were applied without their owner, so they are to be adopted as well.
	owner := func(kind, name string) string {
		return fmt.Sprintf("+  ownerReferences:\n+  - apiVersion: superedge.io/v1\n+    blockOwnerDeletion: true\n+    controller: true\n+    kind: %s\n+    name: %s\n", kind, name)
	}
	w.equal("drift", "--- live Deployment default/deploymentgrid-demo-beijing\n+++ wanted Deployment default/deploymentgrid-demo-beijing\n"+
		owner("DeploymentGrid", "deploymentgrid-demo")+
		"--- live Service default/servicegrid-demo-svc\n+++ wanted Service default/servicegrid-demo-svc\n"+
		"+    topologyKeys: '[\"location\"]'\n"+owner("ServiceGrid", "servicegrid-demo"), signed(out))
}

func child(w *terminal, name string) string {
	w.Helper()
	units := w.file("{apiVersion: v1, kind: Node, metadata: {name: a, labels: {location: beijing}}}")
	out, problems, code := w.run("expand", "-f", stateless, "-f", units)
	if code != 0 {
		w.Fatalf("exit code %d: %s", code, problems)
	}
	for document := range strings.SplitSeq(out, "---\n") {
		if strings.Contains(document, "  name: "+name+"\n") {
			return document
		}
	}
	w.Fatalf("no %s in\n%s", name, out)
	return ""
}

// signed are the lines of a diff that begin with + or -.
func signed(diff string) string { return grep(diff, `(?m)^[-+].*\n`) }

func grep(text, expression string) string {
	return strings.Join(regexp.MustCompile(expression).FindAllString(text, -1), "")
}
