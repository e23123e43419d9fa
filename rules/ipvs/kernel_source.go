package ipvs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addSourceRoute gives this machine's own new connections to an address of Link another source,
// unless it was called for the address before. The kernel's choice is the address itself, with
// which they would end. Open connections keep their source. Routes of other programs to the
// address stay.
func (k *kernel) addSourceRoute(a, source netip.Addr) error {
	if done, err := k.hasSourceRoute(a); err != nil || done || k.link == nil {
		return err
	}
	route := k.sourceRoute(a)
	route.Src = toIP(source)
	k.sent.Addresses++
	add := k.links.RouteAddEcmp // without NLM_F_EXCL: before the kernel's own, which stays
	if a.Is6() {
		add = k.links.RouteAdd // with a metric of its own
	}
	if err := add(route); err != nil {
		return fmt.Errorf("adding a route to %s with source %s: %w", a, source, err)
	}
	k.sourceRoutes[a] = struct{}{}
	if a.Is4() {
		return nil
	}
	own := *route
	own.LinkIndex, own.Src, own.Priority = k.link.Attrs().Index, nil, 0
	if err := k.links.RouteDel(&own); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("deleting the first route to %s: %w", a, err)
	}
	return nil
}

// hasSourceRoute reports whether addSourceRoute was called for an address, by any process.
func (k *kernel) hasSourceRoute(a netip.Addr) (bool, error) {
	err := k.findSourceRoutes()
	_, done := k.sourceRoutes[a]
	return done, err
}

// sourceTo returns the source address that this machine would have to an address of Link if the
// address were elsewhere: the one to the next address that is not on Link, else the one to near.
// It is not an address on Link itself.
func (k *kernel) sourceTo(a, near netip.Addr, onLink map[netip.Addr]struct{}) (netip.Addr, error) {
	beside := a.Next()
	for has(onLink, beside) {
		beside = beside.Next()
	}
	err := errors.New("no route has a source")
	for _, to := range []netip.Addr{beside, near} {
		if !to.IsValid() {
			continue
		}
		routes, errGet := k.links.RouteGet(toIP(to))
		if errGet != nil {
			err = errGet // no default route, perhaps
			continue
		}
		for _, r := range routes {
			source, ok := netip.AddrFromSlice(r.Src)
			// The source to an address of this machine is that address.
			if source = source.Unmap(); ok && !has(onLink, source) && (to == near || r.Type != unix.RTN_LOCAL) {
				return source, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("finding a source address for connections to %s: %w", a, err)
}

// findSourceRoutes reads once for which addresses of Link addSourceRoute was called, by this
// process or by one before it.
func (k *kernel) findSourceRoutes() error {
	if k.sourceRoutes != nil || k.link == nil {
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
		a, ok := netip.AddrFromSlice(r.Dst.IP)
		if a = a.Unmap(); ok && has(addresses, a) && r.LinkIndex == k.sourceRoute(a).LinkIndex {
			found[a] = struct{}{}
		}
	}
	k.sourceRoutes = found
	return nil
}

// deleteSourceRoute deletes the route of addSourceRoute: the kernel does not delete it with the
// address. It must come before the address is deleted, because only the address says that the route
// is ours.
func (k *kernel) deleteSourceRoute(a netip.Addr) error {
	if err := k.findSourceRoutes(); err != nil {
		return err
	}
	if _, there := k.sourceRoutes[a]; !there || k.link == nil {
		return nil
	}
	if err := k.links.RouteDel(k.sourceRoute(a)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("deleting the route to %s: %w", a, err)
	}
	delete(k.sourceRoutes, a)
	return nil
}

// sourceRoute returns the route that keeps an address local. For IPv6 it is on loopback, because
// our link is down, and a link that is down takes no route.
func (k *kernel) sourceRoute(a netip.Addr) *netlink.Route {
	r := &netlink.Route{
		LinkIndex: k.link.Attrs().Index, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST,
		Dst: &net.IPNet{IP: toIP(a), Mask: net.CIDRMask(a.BitLen(), a.BitLen())},
	}
	if a.Is6() {
		r.LinkIndex, r.Priority = loopbackIndex, sourceMetric
	}
	return r
}

// sourceMetric is the metric of IPv6 routes of addSourceRoute: greater than that of the kernel's
// own routes, and less than the default of ip(8).
const sourceMetric = 512

// loopbackIndex is the index of link lo in every network namespace.
const loopbackIndex = 1
