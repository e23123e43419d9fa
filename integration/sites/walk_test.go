package sites

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"
)

// What the manual prints of its NodeUnits and its NodeGroup, the second as v1alpha2 spells it: the manual's kubectl read
// v1alpha1. The labels under "Setnode" that it shows are not written into the spec any more: they follow from unit and group.
const (
	manualUnits = `
NAME            TYPE    READY   AGE
beijing         edge    3/3     3d17h
guangzhou       edge    3/3     3d17h
unit-node-all   other   6/6     4d22h
`
	manualBeijing = `
Spec:
  Nodes:
    bj-1
    bj-2
    bj-3
  Type:           edge
  Unschedulable:  false
Status:
  Ready Nodes:
    bj-1
    bj-2
    bj-3
  Ready Rate:  3/3
Events:       <none>
`
	manualLocation = `
Spec:
  Node Units:
    beijing
    guangzhou
Status:
  Node Units:
    beijing
    guangzhou
  Unit Number:  2
Events:        <none>
`
	manualDeployments = `
NAME                            READY   UP-TO-DATE   AVAILABLE   AGE
deploymentgrid-demo-beijing     2/2     2            2           14s
deploymentgrid-demo-guangzhou   2/2     2            2           14s
`
)

// TestWalk does what the reader of SuperEdge's manual does with units and groups, on Nodes without labels, with the program,
// the samples and the rights that are shipped; then Nodes, groups and units go.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	for _, step := range []struct {
		name string
		do   func(*walk)
	}{
		{"units and group", (*walk).unitsAndGroup},
		{"the Grids follow", (*walk).gridsFollow},
		{"a Node leaves its unit", (*walk).nodeLeaves},
		{"a unit joins the group", (*walk).unitJoins},
		{"the group is deleted", (*walk).groupGoes},
		{"a unit is deleted", (*walk).unitGoes},
		{"units that groups find", (*walk).foundUnits},
		{"the end", (*walk).end},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(w.in(t)) }) {
			t.Fatalf("the steps after %q rest on it", step.name)
		}
	}
}

func (w *walk) unitsAndGroup() {
	begin := time.Now()
	w.ApplyFile(w.t, "../../deploy/samples/nodeunits")
	w.prints(manualUnits, "get", "nodeunit")
	w.prints("NAME UNITS AGE\nlocation 2 3d", "get", "nodegroup")
	w.t.Logf("kubectl get nodeunit and nodegroup print the manual's tables %s after kubectl apply began", since(begin))
	w.prints(manualUnits, "get", "nodeunits.v1alpha1.site.superedge.io")
	w.describes("nodeunit", "beijing", manualBeijing)
	w.describes("nodeunit", "guangzhou", strings.ReplaceAll(strings.ReplaceAll(manualBeijing, "bj-", "gz-"), "beijing", "guangzhou"))
	w.describes("nodegroup", "location", manualLocation)
	w.labelsOf("bj", "beijing=nodeunits.superedge.io location=beijing ")
	w.labelsOf("gz", "guangzhou=nodeunits.superedge.io location=guangzhou ")
	w.counts(`grid_controller_site_unit_nodes{ready="true",unit="beijing"} 3`, `grid_controller_site_unit_nodes{ready="true",unit="unit-node-all"} 6`)
}

func (w *walk) gridsFollow() {
	begin := time.Now()
	w.ApplyFile(w.t, "../../deploy/samples/stateless")
	w.prints(manualDeployments, "get", "deployment")
	w.t.Logf("every unit has its 2 Pods %s after kubectl apply began", since(begin))
	w.standOn("beijing", "bj-1", "bj-2", "bj-3")
	w.standOn("guangzhou", "gz-1", "gz-2", "gz-3")
}

// nodeLeaves: its labels of the unit and the group go, and its Pods move to the Nodes that stay.
func (w *walk) nodeLeaves() {
	leaves := w.aNodeWithPods("beijing")
	var stay []string
	for _, n := range w.nodes("bj") {
		if n != leaves {
			stay = append(stay, n)
		}
	}
	begin := time.Now()
	w.patch("nodeunit", "beijing", fmt.Sprintf(`{"spec": {"nodes": ["%s"]}}`, strings.Join(stay, `", "`)))
	w.labels(leaves, inAll+w.others(leaves))
	w.labels(stay[0], "beijing=nodeunits.superedge.io location=beijing "+inAll+w.others(stay[0]))
	w.t.Logf("a Node that was taken out of spec.nodes is without the unit's labels %s after kubectl patch began", since(begin))
	w.prints(strings.Replace(manualUnits, "3/3", "2/2", 1), "get", "nodeunit")
	w.standOn("beijing", stay...)
	w.prints(manualDeployments, "get", "deployment")
	w.patch("nodeunit", "beijing", `{"spec": {"nodes": ["bj-1", "bj-2", "bj-3"]}}`)
	w.prints(manualUnits, "get", "nodeunit")
}

// unitJoins: also, a Node that a unit names and that does not exist is reported once, and makes
// none.
func (w *walk) unitJoins() {
	const child = "deploymentgrid-demo-shanghai"
	w.Apply(w.t, nodeUnit("v1alpha1", "shanghai", `{"nodes": ["sh-1", "sh-2"]}`))
	w.events("nodeunit", "shanghai", "Warning NodeNotFound 1")
	w.AddNode(w.t, "sh-1", nil)
	w.labels("sh-1", "shanghai=nodeunits.superedge.io "+inAll)
	wait.Until(w.t, "shanghai has its Node", func() error { return unlike(w.get("nodeunit/shanghai", "{.status.readyRate}"), "1/1") })
	w.events("nodeunit", "shanghai", "Warning NodeNotFound 1")
	w.patch("nodeunit", "shanghai", `{"spec": {"nodes": ["sh-1"]}}`)
	w.prints(manualDeployments, "get", "deployment")
	begin := time.Now()
	w.patch("nodegroup", "location", `{"spec": {"nodeUnits": ["beijing", "guangzhou", "shanghai"]}}`)
	w.labels("sh-1", "location=shanghai shanghai=nodeunits.superedge.io "+inAll)
	w.prints(manualDeployments+child+" 2/2 2 2 1s", "get", "deployment")
	w.t.Logf("a unit that joined the group has its Deployment with 2 Pods %s after kubectl patch began", since(begin))
	w.standOn("shanghai", "sh-1")
	w.prints("NAME UNITS AGE\nlocation 3 3d", "get", "nodegroup")
	if got := w.MustKubectl(w.t, "get", "nodes", "-o", "name"); strings.Contains(got, "sh-2") {
		w.t.Errorf("a Node was made for a name in spec.nodes: %s", got)
	}
}

// groupGoes: a Grid names its key. Its labels stay on the Nodes, so nothing happens to the Grid,
// and are the group's again when it is back. With the annotation that allows it, what Nodes have of
// the group goes, and what they have of units stays. All units of the Grid are lost at once then,
// which is held: not a Pod ends. With the group again, all is as before, except for the unit that
// it does not hold any more.
func (w *walk) groupGoes() {
	all := manualDeployments + "deploymentgrid-demo-shanghai 2/2 2 2 1s"
	pods := w.pods("")
	w.groupGoesInUse(all)
	w.allowRemoval("nodegroup", "location", "location")
	w.deletes("nodegroup", "location", "location")
	w.labelsOf("bj", "beijing=nodeunits.superedge.io ")
	w.labels("sh-1", "shanghai=nodeunits.superedge.io "+inAll)
	w.prints(strings.Replace(manualUnits, "6/6", "7/7", 1)+"shanghai edge 1/1 3d", "get", "nodeunit")
	wait.Until(w.t, "the Grid holds deletions", func() error {
		return unlike(w.get("dg/deploymentgrid-demo", `{.status.conditions[?(@.type=="DeletionHeld")].status}`), "True")
	})
	w.prints(all, "get", "deployment")
	if got := w.get("nodeunit/beijing", "{.metadata.labels} {.spec.setNode}"); got != " " {
		w.t.Errorf("beijing keeps something of the group: %s", got)
	}

	w.ApplyFile(w.t, "../../deploy/samples/nodeunits")
	w.labelsOf("gz", "guangzhou=nodeunits.superedge.io location=guangzhou ")
	w.prints(manualDeployments, "get", "deployment")
	w.t.Log("the unit that is not in the group any more lost its Deployment, after its grace")
	for uid, node := range w.pods("") {
		if pods[uid] != node {
			w.t.Errorf("a Pod on %s is new: the group was away for a moment only", node)
		}
	}
}

// groupGoesInUse deletes the group whose key a Grid names, and makes it again.
func (w *walk) groupGoesInUse(deployments string) {
	w.MustKubectl(w.t, "delete", "nodegroup", "location")
	w.counts(`grid_controller_site_kept_labels{key="location"} 7`)
	w.events("nodegroup", "location", "Warning LabelKept 1")
	w.labelsOf("bj", "beijing=nodeunits.superedge.io location=beijing ")
	w.labels("sh-1", "location=shanghai shanghai=nodeunits.superedge.io "+inAll)
	wait.Until(w.t, "the unit says who names the key", func() error {
		says := w.get("nodeunit/shanghai", `{.status.conditions[?(@.type=="InUse")].message}`)
		return wait.Check(strings.Contains(says, "because DeploymentGrid default/deploymentgrid-demo, "), "it says %q", says)
	})
	w.prints(deployments, "get", "deployment")
	if got := w.get("dg/deploymentgrid-demo", `{.status.conditions[?(@.type=="DeletionHeld")].status}`); got == "True" {
		w.t.Error("the Grid has lost units: its condition DeletionHeld is True")
	}
	w.Apply(w.t, nodeGroup("v1alpha2", "location", `{"nodeUnits": ["beijing", "guangzhou", "shanghai"]}`))
	wait.Until(w.t, "no Node records a label as kept", func() error {
		return unlike(w.get("nodes", `{.items[*].metadata.annotations.site\.superedge\.io/kept-labels}`), "")
	})
	w.labels("sh-1", "location=shanghai shanghai=nodeunits.superedge.io "+inAll)
}

// unitGoes: its labels go, since that is allowed, others' stay; S-06, its object goes after them.
func (w *walk) unitGoes() {
	w.allowRemoval("nodeunit", "beijing", "location")
	w.deletes("nodeunit", "beijing", "beijing", "location")
	for _, n := range w.nodes("bj") {
		w.labels(n, inAll+w.others(n))
	}
	w.labelsOf("gz", "guangzhou=nodeunits.superedge.io location=guangzhou ")
	w.prints("NAME UNITS AGE\nlocation 1 3d", "get", "nodegroup")
	w.events("nodegroup", "location", "Warning LabelKept 1, Warning NodeUnitNotFound 1")
	w.counts(`grid_controller_site_conditions{condition="Missing",kind="NodeGroup",name="location"} 1`)
	w.prints("NAME READY UP-TO-DATE AVAILABLE AGE\ndeploymentgrid-demo-guangzhou 2/2 2 2 1s", "get", "deployment")
	taints := w.get("node/bj-1", `{range .spec.taints[*]}{.key}={.value}:{.effect} {end}`)
	if taints != "admin=yes:PreferNoSchedule " {
		w.t.Errorf("bj-1 has the taints %q, want the admin's", taints)
	}
}

// foundUnits: units that groups find are garbage once the last of these groups has gone, and not before.
func (w *walk) foundUnits() {
	for node, zone := range map[string]string{"bj-1": "z1", "bj-2": "z1", "gz-1": "z2"} {
		w.SetLabels(w.t, node, map[string]string{"zone": zone})
	}
	for _, g := range []string{"areas", "zones"} {
		w.Apply(w.t, nodeGroup("v1alpha2", g, `{"autoFindNodeKeys": ["zone"]}`))
	}
	w.prints("NAME TYPE READY AGE\nz1 edge 2/2 3d\nz2 edge 1/1 3d", "get", "nodeunit", "z1", "z2")
	w.prints("NAME UNITS AGE\nareas 2 1s\nlocation 1 3d\nzones 2 1s", "get", "nodegroup")
	w.labels("bj-1", "areas=z1 "+inAll+w.others("bj-1")+" z1=nodeunits.superedge.io zone=z1 zones=z1")
	wait.Until(w.t, "both groups own the unit", func() error {
		return unlike(w.get("nodeunit/z1", "{.metadata.ownerReferences[*].name}"), "areas zones")
	})

	w.deletes("nodegroup", "zones", "zones")
	w.labels("bj-1", "areas=z1 "+inAll+w.others("bj-1")+" z1=nodeunits.superedge.io zone=z1")
	wait.Until(w.t, "the garbage collector has taken the group that is gone from the owners", func() error {
		return unlike(w.get("nodeunit/z1", "{.metadata.ownerReferences[*].name}"), "areas")
	})
	begin := time.Now()
	w.MustKubectl(w.t, "delete", "nodegroup", "areas")
	w.wantCleanBeforeGone("nodeunit", "z1", "z1")
	w.wantCleanBeforeGone("nodeunit", "z2", "z2")
	w.labels("bj-1", inAll+w.others("bj-1")+" zone=z1")
	w.t.Logf("the units that it had found are collected %s after kubectl delete nodegroup began", since(begin))
	w.prints("NAME UNITS AGE\nlocation 1 3d", "get", "nodegroup")
}

func (w *walk) end() {
	w.allowRemoval("nodegroup", "location", "location")
	w.deletes("nodegroup", "location", "location")
	w.MustKubectl(w.t, "delete", "nodeunit", "--all")
	for _, n := range w.nodes("gz") {
		w.labels(n, w.others(n, "zone"))
	}
	refused := w.count.Requests(func(r nodes.Request) bool { return r.Code == 403 })
	if len(refused) > 0 {
		w.t.Errorf("the shipped rights do not suffice: %v", refused)
	}
	w.t.Logf("writes to Nodes and units in all:\n%s", nodes.Tally(w.count.Requests(func(r nodes.Request) bool {
		return r.Write() && (r.Resource == "nodes" || strings.HasSuffix(r.Resource, ".site.superedge.io"))
	})))
}
