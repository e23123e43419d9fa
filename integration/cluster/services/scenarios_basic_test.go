package services

import (
	"fmt"
	"net/netip"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func serveBasicEndpoint(w *world) {
	s := w.service()
	to := vips(s, 80)
	w.refused("tcp", w.client(bj), to)
	one := w.pod("one", bj)
	w.reaches("tcp", w.client(gz), to, one)
	two := w.pod("two", gz)
	w.reaches("tcp", w.client(bj), to, one, two)
	w.terminate(one)
	w.reaches("tcp", w.client(bj), to, two)
	w.terminate(two)
	w.refused("tcp", w.client(gz), to)
}

func serveMultiport(w *world) {
	s := w.service(ports(
		corev1.ServicePort{Name: "first", Port: 80, TargetPort: intstr.FromString("one")},
		corev1.ServicePort{Name: "second", Port: 81, TargetPort: intstr.FromString("two")},
	))
	listens := func(name string, port int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: name, ContainerPort: port}}
			setEnv(p, "PORTS", fmt.Sprintf("%d/tcp", port))
		}
	}
	one := w.pod("one", bj, listens("one", 8100))
	two := w.pod("two", gz, listens("two", 8101))
	for _, from := range []*netns.Namespace{w.client(bj), w.client(gz)} {
		w.reaches("tcp", from, vips(s, 80), one)
		w.reaches("tcp", from, vips(s, 81), two)
	}
	w.terminate(one)
	w.refused("tcp", w.client(bj), vips(s, 80))
	w.reaches("tcp", w.client(bj), vips(s, 81), two)
}

func addAndDeletePorts(w *world) {
	w.join(shared()...)
	http, other := port("http", corev1.ProtocolTCP, 80, 8080), port("other", corev1.ProtocolTCP, 81, 9090)
	s := w.service()
	w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
	s = w.update(s, ports(http, other))
	w.reaches("tcp", w.client(bj), append(vips(s, 80), vips(s, 81)...), shared()...)
	s = w.update(s, ports(other))
	w.down("tcp", w.client(bj), vips(s, 80))
	w.reaches("tcp", w.client(bj), vips(s, 81), shared()...)
	s = w.update(s, ports(port("other", corev1.ProtocolTCP, 82, 9090)))
	w.reaches("tcp", w.client(bj), vips(s, 82), shared()...)
	w.down("tcp", w.client(bj), vips(s, 81))
}

func preserveSource(w *world) {
	w.join(shared()...)
	s := w.service()
	w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
	for _, node := range []string{bj, gz} {
		for range 8 { // endpoints of both machines are met
			w.clientIs(w.client(node), vips(s, 80), w.clientAddrs(node)...)
		}
	}
}

func hairpin(w *world) {
	w.join(bjA)
	s := w.service(ports(tcp80(), udp80()))
	for _, network := range []string{"tcp", "udp"} {
		w.reaches(network, w.inside(bjA), vips(s, 80), bjA)
	}
}

func upAndDown(w *world) {
	first, second := w.service(), w.service(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"machine": gz} })
	w.join(bjA, bjB)
	both := []*netns.Namespace{w.client(bj), w.host(gz)}
	for _, from := range both {
		w.reaches("tcp", from, vips(first, 80), bjA, bjB)
		w.reaches("tcp", from, vips(second, 80), gzA, gzB)
	}
	w.deleteService(first)
	for _, from := range both {
		w.down("tcp", from, vips(first, 80))
		w.reaches("tcp", from, vips(second, 80), gzA, gzB)
	}
	third := w.service()
	for _, from := range both {
		w.reaches("tcp", from, vips(second, 80), gzA, gzB)
		w.reaches("tcp", from, vips(third, 80), bjA, bjB)
	}
}

func recreated(w *world) {
	w.join(shared()...)
	s := w.service()
	w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
	w.deleteService(s)
	w.down("tcp", w.client(bj), vips(s, 80))
	again := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace}, Spec: s.Spec}
	w.create(again)
	w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
}

func functioningNodePort(w *world) {
	w.join(shared()...)
	s := w.service(nodePort)
	for _, from := range []*netns.Namespace{w.client(bj), w.host(gz), w.Outside()} {
		w.reaches("tcp", from, w.nodePorts(s, "http", bj, gz), shared()...)
	}
	w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
}

func externalIP(w *world) {
	w.join(shared()...)
	addrs := []string{"203.0.113.250", "2001:db8:113::250"}
	s := w.service(func(s *corev1.Service) { s.Spec.ExternalIPs = addrs })
	to := at(80, netip.MustParseAddr(addrs[0]), netip.MustParseAddr(addrs[1]))
	for _, from := range []*netns.Namespace{w.client(bj), w.client(gz), w.host(bj)} {
		w.reaches("tcp", from, to, shared()...)
	}
	w.update(s, func(s *corev1.Service) { s.Spec.ExternalIPs = nil })
	w.down("tcp", w.client(bj), to)
}

func nodePortOfBothProtocols(w *world) {
	w.join(shared()...)
	s := w.service()
	s = w.update(s, func(s *corev1.Service) {
		nodePort(s)
		s.Spec.Ports = []corev1.ServicePort{tcp80()}
	})
	number := s.Spec.Ports[0].NodePort
	s = w.update(s, func(s *corev1.Service) {
		udp := udp80()
		udp.NodePort = number
		s.Spec.Ports = append(s.Spec.Ports, udp)
	})
	if len(s.Spec.Ports) != 2 || s.Spec.Ports[0].NodePort != s.Spec.Ports[1].NodePort {
		w.Fatalf("the node ports of %s are not one number: %v", s.Name, s.Spec.Ports)
	}
	for _, network := range []string{"tcp", "udp"} {
		for _, from := range []*netns.Namespace{w.client(bj), w.Outside()} {
			w.reaches(network, from, w.nodePorts(s, "http", bj, gz), shared()...)
		}
	}
}

// externalNameTo: a Service that was a name elsewhere only gets addresses.
func externalNameTo(kind corev1.ServiceType) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(externalName)
		s = w.update(s, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = kind, ""
			s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
			s.Spec.Ports = []corev1.ServicePort{tcp80()}
		})
		w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
		if kind == corev1.ServiceTypeNodePort {
			w.reaches("tcp", w.client(gz), w.nodePorts(s, "http", bj, gz), shared()...)
		}
	}
}

func toExternalName(kind corev1.ServiceType) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(func(s *corev1.Service) { s.Spec.Type = kind })
		w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
		before := vips(s, 80)
		if kind == corev1.ServiceTypeNodePort {
			before = append(before, w.nodePorts(s, "http", bj, gz)...)
			w.reaches("tcp", w.client(bj), before, shared()...)
		}
		w.update(s, externalName)
		w.down("tcp", w.client(bj), before)
	}
}

func externalName(s *corev1.Service) {
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com", Selector: s.Spec.Selector}
}

func samePortBothProtocols(w *world) {
	w.join(shared()...)
	s := w.service(ports(tcp80(), udp80()))
	for _, network := range []string{"tcp", "udp"} {
		w.reaches(network, w.client(bj), vips(s, 80), shared()...)
	}
	s = w.update(s, ports(udp80()))
	w.reaches("udp", w.client(bj), vips(s, 80), shared()...)
	w.down("tcp", w.client(bj), vips(s, 80))
	s = w.update(s, ports(tcp80()))
	w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
	w.down("udp", w.client(bj), vips(s, 80))
}

// namedTargetPorts: the same name is another number on another endpoint.
func namedTargetPorts(w *world) {
	named := func(port int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: port}}
			setEnv(p, "PORTS", fmt.Sprintf("%d/tcp", port))
		}
	}
	s := w.service(ports(corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}))
	one, two := w.pod("one", bj, named(8100)), w.pod("two", gz, named(8200))
	w.reaches("tcp", w.client(bj), vips(s, 80), one, two)
	w.reaches("tcp", w.client(gz), vips(s, 80), one, two)
}

// restartableInit: the server is an init container that goes on running.
func restartableInit(target intstr.IntOrString) func(*world) {
	return func(w *world) {
		s := w.service(ports(corev1.ServicePort{Name: "http", Port: 80, TargetPort: target}))
		one := w.pod("one", bj, func(p *corev1.Pod) {
			server := p.Spec.Containers[0]
			server.Name, server.RestartPolicy = "server", new(corev1.ContainerRestartPolicyAlways)
			server.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
			p.Spec.InitContainers = []corev1.Container{server}
			setEnv(p, "PORTS", "9999/tcp")
		})
		w.reaches("tcp", w.client(gz), vips(s, 80), one)
	}
}

func rejectedWithoutEndpoints(w *world) {
	s := w.service(nodePort, ports(tcp80(), udp80()))
	for _, network := range []string{"tcp", "udp"} {
		name := map[string]string{"tcp": "http", "udp": "datagrams"}[network]
		for _, from := range []*netns.Namespace{w.client(bj), w.host(gz)} {
			w.refused(network, from, vips(s, 80))
		}
		w.refused(network, w.client(bj), w.nodePorts(s, name, gz))
		w.refused(network, w.Outside(), w.nodePorts(s, name, bj, gz))
	}
}

// rejectedForEvicted: the kubelet has ended the Pod, and the Pod is still there.
func rejectedForEvicted(w *world) {
	s := w.service()
	one := w.pod("one", bj)
	w.reaches("tcp", w.client(gz), vips(s, 80), one)
	failed := w.pod("failed", gz, func(p *corev1.Pod) {
		p.Spec.RestartPolicy, p.Spec.ActiveDeadlineSeconds = corev1.RestartPolicyNever, new(int64(1))
	})
	w.podWhen(failed, "has failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	w.reaches("tcp", w.client(gz), vips(s, 80), one)
	w.terminate(one)
	for _, from := range []*netns.Namespace{w.client(bj), w.host(gz)} {
		w.refused("tcp", from, vips(s, 80))
	}
}

func proxyName(w *world) {
	w.join(shared()...)
	const label = "service.kubernetes.io/service-proxy-name"
	foreign := func(s *corev1.Service) { s.Labels = map[string]string{label: "foo-bar"} }
	never, toggled := w.service(foreign), w.service()
	from := w.client(bj)
	w.reaches("tcp", from, vips(toggled, 80), shared()...)
	w.down("tcp", from, vips(never, 80))
	w.update(toggled, foreign)
	w.down("tcp", from, vips(toggled, 80))
	w.update(toggled, func(s *corev1.Service) { s.Labels = nil })
	w.reaches("tcp", from, vips(toggled, 80), shared()...)
	w.down("tcp", from, vips(never, 80))
}

func headlessSlice(w *world) {
	s := w.service(func(s *corev1.Service) { s.Spec.Selector = nil })
	slice := w.slice(s, netns.IPv4, s.Spec.Ports, bjA)
	to := only(netns.IPv4, vips(s, 80))
	w.reaches("tcp", w.client(gz), to, bjA)
	wait.Until(w.TB, "labelling the slice as headless", func() error {
		slice.Labels[corev1.IsHeadlessService] = ""
		_, err := w.Client.DiscoveryV1().EndpointSlices(namespace).Update(w.Context(), slice, metav1.UpdateOptions{})
		return err
	})
	w.down("tcp", w.client(gz), to)
}
