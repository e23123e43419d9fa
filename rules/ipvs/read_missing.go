package ipvs

import (
	"fmt"
	"net/netip"
	"time"

	"gridproxy/rules/netfilter"

	"github.com/moby/ipvs"
)

// flagHashed is what the kernel sets itself.
const flagHashed = 0x2

// addMissing adds the servers that /proc left out. The kernel tells that list page by page,
// and loses its place from one page to the next where another network namespace has virtual
// servers too (6.1 to 6.12): whole groups are then missing, each time the same ones. Over
// netlink it tells all; of a server that is there already only that it is.
func (k *kernel) addMissing(o *kernelState) error {
	var all []*ipvs.Service
	err := k.ask(dumpLimit, func(h *ipvs.Handle) (err error) {
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
		o.Servers[key] = fromService(s)
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

// destinations lists the real servers of one virtual server.
func (k *kernel) destinations(s *ipvs.Service) (all []*ipvs.Destination, err error) {
	err = k.ask(dumpLimit, func(h *ipvs.Handle) (err error) {
		all, err = h.GetDestinations(s)
		return err
	})
	return all, err
}

// keyFromService is which server the kernel tells of; false for one of a firewall mark.
func keyFromService(s *ipvs.Service) (ServerKey, bool) {
	addr, ok := fromIP(s.Address)
	if !ok || s.FWMark != 0 {
		return ServerKey{}, false
	}
	return ServerKey{Addr: netip.AddrPortFrom(addr, s.Port), Proto: netfilter.Proto(s.Protocol)}, true
}

func fromService(s *ipvs.Service) Server {
	out := Server{Scheduler: s.SchedName}
	want := toService(ServerKey{Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), 0)}, Server{})
	if len(s.Address) == 16 {
		want = toService(ServerKey{Addr: netip.AddrPortFrom(netip.IPv6Unspecified(), 0)}, Server{})
	}
	if s.Flags&flagPersistent != 0 {
		out.Affinity = time.Duration(s.Timeout) * time.Second
		if s.Netmask != want.Netmask {
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
	case ipvs.ConnFwdMasq, ipvs.ConnFwdLocalNode: // masquerading to an address of the machine's own
	default:
		out.Other = fmt.Sprintf("forward %d", forward)
	}
	return out
}

// mostAsked is of how many virtual servers the connections are asked for one by one. Reading
// /proc costs as much as there are virtual servers.
const mostAsked = 32

// countConnections counts those of some destinations. One that has gone is not in the
// result.
func (k *kernel) countConnections(of map[DestinationKey]time.Time) (map[DestinationKey]int, error) {
	counts := map[DestinationKey]int{}
	servers := uncounted(of, counts)
	if len(servers) > mostAsked {
		var err error
		if counts, err = readProcConnections(of); err != nil {
			return nil, err
		}
		servers = uncounted(of, counts) // left out by /proc: see addMissing
	}
	for server := range servers {
		if err := k.askConnections(server, of, counts); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// uncounted are the virtual servers of those destinations that are not counted yet.
func uncounted(of map[DestinationKey]time.Time, counts map[DestinationKey]int) map[ServerKey]struct{} {
	servers := map[ServerKey]struct{}{}
	for d := range of {
		if _, counted := counts[d]; !counted {
			servers[d.Server] = struct{}{}
		}
	}
	return servers
}

// askConnections counts over netlink those of one server's destinations. A server that has gone
// has none.
func (k *kernel) askConnections(server ServerKey, of map[DestinationKey]time.Time, counts map[DestinationKey]int) error {
	told, err := k.destinations(toService(server, Server{}))
	if err != nil {
		return fmt.Errorf("listing the real servers of %s over netlink: %w", server, err)
	}
	for _, t := range told {
		peer, _ := fromIP(t.Address)
		d := DestinationKey{Server: server, Addr: netip.AddrPortFrom(peer, t.Port)}
		if _, wanted := of[d]; wanted {
			counts[d] = t.ActiveConnections + t.InactiveConnections
		}
	}
	return nil
}
