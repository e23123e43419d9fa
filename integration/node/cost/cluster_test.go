package cost

import (
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// node is where the rules are for, in every cluster.
const node = "node-1"

// cluster is so many Services of two endpoints, and what was worked out from them so far.
type cluster struct {
	snapshot topology.Snapshot
	resolve  topology.Memo
	compile  rules.Memo
}

func newCluster(services int) *cluster {
	c := &cluster{snapshot: topology.Snapshot{
		Node: node, Self: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
		Nodes: map[string]labels.Set{node: {}, "node-2": {}},
		Host: topology.Host{
			IPv4: true, IPv6: true,
			Addrs: []netip.Addr{netip.MustParseAddr("192.168.10.1"), netip.MustParseAddr("fd00:18::1")},
		},
	}}
	for i := range services {
		c.add(i)
	}
	return c
}

// ruleset is what the node must enforce now.
func (c *cluster) ruleset() rules.Ruleset {
	return c.compile.Compile(c.resolve.Resolve(c.snapshot, topology.Config{}), rules.Config{
		LocalhostNodePorts: true,
		DetectLocal:        rules.DetectLocal{Mode: rules.DetectClusterCIDR, ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd10::/16")}},
	})
}

// add adds the Service of a number, which is its position too unless it is the last. One in ten has every kind of frontend, and of these every other one
// has external traffic policy Local or source ranges, so that chains spell part of it.
func (c *cluster) add(number int) {
	c.snapshot.Services = append(slices.Clone(c.snapshot.Services), service(number))
	for _, family := range families {
		c.snapshot.Slices = append(slices.Clone(c.snapshot.Slices), topology.NewSlice(slice(number, family, 0)))
	}
}

func (c *cluster) removeLast() {
	c.snapshot.Services = c.snapshot.Services[:len(c.snapshot.Services)-1]
	c.snapshot.Slices = c.snapshot.Slices[:len(c.snapshot.Slices)-len(families)]
}

func (c *cluster) move(number, generation int) {
	c.snapshot.Slices = slices.Clone(c.snapshot.Slices)
	for i, family := range families {
		c.snapshot.Slices[number*len(families)+i] = topology.NewSlice(slice(number, family, generation))
	}
}

var families = []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}

// addresses of a number: two bytes of it in an address.
func v4(first, second byte, number int) string {
	return netip.AddrFrom4([4]byte{first, second, byte(number >> 8), byte(number)}).String()
}

func v6(prefix string, number int) string { return fmt.Sprintf("%s::%x", prefix, number+1) }

func service(number int) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name(number)},
		Spec: corev1.ServiceSpec{
			Type:       corev1.ServiceTypeClusterIP,
			ClusterIPs: []string{v4(172, 16, number), v6("fd00:99", number)},
			Ports:      []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	if number%10 != 0 {
		return s
	}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Spec.Ports[0].NodePort = 30000 + int32(number/10)
	s.Spec.ExternalIPs = []string{v4(192, 0, number), v6("2001:db8:e", number)}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: v4(198, 51, number)}, {IP: v6("2001:db8:b", number)}}
	switch number / 10 % 4 {
	case 1:
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	case 3:
		s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24", "2001:db8:a::/48"}
	}
	return s
}

func name(number int) string { return fmt.Sprintf("svc-%05d", number) }

// slice is one endpoint here and one elsewhere.
func slice(number int, family discoveryv1.AddressType, generation int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%s", name(number), family),
			Labels: map[string]string{discoveryv1.LabelServiceName: name(number)},
		},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
	for i, on := range []string{node, "node-2"} {
		address := v4(10, byte(2*generation+i), number)
		if family == discoveryv1.AddressTypeIPv6 {
			address = v6(fmt.Sprintf("fd10:%x", 2*generation+i), number)
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, NodeName: new(on),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
		})
	}
	return s
}
