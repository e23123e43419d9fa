package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// How long one question may take where an answer is wanted, and where none is.
const (
	answerDeadline = 3 * time.Second
	silence        = 700 * time.Millisecond
)

// vips are the cluster IPs of a Service, all of its families, with one of its ports.
func vips(s *corev1.Service, port int32) []netip.AddrPort {
	var all []netip.AddrPort
	for _, ip := range s.Spec.ClusterIPs {
		all = append(all, netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
	}
	return all
}

// at are some addresses with one port.
func at(port int32, addrs ...netip.Addr) []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range addrs {
		all = append(all, netip.AddrPortFrom(a, uint16(port)))
	}
	return all
}

// nodePorts are all addresses of some machines with the node port of a Service's port.
func (w *world) nodePorts(s *corev1.Service, port string, nodes ...string) []netip.AddrPort {
	w.Helper()
	for _, p := range s.Spec.Ports {
		if p.Name == port && p.NodePort != 0 {
			var all []netip.AddrPort
			for _, node := range nodes {
				all = append(all, at(p.NodePort, w.Machine(node).Addrs...)...)
			}
			return all
		}
	}
	w.Fatalf("service %s has no node port %q", s.Name, port)
	return nil
}

// only are the addresses of one family.
func only(f netns.Family, all []netip.AddrPort) []netip.AddrPort {
	return slices.DeleteFunc(slices.Clone(all), func(a netip.AddrPort) bool { return !f.Has(a.Addr()) })
}

// ask is a question of its own, in a connection or a flow of its own, and the name of the Pod that answers.
func ask(ctx context.Context, network string, from *netns.Namespace, to netip.AddrPort) (string, error) {
	if network == "udp" {
		conn, err := from.Dial(ctx, network, to)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return askOn(ctx, conn, "hostname")
	}
	if network == "sctp" {
		return from.AskStream(ctx, unix.IPPROTO_SCTP, to, "hostname")
	}
	page, err := from.Get(ctx, to, "/hostname")
	if err == nil {
		err = wantOK(page)
	}
	return strings.TrimSpace(string(page.Text)), err
}

func askOn(ctx context.Context, conn net.Conn, question string) (string, error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(question)); err != nil {
		return "", err
	}
	buf := make([]byte, 65535)
	n, err := conn.Read(buf)
	return strings.TrimSpace(string(buf[:n])), err
}

// reaches wants exactly these Pods to answer at each address, sooner or later.
func (w *world) reaches(network string, from *netns.Namespace, to []netip.AddrPort, want ...string) {
	w.Helper()
	w.someAddress(to)
	wait.Until(w.TB, fmt.Sprintf("%s from %s to %v reaches %v", network, from.Name, to, want), func() error {
		for _, a := range to {
			err := netns.Hear(want, 8*len(want), 25*len(want), func() (string, error) {
				return w.askWithin(answerDeadline, network, from, a)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", a, err)
			}
		}
		return nil
	})
}

func (w *world) someAddress(to []netip.AddrPort) {
	w.Helper()
	if len(to) == 0 {
		w.Fatal("no address to ask")
	}
}

// refused expects, at each address, the answer that no process listens. TCP may see it only a
// second later: when the answer comes while the sender is still sending, the kernel heeds it after
// the first retransmission.
func (w *world) refused(network string, from *netns.Namespace, to []netip.AddrPort) {
	w.Helper()
	w.fails("is refused", network, from, to, func(a netip.AddrPort) error {
		name, err := w.askWithin(answerDeadline, network, from, a)
		switch {
		case err == nil:
			return fmt.Errorf("%s: %s answered", a, name)
		// A datagram that is rejected where it is sent fails with EPERM already as it is sent.
		case errors.Is(err, syscall.ECONNREFUSED), network == "udp" && errors.Is(err, syscall.EPERM):
			return nil
		}
		return fmt.Errorf("%s: %w", a, err)
	})
}

// down wants no answer at any address, in whatever way it is missing, three times in a row. Each time a Pod must answer
// meanwhile: else the machine may be too busy for an answer, and none says nothing.
func (w *world) down(network string, from *netns.Namespace, to []netip.AddrPort) {
	w.Helper()
	w.fails("fails", network, from, to, func(a netip.AddrPort) error {
		for range 3 {
			control := make(chan error, 1)
			go func() {
				_, err := w.askWithin(silence, network, from, w.control(from, a.Addr()))
				control <- err
			}()
			name, err := w.askWithin(silence, network, from, a)
			busy := <-control
			switch {
			case err == nil:
				return fmt.Errorf("%s: %s answered", a, name)
			case busy != nil:
				return fmt.Errorf("%s: %w; but neither is a Pod heard: %w", a, err, busy)
			}
		}
		return nil
	})
}

// control is a Pod on another machine than that of the client, by its own address, of the family of an address.
func (w *world) control(from *netns.Namespace, like netip.Addr) netip.AddrPort {
	node := gz
	if from == w.client(gz) || from == w.host(gz) {
		node = bj
	}
	for _, a := range w.clientAddrs(node) {
		if a.Is4() == like.Is4() {
			return netip.AddrPortFrom(a, 8080)
		}
	}
	return netip.AddrPort{} // which no client can ask
}

// fails asks at all addresses at the same time.
func (w *world) fails(how, network string, from *netns.Namespace, to []netip.AddrPort, try func(netip.AddrPort) error) {
	w.Helper()
	w.someAddress(to)
	wait.Until(w.TB, fmt.Sprintf("%s from %s to %v %s", network, from.Name, to, how), func() error { return wait.Each(to, try) })
}

func (w *world) askWithin(d time.Duration, network string, from *netns.Namespace, to netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	return ask(ctx, network, from, to)
}

// page wants one address to answer a path with a text, or with one of several.
func (w *world) page(from *netns.Namespace, to netip.AddrPort, path string, right func(netns.Page) error) {
	w.Helper()
	wait.Until(w.TB, fmt.Sprintf("http://%s%s from %s", to, path, from.Name), func() error {
		ctx, cancel := context.WithTimeout(w.Context(), answerDeadline)
		defer cancel()
		page, err := from.Get(ctx, to, path)
		if err != nil {
			return err
		}
		return right(page)
	})
}

// clientIs wants the server to see a client of one of these addresses.
func (w *world) clientIs(from *netns.Namespace, to []netip.AddrPort, want ...netip.Addr) {
	w.Helper()
	w.someAddress(to)
	for _, a := range to {
		w.page(from, a, "/clientip", func(p netns.Page) error {
			client, err := netip.ParseAddrPort(strings.TrimSpace(string(p.Text)))
			if err != nil {
				return err
			}
			got := client.Addr().Unmap()
			return wait.Check(slices.Contains(want, got), "the server sees %s, want one of %v", got, want)
		})
	}
}

// status wants a health check node port to answer with a code.
func (w *world) status(from *netns.Namespace, to netip.AddrPort, code int) {
	w.Helper()
	w.page(from, to, "/healthz", func(p netns.Page) error {
		return wait.Check(p.Code == code, "it answers %d, want %d: %s", p.Code, code, p.Text)
	})
}
