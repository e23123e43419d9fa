package services

import (
	"net/http"
	"net/netip"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

func internalLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
}

func externalLocal(s *corev1.Service) {
	nodePort(s)
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
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
	for _, from := range []*netns.Namespace{w.client(bj), w.host(bj)} {
		w.reaches("tcp", from, vips(s, 80), hostPod(bj))
	}
	for _, from := range []*netns.Namespace{w.client(gz), w.host(gz)} {
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

// lingering goes on serving after SIGTERM.
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

// terminatingInternalCluster: with no ready endpoint left, those that end but still serve are used, wherever
// they run.
func terminatingInternalCluster(w *world) {
	s := w.service()
	one := w.pod("one", bj, lingering)
	clients := []*netns.Namespace{w.client(bj), w.client(gz), w.host(gz)}
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
	for _, from := range []*netns.Namespace{w.Outside(), w.client(gz), w.host(gz)} {
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

// unready does not become ready before the test makes it ready.
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
		for _, from := range []*netns.Namespace{w.client(bj), w.client(gz), w.host(bj)} {
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
