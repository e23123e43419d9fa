package assign_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// draw is a random cluster of a few Nodes, units and groups that get in each other's way.
func draw(r *rapid.T) *cluster { return drawOf(r, labelKeys(), effects()) }

// drawOf is draw with units that ask for these labels and taints only.
func drawOf(r *rapid.T, labels, effects []string) *cluster {
	c := newCluster(r)
	c.observed.AllowPrivileged = rapid.Bool().Draw(r, "privileged entries are allowed")
	value := rapid.SampledFrom([]string{"1", "2"})
	for _, name := range []string{"a", "b", "c"} {
		var labels []string
		for _, key := range []string{"x", "y", "zone"} {
			if rapid.Bool().Draw(r, name+" has "+key) {
				labels = append(labels, key+"="+value.Draw(r, key))
			}
		}
		n := c.node(name, "admin", labels...)
		if rapid.Bool().Draw(r, name+" is tainted") {
			n.Spec.Taints = []corev1.Taint{{Key: "t", Value: value.Draw(r, "taint"), Effect: "NoSchedule"}}
		}
	}
	for _, name := range []string{"u", "v", "w"}[:rapid.IntRange(0, 3).Draw(r, "units")] {
		drawUnit(r, c, name, labels, effects)
	}
	for _, name := range []string{"g", "h"} {
		c.group(name, fmt.Sprintf(`{"nodeUnits": ["%s"], "selector": {"matchLabels": {"in": "%s"}}}`,
			rapid.SampledFrom([]string{"u", "v", "none"}).Draw(r, "listed"), value.Draw(r, "selected")))
	}
	return c
}

// The label keys and effects of taints that a unit may ask for; the last ones are privileged.
func labelKeys() []string {
	return []string{"x", "y", "g", "v", "rack.k8s.io/x", "node-role.kubernetes.io/x"}
}
func effects() []string { return []string{"NoSchedule", "NoExecute"} }

func drawUnit(r *rapid.T, c *cluster, name string, labels, effects []string) {
	value := rapid.SampledFrom([]string{"1", "2"})
	var nodes []string
	for _, n := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(r, name+" lists "+n) {
			nodes = append(nodes, `"`+n+`"`)
		}
	}
	u := c.unit(name, fmt.Sprintf(`{"nodes": [%s], "selector": {"matchLabels": {"zone": "%s"}}, "unschedulable": %t, "setNode": {
		"labels": {"%s": "%s"}, "annotations": {"%s": "%s"}, "taints": [{"key": "t", "value": "%s", "effect": "%s"}]}}`,
		strings.Join(nodes, ","), value.Draw(r, "zone"), rapid.Bool().Draw(r, "unschedulable"),
		rapid.SampledFrom(labels).Draw(r, "label"), value.Draw(r, "label's value"),
		rapid.SampledFrom([]string{"m", "n"}).Draw(r, "annotation"), value.Draw(r, "annotation's value"), value.Draw(r, "taint's value"),
		rapid.SampledFrom(effects).Draw(r, "taint's effect")))
	u.Labels = map[string]string{"in": value.Draw(r, "in")}
}

// TestNodeDependsOnItsUnits: what is written to a Node is the same when there are no other units
// than those that hold it.
func TestNodeDependsOnItsUnits(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := draw(r)
		before := text(c.units) + text(c.groups) + text(c.nodes)
		whole := c.decide()
		if diff := cmp.Diff(before, text(c.units)+text(c.groups)+text(c.nodes)); diff != "" {
			r.Fatalf("Decide has written to what it was given (-before +after)\n%s", diff)
		}
		for name := range c.nodes {
			only := newCluster(r)
			only.observed = c.observed
			only.nodes, only.groups = map[string]*corev1.Node{name: c.nodes[name]}, c.groups
			for _, u := range c.units {
				if slices.Contains(u.Spec.Nodes, name) || u.Spec.Selector.MatchLabels["zone"] == c.nodes[name].Labels["zone"] {
					only.units[u.Name] = u
				}
			}
			if diff := cmp.Diff(stepOf(whole, name), stepOf(only.decide(), name)); diff != "" {
				r.Fatalf("Node %s (-with all units +with its own)\n%s", name, diff)
			}
		}
	})
}

func stepOf(p assign.Plan, node string) *assign.NodeStep {
	if i := slices.IndexFunc(p.Nodes, func(s assign.NodeStep) bool { return s.Name == node }); i >= 0 {
		return &p.Nodes[i]
	}
	return nil
}

// TestJoinAndLeave: a unit that comes, takes whatever Nodes it can, and goes leaves no trace on any
// Node.
func TestJoinAndLeave(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := drawOf(r, labelKeys()[:5], effects()[:1])
		c.settle()
		type carried struct {
			Labels, Annotations map[string]string
			Taints              []corev1.Taint
		}
		seen := func() map[string]carried {
			all := map[string]carried{}
			for name, n := range c.nodes {
				taints := slices.SortedFunc(slices.Values(n.Spec.Taints), func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
				all[name] = carried{maps.Clone(n.Labels), maps.Clone(n.Annotations), taints}
			}
			return all
		}
		before := seen()
		newcomer := rapid.SampledFrom([]string{"aa", "uu", "zz"}).Draw(r, "newcomer")
		drawUnit(r, c, newcomer, labelKeys(), effects())
		c.settle()
		for name := range c.nodes {
			if u := c.units[newcomer]; slices.Contains(u.Spec.Nodes, name) && c.nodes[name].Labels[newcomer] != v1alpha2.UnitMark {
				r.Fatalf("Node %s has not joined %s: %s", name, newcomer, c.labels(name))
			}
		}
		rest := c.writes
		c.settle()
		if c.writes != rest {
			r.Fatalf("%d writes at rest", c.writes-rest)
		}
		c.deleteUnit(newcomer)
		c.settle()
		if diff := cmp.Diff(before, seen()); diff != "" {
			r.Fatalf("(-before +after)\n%s", diff)
		}
	})
}

// TestFinalizersFirst: a Node gets the label of a unit or group only after their finalizers can be
// seen, so that none can be deleted without waiting for its labels to go.
func TestFinalizersFirst(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := draw(r)
		if p := c.decide(); len(p.Nodes) > 0 {
			r.Fatalf("no unit has its finalizer, and Nodes are written: %s", text(p.Nodes))
		}
		for range 4 {
			p := c.decide()
			for _, s := range p.Nodes {
				if s.Apply == nil {
					continue
				}
				for key, value := range s.Apply.Labels {
					if u := c.units[key]; u != nil && value == v1alpha2.UnitMark && len(u.Finalizers) == 0 {
						r.Fatalf("Node %s gets the label of the unit %s, which has no finalizer", s.Name, key)
					}
					if g := c.groups[key]; g != nil && c.units[value] != nil && len(g.Finalizers) == 0 {
						r.Fatalf("Node %s gets the label of the group %s, which has no finalizer", s.Name, key)
					}
				}
			}
			c.takeSome(r, p)
		}
	})
}

// takeSome takes the Plan's steps for units and groups that can be written just then.
func (c *cluster) takeSome(r *rapid.T, p assign.Plan) {
	fails := func(s assign.Patch) bool { return rapid.Bool().Draw(r, "the write to "+s.Name+" fails") }
	p.Units, p.Groups = slices.DeleteFunc(p.Units, fails), slices.DeleteFunc(p.Groups, fails)
	c.take(p)
}
