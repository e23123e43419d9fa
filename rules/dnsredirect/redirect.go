package dnsredirect

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/kernelsocket"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// How long an entry stays that is not renewed, and how often to renew it.
const (
	Expire = 30 * time.Second
	Renew  = 5 * time.Second
)

// Config says where the server answers.
type Config struct {
	Addrs     []netip.Addr // at most one of each family
	Permanent bool         // entries do not end automatically: DNS is refused while no server answers

	Expire time.Duration // in whole seconds; 0 = Expire
}

// Redirect is the redirect of the network namespace of the thread that opened it. One goroutine
// uses it, in that namespace.
type Redirect struct {
	config Config
	links  *netlink.Handle
	sets   *netlink.Handle
	led    [2][]Entry      // in the set of each family
	known  rules.FamilySet // led is what the set holds
}

// Open opens sockets to the kernel, and changes nothing. Close it.
func Open(c Config) (*Redirect, error) {
	c.Expire = cmp.Or(c.Expire, Expire)
	links, err := kernelsocket.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening a netlink socket for addresses: %w", err)
	}
	sets, err := kernelsocket.Open(unix.NETLINK_NETFILTER)
	if err != nil {
		links.Close()
		return nil, fmt.Errorf("opening a netlink socket for ipsets: %w", err)
	}
	return &Redirect{config: c, links: links, sets: sets}, nil
}

// Close leaves everything in the kernel as it is.
func (r *Redirect) Close() {
	r.links.Close()
	r.sets.Close()
}

// Prepare makes what the rules of one family need and the server binds to: the set, and the
// address. What is there stays, and what other programs removed is there again afterwards.
func (r *Redirect) Prepare(f rules.Family) error {
	var errs []error
	for _, a := range r.config.Addrs {
		if rules.FamilyOf(a) == f {
			errs = append(errs, r.ensureSet(f), r.ensureAddress(a))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("preparing to lead DNS queries over %s: %w", f, err)
	}
	return nil
}

// Lead leads these entries to the server, for Expire unless they are permanent. Call it every
// Renew. Prepare must have succeeded once for the family of each. Lead deletes all other
// entries, also those of another process, except in the families in leave. failed has the
// families with an error, whose entries may differ from that.
func (r *Redirect) Lead(entries []Entry, leave rules.FamilySet) (failed rules.FamilySet, err error) {
	var errs []error
	for _, f := range rules.Families() {
		err := r.leadFamily(f, OfFamily(entries, f == rules.IPv6), leave[f])
		failed[f] = err != nil
		errs = append(errs, err)
	}
	return failed, errors.Join(errs...)
}

func (r *Redirect) leadFamily(f rules.Family, entries []Entry, leave bool) error {
	if !r.known[f] {
		led, err := r.readSet(f)
		if err != nil {
			return err
		}
		r.led[f] = led
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, r.addEntry(e))
	}
	led := slices.Clone(entries)
	for _, e := range r.led[f] {
		_, wanted := slices.BinarySearchFunc(entries, e, Compare)
		switch {
		case wanted:
		case leave:
			led = append(led, e)
		default:
			errs = append(errs, r.deleteEntry(e))
		}
	}
	err := errors.Join(errs...)
	r.led[f], r.known[f] = led, err == nil
	return err
}

// Remove takes the addresses and the sets away, and counts those that are there in removal, which
// may say that nothing is to be removed; nil counts nothing. A set that a rule still names stays,
// empty, and is no error: the rules go first.
func (r *Redirect) Remove(removal *rules.Removal) error {
	var errs []error
	for _, f := range rules.Families() {
		exists, err := r.hasSet(f)
		if exists {
			removal.Add("ipset", "sets", 1)
		}
		if exists && !removal.IsDry() {
			err = errors.Join(err, r.flushSet(f), r.destroySet(f))
		}
		errs = append(errs, err)
	}
	r.led, r.known = [2][]Entry{}, rules.FamilySet{}
	for _, a := range r.config.Addrs {
		exists, err := r.hasAddress(a)
		if exists {
			removal.Add("interface "+loopback, "addresses", 1)
		}
		if exists && !removal.IsDry() {
			err = errors.Join(err, r.deleteAddress(a))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
