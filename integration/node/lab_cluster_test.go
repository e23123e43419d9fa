package node

import (
	"context"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// waitTimeout bounds each command and each question.
const waitTimeout = 2 * time.Minute

// here is the node that is tested: in Beijing, as bj-3, while gz-2 is not.
const here = "bj-1"

// labCluster is a lab with an API server on the client outside, which has the lab's nodes.
type labCluster struct {
	*netns.Lab
	*apiserver.Cluster
	t    *testing.T
	ctx  context.Context
	api  kubernetes.Interface
	node *netns.Node // here
}

func newLabCluster(t *testing.T) labCluster {
	t.Helper()
	return labClusterOf(t, netns.Manual().Only(here, "bj-3", "gz-2"))
}

func labClusterOf(t *testing.T, layout netns.Layout) labCluster {
	t.Helper()
	l := netns.ForTest(t, layout)
	c := labCluster{Lab: l, t: t, ctx: (2 * wait.Usual).Context(t), node: l.Node(here)}
	c.Cluster = apiserver.ForTest(t, apiserver.Options{Namespace: l.Outside, Addrs: l.Outside.Addrs})
	c.api = apiserver.ClientForTest(c.t, c.Admin())
	for _, n := range netns.NewManifests(t.TempDir(), layout).Nodes {
		c.addNode(n)
	}
	return c
}

func (c *labCluster) addNode(n *corev1.Node) {
	c.t.Helper()
	made, err := c.api.CoreV1().Nodes().Create(c.ctx, n, metav1.CreateOptions{})
	must(c.t, err)
	made.Status = n.Status
	_, err = c.api.CoreV1().Nodes().UpdateStatus(c.ctx, made, metav1.UpdateOptions{})
	must(c.t, err)
}
