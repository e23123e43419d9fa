package node

import (
	"fmt"
	"net/netip"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// subject is a Service to take over and where its endpoints run.
type subject struct {
	name  string
	on    []string // nodes with an endpoint
	pods  []string // endpoints that really answer, of the manual
	shape func(*corev1.Service)
}

// subjects are one Service of each kind that has rules of its own, once open and once more as
// "closed-...", which the test closes later.
func subjects() []subject {
	everywhere := []string{"bj-1", "bj-3", "gz-2"}
	kinds := []subject{
		{name: "plain", on: everywhere},
		{name: "udp", on: everywhere, shape: func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }},
		{name: "sctp", on: everywhere, shape: func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP }},
		{name: "ports", on: everywhere, shape: func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "web", Port: 8443, TargetPort: intstr.FromInt32(8443), Protocol: corev1.ProtocolTCP})
			s.Spec.Ports[0].Name = "http"
		}},
		{name: "affine", on: everywhere, shape: func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }},
		{name: "nodeport", on: everywhere, shape: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }},
		{name: "external-local", on: everywhere, shape: func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyLocal
		}},
		{name: "external-local-elsewhere", on: []string{"bj-3", "gz-2"}, shape: func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
		}},
		{name: "internal-local", on: everywhere, shape: func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}},
		{name: "internal-local-elsewhere", on: []string{"bj-3", "gz-2"}, shape: func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}},
		{name: "balanced", on: everywhere, shape: func(s *corev1.Service) {
			s.Spec.Type = corev1.ServiceTypeLoadBalancer
			s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24", "2001:db8::/64", "192.168.10.0/24"}
		}},
		{name: "empty"},
		{name: "other-unit", on: []string{"gz-2"}},
	}
	var all []subject
	for _, s := range kinds {
		closed := s
		closed.name = "closed-" + s.name
		all = append(all, s, closed)
	}
	return append(all, subject{name: "closed-live", pods: []string{"beijing-v9zdr", "guangzhou-hhmt2"}})
}

// object is the Service; number makes its outside addresses its own.
func (s subject) object(number int) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: "default"},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports:          []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(netns.EchoPort), Protocol: corev1.ProtocolTCP}},
		},
	}
	if s.shape != nil {
		s.shape(svc)
	}
	if number%3 == 0 {
		svc.Spec.ExternalIPs = []string{fmt.Sprintf("198.51.100.%d", number), fmt.Sprintf("2001:db8:e::%d", number)}
	}
	return svc
}

// ingress is what a cloud would write into the status.
func (s subject) ingress(svc *corev1.Service, number int) {
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
			{IP: fmt.Sprintf("198.51.101.%d", number)}, {IP: fmt.Sprintf("2001:db8:f::%d", number)},
		}
	}
}

// slices are its EndpointSlices, one of each family.
func (s subject) slices(svc *corev1.Service, number int, l *netns.Lab) []*discoveryv1.EndpointSlice {
	var v4, v6 []discoveryv1.Endpoint
	add := func(node string, addrs ...netip.Addr) {
		for _, a := range addrs {
			e := discoveryv1.Endpoint{
				Addresses: []string{a.String()}, NodeName: &node,
				Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			}
			if a.Is4() {
				v4 = append(v4, e)
			} else {
				v6 = append(v6, e)
			}
		}
	}
	for i, node := range s.on {
		add(node, netip.AddrFrom4([4]byte{10, 0, byte(100 + i), byte(number)}),
			netip.MustParseAddr(fmt.Sprintf("fd00:10:a%d::%d", i, number)))
	}
	for _, pod := range s.pods {
		add(l.Pod(pod).Node.Name, l.Pod(pod).Addrs...)
	}
	var all []*discoveryv1.EndpointSlice
	for family, endpoints := range map[discoveryv1.AddressType][]discoveryv1.Endpoint{
		discoveryv1.AddressTypeIPv4: v4, discoveryv1.AddressTypeIPv6: v6,
	} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: s.name + "-", Namespace: "default",
				Labels: map[string]string{discoveryv1.LabelServiceName: s.name},
			},
			AddressType: family, Endpoints: endpoints,
		}
		for i := range svc.Spec.Ports {
			p := &svc.Spec.Ports[i]
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.TargetPort.IntVal, Protocol: &p.Protocol})
		}
		all = append(all, slice)
	}
	return all
}
