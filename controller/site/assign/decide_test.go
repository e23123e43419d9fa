package assign_test

import (
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *cluster) deleteUnit(name string) {
	c.units[name].DeletionTimestamp = &metav1.Time{Time: noon}
}

func (c *cluster) deleteGroup(name string) {
	c.groups[name].DeletionTimestamp = &metav1.Time{Time: noon}
}

// TestManual: the manual's two units and group.
func TestManual(t *testing.T) {
	c := newCluster(t)
	for _, n := range []string{"bj-1", "bj-2", "bj-3", "gz-1", "gz-2", "gz-3"} {
		c.node(n, "kubelet", "kubernetes.io/os=linux")
	}
	c.unit("beijing", `{"nodes": ["bj-1", "bj-2", "bj-3"], "setnode": {"labels": {"beijing": "nodeunits.superedge.io", "location": "beijing"}}}`)
	c.unit("guangzhou", `{"nodes": ["gz-1", "gz-2", "gz-3"]}`)
	c.group("location", `{"nodeUnits": ["beijing", "guangzhou"]}`)
	c.observed.Default = v1alpha2.DefaultUnit
	c.settle()
	c.want("bj-1", "beijing=nodeunits.superedge.io kubernetes.io/os=linux location=beijing unit-node-all=nodeunits.superedge.io")
	c.want("gz-2", "guangzhou=nodeunits.superedge.io kubernetes.io/os=linux location=guangzhou unit-node-all=nodeunits.superedge.io")
	if got := c.units["beijing"].Status; got.ReadyRate != "3/3" || len(got.ReadyNodes) != 3 || got.Conditions != nil {
		t.Errorf("status of beijing: %s", text(got))
	}
	if got := c.units[v1alpha2.DefaultUnit]; got.Status.ReadyRate != "6/6" || got.Spec.Type != "other" {
		t.Errorf("the default unit: %s", text(got))
	}
	if got := c.groups["location"].Status; *got.UnitNumber != 2 || strings.Join(got.NodeUnits, " ") != "beijing guangzhou" {
		t.Errorf("status of location: %s", text(got))
	}
	if c.units["beijing"].Labels["location"] != v1alpha2.GroupMark {
		t.Errorf("labels of beijing: %v", c.units["beijing"].Labels)
	}

	c.nodes["bj-2"].Status.Conditions[0].Status = corev1.ConditionUnknown
	c.units["beijing"].Spec.Nodes = []string{"bj-1", "bj-2"}
	c.settle()
	c.want("bj-3", "kubernetes.io/os=linux unit-node-all=nodeunits.superedge.io")
	if got := c.units["beijing"].Status; got.ReadyRate != "1/2" || strings.Join(got.NotReadyNodes, " ") != "bj-2" {
		t.Errorf("status of beijing: %s", text(got))
	}

	// The entry location: beijing in setnode says only what follows from the group: it goes with
	// it.
	c.deleteGroup("location")
	c.settle()
	c.want("bj-1", "beijing=nodeunits.superedge.io kubernetes.io/os=linux unit-node-all=nodeunits.superedge.io")
	if len(c.groups) != 0 || c.units["beijing"].Labels["location"] != "" {
		t.Errorf("the group is still there, or its label: %v", c.units["beijing"].Labels)
	}
	c.deleteUnit("beijing")
	c.settle()
	c.want("bj-1", "kubernetes.io/os=linux unit-node-all=nodeunits.superedge.io")
	if c.units["beijing"] != nil {
		t.Error("beijing is still there")
	}
}

// TestS01: a unit with nothing but a selector is cleaned as any other, when a Node leaves and when
// the unit goes.
func TestS01(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet", "rack=1")
	c.node("b", "kubelet", "rack=1")
	c.unit("u", `{"selector": {"matchLabels": {"rack": "1"}}, "setNode": {"labels": {"x": "y"}, "annotations": {"n": "o"}}}`)
	c.settle()
	c.want("a", "rack=1 u=nodeunits.superedge.io x=y")
	c.nodes["a"].Labels["rack"] = "2"
	c.settle()
	c.want("a", "rack=2")
	c.deleteUnit("u")
	c.settle()
	c.want("b", "rack=1")
	if len(c.nodes["b"].Annotations) > 0 || len(c.units) > 0 {
		t.Errorf("left over: %v %v", c.nodes["b"].Annotations, c.units)
	}
}

// TestS02: several new taints on a Node that has some already: none is there twice.
func TestS02(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet").Spec.Taints = []corev1.Taint{{Key: "admin", Effect: "NoSchedule"}}
	c.observed.AllowPrivileged = true
	c.unit("u", `{"nodes": ["a"], "setNode": {"taints": [{"key": "one", "effect": "NoSchedule"}, {"key": "two", "value": "2", "effect": "NoExecute"}]}}`)
	c.unit("v", `{"nodes": ["a"], "setNode": {"taints": [{"key": "one", "effect": "NoSchedule"}]}}`)
	c.settle()
	c.wantTaints("a", "admin:NoSchedule one:NoSchedule two=2:NoExecute")
	c.deleteUnit("u")
	c.settle()
	c.wantTaints("a", "admin:NoSchedule one:NoSchedule")
}

// TestS04: a taint of an admin that shares a key with one of ours stays, also if it is the very
// same.
func TestS04(t *testing.T) {
	c := newCluster(t)
	admin := []corev1.Taint{{Key: "k", Value: "admin", Effect: "NoExecute"}, {Key: "same", Effect: "NoSchedule"}, {Key: "other", Value: "1", Effect: "NoSchedule"}}
	c.node("a", "kubelet").Spec.Taints = admin
	c.unit("u", `{"nodes": ["a"], "unschedulable": true, "setNode": {"taints": [
		{"key": "k", "effect": "NoSchedule"}, {"key": "same", "effect": "NoSchedule"}, {"key": "other", "value": "2", "effect": "NoSchedule"}]}}`)
	c.settle()
	want := "k=admin:NoExecute same:NoSchedule other=1:NoSchedule k:NoSchedule site.superedge.io/unschedulable:NoSchedule"
	c.wantTaints("a", want)
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionConflict, `taint other:NoSchedule with the value "1"`)
	// The node lifecycle controller adds one meanwhile.
	c.nodes["a"].Spec.Taints = append(c.nodes["a"].Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"})
	c.deleteUnit("u")
	c.settle()
	c.wantTaints("a", "k=admin:NoExecute same:NoSchedule other=1:NoSchedule node.kubernetes.io/not-ready:NoExecute")
	if record, found := c.nodes["a"].Annotations[v1alpha2.AnnotationTaints]; found {
		t.Errorf("the record is left over: %q", record)
	}
}

// TestS06: the finalizer stays as long as some Node is not clean, or not known to be.
func TestS06(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.unit("u", `{"nodes": ["a"], "setNode": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}`)
	c.group("g", `{"nodeUnits": ["u"]}`)
	c.settle()
	c.deleteUnit("u")
	c.deleteGroup("g")
	p := c.decide()
	if len(p.Nodes) != 1 || len(p.Units)+len(p.Groups) != 0 {
		t.Fatalf("the Node is not clean, and yet: %s", text(p))
	}
	// Only half of it is done.
	half := p.Nodes[0]
	half.Taints, half.Restricted = nil, nil // one patch
	c.takeNode(half)
	if p := c.decide(); len(p.Units) != 0 {
		t.Errorf("the taint is still there, and yet: %s", text(p.Units))
	}
	c.take(c.decide())
	n := assign.ReadNode(c.nodes["a"])
	n.Stale = true
	stale := assign.Decide(assign.Observed{Nodes: []assign.Node{n}, Units: []*v1alpha2.NodeUnit{c.units["u"]}, Now: noon})
	if len(stale.Nodes)+len(stale.Units) != 0 {
		t.Errorf("the Node is stale, and yet: %s", text(stale))
	}
	c.settle()
	if len(c.units)+len(c.groups) != 0 {
		t.Errorf("all is clean, and yet they are there: %v %v", c.units, c.groups)
	}
}

// TestS07: a Node in two units of one group permanently gets the label of the first by name. Units
// and group report it.
func TestS07(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.unit("one", `{"nodes": ["a"], "setNode": {"labels": {"x": "1"}}}`)
	c.unit("two", `{"nodes": ["a"], "setNode": {"labels": {"x": "2"}, "annotations": {"n": "2"}}}`)
	c.group("g", `{"nodeUnits": ["two", "one"]}`)
	c.settle()
	c.want("a", "g=one one=nodeunits.superedge.io two=nodeunits.superedge.io x=1")
	for _, u := range []string{"one", "two"} {
		c.wantSays(c.units[u].Status.Conditions, v1alpha2.ConditionConflict, "NodeUnits one and two ask for different values of the label g", "label x")
	}
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionConflict, "the Node a is in the NodeUnits one and two")
	c.deleteUnit("one")
	c.settle()
	c.want("a", "g=two two=nodeunits.superedge.io x=2")
	if got := c.units["two"].Status.Conditions; got != nil {
		t.Errorf("the conflict is over, and yet: %s", text(got))
	}
}

// TestS08: names found by groups that clash, units of people at such a name, names that no object
// can have.
func TestS08(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet", "zone=z", "region=z", "floor=Upper_1")
	c.node("b", "kubelet", "zone=mine")
	c.unit("mine", `{"nodes": []}`) // no selector: SuperEdge's controller panicked
	c.group("by-region", `{"autoFindNodeKeys": ["region"]}`)
	c.group("by-zone", `{"autofindnodekeys": ["zone"]}`)
	c.group("by-floor", `{"autoFindNodeKeys": ["floor"]}`)
	c.settle()
	hashed := assign.FindName([]string{"Upper_1"})
	c.want("a", hashed+"=nodeunits.superedge.io by-floor="+hashed+" by-region=z floor=Upper_1 region=z z=nodeunits.superedge.io zone=z")
	c.want("b", "zone=mine")
	c.wantSays(c.groups["by-zone"].Status.Conditions, v1alpha2.ConditionConflict,
		"the NodeUnit z was not made for Nodes with zone=z", "the NodeUnit mine was not made for Nodes with zone=mine")
	if u := c.units["z"]; u.Spec.Type != "edge" || u.Labels["by-region"] != v1alpha2.GroupMark || u.Labels[v1alpha2.LabelKeysHash] == "" {
		t.Errorf("the unit that was made: %s", text(u))
	}
	if u := c.units["mine"]; len(u.Labels)+len(u.OwnerReferences) != 0 || u.Spec.Selector != nil {
		t.Errorf("the user's unit was written: %s", text(u))
	}
}

// TestS09: unschedulable and selector.annotations have an effect; workload and the autonomy levels
// say that they have none.
func TestS09(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet").Annotations["rack"] = "7"
	c.node("b", "kubelet").Annotations["rack"] = "8"
	c.unit("u", `{"selector": {"annotations": {"rack": "7"}}, "unschedulable": true, "autonomyLevel": "L4"}`)
	c.unit("v", `{"autonomyLevel": "L3"}`)
	c.group("g", `{"selector": {"matchExpressions": [{"key": "nothing", "operator": "DoesNotExist"}]}, "workload": [{"name": "w"}]}`)
	c.settle()
	c.want("a", "g=u u=nodeunits.superedge.io")
	c.want("b", "")
	c.wantTaints("a", "site.superedge.io/unschedulable:NoSchedule")
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionNotImplemented, "L4")
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionNotImplemented, "spec.workload")
	if got := c.units["v"].Status.Conditions; got != nil {
		t.Errorf("L3 is what there is, and yet: %s", text(got))
	}
	c.units["u"].Spec.Unschedulable = false
	c.settle()
	c.wantTaints("a", "")
}

// TestS10: a label of a unit that does not exist goes, and keeps nothing from happening.
func TestS10(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubectl-label", "gone=nodeunits.superedge.io", "other=x")
	c.unit("u", `{"nodes": ["a"]}`)
	c.settle()
	c.want("a", "other=x u=nodeunits.superedge.io")
}

// TestDerived: what an entry of setNode.labels says of the unit itself, or of a group that holds
// it, is no wish, whatever it says: it makes no conflict, and leaves with the group only if it is
// what SuperEdge wrote.
func TestDerived(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.unit("u", `{"nodes": ["a"], "setNode": {"labels": {"u": "other", "g": "other", "h": "u"}}}`)
	c.group("g", `{"nodeUnits": ["u"]}`)
	c.group("h", `{"nodeUnits": ["u"]}`)
	c.settle()
	c.want("a", "g=u h=u u=nodeunits.superedge.io")
	if got := c.units["u"].Status.Conditions; got != nil {
		t.Errorf("a conflict with itself: %s", text(got))
	}
	c.deleteGroup("g")
	c.deleteGroup("h")
	c.settle()
	c.want("a", "g=other u=nodeunits.superedge.io")
}

// TestSelectorExcludesMembers: a unit whose Nodes would not be selected any more once they have its
// labels selects none, and says so, instead of labelling them and taking the labels off again
// without end.
func TestSelectorExcludesMembers(t *testing.T) {
	for selector, wrong := range map[string]bool{
		`{"matchExpressions": [{"key": "u", "operator": "DoesNotExist"}]}`:                true,
		`{"matchExpressions": [{"key": "g", "operator": "NotIn", "values": ["u", "x"]}]}`: true,
		`{"matchExpressions": [{"key": "g", "operator": "NotIn", "values": ["x"]}]}`:      false,
		`{"matchLabels": {"wish": "2"}}`:                                                  true,
		`{"matchLabels": {"wish": "1"}}`:                                                  false,
		`{"annotations": {"note": "2"}}`:                                                  true,
		`{"annotations": {"other": "2"}}`:                                                 false,
	} {
		c := newCluster(t)
		n := c.node("a", "kubelet", "wish=1")
		n.Annotations["other"] = "2"
		c.unit("u", `{"selector": `+selector+`, "setNode": {"labels": {"wish": "1"}, "annotations": {"note": "1"}}}`)
		c.group("g", `{"nodeUnits": ["u"]}`)
		c.settle()
		said := says(c.units["u"].Status.Conditions, v1alpha2.ConditionInvalid)
		if rate := c.units["u"].Status.ReadyRate; (said != "") != wrong || (rate == "0/0") != wrong {
			t.Errorf("%s: readyRate %s, Invalid says %q", selector, rate, said)
		}
	}
}

// TestMissing: a name without an object has no effect, and is reported.
func TestMissing(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.unit("u", `{"nodes": ["a", "b"]}`)
	c.group("g", `{"nodeUnits": ["u", "w"]}`)
	c.settle()
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionMissing, "the Node b")
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionMissing, "the NodeUnit w")
	if got := c.units["u"].Status.ReadyRate; got != "1/1" || len(c.nodes) != 1 {
		t.Errorf("readyRate %s, %d Nodes", got, len(c.nodes))
	}
}

// TestForeign: a wish does not overwrite another program's value, but the label of a unit or a
// group does. An equal value is shared, and stays when the unit leaves.
func TestForeign(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubectl-label", "disk=ssd", "rack=1", "g=by-hand")
	c.unit("u", `{"nodes": ["a"], "setNode": {"labels": {"disk": "ssd", "rack": "2", "bad key": "x"}}}`)
	c.group("g", `{"nodeUnits": ["u"]}`)
	c.settle()
	c.want("a", "disk=ssd g=u rack=1 u=nodeunits.superedge.io")
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionConflict, `label rack with the value "1"`)
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionInvalid, "bad key")
	c.deleteUnit("u")
	c.settle()
	c.want("a", "disk=ssd rack=1")
}

// TestTakeover: what SuperEdge's site-manager has put on a Node is ours to remove, except for its
// kins labels. Values of others are not.
func TestTakeover(t *testing.T) {
	c := newCluster(t)
	n := c.node("a", "site-manager", "u=nodeunits.superedge.io", "g=u", "disk=ssd", "site.superedge.io/kins-role=server")
	n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}
	own(n, "kubectl-label", metav1.ManagedFieldsOperationUpdate, map[string]string{"mine": ""}, nil)
	n.Labels["mine"] = "x"
	u := c.unit("u", `{"nodes": ["a"], "setNode": {"labels": {"u": "nodeunits.superedge.io", "g": "u", "disk": "hdd"}, "taints": [{"key": "k", "effect": "NoSchedule"}]}}`)
	u.Labels, u.Finalizers = map[string]string{"g": v1alpha2.GroupMark}, []string{v1alpha2.FinalizerUnit}
	c.group("g", `{"nodeUnits": ["u"]}`)
	c.settle()
	c.want("a", "disk=hdd g=u mine=x site.superedge.io/kins-role=server u=nodeunits.superedge.io")
	c.units["u"].Spec.Nodes = nil
	c.settle()
	c.want("a", "mine=x site.superedge.io/kins-role=server")
	c.wantTaints("a", "")
}
