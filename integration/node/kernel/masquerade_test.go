package kernel

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

// seen wants exactly these endpoints to answer, and each to have seen the client under one
// address.
func (w *world) seen(from *netns.Namespace, to netip.AddrPort, as netip.Addr, want ...*netns.Pod) {
	w.t.Helper()
	w.holds(func(ctx context.Context) error {
		err := w.hear(netns.Names(want), func() (string, error) {
			a, err := ask(ctx, from, "tcp", to)
			if err == nil && a.Client.Addr() != as {
				err = fmt.Errorf("%s saw %s, want it to see %s", a.Pod, a.Client.Addr(), as)
			}
			return a.Pod, err
		})
		if err != nil {
			return fmt.Errorf("%s to %s: %w", from.Name, to, err)
		}
		return nil
	})
}

// The rows of kube-proxy's table of who is masqueraded, with one endpoint on this node (L),
// one on another of the unit (R) and one in another unit, which must never be seen. A
// client that is not masqueraded and reaches another node's Pod answers it directly, so
// only clients that the lab can route are asked from.
func TestMasquerade(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		for _, c := range []struct {
			name  string
			flags []string
			check func(w *world, f netns.Family, local, cluster *service)
		}{
			{"detector", detect(), func(w *world, f netns.Family, local, cluster *service) {
				pod, node := w.Client("bj-1").Namespace, w.Lab.Node("bj-1").Addr(f)
				both, here := w.endpoints("bj-1", "bj-3"), w.Endpoint("bj-1")
				w.seen(pod, cluster.vip(f), pod.Addr(f), both...)
				w.seen(w.Outside, cluster.vip(f), node, both...)
				w.seen(w.self(f), cluster.vip(f), node, both...)
				for _, to := range cluster.outer(w, f) {
					w.seen(pod, to, node, both...)
					w.seen(w.Outside, to, node, both...)
					w.seen(w.self(f), to, node, both...)
				}
				w.seen(pod, local.vip(f), pod.Addr(f), here)
				w.seen(w.self(f), local.vip(f), node, here)
				for _, to := range local.outer(w, f) {
					w.seen(pod, to, pod.Addr(f), both...) // the short cut for Pods
					w.seen(w.Outside, to, w.Outside.Addr(f), here)
					w.seen(w.self(f), to, node, both...)
				}
			}},
			{"no detector", nil, func(w *world, f netns.Family, local, cluster *service) {
				pod, node := w.Client("bj-1").Namespace, w.Lab.Node("bj-1").Addr(f)
				both, here := w.endpoints("bj-1", "bj-3"), w.Endpoint("bj-1")
				w.seen(pod, cluster.vip(f), pod.Addr(f), both...)
				for _, to := range cluster.outer(w, f) {
					w.seen(pod, to, node, both...)
				}
				w.seen(w.Outside, local.vip(f), w.Outside.Addr(f), here)
				self := second(f)
				if w.backend.mode == modeIPVS {
					self = node // what a node sends to itself would come from the cluster IP
				}
				w.seen(w.self(f), local.vip(f), self, here)
				for _, to := range local.outer(w, f) {
					w.seen(pod, to, pod.Addr(f), here)
				}
			}},
			{"masquerade all", append(detect(), "--masquerade-all"), func(w *world, f netns.Family, local, cluster *service) {
				pod, node := w.Client("bj-1").Namespace, w.Lab.Node("bj-1").Addr(f)
				w.seen(pod, cluster.vip(f), node, w.endpoints("bj-1", "bj-3")...)
				w.seen(pod, local.vip(f), node, w.Endpoint("bj-1"))
				for _, to := range local.outer(w, f) {
					w.seen(w.Outside, to, w.Outside.Addr(f), w.Endpoint("bj-1"))
				}
			}},
			{"interfaces", []string{"--detect-local-mode", "InterfaceNamePrefix", "--pod-interface-name-prefix", "veth"}, func(w *world, f netns.Family, local, cluster *service) {
				pod, node := w.Client("bj-1").Namespace, w.Lab.Node("bj-1").Addr(f)
				w.seen(pod, cluster.vip(f), pod.Addr(f), w.endpoints("bj-1", "bj-3")...)
				w.seen(w.Outside, cluster.vip(f), node, w.endpoints("bj-1", "bj-3")...)
				for _, to := range local.outer(w, f) {
					w.seen(pod, to, pod.Addr(f), w.endpoints("bj-1", "bj-3")...)
				}
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
				cluster, local := newServiceAt("cluster", 80, nodePort), newServiceAt("local", 81, nodePort+1)
				local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
				local.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
				for _, s := range []*service{cluster, local} {
					w.Serve(s.Service, w.endpoints("bj-1", "bj-3", "gz-2")...)
				}
				w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
				for _, f := range netns.Families() {
					w.Must(w.Lab.Node("bj-1").AddAddr(second(f)))
				}
				w.run([]string{"bj-1"}, c.flags...)
				for _, f := range netns.Families() {
					c.check(w, f, local, cluster)
				}
			})
		}
	})
}

// self is the node as a client under its second address, which tells whether it is
// masqueraded: then it is seen under its first one.
func (w *world) self(f netns.Family) *netns.Namespace { return w.Lab.Node("bj-1").As(second(f)) }

// service is a Service with every kind of frontend, and where they are.
type service struct {
	*corev1.Service
	last     byte
	nodePort uint16
}

func newServiceAt(name string, last byte, port uint16) *service {
	s := newExposed(name, last)
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = int32(port)
	}
	return &service{Service: s, last: last, nodePort: port}
}

func (s *service) vip(f netns.Family) netip.AddrPort { return netns.VIP(f, s.last) }

// outer are the frontends that the external traffic policy is about.
func (s *service) outer(w *world, f netns.Family) []netip.AddrPort {
	return []netip.AddrPort{
		netip.AddrPortFrom(w.Lab.Node("bj-1").Addr(f), s.nodePort),
		netns.Balancer(f, s.last),
		netns.External(f, s.last),
	}
}

// A Pod that asks its own Service may also get the answer from its own server, and then sees its
// node as the client, without any detector.
func TestHairpin(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3")
		s := netns.NewClosedService("hairpin", 82)
		w.Serve(s, w.Endpoint("bj-1"))
		w.run([]string{"bj-1"})
		pod := w.Endpoint("bj-1")
		for _, f := range netns.Families() {
			w.seen(pod.Namespace, netns.VIP(f, 82), w.Lab.Node("bj-1").Addr(f), pod)
			w.reaches(pod.Namespace, "udp", netns.VIP(f, 82), pod)
		}
		w.Serve(s, w.endpoints("bj-1", "bj-3")...)
		w.apply()
		for f, network := range familiesAndNetworks() {
			w.reaches(pod.Namespace, network, netns.VIP(f, 82), w.endpoints("bj-1", "bj-3")...)
		}
	})
}
