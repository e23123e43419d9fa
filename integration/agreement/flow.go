package agreement

import (
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// Flow is the first packet of a connection, and in words where it is from and to.
type Flow struct {
	From, To string
	Packet   trace.Packet
}

func (f Flow) String() string {
	return fmt.Sprintf("%s %v -> %s %v %s", f.From, f.Packet.Src, f.To, netip.AddrPortFrom(f.Packet.Dst, f.Packet.DstPort), f.Packet.Proto)
}

// flows are the packets of one family that are walked through both texts: from each of
// the sources to each of the frontends.
func flows(c Cluster, ipv6 bool) []Flow {
	var all []Flow
	for _, t := range targets(c, ipv6) {
		for _, s := range sources(c, t.service, ipv6) {
			all = append(all, Flow{From: s.name, To: t.name, Packet: trace.Packet{
				Src: s.addr, Dst: t.addr.Addr(), Proto: t.proto, DstPort: t.addr.Port(),
				InInterface: s.device, FromNode: s.device == "", Local: c.HostAddrs,
			}})
		}
	}
	return all
}

// source is where a packet comes from. Without a device it is from a process of the node.
type source struct {
	name   string
	addr   netip.Addr
	device string
}

// sources are everybody who may talk to a Service: Pods here and elsewhere, the node by
// each of its addresses, the outside within and without the usual source ranges, a load
// balancer's own address, and each endpoint of the Service itself (hairpin).
func sources(c Cluster, svc *corev1.Service, ipv6 bool) []source {
	pods := podVeth
	if c.Flags.DetectLocalMode == "BridgeInterface" {
		pods = bridge
	}
	all := []source{
		{"a Pod of this node", netip.MustParseAddr(podAddr(1, 200, ipv6)), pods},
		{"a Pod of edge-2", netip.MustParseAddr(podAddr(2, 200, ipv6)), uplinkDev},
	}
	outside := []string{"203.0.113.5", "203.0.113.200", "198.51.100.77"}
	if ipv6 {
		outside = []string{"2001:db8:c::5", "2001:db8:ffff::5"}
	}
	for _, text := range outside {
		all = append(all, source{"outside", netip.MustParseAddr(text), uplinkDev})
	}
	for _, addr := range nodeAddrs(c, ipv6) {
		all = append(all, source{"the node itself", addr, ""})
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if vip, ok := parse(ingress.IP); ok && vip.Is6() == ipv6 && !slices.Contains(c.HostAddrs, vip) {
			all = append(all, source{"the load balancer's address", vip, uplinkDev})
		}
	}
	return append(all, hairpins(c, svc, ipv6, pods)...)
}

func hairpins(c Cluster, svc *corev1.Service, ipv6 bool, pods string) []source {
	var all []source
	for _, slice := range c.Slices {
		if slice.Namespace != svc.Namespace || slice.Labels[labelServiceName] != svc.Name {
			continue
		}
		for _, e := range slice.Endpoints {
			addr, ok := parse(e.Addresses[0])
			if !ok || addr.Is6() != ipv6 || slices.Contains(c.HostAddrs, addr) {
				continue
			}
			s := source{"an endpoint of its own", addr, uplinkDev}
			if netip.MustParsePrefix(podCIDR4(1)).Contains(addr) || netip.MustParsePrefix(podCIDR6(1)).Contains(addr) {
				s.device = pods
			}
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// nodeAddrs are the machine's addresses, loopback among them.
func nodeAddrs(c Cluster, ipv6 bool) []netip.Addr {
	all := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	if ipv6 {
		all = []netip.Addr{netip.IPv6Loopback()}
	}
	for _, addr := range c.HostAddrs {
		if addr.Is6() == ipv6 {
			all = append(all, addr)
		}
	}
	return all
}

// target is where a packet goes.
type target struct {
	name    string
	service *corev1.Service
	addr    netip.AddrPort
	proto   netfilter.Proto
}

// targets returns all frontends that the objects name, served or not, and beside each of them a
// port and a protocol that no Service serves.
func targets(c Cluster, ipv6 bool) []target {
	var all []target
	for _, svc := range c.Services {
		for _, port := range svc.Spec.Ports {
			for _, t := range frontends(c, svc, port) {
				if t.addr.Addr().Is6() == ipv6 {
					all = append(all, t)
				}
			}
		}
		for _, addr := range nodeAddrs(c, ipv6) {
			if svc.Spec.HealthCheckNodePort != 0 {
				all = append(all, target{"health check", svc, netip.AddrPortFrom(addr, uint16(svc.Spec.HealthCheckNodePort)), netfilter.TCP})
			}
		}
	}
	return all
}

func frontends(c Cluster, svc *corev1.Service, port corev1.ServicePort) []target {
	var all []target
	add := func(what, ip string) {
		addr, ok := parse(ip)
		if !ok {
			return
		}
		at := netip.AddrPortFrom(addr, uint16(port.Port))
		name := fmt.Sprintf("%s of %s/%s:%s", what, svc.Namespace, svc.Name, port.Name)
		other := corev1.ProtocolTCP
		if port.Protocol == other {
			other = corev1.ProtocolUDP
		}
		all = append(all,
			target{name, svc, at, proto(port.Protocol)},
			target{name + " (wrong port)", svc, netip.AddrPortFrom(addr, at.Port()+1000), proto(port.Protocol)},
			target{name + " (other protocol)", svc, at, proto(other)},
		)
	}
	for _, ip := range svc.Spec.ClusterIPs {
		add("cluster IP", ip)
	}
	for _, ip := range svc.Spec.ExternalIPs {
		add("external IP", ip)
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		add("load balancer IP", ingress.IP)
	}
	if port.NodePort == 0 {
		return all
	}
	for _, ipv6 := range []bool{false, true} {
		// Beside the machine's own: one more of loopback, and one of another node.
		addrs := append(nodeAddrs(c, ipv6), netip.MustParseAddr("127.1.2.3"), netip.MustParseAddr("192.168.0.99"))
		for _, addr := range addrs {
			if addr.Is6() == ipv6 {
				name := fmt.Sprintf("node port of %s/%s:%s", svc.Namespace, svc.Name, port.Name)
				all = append(all, target{name, svc, netip.AddrPortFrom(addr, uint16(port.NodePort)), proto(port.Protocol)})
			}
		}
	}
	return all
}

func proto(p corev1.Protocol) netfilter.Proto {
	return map[corev1.Protocol]netfilter.Proto{corev1.ProtocolTCP: netfilter.TCP, corev1.ProtocolUDP: netfilter.UDP, corev1.ProtocolSCTP: netfilter.SCTP}[p]
}

// parse reads an address as Kubernetes does: the objects have leading zeros on purpose, a
// packet has none.
func parse(text string) (netip.Addr, bool) {
	addr, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return addr.Unmap(), ok
}
