package netns

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// NewClosedService returns a Service of both families and both protocols, closed by location, whose
// addresses end in last.
func NewClosedService(name string, last byte) *corev1.Service {
	s := NewService(name, VIP(IPv4, last).Addr(), VIP(IPv6, last).Addr())
	s.Spec.Ports = []corev1.ServicePort{EchoServicePort("tcp", corev1.ProtocolTCP), EchoServicePort("udp", corev1.ProtocolUDP)}
	Confine(s, `["location"]`)
	return s
}

// VIP returns the cluster IP of NewClosedService, with its port.
func VIP(f Family, last byte) netip.AddrPort { return frontend(f, last, "172.16.33", "fd00:99") }

// Balancer returns a load balancer's address, with the port of NewClosedService.
func Balancer(f Family, last byte) netip.AddrPort {
	return frontend(f, last, "198.51.100", "2001:db8:b")
}

// External returns an ExternalIP, with the port of NewClosedService.
func External(f Family, last byte) netip.AddrPort {
	return frontend(f, last, "192.0.2", "2001:db8:e")
}

func frontend(f Family, last byte, v4, v6 string) netip.AddrPort {
	if f == IPv4 {
		return netip.MustParseAddrPort(fmt.Sprintf("%s.%d:80", v4, last))
	}
	return netip.MustParseAddrPort(fmt.Sprintf("[%s::%x]:80", v6, last))
}

// RouteServicesVia makes the client outside send what it sends to Services through a node, as a
// cloud's router does.
func (l *Lab) RouteServicesVia(node *Node) error {
	for _, f := range Families() {
		for _, a := range []netip.AddrPort{VIP(f, 0), Balancer(f, 0), External(f, 0)} {
			bits := map[Family]int{IPv4: 24, IPv6: 64}[f]
			if err := l.Outside.route(netip.PrefixFrom(a.Addr(), bits).Masked(), node.Addr(f)); err != nil {
				return fmt.Errorf("routing to %s from outside through %s: %w", a.Addr(), node.Name, err)
			}
		}
	}
	return nil
}

// Endpoint returns the Pod on a node that serves in the manual, else the node's client Pod.
func (l *Lab) Endpoint(node string) *Pod {
	for _, p := range l.pods {
		if p.Spec.Node == node && p.Name != ClientOn(node) {
			return p
		}
	}
	return l.Client(node)
}

// Names returns the names of Pods.
func Names(pods []*Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}
