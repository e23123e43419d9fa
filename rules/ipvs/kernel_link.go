package ipvs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries is how often a list that changed while the kernel told it is asked for again.
const dumpTries = 5

// findLink looks Link up. Whatever kind of link has the name is taken.
func (k *kernel) findLink() error {
	link, err := k.links.LinkByName(Link)
	switch {
	case errors.As(err, new(netlink.LinkNotFoundError)):
		k.link = nil
		return nil
	case err != nil:
		return fmt.Errorf("looking for link %s: %w", Link, err)
	}
	k.link = link
	return nil
}

// ensureLink makes Link if it is not there.
func (k *kernel) ensureLink() error {
	if k.link != nil {
		return nil
	}
	k.sent.Links++
	err := k.links.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: Link}})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding the dummy link %s: %w", Link, err)
	}
	if err := k.findLink(); err != nil {
		return err
	}
	if k.link == nil {
		return fmt.Errorf("the dummy link %s has gone right after it was made: somebody deletes it", Link)
	}
	return nil
}

// deleteLink deletes Link with its addresses.
func (k *kernel) deleteLink() error {
	if err := k.findLink(); err != nil || k.link == nil {
		return err
	}
	k.sent.Links++
	err := k.links.LinkDel(k.link)
	k.link, k.sourceRoutes = nil, nil
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("deleting link %s: %w", Link, err)
	}
	return nil
}

// addAddress puts an address on Link, which must be there. One that is there is no error.
func (k *kernel) addAddress(a netip.Addr) error {
	k.sent.Addresses++
	if err := k.links.AddrAdd(k.link, linkAddress(a)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding address %s to link %s: %w", a, Link, err)
	}
	return nil
}

// deleteAddress takes an address off Link. One that has gone is no error.
func (k *kernel) deleteAddress(a netip.Addr) error {
	if k.link == nil {
		return nil
	}
	if err := k.deleteSourceRoute(a); err != nil {
		return err
	}
	k.sent.Addresses++
	err := k.links.AddrDel(k.link, linkAddress(a))
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("deleting address %s from link %s: %w", a, Link, err)
	}
	return nil
}

// linkAddress is an address on its own, at once usable: no neighbour is asked whether he has
// it too.
func linkAddress(a netip.Addr) *netlink.Addr {
	out := &netlink.Addr{IPNet: &net.IPNet{IP: toIP(a), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if a.Is6() {
		out.Flags = unix.IFA_F_NODAD
	}
	return out
}

// readAddresses lists the addresses on Link. Link-local ones are the kernel's own.
func (k *kernel) readAddresses() (map[netip.Addr]struct{}, error) {
	if err := k.findLink(); err != nil {
		return nil, err
	}
	found := map[netip.Addr]struct{}{}
	if k.link == nil {
		return found, nil
	}
	for try := 1; ; try++ {
		all, err := k.links.AddrList(k.link, netlink.FAMILY_ALL)
		if errors.Is(err, netlink.ErrDumpInterrupted) && try < dumpTries {
			continue // it changed meanwhile, so the list may be short
		}
		if err != nil {
			return nil, fmt.Errorf("listing the addresses of link %s: %w", Link, err)
		}
		for _, a := range all {
			if ip, ok := netip.AddrFromSlice(a.IP); ok && !ip.Unmap().IsLinkLocalUnicast() {
				found[ip.Unmap()] = struct{}{}
			}
		}
		return found, nil
	}
}
