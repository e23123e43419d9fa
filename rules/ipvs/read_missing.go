package ipvs

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"gridproxy/rules/netfilter"

	"github.com/moby/ipvs"
)

// flagHashed is a flag that the kernel sets.
const flagHashed = 0x2

// addMissing adds to o the servers that /proc left out. The kernel prints that list page by
// page, and loses its place between pages if another network namespace has virtual servers too
// (6.1 to 6.12). Whole groups are then missing, the same ones each time. The list over netlink
// is complete. Real servers are requested only for servers that were missing.
func (k *kernel) addMissing(ctx context.Context, o *kernelState) error {
	var all []*ipvs.Service
	err := k.ask(listTimeout, func(h *ipvs.Handle) (err error) {
		all, err = h.GetServices()
		return err
	})
	if err != nil {
		return fmt.Errorf("listing virtual servers over netlink: %w", err)
	}
	for _, s := range all {
		key, ok := keyFromService(s)
		if _, known := o.Servers[key]; known || !ok {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o.Servers[key] = fromService(key, s)
		destinations, err := k.destinations(s)
		if err != nil {
			return fmt.Errorf("listing the real servers of %s over netlink: %w", key, err)
		}
		for _, d := range destinations {
			peer, ok := fromIP(d.Address)
			if !ok {
				continue
			}
			dk := DestinationKey{Server: key, Addr: netip.AddrPortFrom(peer, d.Port)}
			o.Destinations[dk] = fromDestination(d)
		}
	}
	return nil
}

func (k *kernel) destinations(s *ipvs.Service) (all []*ipvs.Destination, err error) {
	err = k.ask(listTimeout, func(h *ipvs.Handle) (err error) {
		all, err = h.GetDestinations(s)
		return err
	})
	return all, err
}

// keyFromService returns the key of a server; false = it is one of a firewall mark.
func keyFromService(s *ipvs.Service) (ServerKey, bool) {
	addr, ok := fromIP(s.Address)
	if !ok || s.FWMark != 0 {
		return ServerKey{}, false
	}
	return ServerKey{Addr: netip.AddrPortFrom(addr, s.Port), Proto: netfilter.Proto(s.Protocol)}, true
}

func fromService(key ServerKey, s *ipvs.Service) Server {
	out := Server{Scheduler: s.SchedName}
	if s.Flags&flagPersistent != 0 {
		out.Affinity = time.Duration(s.Timeout) * time.Second
		if s.Netmask != toService(key, Server{}).Netmask {
			out.Other += fmt.Sprintf("mask %X ", s.Netmask)
		}
	}
	if other := s.Flags &^ (flagPersistent | flagHashed | flagHashPort); other != 0 {
		out.Other += fmt.Sprintf("flags %x ", other)
	}
	return out
}

func fromDestination(d *ipvs.Destination) Destination {
	out := Destination{Weight: d.Weight}
	switch forward := d.ConnectionFlags & ipvs.ConnFwdMask; forward {
	case ipvs.ConnFwdMasq, ipvs.ConnFwdLocalNode: // masquerading to an address of this machine
	default:
		out.Other = fmt.Sprintf("forward %d", forward)
	}
	return out
}

// countConnections counts the connections, active and inactive, of some real servers. One that
// does not exist is not in the result.
func (k *kernel) countConnections(of map[DestinationKey]time.Time) (map[DestinationKey]int, error) {
	counts := map[DestinationKey]int{}
	servers := uncounted(of, counts)
	if len(servers) > countedMax {
		var err error
		counts, err = withProcServers(func(r io.Reader) (map[DestinationKey]int, error) { return parseProcConnections(r, of) })
		if err != nil {
			return nil, err
		}
		servers = uncounted(of, counts) // /proc left them out: see addMissing
	}
	for server := range servers {
		if err := k.askConnections(server, of, counts); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// uncounted returns the virtual servers of those real servers that are not counted yet.
func uncounted(of map[DestinationKey]time.Time, counts map[DestinationKey]int) map[ServerKey]struct{} {
	servers := map[ServerKey]struct{}{}
	for d := range of {
		if _, counted := counts[d]; !counted {
			servers[d.Server] = struct{}{}
		}
	}
	return servers
}

// askConnections adds to counts the connections of those real servers of a server that are in
// of. It asks over netlink. A server that does not exist adds none.
func (k *kernel) askConnections(server ServerKey, of map[DestinationKey]time.Time, counts map[DestinationKey]int) error {
	listed, err := k.destinations(toService(server, Server{}))
	if err != nil {
		return fmt.Errorf("listing the real servers of %s over netlink: %w", server, err)
	}
	for _, l := range listed {
		peer, _ := fromIP(l.Address)
		d := DestinationKey{Server: server, Addr: netip.AddrPortFrom(peer, l.Port)}
		if has(of, d) {
			counts[d] = l.ActiveConnections + l.InactiveConnections
		}
	}
	return nil
}
