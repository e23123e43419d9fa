package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// view is one Service port "ns/svc" with endpoints on this node (L) and others (R).
type view struct {
	local, remote bool
	ipv6          bool // the Service is dual-stack
	change        func(*corev1.Service)
	config        Config
}

func (v view) compile() *Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc"}}
	svc.Spec.ClusterIP = "10.96.0.1"
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: "TCP"}}
	svc.Spec.ExternalIPs = []string{"203.0.113.7"}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}}
	if v.ipv6 {
		svc.Spec.ClusterIPs = []string{"10.96.0.1", "fd00:96::1"}
	}
	if v.change != nil {
		v.change(svc)
	}
	sp := &topology.ServicePort{Service: svc, Port: svc.Spec.Ports[0].Port, NodePort: svc.Spec.Ports[0].NodePort,
		Name: topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "svc"}, Protocol: "TCP"}}
	l := topology.Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:8080"), Local: true}
	r := topology.Endpoint{Addr: netip.MustParseAddrPort("10.0.0.2:8080")}
	if v.local {
		sp.Cluster, sp.Local = append(sp.Cluster, l), append(sp.Local, l)
	}
	if v.remote {
		sp.Cluster = append(sp.Cluster, r)
	}
	self := topology.NodeFacts{IPs: []netip.Addr{netip.MustParseAddr("192.168.0.2")}}
	return Compile(topology.View{Self: self, Ports: []*topology.ServicePort{sp}}, v.config).Services[0]
}

// describe spells a Service's Frontends, a line each.
func describe(s *Service) string {
	var b strings.Builder
	for _, f := range s.Frontends {
		fmt.Fprintf(&b, "%s %v", [...]string{"cluster", "external", "lb", "node"}[f.Kind], f.Addr)
		if f.Allow != nil {
			fmt.Fprintf(&b, " allow %v", f.Allow)
		}
		for _, r := range f.Routes {
			set := s.Sets[r.Set]
			fmt.Fprintf(&b, " %s->%s(%d)%s", [...]string{"any", "pods", "node"}[r.From],
				[...]string{"cluster", "local"}[set.Policy], len(set.Endpoints), [...]string{"", "/offcluster", "/masq"}[r.Masquerade])
		}
		fmt.Fprintf(&b, " %s\n", [...]string{"pass", "reject", "drop"}[f.Verdict])
	}
	return b.String()
}

func externalLocal(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func internalLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}

func TestCompile(t *testing.T) {
	detector := Config{DetectLocal: DetectLocal{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	everywhere := func(route string) string {
		return "external 203.0.113.7:80" + route + "\nlb 198.51.100.1:80" + route + "\nnode 0.0.0.0:30080" + route + "\n"
	}
	for _, tc := range []struct {
		name string
		view view
		want string
	}{
		{"both policies Cluster, no detector", view{local: true, remote: true},
			"cluster 10.96.0.1:80 any->cluster(2) pass\n" + everywhere(" any->cluster(2)/masq pass")},
		{"a detector", view{local: true, remote: true, config: detector},
			"cluster 10.96.0.1:80 any->cluster(2)/offcluster pass\n" + everywhere(" any->cluster(2)/masq pass")},
		{"masquerade-all", view{local: true, remote: true, config: Config{MasqueradeAll: true, DetectLocal: detector.DetectLocal}},
			"cluster 10.96.0.1:80 any->cluster(2)/masq pass\n" + everywhere(" any->cluster(2)/masq pass")},
		{"no endpoints: refused, whatever the policies", view{change: externalLocal},
			"cluster 10.96.0.1:80 reject\n" + everywhere(" reject")},
		{"internal Local", view{local: true, remote: true, change: internalLocal},
			"cluster 10.96.0.1:80 any->local(1) pass\n" + everywhere(" any->cluster(2)/masq pass")},
		{"internal Local, none here", view{remote: true, change: internalLocal},
			"cluster 10.96.0.1:80 drop\n" + everywhere(" any->cluster(1)/masq pass")},
		{"external Local", view{local: true, remote: true, change: externalLocal, config: detector},
			"cluster 10.96.0.1:80 any->cluster(2)/offcluster pass\n" + everywhere(" pods->cluster(2) node->cluster(2)/masq any->local(1) drop")},
		{"external Local, no detector", view{local: true, remote: true, change: externalLocal},
			"cluster 10.96.0.1:80 any->cluster(2) pass\n" + everywhere(" node->cluster(2)/masq any->local(1) drop")},
		{"external Local, none here", view{remote: true, change: externalLocal},
			"cluster 10.96.0.1:80 any->cluster(1) pass\n" + everywhere(" node->cluster(1)/masq drop")},
		{"source ranges", view{local: true, change: func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{" 10.1.0.0/16", "fd00::/8"}
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\nexternal 203.0.113.7:80 any->cluster(1)/masq pass\n" +
			"lb 198.51.100.1:80 allow [10.1.0.0/16] any->cluster(1)/masq pass\nnode 0.0.0.0:30080 any->cluster(1)/masq pass\n"},
		{"a source range that holds the node lets the load balancer's own address in", view{local: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs = nil
			s.Spec.LoadBalancerSourceRanges = []string{"192.168.0.0/16"}
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\n" +
			"lb 198.51.100.1:80 allow [192.168.0.0/16 198.51.100.1/32] any->cluster(1)/masq pass\nnode 0.0.0.0:30080 any->cluster(1)/masq pass\n"},
		{"a range of length 0 is everybody", view{local: true, change: func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"10.1.0.0/16", "0.0.0.0/0"}
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\n" + everywhere(" any->cluster(1)/masq pass")},
		{"a port beyond 65535 is none", view{local: true, change: func(s *corev1.Service) {
			s.Spec.Ports[0].Port = 65536 + 80
		}}, ""},
		{"a negative port is none", view{local: true, change: func(s *corev1.Service) {
			s.Spec.Ports[0].Port = 80 - 65536
		}}, ""},
		{"a NodePort beyond 65535 is none", view{local: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Status.LoadBalancer.Ingress = nil, nil
			s.Spec.Ports[0].NodePort = 65536 + 22
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\n"},
		{"external addresses that are special", view{local: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::ffff:127.0.0.1"}
			s.Status.LoadBalancer.Ingress[0].IP = "127.0.0.1"
			s.Spec.Ports[0].NodePort = 0
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\n"},
		{"externalIPs are ignored", view{local: true, config: Config{IgnoreExternalIPs: true}, change: func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress, s.Spec.Ports[0].NodePort = nil, 0
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\n"},
		{"no source range of the family can be read: no client gets in", view{local: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Spec.Ports[0].NodePort = nil, 0
			s.Spec.LoadBalancerSourceRanges = []string{"fd00::/8", "10.1.0.0/99"}
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\nlb 198.51.100.1:80 drop\n"},
		{"one source range can be read", view{local: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Spec.Ports[0].NodePort = nil, 0
			s.Spec.LoadBalancerSourceRanges = []string{"office", "010.1.000.0/016", "::ffff:10.2.0.0/112"}
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\nlb 198.51.100.1:80 allow [10.1.0.0/16 10.2.0.0/16] any->cluster(1)/masq pass\n"},
		{"ranges of the other family only: everybody", view{local: true, ipv6: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs, s.Spec.Ports[0].NodePort = nil, 0
			s.Spec.LoadBalancerSourceRanges = []string{"fd00::/8"}
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\nlb 198.51.100.1:80 any->cluster(1)/masq pass\ncluster [fd00:96::1]:80 reject\n"},
		{"no source range can be read, no endpoints: refused", view{change: func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{""}
		}}, "cluster 10.96.0.1:80 reject\n" + everywhere(" reject")},
		{"ipMode Proxy has no frontend", view{local: true, change: func(s *corev1.Service) {
			s.Spec.ExternalIPs = nil
			s.Status.LoadBalancer.Ingress[0].IPMode = new(corev1.LoadBalancerIPModeProxy)
		}}, "cluster 10.96.0.1:80 any->cluster(1) pass\nnode 0.0.0.0:30080 any->cluster(1)/masq pass\n"},
		{"a family without endpoints is refused, the other works", view{local: true, ipv6: true},
			"cluster 10.96.0.1:80 any->cluster(1) pass\n" + everywhere(" any->cluster(1)/masq pass") +
				"cluster [fd00:96::1]:80 reject\nnode [::]:30080 reject\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describe(tc.view.compile())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodePorts(t *testing.T) {
	for _, tc := range []struct {
		name     string
		prefixes string
		primary  bool
		off      bool // localhost NodePorts switched off
		want     string
	}{
		{"default", "", false, false, "{{true [127.0.0.1 192.168.0.2 192.168.1.2]} {true [fd00::2]} true}"},
		{"no localhost", "", false, true, "{{true [192.168.0.2 192.168.1.2]} {true [fd00::2]} false}"},
		{"one family given: the other is everything", "192.168.0.0/24", false, false, "{{false [192.168.0.2]} {true [fd00::2]} false}"},
		{"loopback given", "127.0.0.0/8 192.168.1.0/24", false, false, "{{false [127.0.0.1 192.168.1.2]} {true [fd00::2]} true}"},
		{"loopback given but switched off", "127.0.0.0/8", false, true, "{{false []} {true [fd00::2]} false} health [127.0.0.1]"},
		{"IPv6 loopback never", "::/1", false, false, "{{true [127.0.0.1 192.168.0.2 192.168.1.2]} {false []} true} health [::1]"},
		{"zero prefix", "0.0.0.0/0 fd00::/8", false, false, "{{true [127.0.0.1 192.168.0.2 192.168.1.2]} {false [fd00::2]} true}"},
		{"primary", "", true, false, "{{false [192.168.0.2]} {false [fd00::2]} false}"},
		{"primary and a range", "192.168.1.0/24", true, false, "{{false [192.168.0.2 192.168.1.2]} {false [fd00::2]} false}"},
		{"primary and everything", "0.0.0.0/0 ::/0", true, false, "{{true [127.0.0.1 192.168.0.2 192.168.1.2]} {true [fd00::2]} true}"},
		{"primary and localhost", "127.0.0.0/8 ::1/128", true, false, "{{false [127.0.0.1 192.168.0.2]} {false [fd00::2]} true} health [::1]"},
		{"localhost", "127.0.0.0/8 ::1/128", false, false, "{{false [127.0.0.1]} {false []} true} health [::1]"},
		{"localhost but switched off", "127.0.0.0/8 ::1/128", false, true, "{{false []} {false []} false} health [127.0.0.1 ::1]"},
		{"localhost and everything", "127.0.0.0/8 ::1/128 0.0.0.0/0 ::/0", false, true, "{{true [192.168.0.2 192.168.1.2]} {true [fd00::2]} false}"},
	} {
		c := Config{LocalhostNodePorts: !tc.off, NodePortAddresses: NodePortAddresses{Primary: tc.primary}}
		got := describeScope("127.0.0.1 192.168.0.2 192.168.1.2 ::1 fd00::2", "192.168.0.2 fd00::2", tc.prefixes, c)
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// describeScope spells where NodePorts answer on a machine with the addresses host, whose Node
// object has the addresses ips.
func describeScope(host, ips, prefixes string, c Config) string {
	var self topology.NodeFacts
	for _, a := range strings.Fields(host) {
		self.HostAddrs = append(self.HostAddrs, netip.MustParseAddr(a))
	}
	for _, a := range strings.Fields(ips) {
		self.IPs = append(self.IPs, netip.MustParseAddr(a))
	}
	for _, p := range strings.Fields(prefixes) {
		c.NodePortAddresses.Prefixes = append(c.NodePortAddresses.Prefixes, netip.MustParsePrefix(p))
	}
	s := newNodePortScope(self, c)
	text := fmt.Sprintf("{%v %v %t}", s.IPv4, s.IPv6, s.Localhost)
	if len(s.HealthLoopback) > 0 {
		text += fmt.Sprintf(" health %v", s.HealthLoopback)
	}
	return text
}

// TestSourceRangeOfUnknownNode: a node of unknown address counts as loopback, as in kube-proxy, so
// a range that holds loopback admits the load balancer's own address.
func TestSourceRangeOfUnknownNode(t *testing.T) {
	for ranges, want := range map[string]string{
		"0.0.0.0/1":  "[0.0.0.0/1 198.51.100.1/32]",
		"10.0.0.0/8": "[10.0.0.0/8]",
	} {
		svc := &corev1.Service{}
		svc.Spec.LoadBalancerSourceRanges = []string{ranges}
		c := familyCompiler{port: &topology.ServicePort{Service: svc}, facts: factsOf(topology.View{}, Config{})}
		allow, _ := c.sourceRanges([]netip.Addr{netip.MustParseAddr("198.51.100.1")})
		if got := fmt.Sprint(allow); got != want {
			t.Errorf("%s: allowed %s, want %s", ranges, got, want)
		}
	}
}

// TestPrimaryNodePorts: what --nodeport-addresses=primary, alone and with CIDRs, is where the Node
// object tells of no address, of one family only, of loopback, or of one that the machine does not
// have. A family for which nothing is left is everything, as in kube-proxy 1.37, but nothing while
// the Node object tells of no address at all: NodePorts do not open because an address is missing.
func TestPrimaryNodePorts(t *testing.T) {
	const localhost = "127.0.0.0/8 ::1/128"
	for _, tc := range []struct{ ips, cidrs, want string }{
		{"", "", "{{false []} {false []} false}"},
		{"", "10.0.0.0/8", "{{false []} {false []} false}"},
		{"", "0.0.0.0/0", "{{true [127.0.0.1 192.168.0.2]} {false []} true}"},
		{"192.168.0.2", "", "{{false [192.168.0.2]} {true [fd00::2]} false}"},
		{"fd00::2", "", "{{true [127.0.0.1 192.168.0.2]} {false [fd00::2]} true}"},
		{"127.0.0.1 fd00::2", "", "{{true [127.0.0.1 192.168.0.2]} {false [fd00::2]} true}"},
		{"203.0.113.9 fd00::2", "", "{{false []} {false [fd00::2]} false}"},
		{"", localhost, "{{false [127.0.0.1]} {false []} true} health [::1]"},
		{"192.168.0.2", localhost, "{{false [127.0.0.1 192.168.0.2]} {false []} true} health [::1]"},
		{"fd00::2", "10.0.0.0/8", "{{false []} {false [fd00::2]} false}"},
	} {
		c := Config{LocalhostNodePorts: true, NodePortAddresses: NodePortAddresses{Primary: true}}
		if got := describeScope("127.0.0.1 192.168.0.2 ::1 fd00::2", tc.ips, tc.cidrs, c); got != tc.want {
			t.Errorf("node with addresses [%s], primary and [%s]: %s, want %s", tc.ips, tc.cidrs, got, tc.want)
		}
	}
}

func TestLocalDetector(t *testing.T) {
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, p := range texts {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	self := topology.NodeFacts{PodCIDRs: prefixes("10.244.1.0/24", "fd00:244:1::/64")}
	for _, tc := range []struct {
		config DetectLocal
		want   LocalDetector
	}{
		{DetectLocal{}, LocalDetector{}},
		{DetectLocal{ClusterCIDRs: prefixes("10.0.0.0/8", "11.0.0.0/8", "fd00::/8")}, LocalDetector{Prefixes: prefixes("10.0.0.0/8", "fd00::/8")}},
		{DetectLocal{Mode: DetectNodeCIDR, ClusterCIDRs: prefixes("10.0.0.0/8")}, LocalDetector{Prefixes: self.PodCIDRs}},
		{DetectLocal{Mode: DetectBridgeInterface, Bridge: "br0"}, LocalDetector{Bridge: "br0"}},
		{DetectLocal{Mode: DetectInterfaceNamePrefix, InterfacePrefix: "veth"}, LocalDetector{InterfacePrefix: "veth"}},
	} {
		if diff := cmp.Diff(tc.want, newLocalDetector(self, tc.config), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.config, diff)
		}
	}
}

// TestHostNetworks: what the machine says of its networks reaches the backends.
func TestHostNetworks(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24"), netip.MustParsePrefix("fd00:7::/64")}
	s := topology.Snapshot{Host: topology.Host{Networks: networks}}
	got := Compile(topology.Resolve(s, topology.Config{}), Config{}).HostNetworks
	if d := cmp.Diff(networks, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Errorf("HostNetworks (-want +got):\n%s", d)
	}
}
