package services

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// The granular checks: one kind of client, one protocol, one family, and every address of a Service.

func (w *world) frontends(f netns.Family, s *corev1.Service) []netip.AddrPort {
	p := s.Spec.Ports[0]
	return only(f, append(vips(s, p.Port), w.nodePorts(s, p.Name, bj, gz)...))
}

func toService(network string, f netns.Family, client func(*world) *netns.Namespace) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(nodePort, ports(portOf(network)))
		w.reaches(network, client(w), w.frontends(f, s), shared()...)
	}
}

func updateEndpoints(network string, f netns.Family) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(nodePort, ports(portOf(network)))
		w.reaches(network, w.client(bj), w.frontends(f, s), shared()...)
		w.leave(bjA)
		w.reaches(network, w.client(bj), w.frontends(f, s), bjB, gzA, gzB)
	}
}

// updateNodePort: the number goes, the Service stays.
func updateNodePort(network string) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(nodePort, ports(portOf(network)))
		p := s.Spec.Ports[0]
		old := w.nodePorts(s, p.Name, bj, gz)
		w.reaches(network, w.client(bj), old, shared()...)
		w.update(s, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, ""
			s.Spec.Ports[0].NodePort = 0
		})
		w.down(network, w.client(bj), old)
		w.reaches(network, w.client(bj), vips(s, p.Port), shared()...)
	}
}

func basicNodePortUDP(w *world) {
	w.join(shared()...)
	s := w.service(nodePort, ports(udp80()))
	for _, from := range []*netns.Namespace{w.client(bj), w.host(gz), w.Outside()} {
		w.reaches("udp", from, w.nodePorts(s, "datagrams", bj, gz), shared()...)
	}
}

// largeRequests need more than one packet.
func largeRequests(network string, f netns.Family) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(ports(portOf(network)))
		to := only(f, vips(s, 80))[0]
		message := strings.Repeat("0123456789", 400)
		w.reaches(network, w.client(bj), []netip.AddrPort{to}, shared()...)
		for range 8 {
			got, err := w.echo(network, w.client(bj), to, message)
			w.must(err)
			if got != message {
				w.Fatalf("%d bytes came back of %d", len(got), len(message))
			}
		}
	}
}

// echo has a message sent back. Over UDP it asks again, since a datagram may be lost.
func (w *world) echo(network string, from *netns.Namespace, to netip.AddrPort, message string) (got string, err error) {
	if network == "tcp" {
		w.page(from, to, "/echo?msg="+message, func(p netns.Page) error {
			got = strings.TrimSpace(string(p.Text))
			return wantOK(p)
		})
		return got, nil
	}
	wait.Until(w.TB, "an echo of "+to.String(), func() error {
		ctx, cancel := context.WithTimeout(w.Context(), answerDeadline)
		defer cancel()
		conn, err := from.Dial(ctx, network, to)
		if err != nil {
			return err
		}
		defer conn.Close()
		got, err = askOn(ctx, conn, "echo "+message)
		return err
	})
	return got, nil
}

// hostEndpoints: the servers are on the machines' own network, and so are some of the clients.
func hostEndpoints(families ...netns.Family) func(*world) {
	return func(w *world) {
		w.join(hostPod(bj), hostPod(gz))
		s := w.service(nodePort, ports(
			port("http", corev1.ProtocolTCP, 80, hostPort), port("datagrams", corev1.ProtocolUDP, 81, hostPort)))
		for _, f := range families {
			for _, from := range []*netns.Namespace{w.client(bj), w.host(bj), w.host(gz)} {
				tcp := only(f, append(vips(s, 80), w.nodePorts(s, "http", bj, gz)...))
				w.reaches("tcp", from, tcp, hostPod(bj), hostPod(gz))
				udp := only(f, append(vips(s, 81), w.nodePorts(s, "datagrams", bj, gz)...))
				w.reaches("udp", from, udp, hostPod(bj), hostPod(gz))
			}
		}
	}
}

// families of a Service's cluster IPs, as they are asked for and as they are given.
func clusterIPs(policy corev1.IPFamilyPolicy, families ...netns.Family) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(func(s *corev1.Service) {
			s.Spec.IPFamilyPolicy = &policy
			for _, f := range families {
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(f))
			}
		})
		if len(families) == 0 {
			families = []netns.Family{netns.IPv4} // the cluster's first
		}
		var given []netns.Family
		for _, a := range vips(s, 80) {
			given = append(given, familyOf(a.Addr()))
		}
		if !slices.Equal(given, families) {
			w.Fatalf("service %s has cluster IPs of %v, want %v", s.Name, given, families)
		}
		w.reaches("tcp", w.client(bj), vips(s, 80), shared()...)
		w.reaches("tcp", w.host(gz), vips(s, 80), shared()...)
	}
}

func familyOf(a netip.Addr) netns.Family {
	if netns.IPv6.Has(a) {
		return netns.IPv6
	}
	return netns.IPv4
}

func stickyIn(f netns.Family, network string) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(nodePort, ports(portOf(network)), sticky)
		for _, a := range w.frontends(f, s) {
			w.stays(network, w.client(bj), a)
		}
		w.update(s, loose)
		w.reaches(network, w.client(bj), w.frontends(f, s), shared()...)
	}
}

func wantOK(p netns.Page) error {
	return wait.Check(p.Code == 200, "it answers %d: %s", p.Code, p.Text)
}
