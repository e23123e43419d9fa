package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grace is short, so that a machine that is cut off is soon known to be.
const grace = 6 * time.Second

// TestMachines: two machines of either variant of iptables, through what can happen to them.
func TestMachines(t *testing.T) {
	need.Cluster(t)
	before := netns.Footprint(t)
	t.Run("cluster", func(t *testing.T) {
		specs := Manual()[1:3]
		specs[1].Variant = apiserver.Legacy
		c := ForTest(t, Options{Machines: specs, NodeGrace: grace})
		c.Apply(t, servers)
		for _, m := range c.Machines() {
			addr := answers(t, c, c.Outside(), m)
			answers(t, c, m.Namespace, c.Machine("bj-2"))
			t.Logf("the Pod on %s has %s", m.Name, addr)
		}
		t.Run("execution", func(t *testing.T) { execution(t, c) })
		t.Run("kube-proxy", func(t *testing.T) { kubeProxyRuns(t, c) })
		t.Run("API servers", func(t *testing.T) { apiServers(t, c) })
		t.Run("reboot", func(t *testing.T) { reboot(t, c) })
		t.Run("cut", func(t *testing.T) { cut(t, c) })
		t.Run("cut off", func(t *testing.T) { cutOff(t, c) })
	})
	if after := netns.Footprint(t); after != before {
		t.Errorf("before there were\n%s\nand after\n%s", before, after)
	}
}

const servers = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: echo, namespace: default}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      tolerations: [{operator: Exists}]
      containers:
      - name: echo
        image: superedge/echoserver:2.2
        env:
        - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`

func podOn(ctx context.Context, c *Cluster, m *Machine) (*corev1.Pod, error) {
	pods, err := c.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{
		LabelSelector: "app=echo", FieldSelector: "spec.nodeName=" + m.Name,
	})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Status.PodIPs) != 2 {
		return nil, fmt.Errorf("%d servers on %s, or without two addresses", len(pods.Items), m.Name)
	}
	return &pods.Items[0], nil
}

// answers waits until the server on a machine answers another one by both of its addresses, and
// returns these.
func answers(t *testing.T, c *Cluster, from *netns.Namespace, m *Machine) (addrs []netip.Addr) {
	t.Helper()
	wait.Until(t, "the server on "+m.Name+" answers "+from.Name, func() error {
		addrs = nil
		pod, err := podOn(t.Context(), c, m)
		if err != nil {
			return err
		}
		for _, ip := range pod.Status.PodIPs {
			addr := netip.MustParseAddr(ip.IP)
			addrs = append(addrs, addr)
			if err := asks(t.Context(), from, addr, "node name:\t"+m.Name, "pod name:\t"+pod.Name); err != nil {
				return err
			}
		}
		return nil
	})
	return addrs
}

// asks asks a server once, and wants some texts in the answer.
func asks(ctx context.Context, from *netns.Namespace, server netip.Addr, wanted ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	page, err := from.Get(ctx, netip.AddrPortFrom(server, 8080), "/")
	return errors.Join(err, wait.Contains(string(page.Text), wanted...))
}

// execution: programs run in Pods, in the network of Pods, and on machines.
func execution(t *testing.T, c *Cluster) {
	m := c.Machine("gz-1")
	pod, err := podOn(t.Context(), c, m)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Exec(t.Context(), "default", pod.Name, "echo-client", "get", "http://127.0.0.1:8080/")
	if err != nil || !strings.Contains(out, "node name:\tgz-1") {
		t.Errorf("in the Pod: %v, %q", err, out)
	}
	ns, err := c.Pod(t.Context(), "default", pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := asks(t.Context(), ns, netip.MustParseAddr("127.0.0.1"), "client_address=127.0.0.1:", pod.Name); err != nil {
		t.Errorf("in the network of the Pod: %v", err)
	}
	processes, err := m.Run(t.Context(), nil, "ps", "-eo", "args")
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"gz-1/init", "gz-1/containerd", "gz-1/kubelet", "/bin/echo"} {
		if !bytes.Contains(processes, []byte(own)) {
			t.Errorf("no %s on gz-1:\n%s", own, processes)
		}
	}
	if bytes.Contains(processes, []byte("bj-2")) {
		t.Errorf("gz-1 sees processes of bj-2:\n%s", processes)
	}
}

// kubeProxyRuns: the real kube-proxy writes to the variant that each machine has.
func kubeProxyRuns(t *testing.T, c *Cluster) {
	manifest, err := c.KubeProxy(t.Context(), "iptables", "")
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(t, manifest)
	for machine, variant := range map[string]string{"bj-2": "nf_tables", "gz-1": "legacy"} {
		m := c.Machine(machine)
		if out, err := m.Run(t.Context(), nil, "/usr/sbin/iptables", "--version"); err != nil || !strings.Contains(string(out), "("+variant+")") {
			t.Errorf("iptables on %s is %s (%v); it should be %s", machine, out, err, variant)
		}
		wait.Until(t, "kube-proxy's rules on "+machine, func() error {
			rules, err := m.Run(t.Context(), nil, "iptables-save")
			if err == nil && !bytes.Contains(rules, []byte("-A KUBE-SERVICES -d 10.96.0.1/32")) {
				err = fmt.Errorf("no Service in them:\n%s", rules)
			}
			return err
		})
	}
	c.MustKubectl(t, "delete", "--namespace=kube-system", "daemonset/kube-proxy")
}

// apiServers: a second API server has an address of its own, and both are endpoints of default/kubernetes.
func apiServers(t *testing.T, c *Cluster) {
	if _, err := c.AddAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := c.APIServers()
	if len(all) != 2 || all[0].Addr() == all[1].Addr() {
		t.Fatalf("the API servers are at %v", all)
	}
	wait.Until(t, "both are endpoints", func() error {
		slice, err := c.Client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		if err == nil && len(slice.Endpoints) != 2 {
			err = fmt.Errorf("the endpoints are %v", slice.Endpoints)
		}
		return err
	})
	if _, err := c.Kubectl("get", "nodes", "--server=https://"+all[1].String()); err != nil {
		t.Error(err)
	}
}

// reboot: a machine that is off is unreachable; when it is on again its Pods are there, and nothing else is.
func reboot(t *testing.T, c *Cluster) {
	m := c.Machine("gz-1")
	addrs := answers(t, c, c.Outside(), m)
	if err := m.PowerOff(); err != nil {
		t.Fatal(err)
	}
	if err := asks(t.Context(), c.Outside(), addrs[0]); err == nil {
		t.Error("a server answers from a machine that is off")
	}
	if _, err := m.Run(t.Context(), nil, "true"); !errors.Is(err, errOff) {
		t.Errorf("on a machine that is off: %v", err)
	}
	begin := time.Now()
	if err := m.PowerOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("Ready %s after it was switched on", time.Since(begin).Round(10*time.Millisecond))
	answers(t, c, c.Outside(), m)
	answers(t, c, m.Namespace, c.Machine("bj-2"))
	t.Logf("its Pod answers %s after it was switched on", time.Since(begin).Round(10*time.Millisecond))
}

// cut: without its cable a machine is unreachable and soon NotReady, but runs; with it all is as before.
func cut(t *testing.T, c *Cluster) {
	m := c.Machine("bj-2")
	addrs := answers(t, c, c.Outside(), m)
	if err := m.CutLink(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := asks(t.Context(), c.Outside(), addrs[0]); err == nil {
		t.Error("a server answers from a machine without a cable")
	}
	if err := asks(t.Context(), m.Namespace, addrs[0], "node name:\tbj-2"); err != nil {
		t.Errorf("on the machine itself: %v", err)
	}
	wait.Until(t, "bj-2 is NotReady", func() error { return isReady(t, c, m, corev1.ConditionUnknown) })
	t.Logf("NotReady %s after the cable was pulled", time.Since(begin).Round(10*time.Millisecond))
	if err := m.MendLink(); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	wait.Until(t, "bj-2 is Ready", func() error { return isReady(t, c, m, corev1.ConditionTrue) })
	answers(t, c, c.Outside(), m)
	t.Logf("Ready, and its Pod answers, %s after the cable was there again", time.Since(begin).Round(10*time.Millisecond))
}

// cutOff: the machines of a site without uplink reach one another, also after a reboot, and are
// reached from nowhere else.
func cutOff(t *testing.T, c *Cluster) {
	m, other := c.Machine("bj-2"), c.Machine("gz-1")
	addr := answers(t, c, c.Outside(), other)[0]
	if err := c.CutOff(m, other); err != nil {
		t.Fatal(err)
	}
	alone := func(when string) {
		t.Helper()
		wait.Until(t, when+", the server on gz-1 answers bj-2", func() error { return asks(t.Context(), m.Namespace, addr) })
		if err := asks(t.Context(), c.Outside(), addr); err == nil {
			t.Errorf("%s, a server answers from a site without uplink", when)
		}
	}
	alone("cut off")
	if err := m.PowerOff(); err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOnCutOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	alone("cut off and rebooted")
	if err := c.Rejoin(m, other); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "bj-2 is Ready", func() error { return isReady(t, c, m, corev1.ConditionTrue) })
	answers(t, c, c.Outside(), m)
}

func isReady(t *testing.T, c *Cluster, m *Machine, wanted corev1.ConditionStatus) error {
	node, err := c.Client.CoreV1().Nodes().Get(t.Context(), m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != corev1.NodeReady:
		case condition.Status != wanted:
			return fmt.Errorf("Ready is %s: %s", condition.Status, condition.Message)
		default:
			return nil
		}
	}
	return fmt.Errorf("%s has no condition Ready: %v", m.Name, node.Status.Conditions)
}
