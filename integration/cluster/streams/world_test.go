package streams

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitTimeout bounds each command that waits.
const waitTimeout = 2 * time.Minute

// world is the cluster, and the connections that go on in it.
type world struct {
	*machines.Cluster
	t      *testing.T
	client traffic.Client

	kubeProxy string                      // its manifest
	shell     document.Shell              // of the administrator, who installs gridproxy
	pods      map[string]*netns.Namespace // of the client on each machine
	traffic   *traffic.Traffic            // nil between two measurements
	accounts  []traffic.Account
	notes     []string // durations and the like, to be printed
}

// variants: each unit has a machine with each variant.
var variants = map[string]apiserver.Variant{"bj-1": "nft", "bj-2": "legacy", "gz-1": "nft", "gz-2": "legacy"}

func newWorld(t *testing.T) *world {
	t.Helper()
	specs := machines.Manual()
	for i := range specs {
		specs[i].Variant = variants[specs[i].Name]
	}
	w := &world{t: t, client: traffic.Client{Who: traffic.OfManual}, pods: map[string]*netns.Namespace{}}
	helm, err := apiserver.EnsureHelm(t.Context(), os.Stderr)
	w.must(err)
	w.Cluster = machines.ForTest(t, machines.Options{Machines: specs, Images: []machines.Image{machines.ImageForTest(t, machines.Gridproxy)}})
	w.shell = document.NewShell(t, w.Admin(), map[string]string{"helm": helm})
	w.shell.Namespace = w.Outside()
	w.shell.Link(t, "deploy", "../../../deploy")
	w.kubeProxy, err = w.KubeProxy(t.Context(), "iptables", "")
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// serve makes the Pods and the Services, and finds the clients.
func (w *world) serve() {
	w.t.Helper()
	content, err := os.ReadFile("testdata/services.yaml")
	w.must(err)
	w.Apply(w.t, string(content))
	for _, set := range []string{"backend", "host-backend", "client"} {
		w.MustKubectl(w.t, "rollout", "status", "daemonset/"+set, "--timeout", waitTimeout.String())
	}
	for node, pod := range w.podsOf("client") {
		w.pods[node], err = w.Pod(wait.Usual.Context(w.t), metav1.NamespaceDefault, pod)
		w.must(err)
		w.pods[node].Name = "Pod on " + node
	}
}

// podsOf are the Pods with a label app, by the machine that they are on.
func (w *world) podsOf(app string) map[string]string {
	w.t.Helper()
	list, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	w.must(err)
	all := map[string]string{}
	for _, p := range list.Items {
		all[p.Spec.NodeName] = p.Name
	}
	return all
}

// backends are the names of the Pods behind most Services, of all machines or of some.
func (w *world) backends(on ...string) []string {
	w.t.Helper()
	var names []string
	for node, pod := range w.podsOf("backend") {
		if len(on) == 0 || slices.Contains(on, node) {
			names = append(names, pod)
		}
	}
	slices.Sort(names)
	return names
}

func (w *world) vip(service string, f netns.Family) netip.AddrPort {
	w.t.Helper()
	s := w.service(service)
	for _, ip := range s.Spec.ClusterIPs {
		if a := netip.MustParseAddr(ip); f.Has(a) {
			return netip.AddrPortFrom(a, uint16(s.Spec.Ports[0].Port))
		}
	}
	w.t.Fatalf("Service %s has no cluster IP of family %v", service, f)
	return netip.AddrPort{}
}

func (w *world) familiesOf(service string) []netns.Family {
	w.t.Helper()
	var all []netns.Family
	for _, f := range w.service(service).Spec.IPFamilies {
		all = append(all, netns.Family(f))
	}
	return all
}

func (w *world) nodePort(service, machine string, f netns.Family) netip.AddrPort {
	w.t.Helper()
	return netip.AddrPortFrom(w.Machine(machine).Namespace.Addr(f), uint16(w.service(service).Spec.Ports[0].NodePort))
}

func (w *world) service(name string) *corev1.Service {
	w.t.Helper()
	s, err := w.Client.CoreV1().Services(metav1.NamespaceDefault).Get(w.t.Context(), name, metav1.GetOptions{})
	w.must(err)
	return s
}

// fromPod, fromMachine and fromOutside are ways to a Service.
func (w *world) fromPod(machine, service string, f netns.Family) traffic.Way {
	w.t.Helper()
	return traffic.Way{From: w.pods[machine], To: w.vip(service, f), Name: service}
}

func (w *world) fromMachine(machine, service string, f netns.Family) traffic.Way {
	w.t.Helper()
	return traffic.Way{From: w.Machine(machine).Namespace, To: w.vip(service, f), Name: service}
}

func (w *world) fromOutside(machine, service string, f netns.Family) traffic.Way {
	w.t.Helper()
	return traffic.Way{From: w.Outside(), To: w.nodePort(service, machine, f), Name: service + ", NodePort of " + machine}
}

// run runs a line of shell on a machine and returns what it printed.
func (w *world) run(machine, script string) (string, error) {
	var out []byte
	err := wait.Usual.Do(w.t.Context(), func(ctx context.Context) (err error) {
		out, err = w.Machine(machine).Run(ctx, nil, "sh", "-c", script)
		return err
	})
	return string(out), err
}

func tool(machine string, f netns.Family) string {
	name := "iptables"
	if f == netns.IPv6 {
		name = "ip6tables"
	}
	return name + "-" + string(variants[machine])
}

func (w *world) nat(machine string, f netns.Family) (string, error) {
	return w.run(machine, tool(machine, f)+"-save -t nat")
}

// endpointsOf is to how many endpoints a table nat leads the connections to Services whose rules' comments
// name them so.
func endpointsOf(nat, name string) int {
	n := 0
	for line := range strings.Lines(nat) {
		if strings.HasPrefix(line, "-A KUBE-SEP-") && strings.Contains(line, name) && strings.Contains(line, "DNAT") {
			n++
		}
	}
	return n
}

// ready waits until the daemon on every machine has written its rules.
func (w *world) ready() {
	w.t.Helper()
	for _, m := range w.Machines() {
		w.must(wait.Usual.For(w.t.Context(), m.Namespace.Readyz))
	}
}
