package assign_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

const (
	record = v1alpha2.AnnotationKeptLabels
	allow  = v1alpha2.AnnotationAllowRemoval
)

// uses makes the keys named by one Service each.
func (c *cluster) uses(keys ...string) {
	c.observed.Uses = assign.NewUses()
	for _, key := range keys {
		c.observed.Uses.Add(key, "Service shop/"+key)
	}
}

// inUseCluster is two Nodes in unit u, and one in unit v, of group g, at rest. u sets the label
// z=1.
func inUseCluster(t tb, uses ...string) *cluster {
	c := newCluster(t)
	for _, n := range []string{"a", "b", "c"} {
		c.node(n, "kubelet")
	}
	c.unit("u", `{"nodes": ["a", "b"], "setNode": {"labels": {"z": "1"}}}`)
	c.unit("v", `{"nodes": ["c"]}`)
	c.group("g", `{"nodeUnits": ["u", "v"]}`)
	c.uses(uses...)
	c.settle()
	c.want("a", inU)
	c.want("c", inV)
	return c
}

const (
	inU = "g=u u=nodeunits.superedge.io z=1"
	inV = "g=v v=nodeunits.superedge.io"
)

// edit changes the spec of a unit as a person does.
func (c *cluster) edit(name string, change func(*v1alpha2.NodeUnitSpec)) {
	u := c.units[name].DeepCopy()
	change(&u.Spec)
	u.Generation++
	c.units[name] = u
}

func annotate(o metav1.Object, key, value string) {
	all := maps.Clone(o.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	o.SetAnnotations(all)
}

// vanishing is something that changes or goes while keys are named.
type vanishing struct {
	name   string
	uses   string // keys, separated by spaces
	do     func(*cluster)
	a, c   string // labels of these Nodes afterwards
	record string // on Node a
}

func vanishings() []vanishing {
	return []vanishing{
		{"the group is deleted", "g", func(c *cluster) { c.deleteGroup("g") }, inU, inV, "g"},
		{"the group is gone at once", "g", func(c *cluster) { delete(c.groups, "g") }, inU, inV, "g"},
		{"nothing names the key", "other", func(c *cluster) { c.deleteGroup("g") }, "u=nodeunits.superedge.io z=1", "v=nodeunits.superedge.io", ""},
		{"it is not known who names the key", "g", func(c *cluster) {
			c.observed.Uses = nil
			c.deleteUnit("u")
		}, inU, inV, "g,u,z"},
		{"the group's deletion is allowed", "g", func(c *cluster) {
			annotate(c.groups["g"], allow, "other, g")
			c.deleteGroup("g")
		}, "u=nodeunits.superedge.io z=1", "v=nodeunits.superedge.io", ""},
		{"another key is allowed", "g", func(c *cluster) {
			annotate(c.groups["g"], allow, "gg")
			c.deleteGroup("g")
		}, inU, inV, "g"},
		{"the group is made again, and goes before it has its finalizer", "g", func(c *cluster) {
			c.deleteGroup("g")
			c.settle()
			c.group("g", `{"nodeUnits": ["u", "v"]}`)
			p := c.decide()
			c.take(assign.Plan{Nodes: p.Nodes})
			delete(c.groups, "g")
		}, inU, inV, "g"},
		{"the group lists the unit no more", "g", func(c *cluster) { c.groups["g"].Spec.NodeUnits = []string{"v"} }, inU, inV, "g"},
		{"that is allowed on the group", "g", func(c *cluster) {
			annotate(c.groups["g"], allow, "g")
			c.groups["g"].Spec.NodeUnits = []string{"v"}
		}, "u=nodeunits.superedge.io z=1", inV, ""},
		{"the unit is deleted", "g", func(c *cluster) { c.deleteUnit("u") }, "g=u", inV, "g"},
		{"the unit is gone at once", "g z", func(c *cluster) { delete(c.units, "u") }, "g=u z=1", inV, "g,z"},
		{"all is gone at once", "g u z", func(c *cluster) { clear(c.units); clear(c.groups) }, inU, "g=v", "g,u,z"},
		{"the unit's deletion is allowed", "g z", func(c *cluster) {
			annotate(c.units["u"], allow, "g,z")
			c.deleteUnit("u")
		}, "", inV, ""},
		{"the mark and a label of setNode", "u z", func(c *cluster) { c.deleteUnit("u") }, "u=nodeunits.superedge.io z=1", inV, "u,z"},
		{"the removal is allowed on the Node", "g", func(c *cluster) {
			annotate(c.nodes["a"], allow, "g")
			c.deleteGroup("g")
		}, "u=nodeunits.superedge.io z=1", inV, ""},
		{"the Node leaves the unit", "g u z", func(c *cluster) { c.units["u"].Spec.Nodes = []string{"b"} }, "", inV, ""},
		{"the Node moves to another unit", "g u z", func(c *cluster) {
			c.units["u"].Spec.Nodes, c.units["v"].Spec.Nodes = []string{"b"}, []string{"a", "c"}
		}, inV, inV, ""},
		{"the unit is deleted and the Node joins another one", "g", func(c *cluster) {
			c.deleteUnit("u")
			c.units["v"].Spec.Nodes = []string{"a", "c"}
		}, inV, inV, ""},
		{"setNode changes", "z", func(c *cluster) {
			c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.SetNode.Labels = map[string]v1alpha2.LabelValue{"z": "2"} })
		}, "g=u u=nodeunits.superedge.io z=2", inV, ""},
		{"an entry of setNode is edited out", "z", func(c *cluster) { c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.SetNode = nil }) }, inU, inV, "z"},
		{"that is allowed on the unit", "z", func(c *cluster) {
			annotate(c.units["u"], allow, "z")
			c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.SetNode = nil })
		}, "g=u u=nodeunits.superedge.io", inV, ""},
		{"all Nodes are edited out of the unit", "g z", func(c *cluster) { c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.Nodes = nil }) }, "g=u z=1", inV, "g,z"},
		{"one Node of two is edited out of the unit", "g u z", func(c *cluster) {
			c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.Nodes = []string{"b"} })
		}, "", inV, ""},
		{"all are edited out, and one moves to another unit", "g z", func(c *cluster) {
			c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.Nodes = nil })
			c.edit("v", func(s *v1alpha2.NodeUnitSpec) { s.Nodes = []string{"a", "c"} })
		}, "g=v v=nodeunits.superedge.io z=1", inV, "z"},
	}
}

// TestInUse: which labels stay on Nodes when a key is named by a Service and what has put the label
// there changes or goes.
func TestInUse(t *testing.T) {
	for _, test := range vanishings() {
		t.Run(test.name, func(t *testing.T) {
			c := inUseCluster(t, strings.Fields(test.uses)...)
			test.do(c)
			c.settle()
			c.want("a", test.a)
			c.want("c", test.c)
			if got := c.nodes["a"].Annotations[record]; got != test.record {
				t.Errorf("Node a records %q as kept, want %q", got, test.record)
			}
			if name := leavingName(c); name != "" {
				t.Errorf("%s is still there", name)
			}
			// Without users, and without the group and the unit, nothing stays.
			clear(c.units)
			clear(c.groups)
			c.uses()
			c.settle()
			c.want("a", "")
			if len(c.nodes["a"].Annotations) > 1 || c.nodes["a"].Annotations[record] != "" {
				t.Errorf("annotations are left over: %v", c.nodes["a"].Annotations)
			}
		})
	}
}

func leavingName(c *cluster) string {
	for name, u := range c.units {
		if u.DeletionTimestamp != nil {
			return "the unit " + name
		}
	}
	for name, g := range c.groups {
		if g.DeletionTimestamp != nil {
			return "the group " + name
		}
	}
	return ""
}

// TestKeptLabelIsTakenOver: a kept label is not kept any more once a unit asks for the key again,
// another program sets it, or an admin removes it.
func TestKeptLabelIsTakenOver(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*cluster)
		a    string
	}{
		{"the group is there again", func(c *cluster) { c.group("g", `{"nodeUnits": ["u", "v"]}`) }, inU},
		{"an admin removes it", func(c *cluster) { removeLabel(c.nodes["a"], "g") }, "u=nodeunits.superedge.io z=1"},
		{"another program changes it", func(c *cluster) {
			removeLabel(c.nodes["a"], "g")
			c.nodes["a"].Labels["g"] = "mine"
			own(c.nodes["a"], "admin", metav1.ManagedFieldsOperationUpdate, map[string]string{"g": ""}, nil)
		}, "g=mine u=nodeunits.superedge.io z=1"},
		{"another program sets it too", func(c *cluster) {
			own(c.nodes["a"], "admin", metav1.ManagedFieldsOperationUpdate, map[string]string{"g": ""}, nil)
		}, inU},
		{"another unit asks for the key", func(c *cluster) { c.unit("w", `{"nodes": ["a"], "setNode": {"labels": {"g": "x"}}}`) },
			"g=x u=nodeunits.superedge.io w=nodeunits.superedge.io z=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := inUseCluster(t, "g")
			c.deleteGroup("g")
			c.settle()
			c.want("a", inU)
			test.do(c)
			c.settle()
			c.want("a", test.a)
			if got := c.nodes["a"].Annotations[record]; got != "" {
				t.Errorf("Node a records %q as kept", got)
			}
		})
	}
}

func removeLabel(n interface {
	GetLabels() map[string]string
}, key string) {
	delete(n.GetLabels(), key)
}

// TestInUseIsReported: who names the key and how to let it go is in the condition of each object
// that is left, in an Event of one that goes, and in the summary for metrics.
func TestInUseIsReported(t *testing.T) {
	c := inUseCluster(t, "g")
	for i := range 5 {
		c.observed.Uses.Add("g", fmt.Sprintf("Service shop/s%d", i))
	}
	c.groups["g"].Spec.NodeUnits = []string{"v"}
	c.settle()
	const want = "the label g=u stays on the Nodes a, b though nothing sets it any more, because Service shop/g, Service shop/s0, " +
		"Service shop/s1 and 3 more name the key g; to remove it: kubectl annotate "
	const command = " site.superedge.io/allow-removal=g"
	if got := says(c.groups["g"].Status.Conditions, "InUse"); got != want+"nodegroup g"+command {
		t.Errorf("the group says %q", got)
	}
	if got := says(c.units["u"].Status.Conditions, "InUse"); got != want+"nodeunit u"+command {
		t.Errorf("the unit says %q", got)
	}
	c.wantSays(c.units["v"].Status.Conditions, "InUse")

	c.deleteGroup("g")
	var news []assign.News
	for range 5 {
		p := c.decide()
		for _, s := range p.Groups {
			news = append(news, s.News...)
		}
		c.take(p)
	}
	if len(c.groups) > 0 || len(news) != 1 || !strings.Contains(news[0].Note, "g=u stays on the Nodes a, b ") ||
		!strings.Contains(news[0].Note, "kubectl annotate nodes -l g"+command) {
		t.Errorf("groups left: %d; Events: %s", len(c.groups), text(news))
	}
	if got := c.decide().Summary.Kept; len(got) != 1 || got[0] != (assign.KeptLabels{Key: "g", Nodes: 3}) {
		t.Errorf("summary: %v", got)
	}
}

// TestDeletionWaitsForRecords: a group stays until each Node has recorded what it keeps; otherwise
// a Node whose write failed would lose the label when the group is gone.
func TestDeletionWaitsForRecords(t *testing.T) {
	c := inUseCluster(t, "g")
	c.deleteGroup("g")
	for range 5 {
		p := c.decide()
		p.Nodes = slices.DeleteFunc(p.Nodes, func(s assign.NodeStep) bool { return s.Name == "a" })
		c.take(p)
	}
	if c.groups["g"] == nil || c.units["u"].Labels["g"] != v1alpha2.GroupMark {
		t.Error("the group, or its label on the unit, has not waited for Node a")
	}
	c.settle()
	c.want("a", inU)
	if c.groups["g"] != nil {
		t.Error("the group is still there")
	}
}

// TestUsesOfServices: which keys a Service's annotation names.
func TestUsesOfServices(t *testing.T) {
	for _, test := range []struct {
		annotation, keys string
		malformed        bool
	}{
		{`["a","b","a"]`, "a b", false},
		{`["a","*"]`, "a", false},
		{`[]`, "", false},
		{`["a"`, "a", true},
		{`example.com/a,b c`, "b c example.com/a", true},
		{``, "", true},
		{`null`, "null", true},
	} {
		got := assign.KeysOfService(map[string]string{"topologyKeys": test.annotation})
		if strings.Join(got.Keys, " ") != test.keys || got.Malformed != test.malformed {
			t.Errorf("%s: got %v, want %q, malformed %t", test.annotation, got, test.keys, test.malformed)
		}
	}
	if got := assign.KeysOfService(nil); len(got.Keys) > 0 || got.Malformed {
		t.Errorf("without the annotation: %v", got)
	}
	if got := assign.KeysOfService(map[string]string{"topologyKeys": strings.Repeat("x y ", 1<<20)}); len(got.Keys) > 64 {
		t.Errorf("a long annotation: %d keys", len(got.Keys))
	}
}

// TestUsedLabelsOutlive: whatever units and groups go in whatever way, a Node has under each key
// that is named the value that it had, or one that a unit asks for. Without uses, it then has what
// it would have if there had never been any.
func TestUsedLabelsOutlive(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := draw(r)
		c.uses(rapid.SliceOfDistinct(rapid.SampledFrom([]string{"u", "v", "w", "g", "h", "x", "y"}), rapid.ID).Draw(r, "uses")...)
		c.settle()
		before := map[string]map[string]string{}
		for name, n := range c.nodes {
			before[name] = maps.Clone(n.Labels)
		}
		drawRemovals(r, c)
		p := c.decide()
		c.settle()
		for name, labels := range before {
			for key, value := range labels {
				now := c.nodes[name].Labels[key]
				if value != "" && now == "" && c.observed.Uses.MayName(key) {
					r.Fatalf("Node %s had %s=%s and has %q; plan %s", name, key, value, now, text(p))
				}
			}
		}
		rest := c.writes
		c.settle()
		if c.writes != rest {
			r.Fatalf("%d writes at rest", c.writes-rest)
		}
		if name := leavingName(c); name != "" {
			r.Fatalf("%s is still there", name)
		}
		clear(c.units)
		clear(c.groups)
		c.uses()
		c.settle()
		for name, n := range c.nodes {
			for key := range n.Labels {
				if !assign.ReadNode(n).Foreign.Labels.Has(key) {
					r.Fatalf("Node %s keeps %s without a use: %s", name, key, c.labels(name))
				}
			}
		}
	})
}

func (c *cluster) anySets(key string) bool {
	for _, u := range c.units {
		if _, sets := u.Spec.SetNode.Labels[key]; sets {
			return true
		}
	}
	return false
}

// drawRemovals deletes units and groups, with and without their finalizers, and takes units from
// groups.
func drawRemovals(r *rapid.T, c *cluster) {
	way := rapid.SampledFrom([]string{"stays", "is deleted", "is gone", "changes"})
	for _, name := range slices.Sorted(maps.Keys(c.units)) {
		switch way.Draw(r, name) {
		case "is deleted":
			c.deleteUnit(name)
		case "is gone":
			// If another unit's label hides the mark, nothing shows that the unit was there.
			if !c.anySets(name) {
				delete(c.units, name)
			}
		case "changes":
			c.units[name].Labels["in"] = "nothing"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		switch way.Draw(r, name) {
		case "is deleted":
			c.deleteGroup(name)
		case "is gone":
			delete(c.groups, name)
		case "changes":
			c.groups[name].Spec.NodeUnits = nil
		}
	}
}

// TestPrivilegedIsNotKept: whoever may create a Service cannot keep a privileged label on Nodes.
func TestPrivilegedIsNotKept(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.observed.AllowPrivileged = true
	c.unit("u", `{"nodes": ["a"], "setNode": {"labels": {"node-restriction.kubernetes.io/pci": "yes", "rack": "7"}}}`)
	c.uses("node-restriction.kubernetes.io/pci", "rack")
	c.settle()
	delete(c.units, "u")
	c.settle()
	if got := c.nodes["a"].Labels; got["rack"] != "7" || got["node-restriction.kubernetes.io/pci"] != "" {
		t.Errorf("the Node has the labels %v", got)
	}
}

// TestMistypedSelector: a selector that cannot be read, or that excludes the unit's own Nodes,
// changes nothing. One that selects other Nodes by mistake leaves labels in use where they are,
// says how to remove them, and leaves no trace when it is corrected. A Node that leaves by its own
// labels loses them.
func TestMistypedSelector(t *testing.T) {
	c := newCluster(t)
	for _, n := range []string{"a", "b", "c"} {
		c.node(n, "kubelet", "region=east")
	}
	c.unit("u", `{"selector": {"matchLabels": {"region": "east"}}, "setNode": {"labels": {"z": "1"}, "taints": [{"key": "t", "effect": "NoSchedule"}]}}`)
	c.group("g", `{"selector": {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}}`)
	c.uses("g")
	c.settle()
	const joined, stays = "g=u region=east u=nodeunits.superedge.io z=1", "g=u region=east"
	selector := func(to v1alpha2.Selector) {
		c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.Selector = &to })
		c.settle()
	}
	region := func(to string) { selector(v1alpha2.Selector{MatchLabels: map[string]string{"region": to}}) }
	want := func(node, labels, taints, reason string) {
		t.Helper()
		c.want(node, labels)
		if got := c.taints(node); got != taints {
			t.Errorf("the taints of %s are %q, want %q", node, got, taints)
		}
		if got := text(c.units["u"].Status.Conditions); (reason == "") != (got == "null") || !strings.Contains(got, reason) {
			t.Errorf("the conditions are %s, want %s", got, reason)
		}
	}
	want("a", joined, "t:NoSchedule", "")
	selector(v1alpha2.Selector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "in", Values: []string{"east"}}}})
	want("a", joined, "t:NoSchedule", "InvalidSelector")
	selector(v1alpha2.Selector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "u", Operator: "DoesNotExist"}}})
	want("a", joined, "t:NoSchedule", "SelectorExcludesMembers")
	region("eats")
	want("a", stays, "", "kubectl annotate nodeunit u site.superedge.io/allow-removal=g")
	region("east")
	want("a", joined, "t:NoSchedule", "")
	if got := c.nodes["a"].Annotations[record]; got != "" {
		t.Errorf("the Node records %q as kept", got)
	}
	c.nodes["a"].Labels["region"] = "west"
	c.settle()
	want("a", "region=west", "", "")
	want("b", joined, "t:NoSchedule", "")
}

// TestKeptMarkJoinsNothing: a mark that a Node only keeps does not make it a member of a unit whose
// selector cannot be read.
func TestKeptMarkJoinsNothing(t *testing.T) {
	c := inUseCluster(t, "u")
	c.edit("u", func(s *v1alpha2.NodeUnitSpec) { s.Nodes = nil })
	c.settle()
	c.want("a", "u=nodeunits.superedge.io")
	c.edit("u", func(s *v1alpha2.NodeUnitSpec) {
		s.Selector = &v1alpha2.Selector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "in"}}}
	})
	c.settle()
	c.want("a", "u=nodeunits.superedge.io")
}
