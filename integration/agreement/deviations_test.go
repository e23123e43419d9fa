package agreement

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneService is a Cluster with one Service of every kind of Frontend and with an endpoint
// on this node and one on another.
func oneService() Cluster {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	self := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}
	for _, addr := range primaryAddrs {
		self.Status.Addresses = append(self.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
	}
	svc := &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.11", ClusterIPs: []string{"10.96.0.11", "fd00:10:96::11"},
		ExternalIPs: []string{"203.0.113.101"}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
		Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}},
	}}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}}
	c := Cluster{
		Node: "edge-1", Nodes: []*corev1.Node{self}, Services: []*corev1.Service{svc},
		HostAddrs: append(slices.Clone(primaryAddrs[:]), netip.MustParseAddr("172.20.7.7"), netip.MustParseAddr("fe80::11")),
		Flags:     Flags{NodesWithoutUnit: "closed", DetectLocalMode: "ClusterCIDR", ClusterCIDRs: []string{clusterCIDR4, clusterCIDR6}},
	}
	for _, ipv6 := range []bool{false, true} {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: meta(fmt.Sprintf("web-%t", ipv6)), AddressType: discoveryv1.AddressTypeIPv4}
		if ipv6 {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
		slice.Labels = map[string]string{labelServiceName: "web"}
		slice.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}
		for node := 1; node <= 2; node++ {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{podAddr(node, 5, ipv6)}, NodeName: new(fmt.Sprintf("edge-%d", node))})
		}
		c.Slices = append(c.Slices, slice)
	}
	return c
}

// TestDeviations pins each deviation that a walk can see, and what both modes do unlike
// kube-proxy: what becomes of one packet in iptables mode and in IPVS mode. docs/packet-path.md
// names the cases.
func TestDeviations(t *testing.T) {
	noEndpoints := func(c *Cluster) { c.Slices = nil }
	for _, tc := range []struct {
		name             string
		change           func(*Cluster)
		from, src, dst   string // from: node, Pods, wire
		proto            netfilter.Proto
		iptables, inIPVS []string
	}{
		{"unknown port of a virtual server's address", nil, "wire", "192.0.2.9", "10.96.0.11:81", netfilter.TCP,
			[]string{"accept 10.96.0.11:81"}, []string{"reject 10.96.0.11:81"}},
		{"unknown protocol of a virtual server's address", nil, "node", "192.168.0.11", "203.0.113.101:80", netfilter.UDP,
			[]string{"accept 203.0.113.101:80"}, []string{"reject 203.0.113.101:80"}},
		{"the node's own packets without a detector", func(c *Cluster) { c.Flags.ClusterCIDRs = nil }, "node", "", "10.96.0.11:80", netfilter.TCP,
			[]string{"accept 10.244.1.5:8080", "accept 10.244.2.5:8080"}, []string{"accept 10.244.1.5:8080 masqueraded", "accept 10.244.2.5:8080 masqueraded"}},
		{"a Pod's packets without a detector", func(c *Cluster) { c.Flags.ClusterCIDRs = nil }, "Pods", "10.244.1.9", "10.96.0.11:80", netfilter.TCP,
			[]string{"accept 10.244.1.5:8080", "accept 10.244.2.5:8080"}, []string{"accept 10.244.1.5:8080", "accept 10.244.2.5:8080"}},
		{"the node's own packets to an external address of an open Service without endpoints", noEndpoints, "node", "192.168.0.11", "203.0.113.101:80", netfilter.TCP,
			[]string{"accept 203.0.113.101:80"}, []string{"reject 203.0.113.101:80"}},
		{"the same of a closed Service", closedElsewhere, "node", "192.168.0.11", "203.0.113.101:80", netfilter.TCP,
			[]string{"reject 203.0.113.101:80"}, []string{"reject 203.0.113.101:80"}},
		{"the same to its load balancer", closedElsewhere, "node", "192.168.0.11", "198.51.100.1:80", netfilter.TCP,
			[]string{"reject 198.51.100.1:80"}, []string{"reject 198.51.100.1:80"}},
		{"the same to its NodePort", closedElsewhere, "node", "192.168.0.11", "192.168.0.11:30080", netfilter.TCP,
			[]string{"reject 192.168.0.11:30080"}, []string{"reject 192.168.0.11:30080"}},
		{"the same where there must be no virtual server", func(c *Cluster) { closedElsewhere(c); c.Flags.IPVSExclude = []string{"203.0.113.0/24"} },
			"node", "192.168.0.11", "203.0.113.101:80", netfilter.TCP, []string{"reject 203.0.113.101:80"}, []string{"reject 203.0.113.101:80"}},
		{"the wire where no source range can be read", unreadable, "wire", "192.0.2.9", "198.51.100.1:80", netfilter.TCP,
			[]string{"drop 198.51.100.1:80"}, []string{"drop 198.51.100.1:80"}},
		{"a Pod where no source range can be read", unreadable, "Pods", "10.244.1.9", "198.51.100.1:80", netfilter.TCP,
			[]string{"drop 198.51.100.1:80"}, []string{"drop 198.51.100.1:80"}},
		{"the node where no source range can be read", unreadable, "node", "192.168.0.11", "198.51.100.1:80", netfilter.TCP,
			[]string{"drop 198.51.100.1:80"}, []string{"drop 198.51.100.1:80"}},
		{"a NodePort's verdict where NodePorts do not answer", func(c *Cluster) { noEndpoints(c); c.Flags.NodePortAddresses = []string{"192.168.0.0/16"} },
			"wire", "192.0.2.9", "172.20.7.7:30080", netfilter.TCP, []string{"reject 172.20.7.7:30080"}, []string{"accept 172.20.7.7:30080"}},
		{"a NodePort on loopback, from the wire, with external policy Local", func(c *Cluster) { c.Flags.LocalhostNodePorts = true; local(c) },
			"wire", "192.0.2.9", "127.0.0.1:30080", netfilter.TCP, []string{"accept 10.244.1.5:8080"}, []string{"drop 127.0.0.1:30080"}},
		{"the node's own packets where source ranges hold its address and it has no Node", func(c *Cluster) { ranged(c); c.Nodes = nil },
			"node", "", "198.51.100.1:80", netfilter.TCP, []string{"accept 10.244.1.5:8080 masqueraded", "accept 10.244.2.5:8080 masqueraded"}, []string{"drop 198.51.100.1:80"}},
		{"the same with a Node", ranged,
			"node", "", "198.51.100.1:80", netfilter.TCP, []string{"accept 10.244.1.5:8080 masqueraded", "accept 10.244.2.5:8080 masqueraded"}, []string{"accept 10.244.1.5:8080 masqueraded", "accept 10.244.2.5:8080 masqueraded"}},
		{"a NodePort on a link-local address", nil, "wire", "2001:db8::9", "[fe80::11]:30080", netfilter.TCP,
			[]string{"accept [fd00:10:244:1::5]:8080 masqueraded", "accept [fd00:10:244:2::5]:8080 masqueraded"}, []string{"accept [fe80::11]:30080"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := oneService()
			if tc.change != nil {
				tc.change(&c)
			}
			m, err := spellModes(c, spelling())
			if err != nil {
				t.Fatal(err)
			}
			dst := netip.MustParseAddrPort(tc.dst)
			p := trace.Packet{Dst: dst.Addr(), DstPort: dst.Port(), Proto: tc.proto, Local: c.HostAddrs, FromNode: tc.from == "node"}
			if tc.src != "" {
				p.Src = netip.MustParseAddr(tc.src)
			}
			p.InInterface = map[string]string{"Pods": podVeth, "wire": uplinkDev}[tc.from]
			family := 0
			if p.Dst.Is6() {
				family = 1
			}
			if got := spelled(trace.Trace(m.chains[family], withSource(p))); !slices.Equal(got, tc.iptables) {
				t.Errorf("iptables mode: got %q, want %q", got, tc.iptables)
			}
			if got := spelled(ipvs.NewTracer(m.state).Trace(m.skeleton[family], p)); !slices.Equal(got, tc.inIPVS) {
				t.Errorf("IPVS mode: got %q, want %q", got, tc.inIPVS)
			}
		})
	}
}

// closedElsewhere closes the Service by a key that no node carries.
func closedElsewhere(c *Cluster) {
	c.Services[0].Annotations = map[string]string{annotationKeys: `["site"]`}
}

// unreadable gives the Service source ranges that cannot be read.
func unreadable(c *Cluster) {
	c.Services[0].Spec.LoadBalancerSourceRanges = []string{"the office", "192.0.2.0/99"}
}

// local gives the Service external policy Local.
func local(c *Cluster) {
	c.Services[0].Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

// ranged gives the Service source ranges that hold the node's address, and another port at
// which it has no endpoints.
func ranged(c *Cluster) {
	spec := &c.Services[0].Spec
	spec.LoadBalancerSourceRanges = []string{"192.168.0.0/24"}
	spec.Ports[0].Name = "p0"
	spec.Ports = append(spec.Ports, corev1.ServicePort{Name: "p1", Port: 81, Protocol: corev1.ProtocolTCP})
	for _, slice := range c.Slices {
		slice.Ports[0].Name = new("p0")
	}
}

// spelled are the ends of a walk, without their probabilities.
func spelled(o trace.Outcome) []string {
	var all []string
	for _, end := range o.Ends {
		text := fmt.Sprint(end.Verdict, " ", end.Dst)
		if end.Masquerade {
			text += " masqueraded"
		}
		all = append(all, text)
	}
	return append(all, o.Problems...)
}
