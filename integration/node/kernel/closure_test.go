package kernel

import (
	"net/netip"
	"testing"

	"gridproxy/integration/env/netns"
)

// everyNode asks from a Pod on each node and from the node itself, over both families and
// protocols, and wants exactly the endpoints of the node's unit.
func (w *world) everyNode(endpointsOf map[string][]*netns.Pod) {
	w.t.Helper()
	for _, n := range w.Lab.Nodes() {
		want := endpointsOf[w.Manifests.Node(n.Name).Labels[netns.UnitKey]]
		for f, network := range familiesAndNetworks() {
			for _, from := range []*netns.Namespace{w.Client(n.Name).Namespace, n.Namespace} {
				if want == nil {
					w.refused(from, network, netns.VIP(f, 231))
				} else {
					w.reaches(from, network, netns.VIP(f, 231), want...)
				}
			}
		}
	}
}

// The manual's scenario: every node hears only from its own unit. Then nodes move between
// units, leave all units and come back, and the Service is opened and closed again; every
// time each node's own endpoints and what it may reach move with it.
func TestClosureAndLabels(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b)
		s := netns.NewClosedService("servicegrid-demo-svc", 231)
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2", "gz-3")...)
		var nodes []string
		for _, n := range w.Lab.Nodes() {
			nodes = append(nodes, n.Name)
		}
		w.run(nodes, detect()...)
		home := map[string][]*netns.Pod{
			netns.Beijing:   w.endpoints("bj-1", "bj-3"),
			netns.Guangzhou: w.endpoints("gz-2", "gz-3"),
		}
		w.everyNode(home)

		w.relabel("gz-3", netns.Beijing)
		w.everyNode(map[string][]*netns.Pod{
			netns.Beijing:   w.endpoints("bj-1", "bj-3", "gz-3"),
			netns.Guangzhou: w.endpoints("gz-2"),
		})

		w.relabel("gz-3", "")
		w.everyNode(map[string][]*netns.Pod{
			netns.Beijing:   w.endpoints("bj-1", "bj-3"),
			netns.Guangzhou: w.endpoints("gz-2"),
		})

		w.relabel("gz-3", netns.Guangzhou)
		netns.Confine(s, "")
		w.apply()
		all := w.endpoints("bj-1", "bj-3", "gz-2", "gz-3")
		w.everyNode(map[string][]*netns.Pod{netns.Beijing: all, netns.Guangzhou: all})

		netns.Confine(s, `["location"]`)
		w.apply()
		w.everyNode(home)
	})
}

// A unit without an endpoint is refused at every frontend, from everywhere, whatever the
// traffic policies and however many endpoints other units have.
func TestEmptyUnitIsRefused(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-2", "gz-2")
		s := newExposed("empty-here", 40)
		w.Serve(s, w.endpoints("gz-2")...)
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-2")))
		w.run([]string{"bj-1", "bj-2"}, detect()...)
		refusedEverywhere := func() {
			for _, network := range networks() {
				var frontends []netip.AddrPort
				for _, f := range netns.Families() {
					frontends = append(frontends, netns.VIP(f, 40), w.nodePortOn("bj-2", f), netns.External(f, 40), netns.Balancer(f, 40))
				}
				// Also what the node itself sends to external addresses (decision 29).
				for _, from := range []*netns.Namespace{w.Lab.Node("bj-2").Namespace, w.Client("bj-2").Namespace, w.Outside} {
					w.refused(from, network, frontends...)
				}
			}
		}
		refusedEverywhere()

		// One endpoint in the unit, and it works; when that one goes, it is refused again.
		w.Serve(s, w.endpoints("gz-2", "bj-1")...)
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(w.Client("bj-2").Namespace, "tcp", netns.VIP(f, 40), w.Endpoint("bj-1"))
			w.reaches(w.Outside, "udp", w.nodePortOn("bj-2", f), w.Endpoint("bj-1"))
		}
		w.Serve(s, w.endpoints("gz-2")...)
		w.apply()
		refusedEverywhere()
	})
}
