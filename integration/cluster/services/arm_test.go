package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// proxy is one of the two that are compared: how it is put on a cluster, and where its Pods are found.
type proxy struct {
	name      string
	namespace string
	selector  string
	images    func(testing.TB) []machines.Image // beside those that every cluster has
	install   func(testing.TB, *machines.Cluster)
}

func gridproxy() proxy {
	return proxy{
		name: "gridproxy", namespace: chart.Namespace, selector: "app.kubernetes.io/name=gridproxy",
		images: func(t testing.TB) []machines.Image {
			return []machines.Image{machines.ImageForTest(t, machines.Gridproxy)}
		},
		install: installDaemon,
	}
}

func kubeProxy() proxy {
	return proxy{
		name: "kube-proxy", namespace: "kube-system", selector: "k8s-app=kube-proxy",
		images: func(testing.TB) []machines.Image { return nil },
		install: func(t testing.TB, c *machines.Cluster) {
			manifest, err := c.KubeProxy(t.Context(), "iptables", "")
			if err != nil {
				t.Fatal(err)
			}
			c.Apply(t, manifest)
		},
	}
}

// arm is a cluster with one of the proxies, and the Pods that all scenarios share.
type arm struct {
	*machines.Cluster
	proxy     proxy
	clients   map[string]*netns.Namespace // by machine
	addrs     map[string][]netip.Addr     // of these clients
	balancers atomic.Int32
}

// newArm starts a cluster that ends with the test. Each machine is in a zone of its own and has a variant of
// iptables of its own, and both are in one unit: nothing in these scenarios is closed, since kube-proxy knows no
// such thing.
func newArm(t testing.TB, p proxy) *arm {
	t.Helper()
	var specs []machines.Spec
	for node, variant := range map[string]apiserver.Variant{bj: apiserver.NFT, gz: apiserver.Legacy} {
		specs = append(specs, machines.Spec{Name: node, Variant: variant, Labels: map[string]string{
			"location": "beijing", corev1.LabelTopologyZone: "zone-of-" + node,
		}})
	}
	a := &arm{proxy: p, clients: map[string]*netns.Namespace{}, addrs: map[string][]netip.Addr{}}
	a.Cluster = machines.ForTest(t, machines.Options{Machines: specs, Images: p.images(t)})
	p.install(t, a.Cluster)
	a.refuseAlways(t)
	a.shareNamespace(t)
	a.proxyRuns(t, nil)
	a.rulesOfEachVariant(t)
	a.shareRuns(t)
	return a
}

// refuseAlways has the machines answer each time that no process listens. Without it a kernel
// answers so to one client once a second only, and here many scenarios have the same client.
func (a *arm) refuseAlways(t testing.TB) {
	t.Helper()
	for _, m := range a.Machines() {
		if err := m.Namespace.UnlimitICMP(); err != nil {
			t.Fatal(err)
		}
	}
}

func (a *arm) shareNamespace(t testing.TB) {
	t.Helper()
	_, err := a.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the default account of namespace "+namespace, func() error {
		_, err := a.Client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	for _, p := range sharedPods() {
		if _, err := a.Client.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// The names of those that a scenario may let join, two on each machine.
const (
	bjA = "bj-1-a"
	bjB = "bj-1-b"
	gzA = "gz-1-a"
	gzB = "gz-1-b"
)

func shared() []string { return []string{bjA, bjB, gzA, gzB} }

// sharedPods are these, and on each machine one that only asks, and one on the machine's own network.
func sharedPods() []*corev1.Pod {
	keep := map[string]string{"shared": "yes"}
	var all []*corev1.Pod
	for _, node := range []string{bj, gz} {
		onHost := echoPod(hostPod(node), node, keep)
		onHost.Spec.HostNetwork = true
		setEnv(onHost, "PORTS", fmt.Sprintf("%d/tcp %d/udp", hostPort, hostPort))
		all = append(all, echoPod(clientPod(node), node, keep), onHost)
	}
	for name, node := range map[string]string{bjA: bj, bjB: bj, gzA: gz, gzB: gz} {
		all = append(all, echoPod(name, node, keep, map[string]string{"machine": node}))
	}
	return all
}

func (a *arm) shareRuns(t testing.TB) {
	t.Helper()
	w := &world{TB: t, arm: a}
	for _, p := range sharedPods() {
		w.running(p.Name)
	}
	for _, node := range []string{bj, gz} {
		pod := w.running(clientPod(node))
		a.addrs[node] = []netip.Addr{addrOf(pod, netns.IPv4), addrOf(pod, netns.IPv6)}
		a.clients[node] = w.inside(clientPod(node))
	}
}

// client is the network of a Pod that is no endpoint; clientAddrs are its addresses.
func (a *arm) client(node string) *netns.Namespace  { return a.clients[node] }
func (a *arm) clientAddrs(node string) []netip.Addr { return a.addrs[node] }
func (a *arm) proxyPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := a.Client.CoreV1().Pods(a.proxy.namespace).List(ctx, metav1.ListOptions{LabelSelector: a.proxy.selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// proxyRuns waits until the proxy is ready on each machine, in other Pods than some.
func (a *arm) proxyRuns(t testing.TB, before []corev1.Pod) {
	t.Helper()
	old := map[string]bool{}
	for _, p := range before {
		old[string(p.UID)] = true
	}
	wait.Until(t, a.proxy.name+" runs on both machines", func() error {
		pods, err := a.proxyPods(t.Context())
		if err != nil {
			return err
		}
		ready := 0
		for _, p := range pods {
			if !old[string(p.UID)] && isReady(&p) {
				ready++
			}
		}
		return wait.Check(ready == len(a.Machines()) && ready == len(pods), "%d new Pods are ready, of %d", ready, len(pods))
	})
}

// rulesOfEachVariant makes sure that the proxy writes where each machine's own iptables looks.
func (a *arm) rulesOfEachVariant(t testing.TB) {
	t.Helper()
	for _, m := range a.Machines() {
		for _, tool := range []string{"iptables-save", "ip6tables-save"} {
			wait.Until(t, a.proxy.name+" has written what "+tool+" of "+m.Name+" shows", func() error {
				save, err := m.Run(t.Context(), nil, tool, "-t", "nat")
				return errors.Join(err, wait.Check(strings.Contains(string(save), "\n:KUBE-SERVICES "), "no chain KUBE-SERVICES in:\n%s", save))
			})
		}
		version, err := m.Run(t.Context(), nil, "iptables", "--version")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", m.Name, strings.TrimSpace(string(version)))
	}
}

// restartProxy deletes the proxy's Pods, and waits for those that come after them.
func (a *arm) restartProxy(t testing.TB) {
	t.Helper()
	before, err := a.proxyPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range before {
		if err := a.Client.CoreV1().Pods(p.Namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	a.proxyRuns(t, before)
}

// balancerAddr is an address that no other scenario's load balancer has.
func (a *arm) balancerAddr() netip.Addr {
	return netip.AddrFrom4([4]byte{203, 0, 113, byte(a.balancers.Add(1))})
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// installDaemon installs the chart without a controller: there are no Grids.
func installDaemon(t testing.TB, c *machines.Cluster) {
	t.Helper()
	helm, err := chart.New(t.Context(), os.Stderr, t.TempDir())
	if err == nil {
		err = c.Install(t.Context(), helm, "controller.enabled=false", "crds.install=false")
	}
	if err != nil {
		t.Fatal(err)
	}
}
