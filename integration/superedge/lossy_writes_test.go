package superedge

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
)

// TestLossyWrites: SuperEdge's own client, of either version, changes the Nodes of units. A unit
// with the other spelling of setNode, which its type does not have, stays as it is, and the answer
// says why.
func TestLossyWrites(t *testing.T) {
	t.Parallel()
	superEdge, err := apiserver.EnsureSuperEdge(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := apiserver.ForTest(t, apiserver.Options{})
	kubeconfig, err := apiserver.WriteKubeconfig(t.TempDir(), "admin", c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), c.Tools().Path("kubectl"), append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	kubectl("", "apply", "--server-side", "-f", "../../deploy/crds")
	c.WaitForDefinitions(t)
	kubectl(`
{apiVersion: site.superedge.io/v1alpha2, kind: NodeUnit, metadata: {name: current}, spec: {setNode: {labels: {tier: edge}}}}
---
{apiVersion: site.superedge.io/v1alpha1, kind: NodeUnit, metadata: {name: old}, spec: {setnode: {labels: {tier: edge}}}}
---
{apiVersion: site.superedge.io/v1alpha1, kind: NodeUnit, metadata: {name: plain}, spec: {}}
`, "create", "-f", "-")
	for _, x := range []struct{ version, unit, lost string }{
		{"v1alpha1", "current", "setNode"}, {"v1alpha2", "current", ""},
		{"v1alpha1", "old", ""}, {"v1alpha2", "old", "setnode"},
		{"v1alpha1", "plain", ""}, {"v1alpha2", "plain", ""},
	} {
		before := kubectl("", "get", "nodeunit", x.unit, "-o", "jsonpath={.spec}")
		node := "node-" + x.version
		out, err := exec.CommandContext(t.Context(), superEdge.NodeUnit(), kubeconfig, x.version, x.unit, node).CombinedOutput()
		after := kubectl("", "get", "nodeunit", x.unit, "-o", "jsonpath={.spec}")
		switch {
		case x.lost != "" && (err == nil || !strings.Contains(string(out), x.lost+" would be lost") || after != before):
			t.Errorf("a client of %s has written %s: %v, %s; it was %s and is %s", x.version, x.unit, err, out, before, after)
		case x.lost == "" && (err != nil || !strings.Contains(after, node)):
			t.Errorf("a client of %s could not write %s: %v, %s; it is %s", x.version, x.unit, err, out, after)
		case x.unit != "plain" && !strings.Contains(after, `"tier":"edge"`):
			t.Errorf("a client of %s has removed what %s gives its Nodes: %s", x.version, x.unit, after)
		}
	}
}
