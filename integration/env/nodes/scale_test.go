package nodes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestScale: 200 Nodes and 1,000 Pods. How long that takes is printed, not judged.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: 200 nodes take a while; run without -short")
	}
	c := ForTest(t, Options{})
	var nodes []Node
	for i := range 200 {
		nodes = append(nodes, Node{Name: fmt.Sprintf("n-%03d", i), Labels: map[string]string{unitKey: fmt.Sprint("u-", i%40)}})
	}
	begin := time.Now()
	lap := func(what string) {
		t.Logf("%s after %s", what, time.Since(begin).Round(100*time.Millisecond))
		begin = time.Now()
	}
	c.AddNodes(t, nodes...)
	lap("200 nodes have their Pod ranges")
	var manifests strings.Builder
	for i := range 40 {
		fmt.Fprintf(&manifests, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%d}
spec:
  replicas: 25
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec:
      nodeSelector: {%s: u-%[1]d}
      containers: [{name: web, image: "echo:1"}]
`, i, unitKey)
	}
	c.Apply(t, manifests.String())
	lap("40 Deployments are applied")
	wait.Until(t, "1,000 Pods are ready", func() error {
		list, err := c.Client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, d := range list.Items {
			ready += int(d.Status.ReadyReplicas)
		}
		return wait.Check(ready == 1000, "%d are ready", ready)
	})
	lap("1,000 Pods are ready")
	c.MustKubectl(t, "delete", "deployments", "--all", "--wait=false")
	wait.Until(t, "all Pods are gone", func() error {
		list, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		return errors.Join(err, wait.Check(len(list.Items) == 0, "%d are left", len(list.Items)))
	})
	lap("all Pods are gone")
}
