package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"gridproxy/integration/env/wait"

	"github.com/vishvananda/netlink"
)

// Every neighbour is written down when its link is made. Nothing then depends on ARP, on
// neighbour discovery or on their timers, and the first packet gets through.

type mac = net.HardwareAddr

// The second byte of a hardware address tells what it belongs to.
const (
	outsideMAC = 1
	nodeMAC    = 2
	podMAC     = 3
	gatewayMAC = 4
)

func macOf(kind byte, n int) mac {
	return mac{0x02, kind, 0, 0, byte(n >> 8), byte(n)}
}

// The gateways of Pods. No interface has these addresses; the Pod's neighbour entries lead
// to its node.
var (
	podGateway4 = netip.AddrFrom4([4]byte{169, 254, 1, 1})
	podGateway6 = netip.MustParseAddr("fe80::1")
)

// uplink is the name of the interface towards the next bigger thing, in every namespace.
const uplink = "eth0"

func (l *Lab) buildFabric() (err error) {
	if l.fabric, err = newNamespace("fabric", l.spawn); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	if err := l.fabric.links.LinkAdd(bridge); err != nil {
		return fmt.Errorf("making the bridge: %w", err)
	}
	if err := l.fabric.links.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("setting the bridge up: %w", err)
	}
	if l.Outside, err = newNamespace("outside", l.spawn); err != nil {
		return err
	}
	l.Outside.Addrs = []netip.Addr{netip.AddrFrom4([4]byte{203, 0, 113, 2}), netip.MustParseAddr("2001:db8::2")}
	if err := l.Outside.beRouter(); err != nil {
		return err
	}
	return l.plug(l.Outside, macOf(outsideMAC, 0))
}

// plug connects a namespace to the bridge and gives it its addresses.
func (l *Lab) plug(n *Namespace, addr mac) error {
	bridge, err := l.fabric.links.LinkByName("br0")
	if err != nil {
		return fmt.Errorf("finding the bridge: %w", err)
	}
	veth := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: n.Name, MasterIndex: bridge.Attrs().Index},
		PeerName:         uplink,
		PeerHardwareAddr: addr,
		PeerNamespace:    netlink.NsFd(n.ns),
	}
	if err := l.fabric.addUp(veth); err != nil {
		return err
	}
	return n.addressUplink()
}

// connectNodes tells every node and the client outside where the nodes and their Pods are.
func (l *Lab) connectNodes() error {
	var errs []error
	for _, at := range l.nodes {
		errs = append(errs, at.neighbour(l.Outside.Addrs, macOf(outsideMAC, 0)))
		errs = append(errs, l.Outside.neighbour(at.Addrs, at.mac))
		for _, pods := range at.Spec.PodCIDRs {
			errs = append(errs, l.Outside.route(pods, at.Addr(FamilyOf(pods.Addr()))))
		}
		for _, to := range l.nodes {
			if to == at {
				continue
			}
			errs = append(errs, at.neighbour(to.Addrs, to.mac))
			for _, pods := range to.Spec.PodCIDRs {
				errs = append(errs, at.route(pods, to.Addr(FamilyOf(pods.Addr()))))
			}
		}
		for _, gateway := range l.Outside.Addrs {
			everything, err := gateway.Prefix(0)
			errs = append(errs, err, at.route(everything, gateway))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("connecting the nodes: %w", err)
	}
	return nil
}

func (n *Node) attach(p *Pod, addr mac) error {
	gateway := macOf(gatewayMAC, n.veth)
	veth := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: fmt.Sprintf("veth%d", n.veth), HardwareAddr: gateway},
		PeerName:         uplink,
		PeerHardwareAddr: addr,
		PeerNamespace:    netlink.NsFd(p.ns),
	}
	n.veth++
	if err := n.addUp(veth); err != nil {
		return err
	}
	if err := p.addressUplink(); err != nil {
		return err
	}
	errs := []error{p.neighbour([]netip.Addr{podGateway4, podGateway6}, gateway)}
	for _, a := range p.Addrs {
		errs = append(errs, n.neighbourOn(veth.Attrs().Index, a, addr))
		everything, err := a.Prefix(0)
		errs = append(errs, err, p.route(everything, FamilyOf(a).Pick(podGateway4, podGateway6)))
	}
	return errors.Join(errs...)
}

func (n *Namespace) addUp(link netlink.Link) error {
	if err := n.links.LinkAdd(link); err != nil {
		return fmt.Errorf("making link %s on %s: %w", link.Attrs().Name, n.Name, err)
	}
	if err := n.links.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting link %s on %s up: %w", link.Attrs().Name, n.Name, err)
	}
	return nil
}

// addressUplink gives the uplink and loopback their addresses and sets them up.
func (n *Namespace) addressUplink() error {
	for _, name := range []string{"lo", uplink} {
		link, err := n.links.LinkByName(name)
		if err != nil {
			return fmt.Errorf("finding link %s on %s: %w", name, n.Name, err)
		}
		if err := n.links.LinkSetUp(link); err != nil {
			return fmt.Errorf("setting link %s on %s up: %w", name, n.Name, err)
		}
	}
	for _, a := range n.Addrs {
		if err := n.AddAddr(a); err != nil {
			return err
		}
	}
	return nil
}

// AddAddr gives the namespace one more address.
func (n *Namespace) AddAddr(a netip.Addr) error {
	link, err := n.links.LinkByName(uplink)
	if err != nil {
		return fmt.Errorf("finding link %s on %s: %w", uplink, n.Name, err)
	}
	addr := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))}
	if err := n.links.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("adding address %s on %s: %w", a, n.Name, err)
	}
	return nil
}

// neighbour makes addresses reachable through the uplink: where they are, and whose they are.
func (n *Namespace) neighbour(addrs []netip.Addr, to mac) error {
	link, err := n.links.LinkByName(uplink)
	if err != nil {
		return fmt.Errorf("finding link %s on %s: %w", uplink, n.Name, err)
	}
	var errs []error
	for _, a := range addrs {
		errs = append(errs, n.neighbourOn(link.Attrs().Index, a, to))
	}
	return errors.Join(errs...)
}

func (n *Namespace) neighbourOn(link int, a netip.Addr, to mac) error {
	neigh := &netlink.Neigh{LinkIndex: link, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: to}
	if err := n.links.NeighSet(neigh); err != nil {
		return fmt.Errorf("adding neighbour %s on %s: %w", a, n.Name, err)
	}
	if a.IsLinkLocalUnicast() && a.Is6() {
		return nil // on every link as it is
	}
	route := &netlink.Route{LinkIndex: link, Scope: netlink.SCOPE_LINK, Dst: ipNet(netip.PrefixFrom(a, a.BitLen()))}
	if err := n.links.RouteReplace(route); err != nil {
		return fmt.Errorf("adding a route to %s on %s: %w", a, n.Name, err)
	}
	return nil
}

func (n *Namespace) route(dst netip.Prefix, via netip.Addr) error {
	link, err := n.links.LinkByName(uplink)
	if err != nil {
		return fmt.Errorf("finding link %s on %s: %w", uplink, n.Name, err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(dst), Gw: via.AsSlice()}
	if err := n.links.RouteReplace(route); err != nil {
		return fmt.Errorf("adding a route to %s via %s on %s: %w", dst, via, n.Name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// FamilyOf returns the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

func (l *Lab) waitForLinks(ctx context.Context) error {
	return wait.For(ctx, func(context.Context) error {
		for _, n := range l.namespaces() {
			links, err := n.links.LinkList()
			if err != nil {
				return fmt.Errorf("listing the links of %s: %w", n.Name, err)
			}
			for _, link := range links {
				a := link.Attrs()
				if a.Flags&net.FlagUp != 0 && a.Name != "lo" && a.OperState != netlink.OperUp {
					return fmt.Errorf("link %s on %s is %s", a.Name, n.Name, a.OperState)
				}
			}
		}
		return nil
	})
}

// beHost sets what every namespace needs before it has links.
func (n *Namespace) beHost() error {
	return n.setSysctls([][2]string{
		{"ipv6.conf.default.accept_dad", "0"}, // addresses count at once
		{"ipv6.conf.default.dad_transmits", "0"},
		{"ipv6.conf.default.accept_ra", "0"},
		{"ipv4.conf.all.rp_filter", "0"},
		{"ipv4.conf.default.rp_filter", "0"},
	})
}

// UnlimitICMP has the kernel tell senders at once, each time, that an address is unreachable. By
// default it tells each of them about once a second, and all of them 50 at once: those of the
// namespace since kernel 6.12 (and in late releases of 6.1), those of the whole machine before.
func (n *Namespace) UnlimitICMP() error {
	err := n.setSysctls([][2]string{
		{"ipv4.icmp_ratelimit", "0"},
		{"ipv6.icmp.ratelimit", "0"},
	})
	ofNamespace := n.setSysctls([][2]string{
		{"ipv4.icmp_msgs_per_sec", "100000"},
		{"ipv4.icmp_msgs_burst", "100000"},
	})
	if errors.Is(ofNamespace, fs.ErrNotExist) { // it is a limit of the whole machine here
		ofNamespace = nil
	}
	return errors.Join(err, ofNamespace)
}

// beRouter is beHost for what forwards for others.
func (n *Namespace) beRouter() error {
	if err := errors.Join(n.beHost(), n.UnlimitICMP()); err != nil {
		return err
	}
	return n.setSysctls([][2]string{
		{"ipv4.ip_forward", "1"},
		{"ipv6.conf.all.forwarding", "1"},
		{"ipv4.conf.all.send_redirects", "0"}, // a hairpinned packet leaves as it came
		{"ipv4.conf.default.send_redirects", "0"},
	})
}

func (n *Namespace) setSysctls(values [][2]string) error {
	for _, kv := range values {
		if err := n.SetSysctl(kv[0], kv[1]); err != nil {
			return fmt.Errorf("setting %s=%s on %s: %w", kv[0], kv[1], n.Name, err)
		}
	}
	return nil
}
