package services

import (
	"net/http"
	"net/netip"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

func balanced(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }

func balancedLocal(s *corev1.Service) {
	externalLocal(s)
	balanced(s)
}

func balancedBothProtocols(w *world) {
	w.join(shared()...)
	s := w.service(balanced, ports(tcp80(), udp80()))
	addr := w.balancerAddr()
	s = w.balance(s, addr.String())
	for _, network := range []string{"tcp", "udp"} {
		w.reaches(network, w.client(bj), vips(s, 80), shared()...)
		w.reaches(network, w.client(bj), at(80, addr), shared()...)
	}
	w.update(s, ports(udp80()))
	w.reaches("udp", w.client(gz), at(80, addr), shared()...)
	w.down("tcp", w.client(gz), at(80, addr))
}

func sourceRanges(w *world) {
	w.join(shared()...)
	addr := w.balancerAddr()
	allow := func(from string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{addrOf(w.running(clientPod(from)), netns.IPv4).String() + "/32"}
		}
	}
	s := w.balance(w.service(balanced, allow(bj)), addr.String())
	to := at(80, addr)
	w.reaches("tcp", w.client(bj), to, shared()...)
	w.down("tcp", w.client(gz), to)
	w.update(s, allow(gz))
	w.reaches("tcp", w.client(gz), to, shared()...)
	w.down("tcp", w.client(bj), to)
	w.update(s, func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = nil })
	w.reaches("tcp", w.client(bj), to, shared()...)
	w.reaches("tcp", w.client(gz), to, shared()...)
}

func balancedFromPods(w *world) {
	w.join(bjA)
	addr := w.balancerAddr()
	w.balance(w.service(balancedLocal), addr.String())
	// Inside the cluster the policy for outside traffic does not confine: it would cut the Pods of gz off.
	for _, from := range []*netns.Namespace{w.client(bj), w.client(gz), w.host(bj), w.host(gz)} {
		w.reaches("tcp", from, at(80, addr), bjA)
	}
}

func withoutNodePort(w *world) {
	w.join(shared()...)
	s := w.service(balanced, func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(false) })
	addr := w.balancerAddr()
	s = w.balance(s, addr.String())
	if n := s.Spec.Ports[0].NodePort; n != 0 {
		w.Fatalf("service %s has node port %d, want none", s.Name, n)
	}
	w.reaches("tcp", w.client(bj), at(80, addr), shared()...)
	s = w.update(s, func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(true) })
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj, gz), shared()...)
	w.reaches("tcp", w.client(bj), at(80, addr), shared()...)
}

// typeAndPorts takes a Service through all the types and numbers that it can have.
func typeAndPorts(network string, make func() corev1.ServicePort) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		from := w.client(bj)
		s := w.service(ports(make()))
		w.reaches(network, from, vips(s, 80), shared()...)
		s = w.update(s, nodePort)
		old := w.nodePorts(s, make().Name, gz)
		w.reaches(network, from, old, shared()...)
		s = w.update(s, balanced)
		addr := w.balancerAddr()
		s = w.balance(s, addr.String())
		w.reaches(network, from, at(80, addr), shared()...)
		s = w.update(s, func(s *corev1.Service) {
			s.Spec.Ports[0].NodePort, s.Spec.Ports[0].Port = 0, 81
		})
		w.down(network, from, at(80, addr))
		w.reaches(network, from, at(81, addr), shared()...)
		w.reaches(network, from, w.nodePorts(s, make().Name, gz), shared()...)
		for _, gone := range old {
			if s.Spec.Ports[0].NodePort != int32(gone.Port()) {
				w.down(network, from, []netip.AddrPort{gone})
			}
		}
		s = w.update(s, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, ""
			s.Spec.AllocateLoadBalancerNodePorts = nil
			s.Spec.Ports[0].NodePort = 0
		})
		w.balance(s)
		w.down(network, from, at(81, addr))
		w.reaches(network, from, vips(s, 81), shared()...)
	}
}

// route has the client outside send to an address by way of a machine, as a cloud's balancer does.
func (w *world) route(to netip.Addr, node string) {
	w.Helper()
	via := w.Machine(node).Namespace.Addr(netns.IPv4)
	_, err := w.Outside().Run(w.Context(), nil, "ip", "route", "replace", to.String(), "via", via.String())
	w.must(err)
}

// health of a Service with policy Local is what a balancer goes by.
func (w *world) health(s *corev1.Service, node string, code int) {
	w.Helper()
	for _, a := range at(s.Spec.HealthCheckNodePort, w.Machine(node).Addrs...) {
		w.status(w.Outside(), a, code)
	}
}

func balancedLocalWorks(w *world) {
	w.join(bjA)
	addr := w.balancerAddr()
	s := w.balance(w.service(balancedLocal), addr.String())
	w.route(addr, bj)
	w.reaches("tcp", w.Outside(), at(80, addr), bjA)
	w.clientIs(w.Outside(), at(80, addr), w.Outside().Addrs...)
	w.health(s, bj, http.StatusOK)
	w.update(s, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
	w.route(addr, gz)
	w.reaches("tcp", w.Outside(), at(80, addr), bjA)
	w.deleteService(s)
	w.down("tcp", w.Outside(), at(80, addr))
}

func onlyNodesWithEndpoints(w *world) {
	addr := w.balancerAddr()
	s := w.balance(w.service(balancedLocal), addr.String())
	other := map[string]string{bj: gz, gz: bj}
	for node, pod := range map[string]string{bj: bjB, gz: gzB} {
		w.join(pod)
		w.health(s, node, http.StatusOK)
		w.health(s, other[node], http.StatusServiceUnavailable)
		w.route(addr, node)
		w.reaches("tcp", w.Outside(), at(80, addr), pod)
		w.route(addr, other[node])
		w.down("tcp", w.Outside(), at(80, addr))
		w.leave(pod)
	}
}

func allNodesWithEndpoints(w *world) {
	w.join(bjA, gzA, gzB)
	addr := w.balancerAddr()
	s := w.balance(w.service(balancedLocal), addr.String())
	for node, pods := range map[string][]string{bj: {bjA}, gz: {gzA, gzB}} {
		w.health(s, node, http.StatusOK)
		w.route(addr, node)
		w.reaches("tcp", w.Outside(), at(80, addr), pods...)
		w.clientIs(w.Outside(), at(80, addr), w.Outside().Addrs...)
	}
}
