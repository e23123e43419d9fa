package machines

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gridproxy/integration/cluster"
	"gridproxy/integration/controlplane"
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

func TestKubeProxy(t *testing.T) {
	specs := Manual()[1:3]
	specs[1].Variant = controlplane.Legacy
	c := ForTest(t, Options{Machines: specs})
	manifest, err := c.KubeProxy("iptables", "")
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(t, manifest)
	c.MustKubectl(t, "rollout", "status", "--namespace=kube-system", "daemonset/kube-proxy", "--timeout=60s")
	t.Log(c.MustKubectl(t, "get", "nodes,pods", "-A", "-o", "wide"))
	for machine, variant := range map[string]string{"bj-2": "nft", "gz-1": "legacy"} {
		cluster.Eventually(t, "kube-proxy's rules on "+machine, func() error {
			rules, err := c.Machine(machine).Run(t.Context(), nil, "iptables-save")
			if err != nil {
				return err
			}
			if !bytes.Contains(rules, []byte("-A KUBE-SERVICES -d 10.96.0.1/32")) {
				return fmt.Errorf("no Service in them:\n%s", rules)
			}
			return nil
		})
		out, err := c.Machine(machine).Run(t.Context(), nil, "iptables", "--version")
		if err != nil {
			t.Fatal(err)
		}
		if variant == "nft" {
			variant = "nf_tables"
		}
		if !strings.Contains(string(out), "("+variant+")") {
			t.Errorf("iptables on %s is %s; it should be %s", machine, out, variant)
		}
	}
}
