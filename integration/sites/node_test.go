package sites

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	gridv1 "gridproxy/controller/api/v1"
	"gridproxy/controller/site"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func noOptions() metav1.DeleteOptions { return metav1.DeleteOptions{} }

// TestShared: two units and a group on one Node, an admin's taint and label, and the node lifecycle controller's taint:
// each joins and leaves alone.
func TestShared(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	r.node("n", "admin=x")
	r.patchNode("n", "kubectl", `{"spec": {"taints": [{"key": "k", "value": "admin", "effect": "NoExecute"}]}}`)
	r.kubectl(nodeUnit("v1alpha2", "one", `{"nodes": ["n"], "setNode": {"labels": {"one-only": "1"}, "annotations": {"note": "1"},
		"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "l", "value": "v", "effect": "NoSchedule"}]}}`), "create", "-f", "-")
	r.kubectl(nodeUnit("v1alpha1", "two", `{"nodes": ["n"], "unschedulable": true, "setnode": {"labels": {"two-only": "2"}}}`), "create", "-f", "-")
	r.kubectl(nodeGroup("v1alpha1", "g", `{"nodeunits": ["two"]}`), "create", "-f", "-")
	r.labels("n", "admin=x g=two one=nodeunits.superedge.io one-only=1 two=nodeunits.superedge.io two-only=2")
	const both = "k=admin:NoExecute k:NoSchedule l=v:NoSchedule site.superedge.io/unschedulable:NoSchedule"
	wait.Until(r.t, "taints", func() error {
		n := r.get("n")
		return wait.Check(len(n.Spec.Taints) == 4 && n.Annotations["note"] == "1", "taints %v, annotations %v, want %s", n.Spec.Taints, n.Annotations, both)
	})

	// The node lifecycle controller replaces the list, as it does, by an update of the whole.
	n := r.get("n")
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"})
	if _, err := r.api.CoreV1().Nodes().Update(r.ctx, n, metav1.UpdateOptions{FieldManager: "kube-controller-manager"}); err != nil {
		t.Fatal(err)
	}
	r.kubectl("", "delete", "nodeunit", "one")
	r.labels("n", "admin=x g=two two=nodeunits.superedge.io two-only=2")
	r.taints("n", "k=admin:NoExecute site.superedge.io/unschedulable:NoSchedule node.kubernetes.io/unreachable:NoExecute")
	r.kubectl("", "delete", "nodegroup", "g")
	r.labels("n", "admin=x two=nodeunits.superedge.io two-only=2")
	r.kubectl("", "delete", "nodeunit", "two")
	r.labels("n", "admin=x")
	r.taints("n", "k=admin:NoExecute node.kubernetes.io/unreachable:NoExecute")
	r.noAnnotations("n")
}

// TestRest: S-03 and S-05, what is there is not written again, whatever happens to Nodes besides; one Node that joins costs
// one write.
func TestRest(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	for i := range 20 {
		r.node(fmt.Sprintf("n-%02d", i), "rack=1")
	}
	for i := range 5 {
		r.kubectl(nodeUnit("v1alpha2", fmt.Sprintf("u-%d", i), fmt.Sprintf(`{"selector": {"matchLabels": {"rack": "1"}}, "setNode": {
			"annotations": {"note-%d": "x"}, "taints": [{"key": "k-%d", "effect": "PreferNoSchedule"}]}}`, i, i)), "create", "-f", "-")
		r.readyRate(fmt.Sprintf("u-%d", i), "20/20")
	}
	// The API server adds a taint of its own to every new Node: not-ready. Each of the others has a
	// record, a label.
	wait.Until(r.t, "all Nodes have everything", func() error {
		nodes, err := r.api.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if len(n.Spec.Taints) != 6 || len(n.Labels) != 12 || len(n.Annotations) != 6 {
				return fmt.Errorf("%s: %v %v %v", n.Name, n.Labels, n.Annotations, n.Spec.Taints)
			}
		}
		return nil
	})
	r.sync("before")
	r.taken()
	for i := range 20 {
		name := fmt.Sprintf("n-%02d", i)
		r.patchNode(name, "kubelet", fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Heartbeat%d"}]}}`, i), "status")
		r.patchNode(name, "somebody", fmt.Sprintf(`{"metadata": {"labels": {"other": "%d"}}}`, i))
	}
	// Events of Nodes come in order: once a unit has the last one, the others have had what they would have caused.
	r.kubectl(nodeUnit("v1alpha2", "last", `{"selector": {"matchLabels": {"other": "19"}}}`), "create", "-f", "-")
	r.readyRate("last", "1/1")
	wait.Until(r.t, "the last Node's label", func() error { return unlike(r.get("n-19").Labels["last"], v1alpha2.UnitMark) })
	if got := r.taken(); len(got) != 1 || got[0].Verb != "apply" || got[0].Name != "n-19" {
		t.Errorf("want the one write that the unit last asks for, got %d: %v", len(got), got)
	}
	r.node("n-20")
	r.kubectl(nodeUnit("v1alpha2", "single", `{"nodes": ["n-20"]}`), "create", "-f", "-")
	r.readyRate("single", "1/1")
	r.labels("n-20", "single=nodeunits.superedge.io")
	r.sync("end")
	got := r.taken()
	if len(got) != 1 {
		t.Errorf("one Node that joins: %d writes: %v", len(got), got)
	}
	t.Logf("20 Nodes in 5 units: 0 writes to Nodes for 40 foreign changes; one Node that joins a unit: %d", len(got))
}

// TestNoNodeIsMade: a name in spec.nodes without a Node makes none, nor does a Node that goes while its unit is written.
func TestNoNodeIsMade(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	r.kubectl(nodeUnit("v1alpha2", "u", `{"nodes": ["later", "never"]}`), "create", "-f", "-")
	r.readyRate("u", "0/0")
	r.node("later")
	r.labels("later", "u=nodeunits.superedge.io")
	for i := range 20 {
		r.kubectl("", "patch", "nodeunit", "u", "--type=merge", "-p", fmt.Sprintf(`{"spec": {"setNode": {"labels": {"i": "%d"}}}}`, i))
		if err := r.api.CoreV1().Nodes().Delete(r.ctx, "later", noOptions()); err != nil {
			t.Fatal(err)
		}
		r.readyRate("u", "0/0")
		if i < 19 {
			r.node("later")
			r.labels("later", fmt.Sprintf("i=%d u=nodeunits.superedge.io", i))
		}
	}
	r.sync("end")
	nodes, err := r.api.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 {
		t.Errorf("%d Nodes, want none: %v", len(nodes.Items), err)
	}
}

// TestAutoFind: units that a group finds by labels, on a real API server, with the clock of units
// that lose their last Node.
func TestAutoFind(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	r.node("a", "localzone=eu-west-1")
	r.node("b", "localzone=EU_west")
	r.node("c", "localzone=here")
	r.kubectl(nodeGroup("v1alpha1", "zones", `{"autofindnodekeys": ["localzone"]}`), "create", "-f", "-")
	r.labels("a", "eu-west-1=nodeunits.superedge.io localzone=eu-west-1 zones=eu-west-1")
	r.readyRate("eu-west-1", "1/1")
	wait.Until(r.t, "the group's units", func() error { return unlike(columns(r.kubectl("", "get", "ng"), 2), "NAME UNITS, zones 3") })
	if err := r.api.CoreV1().Nodes().Delete(r.ctx, "a", noOptions()); err != nil {
		t.Fatal(err)
	}
	wait.Until(r.t, "the clock runs", func() error {
		return wait.Check(r.unit("eu-west-1").Annotations[gridv1.AnnotationLostAt] != "", "no annotation")
	})
	r.pass(time.Minute - 2*time.Second)
	r.sync("before")
	if r.unit("eu-west-1").DeletionTimestamp != nil {
		t.Error("it went before its grace was over")
	}
	r.pass(2 * time.Second)
	r.node("other") // any event
	r.gone(&v1alpha2.NodeUnit{}, "eu-west-1")
	r.unit("here")
}

// columns returns the first n columns of what kubectl prints, row by row.
func columns(out string, n int) string {
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line)[:n], " "))
	}
	return strings.Join(rows, ", ")
}

// TestDefaultUnit: the unit of all Nodes is not made again once another client has deleted it.
func TestDefaultUnit(t *testing.T) {
	t.Parallel()
	r := newRunning(t, func(c *site.Config) { c.DefaultUnit = v1alpha2.DefaultUnit })
	r.node("n")
	r.labels("n", inAll)
	r.kubectl("", "delete", "nodeunit", v1alpha2.DefaultUnit)
	r.sync("last")
	r.gone(&v1alpha2.NodeUnit{}, v1alpha2.DefaultUnit)
	r.labels("n", "")
}

// TestRestart: the API server alone keeps what is ours: a unit that goes while no controller runs,
// finalizer and all, leaves nothing once one does; and a controller that starts writes to no Node
// that is right.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := newStopped(t)
	stop := r.start(nil)
	r.node("n", "admin=x")
	r.patchNode("n", "kubectl", `{"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}`)
	r.kubectl(nodeUnit("v1alpha2", "stays", `{"nodes": ["n"], "setNode": {"labels": {"x": "y"}}}`), "create", "-f", "-")
	r.kubectl(nodeUnit("v1alpha2", "goes", `{"nodes": ["n"], "unschedulable": true, "setNode": {"labels": {"p": "q"}, "annotations": {"a": "b"}}}`), "create", "-f", "-")
	r.labels("n", "admin=x goes=nodeunits.superedge.io p=q stays=nodeunits.superedge.io x=y")
	r.taints("n", "k:NoExecute site.superedge.io/unschedulable:NoSchedule")
	stop()
	r.kubectl("", "patch", "nodeunit", "goes", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	r.kubectl("", "delete", "nodeunit", "goes")
	r.taken()
	stop = r.start(nil)
	r.labels("n", "admin=x stays=nodeunits.superedge.io x=y")
	r.taints("n", "k:NoExecute")
	r.noAnnotations("n")
	r.sync("between")
	stop()
	r.taken()
	r.start(nil)
	r.sync("end")
	if got := r.taken(); len(got) != 0 {
		t.Errorf("a controller that starts writes to Nodes that are right: %v", got)
	}
}

// TestRefused: S-06, while the API server refuses to clean a Node, the unit's finalizer stays; the others go on.
func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	r.node("n")
	r.kubectl(nodeUnit("v1alpha2", "u", `{"nodes": ["n"]}`), "create", "-f", "-")
	r.labels("n", "u=nodeunits.superedge.io")
	r.kubectl(strings.Replace(rights, "[list, watch, patch]", "[list, watch]", 1), "apply", "-f", "-")
	wait.Until(r.t, "the right is gone", func() error {
		return unlike(strings.TrimSpace(r.answer("auth", "can-i", "patch", "nodes", "--as=sites")), "no")
	})
	r.kubectl("", "delete", "nodeunit", "u", "--wait=false")
	r.sync("other")
	if u := r.unit("u"); len(u.Finalizers) != 1 || u.Finalizers[0] != v1alpha2.FinalizerUnit {
		t.Errorf("the Node is not clean, and the finalizers are %v", u.Finalizers)
	}
	r.kubectl(rights, "apply", "-f", "-")
	r.gone(&v1alpha2.NodeUnit{}, "u")
	r.labels("n", "")
}

// TestTakeover: Nodes that SuperEdge's site-manager has labelled, with whole updates: what it has put there leaves with the
// unit, what others have put there stays.
func TestTakeover(t *testing.T) {
	t.Parallel()
	r := newStopped(t)
	r.node("n", "admin=x")
	n := r.get("n")
	n.Labels["u"], n.Labels["g"], n.Labels["disk"] = v1alpha2.UnitMark, "u", "ssd"
	n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}
	if _, err := r.api.CoreV1().Nodes().Update(r.ctx, n, metav1.UpdateOptions{FieldManager: "site-manager"}); err != nil {
		t.Fatal(err)
	}
	r.kubectl(`{"apiVersion": "site.superedge.io/v1alpha1", "kind": "NodeUnit", "metadata": {"name": "u", "labels": {"g": "nodegroups.superedge.io"},
		"finalizers": ["site.superedge.io/nodeunit"]}, "spec": {"nodes": ["n"], "setnode": {"labels": {"u": "nodeunits.superedge.io", "g": "u", "disk": "ssd"},
		"taints": [{"key": "k", "effect": "NoSchedule"}]}}}`, "create", "-f", "-")
	r.kubectl(nodeGroup("v1alpha1", "g", `{"nodeunits": ["u"]}`), "create", "-f", "-")
	r.start(nil)
	r.readyRate("u", "1/1")
	r.labels("n", "admin=x disk=ssd g=u u=nodeunits.superedge.io")
	r.kubectl("", "delete", "nodegroup", "g")
	r.labels("n", "admin=x disk=ssd u=nodeunits.superedge.io")
	wait.Until(r.t, "the entry that the group stood behind", func() error {
		set := r.unit("u").Spec.Set()
		return wait.Check(set.Labels["g"] == "" && set.Labels["disk"] == "ssd", "%v", set.Labels)
	})
	r.kubectl("", "delete", "nodeunit", "u")
	r.labels("n", "admin=x")
	r.taints("n", "")
}
