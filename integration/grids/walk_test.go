package grids

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// TestManual does what the reader of SuperEdge's manual does, in its order, with its YAML as it is printed there, and
// wants what the manual prints. The reader applies each example over the earlier ones and deletes nothing.
func TestManual(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	for _, step := range []part[*walk]{
		{"stateless", (*walk).stateless},
		{"a unit comes and goes", (*walk).anotherUnit},
		{"closure", (*walk).closure},
		{"stateful", (*walk).stateful},
		{"headless", (*walk).headless},
		{"canary", (*walk).canary},
		{"the end", (*walk).end},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(w.in(t)) }) {
			t.Fatalf("the steps after %q rest on it", step.name)
		}
	}
}

func (w *walk) stateless() {
	begin := time.Now()
	w.ApplyFile(w.t, sample("stateless"))
	w.prints(manualDeployments, "get", "deployment")
	w.t.Logf("every unit has its 2 Pods %s after kubectl apply began", since(begin))
	w.stand("deploymentgrid-demo-beijing-", "location", netns.Beijing, 2)
	w.stand("deploymentgrid-demo-guangzhou-", "location", netns.Guangzhou, 2)
	w.prints(manualServices, "get", "svc")
	w.describes(manualDescribe)
	w.wantEndpoints(4)
	w.prints(fmt.Sprintf(`
NAME                                             KEY        UNITS   READY   OFFLINE   AGE
deploymentgrid.superedge.io/deploymentgrid-demo  location   2       2/2     0         9s

NAME                                             KEY        SERVICE                CLUSTER-IP   AGE
servicegrid.superedge.io/servicegrid-demo        location   servicegrid-demo-svc   %s           9s
`, w.service().Spec.ClusterIP), "get", "dg,sg")

	// Who prefers the other kind of apply changes nothing by it. The Grid has another generation then, since only one of
	// the two keeps creationTimestamp: null.
	before := w.get("deployment,svc", whatItIs)
	w.MustKubectl(w.t, "apply", "--server-side", "-f", sample("stateless"))
	wait.Until(w.t, "the Grids were looked at again", func() error {
		got := w.get("dg,sg", "{range .items[*]}{.metadata.generation}-{.status.observedGeneration} {end}")
		return wait.Check(got == "2-2 1-1 ", "their generations and those observed are %s", got)
	})
	if after := w.get("deployment,svc", whatItIs); after != before {
		w.t.Errorf("the children went from %s to %s by the same manifest", before, after)
	}
}

// whatItIs is all of an object but its status and its version.
const whatItIs = "{range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.labels} {.metadata.annotations} {.spec}\n{end}"

// anotherUnit: a unit that joins after the Grids gets its Deployment, as the manual promises. The
// unit is gone again at the end, so that what follows is as the manual prints it.
func (w *walk) anotherUnit() {
	const child, node = "deploymentgrid-demo-shanghai", "sh-1"
	w.AddNode(w.t, node, nil)
	begin := time.Now()
	w.SetLabels(w.t, node, map[string]string{"location": "shanghai"})
	made := w.witness.wait(w.t, child).made
	w.t.Logf("a Node was labelled into a new unit: its Deployment was there after %s (goal: 2s)", made.Sub(begin).Round(time.Millisecond))
	w.prints(manualDeployments+child+" 2/2 2 2 1s\n", "get", "deployment")
	w.stand(child+"-", "location", "shanghai", 2)

	w.RemoveLabels(w.t, node, "location")
	w.wantRemoved(child)
	w.prints(manualDeployments, "get", "deployment")
	w.wantEvent("UnitLost", "shanghai")
	w.wantEvent("UnitRemoved", "shanghai")
	w.DeleteNode(w.t, node)
}

func (w *walk) closure() {
	begin := time.Now()
	w.startDaemons()
	w.t.Logf("gridproxy enforces its first rules on %v after %s", w.daemons, since(begin))
	w.wantEndpoints(4)
	w.wantClosed()
	w.t.Logf("the rules of the Service on %s, as the manual shows them:\n%s", w.daemons[0], strings.Join(w.rules(w.daemons[0]), "\n"))
}

// stateful: the manual prints the endpoints of the StatefulSets alone. The Deployments of a reader who deletes nothing
// are behind the same Service, since they have the same labels.
func (w *walk) stateful() {
	begin := time.Now()
	w.ApplyFile(w.t, sample("stateful"))
	w.prints(manualStatefulSets, "get", "statefulset")
	w.t.Logf("every unit has its 3 Pods %s after kubectl apply began", since(begin))
	for _, unit := range []string{netns.Beijing, netns.Guangzhou} {
		names := w.stand("statefulsetgrid-demo-"+unit+"-", "location", unit, 3)
		want := fmt.Sprintf("[statefulsetgrid-demo-%[1]s-0 statefulsetgrid-demo-%[1]s-1 statefulsetgrid-demo-%[1]s-2]", unit)
		if got := fmt.Sprint(names); got != want {
			w.t.Errorf("the Pods in unit %s are %s, want %s", unit, got, want)
		}
	}
	w.prints("NAME KEY UNITS READY OFFLINE AGE\nstatefulsetgrid-demo location 2 2/2 0 9s\n", "get", "ssg")
	w.describes(manualDescribe)
	w.wantEndpoints(10)
	w.wantClosed()
}

// headless: the example has the name of an earlier one, and Kubernetes does not let a Service become headless. The Grid
// says so and the Service works on, until the reader asks for another Service.
func (w *walk) headless() {
	before := w.service()
	w.ApplyFile(w.t, sample("headless"))
	told := w.wantCondition("sg/servicegrid-demo", v1.ConditionDegraded, "ImmutableField", "clusterIP", "superedge.io/on-immutable-change")
	w.t.Logf("the reader is told: %s", told)
	if now := w.service(); now.UID != before.UID || now.ResourceVersion != before.ResourceVersion {
		w.t.Errorf("the Service was changed though nobody allowed that: %v", now)
	}
	w.wantClosed()

	begin := time.Now()
	w.MustKubectl(w.t, "annotate", "sg", "servicegrid-demo", "superedge.io/on-immutable-change=Recreate")
	w.describes(manualDescribeHeadless)
	w.t.Logf("the Service was replaced by a headless one %s after kubectl annotate began", since(begin))
	w.wantEndpoints(10)
	w.prints("NAME KEY SERVICE CLUSTER-IP AGE\nservicegrid-demo location servicegrid-demo-svc None 9s\n", "get", "sg")
	w.wantNoRules()
	w.prints(manualStatefulSets, "get", "statefulset")
}

// canary also changes gridUniqKey, so the units of before are lost although their Nodes are there.
// SuperEdge deletes their children at once; here they go when they are released by name.
func (w *walk) canary() {
	for node, zone := range map[string]string{"bj-1": "zone1", "bj-2": "zone2", "gz-1": "zone3"} {
		w.SetLabels(w.t, node, map[string]string{"zone": zone})
	}
	begin := time.Now()
	w.ApplyFile(w.t, sample("canary"))
	old := []string{"deploymentgrid-demo-beijing", "deploymentgrid-demo-guangzhou"}
	w.wantCondition("dg/deploymentgrid-demo", v1.ConditionRekeyed, "KeyChanged", "location", "beijing", "guangzhou")
	var releases []string
	for _, unit := range []string{"beijing", "guangzhou"} {
		releases = append(releases, unit+"@"+w.get("deployment/deploymentgrid-demo-"+unit, `{.metadata.annotations.superedge\.io/unit-lost-at}`))
	}
	w.MustKubectl(w.t, "annotate", "--overwrite", "dg", "deploymentgrid-demo", "superedge.io/allow-unit-removal="+strings.Join(releases, ","))
	w.wantRemoved(old...)
	w.prints(`
NAME                        READY   UP-TO-DATE   AVAILABLE   AGE
deploymentgrid-demo-zone1   2/2     2            2           99s
deploymentgrid-demo-zone2   3/3     3            3           6s
deploymentgrid-demo-zone3   2/2     2            2           6s
`, "get", "deployment")
	w.t.Logf("2, 3 and 2 Pods are ready, and the units of before gone after their grace of %s, %s after kubectl apply began", grace, since(begin))
	for i, want := range []struct{ replicas, image string }{{"2", "2.2"}, {"3", "2.3"}, {"2", "2.2"}} {
		zone := fmt.Sprintf("zone%d", i+1)
		child := "deploymentgrid-demo-" + zone
		got := w.get("deployment/"+child, "{.spec.replicas} {.spec.template.spec.containers[*].image} {.spec.template.spec.nodeSelector}")
		if want := fmt.Sprintf(`%s superedge/echoserver:%s {"zone":%q}`, want.replicas, want.image, zone); got != want {
			w.t.Errorf("%s has %s, want %s", child, got, want)
		}
		w.stand(child+"-", "zone", zone, int(want.replicas[0]-'0'))
		for _, before := range old {
			if w.witness.wait(w.t, child).made.After(w.witness.wait(w.t, before).gone) {
				w.t.Errorf("%s was made after %s had gone: what adds comes first", child, before)
			}
		}
	}
	w.wantCanaryStatus()
}

// end: what is not wanted any more goes, with all that was made for it.
func (w *walk) end() {
	w.MustKubectl(w.t, "delete", "dg,ssg,sg", "--all")
	for _, kind := range []string{"deployment", "statefulset", "pod", "service"} {
		wait.Until(w.t, "the children are collected", func() error {
			left := strings.ReplaceAll(w.get(kind, "{.items[*].metadata.name}"), "kubernetes", "")
			return wait.Check(left == "", "there are: %s", left)
		})
	}
}
