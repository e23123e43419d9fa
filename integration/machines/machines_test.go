package machines

import (
	"strings"
	"testing"

	"gridproxy/integration/cluster"
)

func TestTwoMachines(t *testing.T) {
	c := ForTest(t, Options{Machines: Manual()[1:3]})
	c.Apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: echo, namespace: default}, spec: {containers: [{name: echo, image: "superedge/echoserver:2.2"}]}}`)
	cluster.Eventually(t, "the Pod answers", func() error {
		out, err := c.Exec(t.Context(), "default", "echo", "echo-client", "get", "http://localhost:8080/")
		if err == nil && !strings.Contains(out, "pod name:\techo") {
			t.Errorf("the answer is %q", out)
		}
		return err
	})
	t.Log(c.MustKubectl(t, "get", "nodes,pods", "-A", "-o", "wide"))
}
