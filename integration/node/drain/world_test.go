package drain

import (
	"context"
	"fmt"
	"gridproxy/integration/env/program"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// here is the node that the daemons run on. bj-3 is of its unit; gz-2 is not.
const here = "bj-1"

// world is a lab, the manifests that describe it, and the daemon on one of its nodes.
type world struct {
	*netns.Lab
	*netns.Manifests
	t       *testing.T
	variant string
	program string // gridproxy
	node    *netns.Node
	daemon  *netns.Gridproxy // the last one that was started
	client  *traffic.Client
}

func newWorld(t *testing.T, variant string) *world {
	t.Helper()
	layout := netns.Manual().Only(here, "bj-3", "gz-2")
	l, err := netns.New(layout)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Lab: l, Manifests: netns.NewManifests(t.TempDir(), layout), t: t, variant: variant, node: l.Node(here),
		client: &traffic.Client{Who: traffic.OfLab}}
	t.Cleanup(func() {
		if t.Failed() {
			w.dump()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	w.program = program.ForTest(t, program.Gridproxy)
	for _, f := range netns.Families() {
		for _, a := range []netip.AddrPort{vip(f, 0), external(f, 0)} {
			bits := map[netns.Family]int{netns.IPv4: 24, netns.IPv6: 64}[f]
			w.must(w.RouteVia(netip.PrefixFrom(a.Addr(), bits).Masked(), w.node))
		}
	}
	return w
}

// dump logs what a failure is understood by.
func (w *world) dump() {
	if w.daemon != nil {
		w.t.Logf("log of the last gridproxy:\n%s", tail(w.daemon.Log().String()))
	}
	for _, command := range [][]string{
		{"ipvsadm", "-Ln"}, {"ipset", "save"}, {"ip", "-o", "addr", "show", "dev", "kube-ipvs0"},
		{"iptables-" + w.variant + "-save", "-c"},
	} {
		out, err := w.node.Run(context.Background(), nil, command[0], command[1:]...)
		w.t.Logf("%v: %v\n%s", command, err, tail(string(out)))
	}
}

// tail keeps what a slow console can carry.
func tail(text string) string {
	const most = 12_000
	return text[max(0, len(text)-most):]
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// run starts gridproxy in a mode and waits until it has written its rules. Flags that are given
// twice count as they come last.
func (w *world) run(mode string, flags ...string) {
	w.t.Helper()
	w.must(w.Write())
	flags = append([]string{
		"--proxy-mode", mode, "--iptables-variant", w.variant, "--cluster-cidr", netns.ClusterCIDRs(),
		"--verify-period", "2s", "-v", "4",
	}, flags...)
	var err error
	w.daemon, err = w.node.RunGridproxy(w.program, w.Dir, append(slices.Clone(flags), netns.NoStatusSocket)...)
	w.must(err)
	w.must(w.daemon.Ready(wait.Usual.Context(w.t)))
}

// stop ends the daemon, in good order or not.
func (w *world) stop(kill bool) {
	w.t.Helper()
	if kill {
		w.daemon.Kill()
		return
	}
	w.must(w.daemon.Stop(wait.Usual.Context(w.t)))
}

// relabel moves a node to another unit.
func (w *world) relabel(node, unit string) {
	w.t.Helper()
	w.Manifests.Node(node).Labels[netns.UnitKey] = unit
	w.must(w.Write())
}

// endpoint is the Pod on a node that serves in the manual.
func (w *world) endpoint(node string) *netns.Pod {
	for _, p := range w.Pods() {
		if p.Spec.Node == node && p.Name != netns.ClientOn(node) {
			return p
		}
	}
	return w.Client(node)
}

// unit are the three Pods of this unit that serve: one on this node and two on bj-3; all are these and the one of
// the other unit.
func (w *world) unit() []*netns.Pod {
	return []*netns.Pod{w.endpoint(here), w.endpoint("bj-3"), w.Client("bj-3")}
}

func (w *world) all() []*netns.Pod { return append(w.unit(), w.endpoint("gz-2")) }

// without is some Pods less those of one name.
func without(pods []*netns.Pod, gone string) []*netns.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *netns.Pod) bool { return p.Name == gone })
}

// The Services of every world, by the last part of their addresses.
const (
	plain  = 10
	sticky = 20
	local  = 30 // external traffic policy Local
)

// serve makes Pods the endpoints of a Service and tells it.
func (w *world) serve(s *corev1.Service, pods ...*netns.Pod) {
	w.t.Helper()
	w.Serve(s, pods...)
	w.must(w.Write())
}

// newService is a Service of both families, closed by location, with a cluster IP, an external IP
// and a NodePort.
func newService(last byte) *corev1.Service {
	s := netns.NewService(fmt.Sprintf("svc-%d", last), vip(netns.IPv4, last).Addr(), vip(netns.IPv6, last).Addr())
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	s.Spec.Ports = []corev1.ServicePort{netns.EchoServicePort("tcp", corev1.ProtocolTCP), netns.EchoServicePort("udp", corev1.ProtocolUDP)}
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = 30000 + int32(last)
	}
	for _, f := range netns.Families() {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, external(f, last).Addr().String())
	}
	switch last {
	case sticky:
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(3600))}}
	case local:
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	netns.Confine(s, `["location"]`)
	return s
}

// vip is a cluster IP with the Service's port, external the ExternalIP.
func vip(f netns.Family, last byte) netip.AddrPort {
	return frontend(f, netip.AddrFrom4([4]byte{172, 16, 33, last}), "fd00:99::", last)
}

func external(f netns.Family, last byte) netip.AddrPort {
	return frontend(f, netip.AddrFrom4([4]byte{192, 0, 2, last}), "2001:db8:e::", last)
}

func frontend(f netns.Family, v4 netip.Addr, v6 string, last byte) netip.AddrPort {
	if f == netns.IPv4 {
		return netip.AddrPortFrom(v4, 80)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("%s%x", v6, last)), 80)
}

// nodePort is a Service's NodePort on this node's own address.
func (w *world) nodePort(f netns.Family, last byte) netip.AddrPort {
	return netip.AddrPortFrom(w.node.Addr(f), 30000+uint16(last))
}
