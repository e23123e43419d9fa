package ipvs

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"gridproxy/rules/kernelsocket"

	"github.com/moby/ipvs"
	"golang.org/x/sys/unix"
)

// Flags of a virtual server (linux/ip_vs.h).
const (
	flagPersistent = 0x1
	flagHashPort   = 0x10 // mh: a client's port counts too, as with kube-proxy
)

var errForeign = errors.New("another program has a virtual server there")

func toService(key ServerKey, s Server) *ipvs.Service {
	out := &ipvs.Service{
		Address:       toIP(key.Addr.Addr()),
		Protocol:      uint16(key.Proto),
		Port:          key.Addr.Port(),
		SchedName:     s.Scheduler,
		AddressFamily: unix.AF_INET,
		Netmask:       math.MaxUint32, // each client has a real server of its own
	}
	if key.Addr.Addr().Is6() {
		out.AddressFamily, out.Netmask = unix.AF_INET6, 128
	}
	if s.Affinity > 0 {
		out.Flags |= flagPersistent
		out.Timeout = uint32(s.Affinity / time.Second)
	}
	if s.Scheduler == hashScheduler {
		out.Flags |= flagHashPort
	}
	return out
}

func toDestination(key DestinationKey, d Destination) *ipvs.Destination {
	return &ipvs.Destination{
		Address:         toIP(key.Addr.Addr()),
		Port:            key.Addr.Port(),
		Weight:          d.Weight,
		ConnectionFlags: ipvs.ConnFwdMasq,
	}
}

func toIP(a netip.Addr) net.IP { return net.IP(a.AsSlice()) }

// addServer creates a server. If another program has one there, it returns errForeign.
func (k *kernel) addServer(key ServerKey, s Server) error {
	k.sent.Servers++
	err := k.ask(kernelsocket.AnswerLimit, func(h *ipvs.Handle) error { return h.NewService(toService(key, s)) })
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("adding virtual server %s: %w", key, errForeign)
	case err != nil:
		return fmt.Errorf("adding virtual server %s: %w", key, err)
	}
	return nil
}

// updateServer changes a server and keeps its connections.
func (k *kernel) updateServer(key ServerKey, s Server) error {
	k.sent.Servers++
	err := k.ask(kernelsocket.AnswerLimit, func(h *ipvs.Handle) error { return h.UpdateService(toService(key, s)) })
	if err != nil {
		return fmt.Errorf("changing virtual server %s: %w", key, err)
	}
	return nil
}

// deleteServer deletes a server with its real servers. One that does not exist is no error.
func (k *kernel) deleteServer(key ServerKey) error {
	k.sent.Servers++
	err := k.ask(kernelsocket.AnswerLimit, func(h *ipvs.Handle) error { return h.DelService(toService(key, Server{})) })
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("deleting virtual server %s: %w", key, err)
	}
	return nil
}

// putDestination creates a real server, or changes the weight of the one that exists. exists is
// what to try first: if the kernel says otherwise, the other is done.
func (k *kernel) putDestination(key DestinationKey, d Destination, exists bool) error {
	// Of an address of the other family the kernel would take the first four bytes.
	if key.Addr.Addr().Is4() != key.Server.Addr.Addr().Is4() {
		return fmt.Errorf("adding real server %s to virtual server %s: they are of different families", key.Addr, key.Server)
	}
	put, other := (*ipvs.Handle).NewDestination, (*ipvs.Handle).UpdateDestination
	say := func(call func(*ipvs.Handle, *ipvs.Service, *ipvs.Destination) error) error {
		return k.ask(kernelsocket.AnswerLimit, func(h *ipvs.Handle) error { return call(h, toService(key.Server, Server{}), toDestination(key, d)) })
	}
	if exists {
		put, other = other, put
	}
	k.sent.Destinations++
	err := say(put)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) { // it changed meanwhile
		k.sent.Destinations++
		err = say(other)
	}
	if err != nil {
		return fmt.Errorf("setting real server %s of virtual server %s to weight %d: %w", key.Addr, key.Server, d.Weight, err)
	}
	return nil
}

// deleteDestination deletes a real server. One that does not exist is no error.
func (k *kernel) deleteDestination(key DestinationKey) error {
	k.sent.Destinations++
	err := k.ask(kernelsocket.AnswerLimit, func(h *ipvs.Handle) error {
		return h.DelDestination(toService(key.Server, Server{}), toDestination(key, Destination{}))
	})
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("deleting real server %s of virtual server %s: %w", key.Addr, key.Server, err)
	}
	return nil
}

// setTimeouts sets the timeouts that are not zero; see ipvsadm(8), --set.
func (k *kernel) setTimeouts(t Timeouts) error {
	if t == (Timeouts{}) {
		return nil
	}
	err := k.ask(kernelsocket.AnswerLimit, func(h *ipvs.Handle) error {
		return h.SetConfig(&ipvs.Config{TimeoutTCP: t.TCP, TimeoutTCPFin: t.TCPFin, TimeoutUDP: t.UDP})
	})
	if err != nil {
		return fmt.Errorf("setting the timeouts of IPVS: %w", err)
	}
	return nil
}

func fromIP(ip net.IP) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(ip)
	return a.Unmap(), ok
}
