package nodes

import (
	"encoding/json"
	"testing"

	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddNode makes a Ready Node with further labels, and a kubelet for it.
func (c *Cluster) AddNode(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	c.AddNodes(t, Node{Name: name, Labels: labels})
}

// AddNodes makes many Nodes, several at a time.
func (c *Cluster) AddNodes(t testing.TB, nodes ...Node) {
	t.Helper()
	if err := c.Kubelets.Add(wait.Usual.Context(t), nodes...); err != nil {
		t.Fatal(err)
	}
}

// DeleteNode deletes a Node; see Kubelets.Remove.
func (c *Cluster) DeleteNode(t testing.TB, name string) {
	t.Helper()
	if err := c.Kubelets.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// SetLabels sets some labels of a Node, as `kubectl label --overwrite` does.
func (c *Cluster) SetLabels(t testing.TB, node string, labels map[string]string) {
	t.Helper()
	values := map[string]any{}
	for key, value := range labels {
		values[key] = value
	}
	c.patchLabels(t, node, values)
}

// RemoveLabels removes some labels of a Node, as `kubectl label NODE KEY-` does.
func (c *Cluster) RemoveLabels(t testing.TB, node string, keys ...string) {
	t.Helper()
	values := map[string]any{}
	for _, key := range keys {
		values[key] = nil
	}
	c.patchLabels(t, node, values)
}

func (c *Cluster) patchLabels(t testing.TB, node string, labels map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("labelling node %s: %v", node, err)
	}
}
