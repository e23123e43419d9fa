package agreement

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"gridproxy/integration/env/wait"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Machines are network namespaces that stand for the node, one for each set of addresses
// it was drawn with, made when first needed: making one takes longer than everything that
// is then done in it. The zero value has none. One goroutine may use it; Close ends it.
type Machines struct {
	byAddrs map[string]netns.NsHandle
}

// Close lets go of the namespaces.
func (m *Machines) Close() error {
	var errs []error
	for _, handle := range m.byAddrs {
		errs = append(errs, handle.Close())
	}
	m.byAddrs = nil
	return errors.Join(errs...)
}

// in runs f on a thread of its own in the namespace whose loopback interface carries the
// addresses. Sockets that f opens stay in that namespace, whoever serves them.
func (m *Machines) in(addrs []netip.Addr, f func() error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and nothing else may run in
		// its namespace.
		runtime.LockOSThread()
		if err := m.enter(addrs); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// enter moves the calling thread.
func (m *Machines) enter(addrs []netip.Addr) error {
	name := fmt.Sprint(addrs)
	if handle, found := m.byAddrs[name]; found {
		return netns.Set(handle)
	}
	handle, err := netns.New()
	if err != nil {
		return fmt.Errorf("making a network namespace: %w", err)
	}
	if m.byAddrs == nil {
		m.byAddrs = map[string]netns.NsHandle{}
	}
	m.byAddrs[name] = handle
	return furnish(addrs)
}

// furnish sets the loopback interface of the thread's namespace up and gives it the
// addresses.
func furnish(addrs []netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("setting the loopback interface up: %w", err)
	}
	for _, addr := range addrs {
		ipNet := &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())}
		// Without duplicate address detection an IPv6 address can be listened on at once.
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet, Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("adding %v to the loopback interface: %w", addr, err)
		}
	}
	// The kernel makes the local routes of IPv6 a moment after the addresses.
	return wait.Usual.For(context.Background(), func(context.Context) error {
		for _, addr := range addrs {
			routes, err := netlink.RouteGet(addr.AsSlice())
			if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_LOCAL {
				return fmt.Errorf("the route to %v in a new network namespace is not local: %v (%w)", addr, routes, err)
			}
		}
		return nil
	})
}
