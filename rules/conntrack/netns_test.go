package conntrack

import (
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// enterNamespace moves the test's thread into a network namespace of its own, with every
// given address on its loopback.
func enterNamespace(t testing.TB, addrs ...string) {
	t.Helper()
	need.IPTables(t)
	lo := need.Namespace(t)
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(netip.MustParsePrefix(prefixOf(a)).String())
		must(t, err)
		addr.Flags = unix.IFA_F_NODAD
		must(t, netlink.AddrAdd(lo, addr))
	}
	for _, a := range addrs {
		// The kernel makes the routes of IPv6 some time after the address.
		wait.Until(t, "the kernel delivers "+a+" locally", func() error {
			routes, err := netlink.RouteGet(net.ParseIP(a))
			return wait.Check(err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL, "%v, %v", routes, err)
		})
	}
}

func prefixOf(addr string) string {
	if strings.Contains(addr, ":") {
		return addr + "/128"
	}
	return addr + "/32"
}

// restore writes rules into the namespace of the calling thread.
func restore(t testing.TB, ipv6 bool, text string) {
	t.Helper()
	tool := "iptables-nft-restore"
	if ipv6 {
		tool = "ip6tables-nft-restore"
	}
	cmd := exec.Command(tool, "-w", "5")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s\n%s", tool, err, out, text)
	}
}

// send makes a UDP flow: one datagram to dst, from a socket that keeps its port to itself
// until the test ends.
func send(t testing.TB, dst string) {
	t.Helper()
	c, err := net.Dial("udp", dst)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = c.Write([]byte("hello"))
	must(t, err)
}

// connect makes an open TCP flow.
func connect(t testing.TB, dst string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", dst, 5*time.Second)
	must(t, err)
	t.Cleanup(func() { c.Close() })
}

func listenTCP(t testing.TB, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

func listenUDP(t testing.TB, addr string) {
	t.Helper()
	l, err := net.ListenPacket("udp", addr)
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

// kernelFlows lists "proto dst->replysrc" of every flow, by another reader than ours, in
// order.
func kernelFlows(t testing.TB, ipv6 bool) []string {
	t.Helper()
	family := netlink.InetFamily(netlink.FAMILY_V4)
	if ipv6 {
		family = netlink.FAMILY_V6
	}
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
	must(t, err)
	var out []string
	for _, f := range flows {
		name := map[uint8]string{6: "tcp", 17: "udp"}[f.Forward.Protocol]
		out = append(out, name+" "+addrPort(f.Forward.DstIP, f.Forward.DstPort)+"->"+addrPort(f.Reverse.SrcIP, f.Reverse.SrcPort))
	}
	slices.Sort(out)
	return out
}

func addrPort(ip net.IP, port uint16) string {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port).String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
