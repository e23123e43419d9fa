package machines

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"gridproxy/integration/env/netns"

	"github.com/vishvananda/netlink"
)

// fabric is the network between machines: a bridge in a namespace of its own, where the control
// plane runs too. It is the default gateway of every machine, with no route further on: what
// leaves a machine for an unused address comes back as unreachable.
type fabric struct {
	*netns.Namespace
	bridge netlink.Link
}

const uplink = "eth0"

// newFabric makes the bridge, with two addresses of each family: one for each of two API servers.
func newFabric() (*fabric, error) {
	ns, err := netns.NewNamespace("fabric")
	if err != nil {
		return nil, err
	}
	f := &fabric{Namespace: ns}
	f.Addrs = []netip.Addr{fabricAddr4(1), fabricAddr4(2), fabricAddr6(1), fabricAddr6(2)}
	if err := f.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("building the network of the machines: %w", err), ns.Close())
	}
	return f, nil
}

func (f *fabric) build() error {
	if err := f.BeRouter(); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	if err := f.Links().LinkAdd(bridge); err != nil {
		return fmt.Errorf("making the bridge: %w", err)
	}
	f.bridge = bridge
	return address(f.Namespace, "br0", f.Addrs)
}

func fabricAddr4(n byte) netip.Addr { return netip.AddrFrom4([4]byte{172, 30, 0, n}) }

func fabricAddr6(n byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 3: 0x30, 15: n})
}

// plug connects a namespace to a bridge, as host n, and gives it its addresses and a default route.
func (f *fabric) plug(ns *netns.Namespace, n byte, to netlink.Link) error {
	if err := ns.BeRouter(); err != nil {
		return err
	}
	veth := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: ns.Name, MasterIndex: to.Attrs().Index},
		PeerName:         uplink,
		PeerHardwareAddr: net.HardwareAddr{0x02, 0x30, 0, 0, 0, n}, // the same after a reboot: neighbours remember it
		PeerNamespace:    netlink.NsFd(ns.FD()),
	}
	if err := f.Links().LinkAdd(veth); err != nil {
		return fmt.Errorf("plugging %s in: %w", ns.Name, err)
	}
	if err := f.Links().LinkSetUp(veth); err != nil {
		return fmt.Errorf("plugging %s in: %w", ns.Name, err)
	}
	ns.Addrs = []netip.Addr{fabricAddr4(n), fabricAddr6(n)}
	if err := address(ns, uplink, ns.Addrs); err != nil {
		return err
	}
	for _, gateway := range []netip.Addr{fabricAddr4(1), fabricAddr6(1)} {
		everything := netip.PrefixFrom(gateway, 0).Masked()
		if err := route(ns, everything, gateway); err != nil {
			return err
		}
	}
	return nil
}

// unplug removes a namespace's link, which takes the other end with it.
func (f *fabric) unplug(name string) error {
	link, err := f.Links().LinkByName(name)
	if err == nil {
		err = f.Links().LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("unplugging %s: %w", name, err)
	}
	return nil
}

// carry says whether a machine's cable is plugged in.
func (f *fabric) carry(name string, on bool) error {
	link, err := f.Links().LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the cable of %s: %w", name, err)
	}
	set := f.Links().LinkSetDown
	if on {
		set = f.Links().LinkSetUp
	}
	if err := set(link); err != nil {
		return fmt.Errorf("switching the cable of %s: %w", name, err)
	}
	return nil
}

// address gives a link addresses in the ranges of the fabric and sets it up.
func address(ns *netns.Namespace, name string, addrs []netip.Addr) error {
	link, err := ns.Links().LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s on %s: %w", name, ns.Name, err)
	}
	if err := ns.Links().LinkSetUp(link); err != nil {
		return fmt.Errorf("setting link %s on %s up: %w", name, ns.Name, err)
	}
	for _, a := range addrs {
		bits := 24
		if a.Is6() {
			bits = 64
		}
		ipNet := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
		if err := ns.Links().AddrAdd(link, &netlink.Addr{IPNet: ipNet}); err != nil {
			return fmt.Errorf("adding address %s on %s: %w", a, ns.Name, err)
		}
	}
	return nil
}

func route(ns *netns.Namespace, dst netip.Prefix, via netip.Addr) error {
	r := &netlink.Route{
		Dst: &net.IPNet{IP: dst.Addr().AsSlice(), Mask: net.CIDRMask(dst.Bits(), dst.Addr().BitLen())},
		Gw:  via.AsSlice(),
	}
	if err := ns.Links().RouteReplace(r); err != nil {
		return fmt.Errorf("adding a route to %s via %s on %s: %w", dst, via, ns.Name, err)
	}
	return nil
}
