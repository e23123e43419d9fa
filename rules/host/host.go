package host

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridproxy/topology"
)

// Machine is this machine as /proc and /sys show it. The zero value is the running
// kernel, seen from the network namespace of the calling thread.
type Machine struct {
	Root string // the folder that holds proc and sys; "" = "/"
}

// Read is Machine{}.Read.
func Read() (topology.Host, error) { return Machine{}.Read() }

// Read tells the addresses of every interface, as kube-proxy takes them (loopback and
// link-local ones included, without zones), sorted, each once; and which families work.
func (m Machine) Read() (topology.Host, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return topology.Host{}, fmt.Errorf("listing this machine's interface addresses over netlink: %w", err)
	}
	h := topology.Host{IPv4: m.hasIPv4(), IPv6: m.hasIPv6()}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				h.Addrs = append(h.Addrs, ip.Unmap())
			}
		}
	}
	slices.SortFunc(h.Addrs, netip.Addr.Compare)
	h.Addrs = slices.Compact(h.Addrs)
	return h, nil
}

// hasIPv4 is false only on a kernel built without the family.
func (m Machine) hasIPv4() bool {
	_, err := os.Stat(m.path("proc/sys/net/ipv4"))
	return err == nil
}

// hasIPv6 is false where the kernel lacks the family or an administrator disabled it.
// The file is looked up by thread, because /proc/net shows the main thread's namespace.
func (m Machine) hasIPv6() bool {
	if _, err := os.Stat(m.path("proc/thread-self/net/if_inet6")); err != nil {
		return false
	}
	disabled, err := m.readInt("proc/sys/net/ipv6/conf/all/disable_ipv6")
	return err == nil && disabled == 0
}

// BeLiberal reports whether conntrack accepts TCP segments outside of the window, in
// which case dropping packets of state INVALID would gain nothing (kube-proxy then leaves
// that rule out). It is false where conntrack is not loaded.
func (m Machine) BeLiberal() bool {
	v, err := m.readInt(conntrackDir + "nf_conntrack_tcp_be_liberal")
	return err == nil && v != 0
}

func (m Machine) path(name string) string {
	if m.Root == "" {
		return "/" + name
	}
	return filepath.Join(m.Root, name)
}

func (m Machine) readInt(name string) (int64, error) {
	b, err := os.ReadFile(m.path(name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}
