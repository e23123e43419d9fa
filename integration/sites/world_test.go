package sites

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"
)

// world is an API server that knows the CRDs.
type world struct {
	*apiserver.Cluster
	t          *testing.T
	ctx        context.Context
	kubeconfig string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: apiserver.ForTest(t, apiserver.Options{}), t: t, ctx: (2 * wait.Usual).Context(t)}
	w.kubeconfig = apiserver.KubeconfigForTest(t, w.Admin())
	w.installCRDs()
	return w
}

func (w *world) installCRDs() {
	w.t.Helper()
	for _, plural := range []string{"nodeunits", "nodegroups"} {
		w.kubectl("", "apply", "--server-side", "-f", "../../deploy/crds/site.superedge.io_"+plural+".yaml")
	}
	w.WaitForDefinitions(w.t)
	for _, kind := range []string{"nodeunits.v1alpha1", "nodeunits", "nodegroups.v1alpha1", "nodegroups"} {
		wait.Until(w.t, "kubectl knows "+kind, func() error {
			_, problem := w.try("", "get", kind+".site.superedge.io")
			return wait.Check(problem == "", "%s", problem)
		})
	}
}

// kubectl runs kubectl, with manifest on its standard input, and wants it to succeed.
func (w *world) kubectl(manifest string, args ...string) string {
	w.t.Helper()
	out, problem := w.try(manifest, args...)
	if problem != "" {
		w.t.Fatalf("kubectl %s: %s", strings.Join(args, " "), problem)
	}
	return out
}

// try runs kubectl and returns what it wrote, and what it said if it failed.
func (w *world) try(manifest string, args ...string) (out, problem string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, w.Tools().Path("kubectl"), append([]string{"--kubeconfig=" + w.kubeconfig}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(manifest), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), err.Error() + ": " + stderr.String()
	}
	return stdout.String(), ""
}
