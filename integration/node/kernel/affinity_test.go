package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

// A client with ClientIP affinity keeps its endpoint for as long as the endpoint is in the unit, and
// across a restart of gridproxy; when its endpoint leaves the unit it gets another one. In iptables
// mode it has the same one on every frontend; a virtual server of IPVS knows only its own clients.
func TestAffinity(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := newExposed("sticky", 70)
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(3600))}}
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
		w.run([]string{"bj-1"}, detect()...)
		unit := w.endpoints("bj-1", "bj-3")
		first := map[netns.Family]string{}
		for _, f := range netns.Families() {
			first[f] = w.always(w.Outside, netns.VIP(f, 70), unit)
			for _, to := range []netip.AddrPort{netns.Balancer(f, 70), netns.External(f, 70), w.nodePortOn("bj-1", f)} {
				if one := w.always(w.Outside, to, unit); one != first[f] && b.mode == modeIPTables {
					t.Errorf("%s answers at %s, %s at the cluster IP", one, to, first[f])
				}
			}
		}
		w.Stop("bj-1", true)
		w.run([]string{"bj-1"}, detect()...)
		for _, f := range netns.Families() {
			if again := w.always(w.Outside, netns.VIP(f, 70), unit); again != first[f] {
				t.Errorf("%s: after a restart %s answers, before it %s", f, again, first[f])
			}
		}
		for _, f := range netns.Families() {
			left := w.Pod(first[f]).Spec.Node
			stay := w.endpoints("bj-1", "bj-3")
			stay = slices.DeleteFunc(stay, func(p *netns.Pod) bool { return p.Spec.Node == left })
			w.Serve(s, append(stay, w.Endpoint("gz-2"))...)
			w.apply()
			w.reaches(w.Outside, "tcp", netns.VIP(f, 70), stay...)
			w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
			w.apply()
		}
	})
}

// always asks an address many times and returns the one Pod that answered.
func (w *world) always(from *netns.Namespace, to netip.AddrPort, unit []*netns.Pod) string {
	w.t.Helper()
	var one string
	for range w.rounds(1) {
		a, err := ask(w.t.Context(), from, "tcp", to)
		if err == nil && one != "" && a.Pod != one {
			err = fmt.Errorf("%s answered after %s", a.Pod, one)
		}
		if err == nil && !slices.Contains(netns.Names(unit), a.Pod) {
			err = fmt.Errorf("%s is not in the unit", a.Pod)
		}
		if err != nil {
			w.t.Fatalf("%s: %v", to, err)
		}
		one = a.Pod
	}
	return one
}
