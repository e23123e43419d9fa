package kernel

import (
	"testing"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

// Policies Local: a node with an endpoint of its own uses only that one, a node without
// one drops what comes from outside, and what Pods and the node itself send to external
// addresses goes to the whole unit, never further.
func TestTrafficPolicies(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-2", "bj-3", "gz-2")
		local := corev1.ServiceInternalTrafficPolicyLocal
		s := newExposed("local", 60)
		s.Spec.InternalTrafficPolicy = &local
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.run([]string{"bj-1", "bj-2"}, detect()...)
		unit := w.endpoints("bj-1", "bj-3")

		w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
		for f, network := range familiesAndNetworks() {
			for _, from := range []*netns.Namespace{w.Client("bj-1").Namespace, w.Lab.Node("bj-1").Namespace} {
				w.reaches(from, network, netns.VIP(f, 60), w.Endpoint("bj-1"))
				w.reaches(from, network, w.nodePortOn("bj-1", f), unit...)
				w.reaches(from, network, netns.Balancer(f, 60), unit...)
			}
			w.reaches(w.Outside, network, w.nodePortOn("bj-1", f), w.Endpoint("bj-1"))
			w.reaches(w.Outside, network, netns.Balancer(f, 60), w.Endpoint("bj-1"))
			w.reaches(w.Outside, network, netns.External(f, 60), w.Endpoint("bj-1"))
		}

		w.Must(w.RouteServicesVia(w.Lab.Node("bj-2")))
		for _, f := range netns.Families() {
			for _, from := range []*netns.Namespace{w.Client("bj-2").Namespace, w.Lab.Node("bj-2").Namespace} {
				w.dropped("bj-2", from, "tcp", netns.VIP(f, 60))
				w.reaches(from, "tcp", w.nodePortOn("bj-2", f), unit...)
				w.reaches(from, "udp", netns.Balancer(f, 60), unit...)
			}
			w.dropped("bj-2", w.Outside, "tcp", w.nodePortOn("bj-2", f))
			w.dropped("bj-2", w.Outside, "udp", netns.Balancer(f, 60))
			w.dropped("bj-2", w.Outside, "tcp", netns.External(f, 60))
		}
	})
}

// ExternalIP and the address of a load balancer lead to the unit, from everywhere.
func TestExternalAddresses(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := newExposed("exposed", 61)
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
		w.run([]string{"bj-1"}, detect()...)
		for f, network := range familiesAndNetworks() {
			for _, from := range []*netns.Namespace{w.Outside, w.Client("bj-1").Namespace, w.Lab.Node("bj-1").Namespace} {
				w.reaches(from, network, netns.External(f, 61), w.endpoints("bj-1", "bj-3")...)
				w.reaches(from, network, netns.Balancer(f, 61), w.endpoints("bj-1", "bj-3")...)
			}
		}
	})
}

// Source ranges shut the load balancer's address to everybody outside of them, Pods
// included, and concern neither NodePorts nor ExternalIPs.
func TestSourceRanges(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1")
		s := newExposed("ranges", 62)
		s.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24", "2001:db8::/64"}
		w.Serve(s, w.endpoints("bj-1")...)
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
		w.run([]string{"bj-1"}, detect()...)
		endpoint, pod := w.Endpoint("bj-1"), w.Client("bj-1").Namespace
		for f, network := range familiesAndNetworks() {
			w.reaches(w.Outside, network, netns.Balancer(f, 62), endpoint)
			w.dropped("bj-1", pod, network, netns.Balancer(f, 62))
			w.reaches(pod, network, netns.External(f, 62), endpoint)
			w.reaches(pod, network, w.nodePortOn("bj-1", f), endpoint)
		}
		s.Spec.LoadBalancerSourceRanges = []string{"010.00.0.0/016", "fd00:0010::/032"} // as older API servers stored them
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(pod, "tcp", netns.Balancer(f, 62), endpoint)
			w.dropped("bj-1", w.Outside, "tcp", netns.Balancer(f, 62))
			w.reaches(w.Outside, "tcp", netns.External(f, 62), endpoint)
		}
	})
}
