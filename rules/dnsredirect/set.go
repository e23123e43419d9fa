package dnsredirect

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"gridproxy/rules/kernelsocket"
	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// The set of each family.
const (
	setType    = "hash:ip,port"
	entriesMax = 64 // the cluster IPs of one Service, with two protocols each
)

func setName(ipv6 bool) string {
	family := netfilter.IPv4
	if ipv6 {
		family = netfilter.IPv6
	}
	return netfilter.SetName(family, netfilter.SetLocalDNS)
}

// ensureSet creates the set of a family. One that exists stays.
func (r *Redirect) ensureSet(ipv6 bool) error {
	timeout := uint32(r.config.Expire / time.Second)
	options := netlink.IpsetCreateOptions{Family: unix.AF_INET, MaxElements: entriesMax, Timeout: &timeout}
	if ipv6 {
		options.Family = unix.AF_INET6
	}
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetCreate(setName(ipv6), setType, options) })
	if err != nil && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_EXIST)) && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("creating ipset %s of type %s: %w%s", setName(ipv6), setType, err, missingModule(err))
	}
	return nil
}

// missingModule returns what to do if the kernel lacks the type of the sets, or sets
// altogether. It returns "" if err has another cause.
func missingModule(err error) string {
	if !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_FIND_TYPE)) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) {
		return ""
	}
	return fmt.Sprintf("; load the module %s on this machine (modprobe -a xt_set %[1]s), or install the package that has it, such as linux-modules-extra or kernel-modules-extra", netfilter.SetModule(setType))
}

// readSet returns what the set of a family holds; nil if the set does not exist.
func (r *Redirect) readSet(ipv6 bool) ([]Entry, error) {
	var found *netlink.IPSetResult
	err := kernelsocket.Guarded(func() (err error) {
		found, err = r.sets.IpsetList(setName(ipv6))
		return err
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing ipset %s: %w", setName(ipv6), err)
	}
	var all []Entry
	for _, e := range found.Entries {
		addr, ok := netip.AddrFromSlice(e.IP)
		if !ok || e.Protocol == nil || e.Port == nil || *e.Port != Port {
			continue // another program's, which ends or stays as it wants
		}
		proto := corev1.ProtocolUDP
		if *e.Protocol == unix.IPPROTO_TCP {
			proto = corev1.ProtocolTCP
		}
		all = append(all, Entry{Addr: addr.Unmap(), Proto: proto})
	}
	return all, nil
}

// moduleDir exists once the kernel has ipsets. Asking for a set before would load the module.
const moduleDir = "/sys/module/ip_set"

func (r *Redirect) hasSet(ipv6 bool) (bool, error) {
	if _, err := os.Stat(moduleDir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err := kernelsocket.Guarded(func() error { _, err := r.sets.IpsetList(setName(ipv6)); return err })
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("listing ipset %s: %w", setName(ipv6), err)
	}
	return true, nil
}

// flushSet empties the set of a family. One that does not exist is no error.
func (r *Redirect) flushSet(ipv6 bool) error {
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetFlush(setName(ipv6)) })
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("emptying ipset %s: %w", setName(ipv6), err)
	}
	return nil
}

// destroySet destroys the set of a family. One that does not exist, or that a rule names, is no
// error.
func (r *Redirect) destroySet(ipv6 bool) error {
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetDestroy(setName(ipv6)) })
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_BUSY)) {
		return fmt.Errorf("destroying ipset %s: %w", setName(ipv6), err)
	}
	return nil
}

// addEntry adds an entry, or renews it.
func (r *Redirect) addEntry(e Entry) error {
	entry := setEntry(e)
	entry.Replace = true
	timeout := uint32(r.config.Expire / time.Second)
	if r.config.Permanent {
		timeout = 0
	}
	entry.Timeout = &timeout
	if err := kernelsocket.Guarded(func() error { return r.sets.IpsetAdd(setName(e.Addr.Is6()), entry) }); err != nil {
		return fmt.Errorf("adding %s to ipset %s: %w", e, setName(e.Addr.Is6()), err)
	}
	return nil
}

// deleteEntry deletes an entry. One that has ended is no error.
func (r *Redirect) deleteEntry(e Entry) error {
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetDel(setName(e.Addr.Is6()), setEntry(e)) })
	if err != nil && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_EXIST)) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("deleting %s from ipset %s: %w", e, setName(e.Addr.Is6()), err)
	}
	return nil
}

func setEntry(e Entry) *netlink.IPSetEntry {
	proto, port := uint8(unix.IPPROTO_UDP), uint16(Port)
	if e.Proto == corev1.ProtocolTCP {
		proto = unix.IPPROTO_TCP
	}
	return &netlink.IPSetEntry{IP: e.Addr.AsSlice(), Protocol: &proto, Port: &port}
}
