package drain

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"

	corev1 "k8s.io/api/core/v1"
)

// here is the node that the daemons run on. bj-3 is of its unit; gz-2 is not.
const here = "bj-1"

// world is a lab with a daemon on one of its nodes.
type world struct {
	*netns.World
	t      *testing.T
	node   *netns.Node // here
	client *traffic.Client
}

func newWorld(t *testing.T, variant string) *world {
	t.Helper()
	w := &world{World: netns.NewWorld(t, variant, netns.Manual().Only(here, "bj-3", "gz-2")), t: t, client: &traffic.Client{Who: traffic.OfLab}}
	w.node = w.Lab.Node(here)
	w.Must(w.RouteServicesVia(w.node))
	return w
}

// run starts gridproxy in a mode and waits until it has written its rules.
func (w *world) run(mode string, flags ...string) {
	w.t.Helper()
	w.Run(w.Program, []string{here}, append([]string{
		"--proxy-mode", mode, "--iptables-variant", w.Variant, "--cluster-cidr", netns.ClusterCIDRs(), "--verify-period", "2s",
	}, flags...)...)
}

func (w *world) relabel(node, unit string) {
	w.t.Helper()
	w.Manifests.Node(node).Labels[netns.UnitKey] = unit
	w.Must(w.Write())
}

// unit returns the three Pods of this unit that serve: one on this node and two on bj-3. all
// returns these and the one of the other unit.
func (w *world) unit() []*netns.Pod {
	return []*netns.Pod{w.Endpoint(here), w.Endpoint("bj-3"), w.Client("bj-3")}
}

func (w *world) all() []*netns.Pod { return append(w.unit(), w.Endpoint("gz-2")) }

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
	w.Must(w.Write())
}

// newService is a Service of both families, closed by location, with a cluster IP, an external IP
// and a NodePort.
func newService(last byte) *corev1.Service {
	s := netns.NewClosedService(fmt.Sprintf("svc-%d", last), last)
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = 30000 + int32(last)
	}
	for _, f := range netns.Families() {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, netns.External(f, last).Addr().String())
	}
	switch last {
	case sticky:
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(3600))}}
	case local:
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	return s
}

func (w *world) nodePort(f netns.Family, last byte) netip.AddrPort {
	return netip.AddrPortFrom(w.node.Addr(f), 30000+uint16(last))
}

func needIPVS(t *testing.T) {
	t.Helper()
	need.IPTables(t)
	need.Tools(t, "run `apt-get install ipset ipvsadm`", "ipset", "ipvsadm")
	need.IPVS(t)
}

// eachVariant runs a test with both kinds of iptables, one after the other: they share one
// emulated processor.
func eachVariant(t *testing.T, test func(*testing.T, string)) {
	t.Helper()
	needIPVS(t)
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) { test(t, variant) })
	}
}

// routes are all the ways to a Service that must answer whatever happens: from a Pod, from the node
// and from outside, to its cluster IP, its ExternalIP and its NodePort.
func (w *world) routes(last byte) []traffic.Way {
	var all []traffic.Way
	for _, f := range netns.Families() {
		for _, to := range []netip.AddrPort{netns.VIP(f, last), netns.External(f, last), w.nodePort(f, last)} {
			all = append(all, way(w.Client(here).Namespace, to), way(w.Outside, to))
		}
		all = append(all, way(w.node.Namespace, netns.VIP(f, last)))
	}
	return all
}

// ways are those of the routes that connections stay open on: one of each kind.
func (w *world) ways(last byte) []traffic.Way {
	return []traffic.Way{
		way(w.Client(here).Namespace, netns.VIP(netns.IPv4, last)),
		way(w.Client(here).Namespace, netns.VIP(netns.IPv6, last)),
		way(w.node.Namespace, netns.VIP(netns.IPv4, last)),
		way(w.Outside, w.nodePort(netns.IPv4, last)),
		way(w.Outside, w.nodePort(netns.IPv6, last)),
		way(w.Outside, netns.External(netns.IPv4, last)),
	}
}

func way(from *netns.Namespace, to netip.AddrPort) traffic.Way {
	return traffic.Way{From: from, To: to}
}
