package sites

import (
	"context"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"
)

// world is an API server that knows the CRDs.
type world struct {
	*apiserver.Cluster
	t   *testing.T
	ctx context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: apiserver.ForTest(t, apiserver.Options{}), t: t, ctx: (2 * wait.Usual).Context(t)}
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
			_, err := w.KubectlIn(w.ctx, nil, "get", kind+".site.superedge.io")
			return err
		})
	}
}

// kubectl runs kubectl, with manifest on its standard input, and wants it to succeed.
func (w *world) kubectl(manifest string, args ...string) string {
	w.t.Helper()
	out, problem := w.try(manifest, args...)
	if problem != "" {
		w.t.Fatal(problem)
	}
	return out
}

// try runs kubectl and returns what it wrote, and what it said if it failed.
func (w *world) try(manifest string, args ...string) (out, problem string) {
	w.t.Helper()
	out, err := w.KubectlIn(w.ctx, strings.NewReader(manifest), args...)
	if err != nil {
		problem = err.Error()
	}
	return out, problem
}
