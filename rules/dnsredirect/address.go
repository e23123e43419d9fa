package dnsredirect

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules/kernelsocket"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loopback is the interface of the server's addresses. It exists on every machine.
const loopback = "lo"

// ensureAddress adds an address to the loopback interface. One that is there stays.
func (r *Redirect) ensureAddress(a netip.Addr) error {
	link, err := r.links.LinkByName(loopback)
	if err == nil {
		err = r.links.AddrAdd(link, kernelsocket.HostAddr(a))
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding address %s of the DNS server to interface %s: %w", a, loopback, err)
	}
	return nil
}

func (r *Redirect) hasAddress(a netip.Addr) (bool, error) {
	link, err := r.links.LinkByName(loopback)
	if err != nil {
		return false, fmt.Errorf("looking for interface %s: %w", loopback, err)
	}
	all, err := r.links.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return false, fmt.Errorf("listing the addresses of interface %s: %w", loopback, err)
	}
	return slices.ContainsFunc(all, func(have netlink.Addr) bool { return have.IP.Equal(a.AsSlice()) }), nil
}

// deleteAddress deletes an address from the loopback interface. One that is not there is no error.
func (r *Redirect) deleteAddress(a netip.Addr) error {
	link, err := r.links.LinkByName(loopback)
	if err == nil {
		err = r.links.AddrDel(link, kernelsocket.HostAddr(a))
	}
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("deleting address %s of the DNS server from interface %s: %w", a, loopback, err)
	}
	return nil
}
