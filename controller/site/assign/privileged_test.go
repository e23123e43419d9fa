package assign_test

import (
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
)

const privilegedUnit = `{"nodes": ["a", "b"], "setNode": {"labels": {"plain": "1", "node-role.kubernetes.io/control-plane": "",
	"x.node-restriction.kubernetes.io/rack": "7", "node-role.kubernetes.io.example.com/fine": "1"},
	"taints": [{"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "NoSchedule"}]}}`

const (
	plainLabels   = "node-role.kubernetes.io.example.com/fine=1 plain=1 u=nodeunits.superedge.io"
	allowedLabels = "node-role.kubernetes.io.example.com/fine=1 node-role.kubernetes.io/control-plane= plain=1 " +
		"u=nodeunits.superedge.io x.node-restriction.kubernetes.io/rack=7"
)

// TestPrivilegedSetNode: what only a flag allows is refused and reported; the rest of setNode
// works.
func TestPrivilegedSetNode(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.unit("u", privilegedUnit)
	c.settle()
	c.want("a", plainLabels)
	c.wantTaints("a", "k:NoSchedule")
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionInvalid,
		"spec.setNode.labels[node-role.kubernetes.io/control-plane]", "spec.setNode.labels[x.node-restriction.kubernetes.io/rack]",
		"spec.setNode.taints[k]", "--allow-privileged-set-node")
	c.observed.AllowPrivileged = true
	c.settle()
	c.want("a", allowedLabels)
	if got := c.taints("a"); got != "k:NoSchedule k:NoExecute" && got != "k:NoExecute k:NoSchedule" {
		t.Errorf("allowed: taints %s", got)
	}
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionInvalid)
}

// TestPrivilegedStays: what a unit has set before it was refused stays on its Nodes with the value
// that it has, until the Node leaves the unit or the unit does not ask for it any more. It is not
// put back.
func TestPrivilegedStays(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.node("b", "kubelet")
	c.unit("u", privilegedUnit)
	c.observed.AllowPrivileged = true
	c.settle()
	taints := c.taints("a")
	c.observed.AllowPrivileged = false
	before := c.writes
	c.settle()
	c.want("a", allowedLabels)
	if got := c.taints("a"); got != taints || c.writes != before {
		t.Errorf("taints went from %s to %s, with %d writes to Nodes", taints, got, c.writes-before)
	}
	c.units["u"].Spec.SetNode.Labels["x.node-restriction.kubernetes.io/rack"] = "8"
	removeLabel(c.nodes["b"], "node-role.kubernetes.io/control-plane")
	c.settle()
	c.want("a", allowedLabels)
	c.want("b", strings.Replace(allowedLabels, "node-role.kubernetes.io/control-plane= ", "", 1))

	c.units["u"].Spec.Nodes = []string{"b"}
	c.settle()
	c.want("a", "")
	c.wantTaints("a", "")
	c.units["u"].Spec.SetNode.Labels, c.units["u"].Spec.SetNode.Taints = nil, nil
	c.settle()
	c.want("b", "u=nodeunits.superedge.io")
	c.wantTaints("b", "")
}
