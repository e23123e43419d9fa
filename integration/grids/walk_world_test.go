package grids

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// walk is the manual's cluster: six machines as network namespaces, a control plane beside them, a grid-controller with
// the rights that are shipped for it. Kubelets are stand-ins, so containers are too: at each address that a Pod of the
// manual can get, an echo server waits.
type walk struct {
	*nodes.Cluster
	t       *testing.T
	lab     *netns.Lab
	witness *witness
	binary  string   // gridproxy
	daemons []string // Nodes that it runs on
}

// grace is short, and long against what else the controller does.
const grace = 3 * time.Second

const theService = "servicegrid-demo-svc"

func newWalk(t *testing.T) *walk {
	t.Helper()
	need.IPTables(t)
	layout := walkLayout()
	l := netns.ForTest(t, layout)
	w := &walk{t: t, lab: l}
	w.Cluster = nodes.ForTest(t, nodes.Options{
		Namespace: l.Outside, Addrs: l.Outside.Addrs, Manifests: []string{"../../deploy/crds"},
	})
	for _, n := range layout.Nodes {
		w.AddNodes(t, nodes.Node{Name: n.Name, Labels: n.Labels, Addrs: n.Addrs, PodCIDRs: n.PodCIDRs})
	}
	w.binary = program.ForTest(t, program.Gridproxy)
	w.witness = newWitness(t, w.Client)
	w.GridController(t, nodes.ControllerOptions{
		Manifests: []string{"../../deploy/namespace.yaml", "../../deploy/grid-controller.yaml"}, User: account,
		Flags: []string{"--leader-elect-resource-namespace=gridproxy", "--unit-removal-grace=" + grace.String()},
	}).WaitReady(t)
	return w
}

// podsEach is how many Pods of the manual may come to stand on one Node: all of a unit's, 2 of its Deployment and 3 of
// its StatefulSet.
const podsEach = 5

// walkLayout has an echo server at the first addresses of each Node's range, which the kubelets give out in that order,
// and a Pod to ask from. An echo server is called by its address.
func walkLayout() netns.Layout {
	l := netns.Manual()
	l.Pods = nil
	for _, n := range l.Nodes {
		addrs := make([]netip.Addr, len(n.PodCIDRs))
		for i, r := range n.PodCIDRs {
			addrs[i] = r.Addr().Next()
		}
		for i := range podsEach + 1 {
			for family := range addrs {
				addrs[family] = addrs[family].Next()
			}
			p := netns.PodSpec{Name: addrs[0].String(), Node: n.Name, Addrs: slices.Clone(addrs)}
			if i == podsEach {
				p.Name = netns.ClientOn(n.Name)
			}
			l.Pods = append(l.Pods, p)
		}
	}
	return l
}

// in is the walk with the test that a failure ends.
func (w *walk) in(t *testing.T) *walk {
	w.t = t
	return w
}

func sample(folder string) string { return "../../deploy/samples/" + folder }

func since(begin time.Time) time.Duration { return time.Since(begin).Round(10 * time.Millisecond) }

// get is what kubectl says of one object or kind, by a JSONPath.
func (w *walk) get(what, path string) string {
	w.t.Helper()
	return w.MustKubectl(w.t, "get", what, "-o", "jsonpath="+path)
}

// prints waits until kubectl prints the same tables as the manual, ages and cluster IPs aside.
func (w *walk) prints(want string, args ...string) {
	w.t.Helper()
	wait.Until(w.t, "kubectl "+strings.Join(args, " ")+" prints what is wanted", func() error {
		out, err := w.Kubectl(args...)
		if err != nil {
			return err
		}
		got, want := tables(out), tables(want)
		return wait.Check(got == want, "it prints\n%s\nand not\n%s", got, want)
	})
}

// describes waits until `kubectl describe svc` prints what the manual prints.
func (w *walk) describes(want string) {
	w.t.Helper()
	wait.Until(w.t, "kubectl describe svc prints what the manual prints", func() error {
		out, err := w.Kubectl("describe", "svc", theService)
		if err == nil {
			err = sameDescription(out, want)
		}
		return err
	})
}

func (w *walk) service() *corev1.Service {
	w.t.Helper()
	s, err := w.Client.CoreV1().Services("default").Get(w.t.Context(), theService, metav1.GetOptions{})
	must(w.t, err)
	return s
}

// stand wants so many Pods of a child, all on Nodes of its unit, and returns their names, sorted.
func (w *walk) stand(prefix, key, value string, count int) []string {
	w.t.Helper()
	pods, err := w.Client.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{})
	must(w.t, err)
	var names []string
	for _, p := range pods.Items {
		if !strings.HasPrefix(p.Name, prefix) {
			continue
		}
		names = append(names, p.Name)
		if got := w.label(p.Spec.NodeName, key); got != value {
			w.t.Errorf("Pod %s is on Node %s with %s=%s, want %s", p.Name, p.Spec.NodeName, key, got, value)
		}
	}
	if len(names) != count {
		w.t.Errorf("the Pods %s… are %v, want %d", prefix, names, count)
	}
	slices.Sort(names)
	return names
}

func (w *walk) label(node, key string) string {
	w.t.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), node, metav1.GetOptions{})
	must(w.t, err)
	return n.Labels[key]
}

// endpoints are the Nodes of the Service's ready endpoints, by address.
func (w *walk) endpoints() map[netip.Addr]string {
	w.t.Helper()
	list, err := w.Client.DiscoveryV1().EndpointSlices("default").List(w.t.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + theService})
	must(w.t, err)
	nodes := map[netip.Addr]string{}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && e.NodeName != nil {
				nodes[netip.MustParseAddr(e.Addresses[0])] = *e.NodeName
			}
		}
	}
	return nodes
}

// wantEndpoints: the manual stresses that the Service has the endpoints of all units.
func (w *walk) wantEndpoints(count int) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("the Service has %d endpoints", count), func() error {
		all := w.endpoints()
		return wait.Check(len(all) == count, "it has %v", all)
	})
}

// wantRemoved waits until children of lost units are gone: marked first, and not before their grace was over.
func (w *walk) wantRemoved(children ...string) {
	w.t.Helper()
	for _, child := range children {
		wait.Until(w.t, child+" is removed", func() error { return wait.Check(!w.witness.of(child).gone.IsZero(), "it is there") })
		seen := w.witness.of(child)
		lost, err := time.Parse(time.RFC3339, seen.lostAt)
		if err != nil {
			w.t.Errorf("%s was removed without having been marked as lost: %v", child, err)
		} else if seen.gone.Before(lost.Add(grace)) {
			w.t.Errorf("%s was marked as lost at %s and gone at %s: its grace is %s", child, seen.lostAt, seen.gone, grace)
		}
	}
}

func (w *walk) wantEvent(reason, text string) {
	w.t.Helper()
	wait.Until(w.t, "an Event "+reason+" tells of "+text, func() error {
		all := w.get("events", `{range .items[?(@.reason=="`+reason+`")]}{.involvedObject.kind}/{.involvedObject.name}: {.message}{"\n"}{end}`)
		return wait.Check(strings.Contains(all, text) && strings.Contains(all, "DeploymentGrid/deploymentgrid-demo: "), "the Events of that reason are: %q", all)
	})
}

// wantCondition waits until a condition is True with a reason, and says some words. It returns all it says.
func (w *walk) wantCondition(of, condition, reason string, words ...string) (got string) {
	w.t.Helper()
	wait.Until(w.t, of+" is "+condition, func() error {
		got = w.get(of, `{range .status.conditions[?(@.type=="`+condition+`")]}{.status} {.reason}: {.message}{end}`)
		if !strings.HasPrefix(got, "True "+reason+": ") {
			return fmt.Errorf("it is %q, want True with the reason %s", got, reason)
		}
		return wait.Contains(got, words...)
	})
	return got
}

// wantCanaryStatus is the manual's canary: status.states has exactly the three zones, as the
// manual prints them.
func (w *walk) wantCanaryStatus() {
	w.t.Helper()
	want := "zone1 2/2 MinimumReplicasAvailable test1 Ready, zone2 3/3 MinimumReplicasAvailable test2 Ready, " +
		"zone3 2/2 MinimumReplicasAvailable test1 Ready"
	wait.Until(w.t, "the status is as the manual prints it", func() error {
		var g v1.DeploymentGrid
		if err := json.Unmarshal([]byte(w.MustKubectl(w.t, "get", "dg", "deploymentgrid-demo", "-o", "json")), &g); err != nil {
			return err
		}
		var rows []string
		for _, u := range g.Status.Units {
			available := w.get("dg/deploymentgrid-demo", `{.status.states.`+u.Value+`.conditions[?(@.type=="Available")].reason}`)
			ready := w.get("dg/deploymentgrid-demo", `{.status.states.`+u.Value+`.readyReplicas}/{.status.states.`+u.Value+`.replicas}`)
			rows = append(rows, fmt.Sprintf("%s %s %s %s %s", u.Value, ready, available, u.Template, u.Phase))
		}
		if got := strings.Join(rows, ", "); got != want || len(g.Status.States) != 3 {
			return fmt.Errorf("it is %s with %d states, want %s", got, len(g.Status.States), want)
		}
		for _, c := range g.Status.Conditions {
			if (c.Type == v1.ConditionDeletionHeld || c.Type == v1.ConditionRekeyed) && c.Status == metav1.ConditionTrue {
				return fmt.Errorf("children are kept: %s", c.Message)
			}
		}
		return nil
	})
	w.wantEvent("Rekeyed", "beijing, guangzhou")
}
