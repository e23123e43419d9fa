package services

import (
	"net/http"
	"net/netip"

	"gridproxy/integration/lab"

	corev1 "k8s.io/api/core/v1"
)

func internalLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}

func externalLocal(s *corev1.Service) {
	nodePort(s)
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func balanced(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }

func balancedLocal(s *corev1.Service) {
	externalLocal(s)
	balanced(s)
}

func internalLocalPodToPod(w *world) {
	w.join(bjA)
	s := w.service(internalLocal)
	w.reaches("tcp", w.client(bj), vips(s, 80), bjA)
	w.down("tcp", w.client(gz), vips(s, 80))
	w.reaches("tcp", w.client(bj), vips(s, 80), bjA)
}

func internalLocalHostToPod(w *world) {
	w.join(bjA)
	s := w.service(internalLocal)
	w.reaches("tcp", w.host(bj), vips(s, 80), bjA)
	w.down("tcp", w.host(gz), vips(s, 80))
}

func internalLocalToHost(w *world) {
	w.join(hostPod(bj))
	s := w.service(internalLocal, ports(port("http", corev1.ProtocolTCP, 80, hostPort)))
	for _, from := range []*lab.Namespace{w.client(bj), w.host(bj)} {
		w.reaches("tcp", from, vips(s, 80), hostPod(bj))
	}
	for _, from := range []*lab.Namespace{w.client(gz), w.host(gz)} {
		w.down("tcp", from, vips(s, 80))
	}
}

func externalLocalNodePort(w *world) {
	w.join(bjA)
	s := w.service(externalLocal)
	to := w.nodePorts(s, "http", bj)
	w.reaches("tcp", w.host(gz), to, bjA)
	w.reaches("tcp", w.Outside(), to, bjA)
	w.clientIs(w.host(gz), to, w.Machine(gz).Addrs...)
	w.clientIs(w.Outside(), to, w.Outside().Addrs...)
	w.down("tcp", w.Outside(), w.nodePorts(s, "http", gz))
}

// lingering goes on serving when it is told to end.
func lingering(p *corev1.Pod) {
	p.Spec.TerminationGracePeriodSeconds = new(int64(100))
	setEnv(p, "GRACE", "100s")
}

func healthOfTerminating(w *world) {
	s := w.service(balancedLocal)
	one := w.pod("one", bj, lingering)
	health := at(s.Spec.HealthCheckNodePort, w.Machine(bj).Addrs...)
	for _, a := range health {
		w.status(w.client(bj), a, http.StatusOK)
	}
	w.terminate(one)
	for _, a := range health {
		w.status(w.client(bj), a, http.StatusServiceUnavailable)
	}
	w.reaches("tcp", w.client(bj), w.nodePorts(s, "http", bj), one)
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj), one)
}

// terminatingCluster: with no ready endpoint left, those that end but still serve are used, wherever
// they run.
func terminatingInternalCluster(w *world) {
	s := w.service()
	one := w.pod("one", bj, lingering)
	clients := []*lab.Namespace{w.client(bj), w.client(gz), w.host(gz)}
	for _, from := range clients {
		w.reaches("tcp", from, vips(s, 80), one)
	}
	w.terminate(one)
	w.terminating(one)
	for _, from := range clients {
		w.reaches("tcp", from, vips(s, 80), one)
	}
	w.join(gzA) // and no longer when there is one that is ready
	for _, from := range clients {
		w.reaches("tcp", from, vips(s, 80), gzA)
	}
}

func terminatingInternalLocal(w *world) {
	s := w.service(internalLocal)
	one := w.pod("one", bj, lingering)
	w.reaches("tcp", w.client(bj), vips(s, 80), one)
	w.join(gzA)
	w.terminate(one)
	w.terminating(one)
	w.reaches("tcp", w.client(bj), vips(s, 80), one)
	w.reaches("tcp", w.host(bj), vips(s, 80), one)
	w.reaches("tcp", w.client(gz), vips(s, 80), gzA)
	w.leave(gzA)
	w.down("tcp", w.client(gz), vips(s, 80))
}

func terminatingExternalCluster(w *world) {
	s := w.service(nodePort)
	one := w.pod("one", bj, lingering)
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj, gz), one)
	w.terminate(one)
	w.terminating(one)
	for _, from := range []*lab.Namespace{w.Outside(), w.client(gz), w.host(gz)} {
		w.reaches("tcp", from, w.nodePorts(s, "http", bj, gz), one)
	}
}

func terminatingExternalLocal(w *world) {
	s := w.service(externalLocal)
	one := w.pod("one", bj, lingering)
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj), one)
	w.join(gzA)
	w.terminate(one)
	w.terminating(one)
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj), one)
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", gz), gzA)
	w.leave(gzA)
	w.down("tcp", w.Outside(), w.nodePorts(s, "http", gz))
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj), one)
}

// terminating waits until the endpoints of the scenario say that the Pod is ending and still serves.
func (w *world) terminating(pod string) {
	w.Helper()
	w.endpoint(pod, "is terminating and serving", func(ready, serving, terminating bool) bool {
		return !ready && serving && terminating
	})
}

// unready does not become ready until it is told to.
func unready(p *corev1.Pod) {
	setEnv(p, "READY", "false")
	probe(p)
}

func endpointsForUnready(w *world) {
	publish := func(on bool) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = on }
	}
	s := w.service(publish(true))
	one := w.pod("one", bj, unready, lingering)
	w.reaches("tcp", w.client(gz), vips(s, 80), one)
	w.update(s, publish(false))
	w.refused("tcp", w.client(gz), vips(s, 80))
	w.update(s, publish(true))
	w.reaches("tcp", w.client(gz), vips(s, 80), one)
	w.terminate(one)
	w.reaches("tcp", w.client(gz), vips(s, 80), one)
	w.kill(one)
	w.refused("tcp", w.client(gz), vips(s, 80))
}

// unreadyAndTerminating are one Pod of each kind, and nothing else, on both machines.
func unreadyAndTerminating(publish bool) func(*world) {
	return func(w *world) {
		s := w.service(nodePort, func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = publish })
		waiting := w.pod("waiting", bj, unready)
		ending := w.pod("ending", gz, unready, lingering)
		w.running(waiting)
		w.running(ending)
		w.terminate(ending)
		to := append(vips(s, 80), w.nodePorts(s, "http", bj, gz)...)
		for _, from := range []*lab.Namespace{w.client(bj), w.client(gz), w.host(bj)} {
			if publish {
				w.reaches("tcp", from, to, waiting, ending)
			} else {
				w.refused("tcp", from, to)
			}
		}
		if !publish {
			ready := w.pod("ready", bj)
			w.reaches("tcp", w.client(gz), to, ready)
		}
	}
}

func healthWhenPolicyChanges(w *world) {
	w.join(bjA)
	s := w.service(balancedLocal)
	check := func(s *corev1.Service, node string) netip.AddrPort {
		return at(s.Spec.HealthCheckNodePort, w.Machine(node).Addrs...)[0]
	}
	local := func() {
		w.status(w.host(bj), check(s, bj), http.StatusOK)
		w.status(w.host(bj), check(s, gz), http.StatusServiceUnavailable)
		w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj), bjA)
		w.clientIs(w.Outside(), w.nodePorts(s, "http", bj), w.Outside().Addrs...)
		w.down("tcp", w.Outside(), w.nodePorts(s, "http", gz))
	}
	local()
	old := check(s, bj)
	s = w.update(s, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
	w.down("tcp", w.host(gz), []netip.AddrPort{old})
	w.reaches("tcp", w.Outside(), w.nodePorts(s, "http", bj, gz), bjA)
	s = w.update(s, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	local()
	w.deleteService(s)
	w.down("tcp", w.host(gz), []netip.AddrPort{check(s, bj)})
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
			s.Spec.LoadBalancerSourceRanges = []string{addrOf(w.running(clientPod(from)), lab.IPv4).String() + "/32"}
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
	for _, from := range []*lab.Namespace{w.client(bj), w.client(gz), w.host(bj), w.host(gz)} {
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
