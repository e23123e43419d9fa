package ipvs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// leaveFromElsewhere makes the machine's own new connections to an address of Link leave from
// the address from which it reaches near. As the kernel has it they leave from the address that they go
// to; then they die with the address. Those that are open keep what they have.
func (k *kernel) leaveFromElsewhere(a, near netip.Addr) error {
	if err := k.findElsewhere(); err != nil {
		return err
	}
	if _, done := k.elsewhere[a]; done || k.link == nil {
		return nil
	}
	routes, err := k.links.RouteGet(addressOf(near))
	if err != nil {
		return fmt.Errorf("finding from where %s is reached: %w", near, err)
	}
	if len(routes) == 0 || routes[0].Src == nil {
		return nil
	}
	route := k.routeFromElsewhere(a)
	route.Src = routes[0].Src
	k.sent.Addresses++
	if err := k.links.RouteReplace(route); err != nil {
		return fmt.Errorf("changing from where %s is reached: %w", a, err)
	}
	k.elsewhere[a] = struct{}{}
	if a.Is4() {
		return nil // the kernel's own route is the one that was replaced
	}
	// IPv6 has both routes, and the kernel's comes first.
	own := *route
	own.LinkIndex, own.Src = k.link.Attrs().Index, nil
	if err := k.links.RouteDel(&own); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("deleting the first route to %s: %w", a, err)
	}
	return nil
}

// findElsewhere looks once for which addresses of Link leaveFromElsewhere has been called, maybe by a
// process before this one.
func (k *kernel) findElsewhere() error {
	if k.elsewhere != nil || k.link == nil {
		return nil
	}
	addresses, err := k.readAddresses()
	if err != nil {
		return err
	}
	found := map[netip.Addr]struct{}{}
	filter := &netlink.Route{Table: unix.RT_TABLE_LOCAL}
	routes, err := k.links.RouteListFiltered(netlink.FAMILY_ALL, filter, netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("listing the local routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Src == nil || r.Src.Equal(r.Dst.IP) {
			continue
		}
		if a, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			if _, ours := addresses[a.Unmap()]; ours {
				found[a.Unmap()] = struct{}{}
			}
		}
	}
	k.elsewhere = found
	return nil
}

// forgetElsewhere deletes the route that leaveFromElsewhere made, which the kernel does not take for the
// one of the address and leaves when that goes. It comes before the address goes: after that nobody
// would know whose route it is.
func (k *kernel) forgetElsewhere(a netip.Addr) error {
	if err := k.findElsewhere(); err != nil {
		return err
	}
	if _, there := k.elsewhere[a]; !there || k.link == nil {
		return nil
	}
	if err := k.links.RouteDel(k.routeFromElsewhere(a)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("deleting the route to %s: %w", a, err)
	}
	delete(k.elsewhere, a)
	return nil
}

// routeFromElsewhere is the route that keeps an address local. That of IPv6 is on loopback: a link that
// is down, as ours is, takes none.
func (k *kernel) routeFromElsewhere(a netip.Addr) *netlink.Route {
	r := &netlink.Route{
		LinkIndex: k.link.Attrs().Index, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST,
		Dst: &net.IPNet{IP: addressOf(a), Mask: net.CIDRMask(a.BitLen(), a.BitLen())},
	}
	if a.Is6() {
		r.LinkIndex = loopback
	}
	return r
}

// loopback is the index of link lo in every network namespace.
const loopback = 1
