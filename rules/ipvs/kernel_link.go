package ipvs

import (
	"errors"
	"fmt"
	"net/netip"

	"gridproxy/rules/kernelsocket"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// findLink sets link to Link, any kind of link with the name; nil = it does not exist.
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
		return fmt.Errorf("the dummy link %s disappeared right after it was created: another program deletes it", Link)
	}
	return nil
}

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

// addAddress adds an address to Link, which must exist. One that exists is no error.
func (k *kernel) addAddress(a netip.Addr) error {
	k.sent.Addresses++
	if err := k.links.AddrAdd(k.link, kernelsocket.HostAddr(a)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding address %s to link %s: %w", a, Link, err)
	}
	return nil
}

// deleteAddress deletes an address of Link and its source route. A missing one is no error.
func (k *kernel) deleteAddress(a netip.Addr) error {
	if k.link == nil {
		return nil
	}
	if err := k.deleteSourceRoute(a); err != nil {
		return err
	}
	k.sent.Addresses++
	err := k.links.AddrDel(k.link, kernelsocket.HostAddr(a))
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("deleting address %s from link %s: %w", a, Link, err)
	}
	return nil
}

// readAddresses looks Link up and lists its addresses, without link-local ones of the kernel.
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
		if errors.Is(err, netlink.ErrDumpInterrupted) && try < linkTriesMax {
			continue // it changed meanwhile, so the list may be incomplete
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
