package ipvs

import (
	"errors"
	"fmt"

	"gridproxy/rules/kernelsocket"
	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// errHashFull is IPSET_ERR_HASH_FULL of linux/netfilter/ipset/ip_set_hash.h.
const errHashFull = nl.IPSetError(nl.IPSET_ERR_TYPE_SPECIFIC)

// ensureSets creates the missing sets of a family, and replaces those of another type. found
// has the types of the sets that exist, and gets those of new ones. A set of another type that
// a rule names is an error.
func (k *kernel) ensureSets(f netfilter.Family, found map[string]string) error {
	for _, s := range knownSets() {
		have, exists := found[s.name]
		if s.kind == "" || have == s.kind || s.family != f {
			continue
		}
		if exists {
			inUse, err := k.destroySet(s.name)
			if err != nil {
				return err
			}
			if inUse {
				return fmt.Errorf("ipset %s is of type %s, not %s, and a rule names it: delete the rules that name it (iptables-save | grep %s), then ipset destroy %s",
					s.name, have, s.kind, s.name, s.name)
			}
		}
		if err := k.createSet(s.name, s.kind, s.family); err != nil {
			return err
		}
		found[s.name] = s.kind
	}
	return nil
}

// createSet creates a set. One that exists is an error.
func (k *kernel) createSet(name, kind string, f netfilter.Family) error {
	k.sent.Sets++
	options := netlink.IpsetCreateOptions{Family: unix.AF_INET, MaxElements: entriesMax}
	if f == netfilter.IPv6 {
		options.Family = unix.AF_INET6
	}
	err := kernelsocket.Guarded(func() error { return k.sets.IpsetCreate(name, kind, options) })
	if err != nil {
		return fmt.Errorf("creating ipset %s of type %s: %w", name, kind, err)
	}
	return nil
}

// destroySet destroys a set. One that does not exist is no error. One that a rule names stays, and
// inUse is true.
func (k *kernel) destroySet(name string) (inUse bool, err error) {
	k.sent.Sets++
	err = kernelsocket.Guarded(func() error { return k.sets.IpsetDestroy(name) })
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, nl.IPSetError(nl.IPSET_ERR_BUSY)):
		return true, nil
	default:
		return false, fmt.Errorf("destroying ipset %s: %w", name, err)
	}
}

// addEntry adds an entry to a set. One that exists is no error.
func (k *kernel) addEntry(e Entry) error {
	k.sent.Entries++
	err := kernelsocket.Guarded(func() error { return k.sets.IpsetAdd(e.Set, setEntry(e)) })
	switch {
	case err == nil, errors.Is(err, nl.IPSetError(nl.IPSET_ERR_EXIST)):
		return nil
	case errors.Is(err, errHashFull):
		return fmt.Errorf("adding %s to ipset %s: the set is full and was created by another program; "+
			"run gridproxy cleanup while gridproxy is stopped, then start it again: %w", e, e.Set, err)
	default:
		return fmt.Errorf("adding %s to ipset %s: %w", e, e.Set, err)
	}
}

// deleteEntry deletes an entry of a set. If the set or the entry does not exist, that is no error.
func (k *kernel) deleteEntry(e Entry) error {
	k.sent.Entries++
	err := kernelsocket.Guarded(func() error { return k.sets.IpsetDel(e.Set, setEntry(e)) })
	if err != nil && !errors.Is(err, nl.IPSetError(nl.IPSET_ERR_EXIST)) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("deleting %s from ipset %s: %w", e, e.Set, err)
	}
	return nil
}

func setEntry(e Entry) *netlink.IPSetEntry {
	out := &netlink.IPSetEntry{IP: toIP(e.Net.Addr())}
	if e.Port != 0 {
		proto, port := uint8(e.Proto), e.Port
		out.Protocol, out.Port = &proto, &port
	}
	if e.Peer.IsValid() {
		out.IP2 = toIP(e.Peer)
	}
	if e.Net.IsValid() && !e.Net.IsSingleIP() {
		out.CIDR = uint8(e.Net.Bits())
	}
	return out
}
