package services

import (
	"fmt"
	"net/netip"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// frontend is a way to a Service: the changes that open it, and the addresses once it is made.
type frontend struct {
	open  func(*corev1.Service)
	addrs func(*world, *corev1.Service) []netip.AddrPort
}

func byClusterIP() frontend {
	return frontend{func(*corev1.Service) {}, func(_ *world, s *corev1.Service) []netip.AddrPort { return vips(s, s.Spec.Ports[0].Port) }}
}

func byNodePort() frontend {
	return frontend{nodePort, func(w *world, s *corev1.Service) []netip.AddrPort {
		return w.nodePorts(s, s.Spec.Ports[0].Name, bj)
	}}
}

// byBalancer has an address of one family, which is in no machine's possession.
func byBalancer(open func(*corev1.Service)) frontend {
	return frontend{open, func(w *world, s *corev1.Service) []netip.AddrPort {
		addr := w.balancerAddr()
		w.balance(s, addr.String())
		return at(s.Spec.Ports[0].Port, addr)
	}}
}

func sticky(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }

func loose(s *corev1.Service) {
	s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
}

// affinity: one client, one endpoint.
func affinity(network string, f frontend) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(f.open, ports(portOf(network)), sticky)
		for _, a := range f.addrs(w, s) {
			w.stays(network, w.client(bj), a)
			w.stays(network, w.client(gz), a)
		}
	}
}

func switchAffinity(f frontend) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(f.open)
		to := f.addrs(w, s)
		from := w.client(bj)
		w.reaches("tcp", from, to, shared()...)
		w.update(s, sticky)
		for _, a := range to {
			w.stays("tcp", from, a)
		}
		w.update(s, loose)
		w.reaches("tcp", from, to, shared()...)
	}
}

// stays wants one and the same Pod to answer 15 times in a row.
func (w *world) stays(network string, from *netns.Namespace, to netip.AddrPort) string {
	w.Helper()
	var first string
	wait.Until(w.TB, fmt.Sprintf("%s from %s to %s stays with one Pod", network, from.Name, to), func() (err error) {
		if first, err = w.askWithin(answerDeadline, network, from, to); err != nil {
			return err
		}
		for i := range 14 {
			name, err := w.askWithin(answerDeadline, network, from, to)
			if err != nil {
				return err
			}
			if name != first {
				return fmt.Errorf("%s answered after %d answers of %s", name, i+1, first)
			}
		}
		return nil
	})
	return first
}

// affinityTimeout: who has been silent for longer than the timeout is not held any more. A client
// that chooses again may choose the same endpoint: two clients do all the same one time in 16.
func affinityTimeout(f frontend) func(*world) {
	return func(w *world) {
		const timeout = 3 * time.Second
		w.join(shared()...)
		s := w.service(f.open, sticky, func(s *corev1.Service) {
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(timeout / time.Second))},
			}
		})
		to := f.addrs(w, s)[0]
		clients := []*netns.Namespace{w.client(bj), w.client(gz)}
		held := make([]string, len(clients))
		for i, from := range clients {
			held[i] = w.stays("tcp", from, to)
		}
		silent := time.Now()
		wait.Until(w.TB, "a silence ends the hold", func() error {
			// real time: the kernel ends an affinity after a silence
			if quiet := time.Since(silent); quiet < timeout+time.Second {
				return fmt.Errorf("silent for %s only", quiet)
			}
			for i, from := range clients {
				name, err := w.askWithin(answerDeadline, "tcp", from, to)
				if err != nil {
					return err
				}
				if name != held[i] {
					return nil
				}
			}
			silent = time.Now()
			return fmt.Errorf("%v are still held", held)
		})
	}
}
