package dnsredirect

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"gridproxy/rules"
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

func setName(f rules.Family) string {
	return netfilter.SetName(netfilter.Family(f), netfilter.SetLocalDNS)
}

// ensureSet creates the set of a family. One that exists stays.
func (r *Redirect) ensureSet(f rules.Family) error {
	timeout := uint32(r.config.Expire / time.Second)
	options := netlink.IpsetCreateOptions{Family: unix.AF_INET, MaxElements: entriesMax, Timeout: &timeout}
	if f == rules.IPv6 {
		options.Family = unix.AF_INET6
	}
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetCreate(setName(f), setType, options) })
	if err != nil && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_EXIST)) && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("creating ipset %s of type %s: %w%s", setName(f), setType, err, missingModule(err))
	}
	return nil
}

// missingModule returns what to do if the kernel lacks the type of the sets, or sets
// altogether. It returns "" if err has another cause.
func missingModule(err error) string {
	if !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_FIND_TYPE)) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) {
		return ""
	}
	return fmt.Sprintf("; load the module %s on this machine (modprobe -a xt_set %[1]s), "+
		"or install the package that has it, such as linux-modules-extra or kernel-modules-extra", netfilter.SetModule(setType))
}

// listSet lists the set of a family, if it exists.
func (r *Redirect) listSet(f rules.Family) (entries []netlink.IPSetEntry, exists bool, err error) {
	err = kernelsocket.Guarded(func() error {
		found, err := r.sets.IpsetList(setName(f))
		if err == nil {
			entries = found.Entries
		}
		return err
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("listing ipset %s: %w", setName(f), err)
	}
	return entries, true, nil
}

// readSet returns what the set of a family holds; nil if the set does not exist.
func (r *Redirect) readSet(f rules.Family) ([]Entry, error) {
	entries, _, err := r.listSet(f)
	var all []Entry
	for _, e := range entries {
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
	return all, err
}

// moduleDir exists once the kernel has ipsets. Asking for a set before would load the module.
const moduleDir = "/sys/module/ip_set"

func (r *Redirect) hasSet(f rules.Family) (bool, error) {
	if _, err := os.Stat(moduleDir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	_, exists, err := r.listSet(f)
	return exists, err
}

// flushSet empties the set of a family. One that does not exist is no error.
func (r *Redirect) flushSet(f rules.Family) error {
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetFlush(setName(f)) })
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("emptying ipset %s: %w", setName(f), err)
	}
	return nil
}

// destroySet destroys the set of a family. One that does not exist, or that a rule names, is no
// error.
func (r *Redirect) destroySet(f rules.Family) error {
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetDestroy(setName(f)) })
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_BUSY)) {
		return fmt.Errorf("destroying ipset %s: %w", setName(f), err)
	}
	return nil
}

// addEntry adds an entry, or renews it.
func (r *Redirect) addEntry(e Entry) error {
	name, entry := e.setName(), setEntry(e)
	entry.Replace = true
	timeout := uint32(r.config.Expire / time.Second)
	if r.config.Permanent {
		timeout = 0
	}
	entry.Timeout = &timeout
	if err := kernelsocket.Guarded(func() error { return r.sets.IpsetAdd(name, entry) }); err != nil {
		return fmt.Errorf("adding %s to ipset %s: %w", e, name, err)
	}
	return nil
}

// deleteEntry deletes an entry. One that has ended is no error.
func (r *Redirect) deleteEntry(e Entry) error {
	err := kernelsocket.Guarded(func() error { return r.sets.IpsetDel(e.setName(), setEntry(e)) })
	if err != nil && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_EXIST)) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("deleting %s from ipset %s: %w", e, e.setName(), err)
	}
	return nil
}

func (e Entry) setName() string { return setName(rules.FamilyOf(e.Addr)) }

func setEntry(e Entry) *netlink.IPSetEntry {
	proto, port := uint8(unix.IPPROTO_UDP), uint16(Port)
	if e.Proto == corev1.ProtocolTCP {
		proto = unix.IPPROTO_TCP
	}
	return &netlink.IPSetEntry{IP: e.Addr.AsSlice(), Protocol: &proto, Port: &port}
}
