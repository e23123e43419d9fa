package kernel

import (
	"net/netip"
	"testing"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

func nodePortService() *corev1.Service {
	s := netns.NewClosedService("node-port", 50)
	s.Spec.Type = corev1.ServiceTypeNodePort
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = nodePort
	}
	return s
}

var (
	loopback4 = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), nodePort)
	loopback6 = netip.AddrPortFrom(netip.IPv6Loopback(), nodePort)
)

// second is one more address of a node, of each family.
func second(f netns.Family) netip.Addr {
	return f.Pick(netip.AddrFrom4([4]byte{192, 168, 77, 1}), netip.MustParseAddr("fd00:77::1"))
}

// A NodePort answers on every address of every node, for everybody, with endpoints of the
// unit of the node that was asked; on loopback only over IPv4.
func TestNodePort(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		w.Serve(nodePortService(), w.endpoints("bj-1", "bj-3", "gz-2")...)
		for _, f := range netns.Families() {
			w.Must(w.Lab.Node("bj-1").AddAddr(second(f)))
		}
		w.run([]string{"bj-1", "gz-2"}, detect()...)
		beijing, guangzhou := w.endpoints("bj-1", "bj-3"), w.endpoints("gz-2")
		for f, network := range familiesAndNetworks() {
			for _, from := range []*netns.Namespace{w.Outside, w.Client("bj-1").Namespace, w.Client("gz-2").Namespace, w.Lab.Node("bj-1").Namespace, w.Lab.Node("bj-3").Namespace} {
				w.reaches(from, network, w.nodePortOn("bj-1", f), beijing...)
				w.reaches(from, network, w.nodePortOn("gz-2", f), guangzhou...)
			}
			w.reaches(w.Client("bj-1").Namespace, network, netip.AddrPortFrom(second(f), nodePort), beijing...)
		}
		for _, network := range networks() {
			w.reaches(w.Lab.Node("bj-1").Namespace, network, loopback4, beijing...)
			w.refused(w.Lab.Node("bj-1").Namespace, network, loopback6)
		}
	})
}

// With --nodeport-addresses and without localhost NodePorts, other addresses of the node
// do not answer.
func TestNodePortAddresses(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1")
		w.Serve(nodePortService(), w.endpoints("bj-1")...)
		for _, f := range netns.Families() {
			w.Must(w.Lab.Node("bj-1").AddAddr(second(f)))
		}
		w.run([]string{"bj-1"}, append(detect(), "--nodeport-addresses", "192.168.10.0/24,fd00:18::/64")...)
		for _, network := range networks() {
			for _, f := range netns.Families() {
				for _, from := range []*netns.Namespace{w.Outside, w.Client("bj-1").Namespace} {
					w.reaches(from, network, w.nodePortOn("bj-1", f), w.Endpoint("bj-1"))
				}
				w.refused(w.Client("bj-1").Namespace, network, netip.AddrPortFrom(second(f), nodePort))
			}
			w.refused(w.Lab.Node("bj-1").Namespace, network, loopback4)
			w.refused(w.Lab.Node("bj-1").Namespace, network, loopback6)
		}
	})
}

// The keywords of --nodeport-addresses: the node's own addresses and IPv4 loopback answer, another
// address of the node and IPv6 loopback do not.
func TestNodePortKeywords(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1")
		w.Serve(nodePortService(), w.endpoints("bj-1")...)
		node := w.Lab.Node("bj-1")
		for _, f := range netns.Families() {
			w.Must(node.AddAddr(second(f)))
		}
		w.run([]string{"bj-1"}, append(detect(), "--nodeport-addresses", "primary,localhost")...)
		for _, network := range networks() {
			for _, f := range netns.Families() {
				w.reaches(w.Outside, network, w.nodePortOn("bj-1", f), w.Endpoint("bj-1"))
				w.refused(w.Client("bj-1").Namespace, network, netip.AddrPortFrom(second(f), nodePort))
			}
			w.reaches(node.Namespace, network, loopback4, w.Endpoint("bj-1"))
			w.refused(node.Namespace, network, loopback6)
		}
	})
}

// An address that the node gets while gridproxy runs answers too, where NodePorts answer
// on listed addresses.
func TestNodePortOnNewAddress(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1")
		w.Serve(nodePortService(), w.endpoints("bj-1")...)
		w.run([]string{"bj-1"}, append(detect(), "--nodeport-addresses", "192.168.0.0/16,fd00::/16")...)
		for _, f := range netns.Families() {
			w.reaches(w.Client("bj-1").Namespace, "tcp", w.nodePortOn("bj-1", f), w.Endpoint("bj-1"))
			w.Must(w.Lab.Node("bj-1").AddAddr(second(f)))
			w.changing = true
			w.reaches(w.Client("bj-1").Namespace, "tcp", netip.AddrPortFrom(second(f), nodePort), w.Endpoint("bj-1"))
		}
	})
}
