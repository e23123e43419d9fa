package agreement

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// stage is the node of a Cluster in a network namespace of its own, with a link to its Pods and
// one to all other machines. The other ends of the links are in a second namespace, which never
// answers: packets are put into them and come out of them as they are.
type stage struct {
	world, node netns.NsHandle
	ports       map[string]*port // by the name of the node's link
	sending     [2]int           // sockets of the node that send packets as they are, by family
	receiving   [2]int           // sockets of the node that are handed ICMP messages, by family
}

// port is one of the node's links.
type port struct {
	socket int              // on the other end
	mac    net.HardwareAddr // of the node's end
}

// onStage runs f on a thread of its own in the node's namespace.
func onStage(c Cluster, f func(*stage) error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and its namespace with both.
		runtime.LockOSThread()
		s := &stage{world: -1, node: -1, ports: map[string]*port{}, sending: [2]int{-1, -1}, receiving: [2]int{-1, -1}}
		err := s.build(c)
		if err == nil {
			err = f(s)
		}
		s.close()
		done <- err
	}()
	return <-done
}

func (s *stage) close() {
	for _, p := range s.ports {
		unix.Close(p.socket)
	}
	for family := range s.sending {
		unix.Close(s.sending[family])
		unix.Close(s.receiving[family])
	}
	for _, handle := range []netns.NsHandle{s.world, s.node} {
		if handle >= 0 {
			handle.Close()
		}
	}
}

// podDevice is the node's link to its Pods.
func podDevice(c Cluster) string {
	if c.Flags.DetectLocalMode == "BridgeInterface" {
		return bridge
	}
	return podVeth
}

func (s *stage) build(c Cluster) error {
	var err error
	if s.world, err = netns.New(); err != nil {
		return fmt.Errorf("making the namespace of everybody else: %w", err)
	}
	// No interface there has an address, of either family.
	if err := setSysctl("net/ipv6/conf/default/disable_ipv6", "1"); err != nil {
		return err
	}
	if s.node, err = netns.New(); err != nil {
		return fmt.Errorf("making the node's namespace: %w", err)
	}
	for _, set := range [][2]string{
		{"net/ipv6/conf/all/accept_dad", "0"}, {"net/ipv6/conf/default/accept_dad", "0"},
		{"net/ipv4/conf/all/rp_filter", "0"}, {"net/ipv4/conf/default/rp_filter", "0"},
		{"net/ipv4/conf/all/send_redirects", "0"}, {"net/ipv4/conf/default/send_redirects", "0"},
		{"net/ipv4/ip_forward", "1"}, {"net/ipv6/conf/all/forwarding", "1"},
		{"net/ipv4/icmp_ratelimit", "0"}, {"net/ipv6/icmp/ratelimit", "0"},
		{"net/netfilter/nf_conntrack_sctp_timeout_cookie_wait", "120"}, {"net/netfilter/nf_conntrack_sctp_timeout_closed", "120"},
		{"net/netfilter/nf_conntrack_udp_timeout", "120"},
	} {
		if err := setSysctl(set[0], set[1]); err != nil {
			return err
		}
	}
	if err := setICMPLimits(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := furnish(c.HostAddrs); err != nil {
		return err
	}
	everybody := []string{"0.0.0.0/0", "::/0"}
	if err := s.connect(uplinkDev, everybody); err != nil {
		return err
	}
	if err := s.connect(podDevice(c), []string{podCIDR4(1), podCIDR6(1)}); err != nil {
		return err
	}
	if c.Flags.LocalhostNodePorts {
		if err := setSysctl("net/ipv4/conf/all/route_localnet", "1"); err != nil {
			return err
		}
	}
	return s.openSockets()
}

// setSysctl sets one in the thread's namespace.
func setSysctl(name, value string) error {
	if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
		return fmt.Errorf("setting sysctl %s to %s: %w", strings.ReplaceAll(name, "/", "."), value, err)
	}
	return nil
}

// setICMPLimits lets a kernel send far more ICMP messages than a test has packets. Where the limits
// are of the whole machine, a namespace of its own does not have them: fs.ErrNotExist.
func setICMPLimits() error {
	return errors.Join(setSysctl("net/ipv4/icmp_msgs_per_sec", "100000"), setSysctl("net/ipv4/icmp_msgs_burst", "100000"))
}

// connect makes a link of the node whose other end is in the world, and sends what goes to
// the networks through it. There is no asking for hardware addresses on it.
func (s *stage) connect(name string, networks []string) error {
	peer := "x" + name
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(s.world)}); err != nil {
		return fmt.Errorf("making the link %s: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the link %s: %w", name, err)
	}
	world, err := netlink.NewHandleAt(s.world, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("talking to the world's namespace: %w", err)
	}
	defer world.Close()
	other, err := world.LinkByName(peer)
	if err != nil {
		return fmt.Errorf("finding the other end of the link %s: %w", name, err)
	}
	if err := errors.Join(world.LinkSetUp(other), netlink.LinkSetARPOff(link), netlink.LinkSetUp(link)); err != nil {
		return fmt.Errorf("setting the link %s up: %w", name, err)
	}
	for _, network := range networks {
		_, dst, err := net.ParseCIDR(network)
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK})
		}
		if err != nil {
			return fmt.Errorf("routing %s to %s: %w", network, name, err)
		}
	}
	p := &port{mac: link.Attrs().HardwareAddr}
	s.ports[name] = p
	if err := netns.Set(s.world); err != nil {
		return fmt.Errorf("entering the world's namespace: %w", err)
	}
	p.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(p.socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	}
	if err == nil {
		err = unix.Bind(p.socket, &unix.SockaddrLinklayer{Protocol: 0x0300 /* ETH_P_ALL */, Ifindex: other.Attrs().Index})
	}
	if err := errors.Join(err, netns.Set(s.node)); err != nil {
		return fmt.Errorf("opening the other end of the link %s: %w", name, err)
	}
	return nil
}

func (s *stage) openSockets() error {
	for family, domain := range []int{unix.AF_INET, unix.AF_INET6} {
		var err error
		if s.sending[family], err = unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW); err != nil {
			return fmt.Errorf("opening a raw socket: %w", err)
		}
		icmp := []int{icmp4, icmp6}[family]
		if s.receiving[family], err = unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, icmp); err != nil {
			return fmt.Errorf("opening a socket for ICMP: %w", err)
		}
		if err := unix.SetsockoptInt(s.receiving[family], unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
			return fmt.Errorf("enlarging the buffer of a socket for ICMP: %w", err)
		}
	}
	return nil
}

// receiveBuffer holds all that may arrive while packets are sent, in bytes: by default a socket
// has room for about a hundred, and loses the others.
const receiveBuffer = 16 << 20

// put sends a packet: through a link, as another machine, or, with no link, as a process of the
// node.
func (s *stage) put(device string, p []byte) error {
	if device == "" {
		return s.sendOwn(p)
	}
	etherType := []byte{0x08, 0x00}
	if p[0]>>4 == 6 {
		etherType = []byte{0x86, 0xdd}
	}
	to := s.ports[device]
	frame := slices.Concat(to.mac, net.HardwareAddr{2, 0, 0, 0, 0, 9}, etherType, p)
	if _, err := unix.Write(to.socket, frame); err != nil {
		return fmt.Errorf("sending a packet through %s: %w", device, err)
	}
	return nil
}

// sendOwn sends a packet as a process of the node. The kernel tells some refusals and drops
// of filter at once.
func (s *stage) sendOwn(p []byte) error {
	var err error
	if p[0]>>4 == 6 {
		err = unix.Sendto(s.sending[1], p, 0, &unix.SockaddrInet6{Addr: [16]byte(p[24:40])})
	} else {
		err = unix.Sendto(s.sending[0], p, 0, &unix.SockaddrInet4{Addr: [4]byte(p[16:20])})
	}
	if err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("sending a packet of the node's own: %w", err)
	}
	return nil
}

// refusals returns the packets, from their IP headers on, that were answered since the last call
// with "port unreachable".
func (s *stage) refusals() [][]byte {
	var all [][]byte
	buffer := make([]byte, 65536)
	keep := func(about []byte, ok bool) {
		if ok {
			all = append(all, slices.Clone(about))
		}
	}
	for _, p := range s.ports {
		for n := receive(p.socket, buffer); n >= 14; n = receive(p.socket, buffer) {
			keep(unreachable(buffer[14:n]))
		}
	}
	for n := receive(s.receiving[0], buffer); n > 0; n = receive(s.receiving[0], buffer) {
		keep(unreachable(buffer[:n]))
	}
	for n := receive(s.receiving[1], buffer); n > 0; n = receive(s.receiving[1], buffer) {
		keep(unreachable6(buffer[:n]))
	}
	return all
}

// receive is the length of what was waiting; 0 = nothing.
func receive(socket int, buffer []byte) int {
	for {
		n, _, err := unix.Recvfrom(socket, buffer, 0)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNREFUSED) {
			continue
		}
		return max(n, 0)
	}
}

// chosenSource is the address that the kernel gives to a process of the node that talks to an
// address and has not chosen one.
func chosenSource(dst netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, 9)))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("asking for the source of packets to %v: %w", dst, err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
