package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/regularfile"

	"github.com/vishvananda/netlink"
)

// ServiceLink is the link that carries the addresses of virtual servers in IPVS mode. They are
// local, but they belong to Services and not to this machine: NodePorts do not answer on them, and
// they change with Services.
const ServiceLink = "kube-ipvs0"

// Machine is this machine as /proc and /sys show it. The zero value is the running
// kernel, seen from the network namespace of the calling thread.
type Machine struct {
	Root string       // the folder that holds proc and sys; "" = "/"
	Log  *slog.Logger // reports each setting that is changed; nil = not reported
}

// Read returns what Machine{}.Read returns.
func Read() (topology.Host, error) { return Machine{}.Read() }

// Read returns the addresses of every interface but ServiceLink, as kube-proxy reads them: with
// loopback and link-local ones, without zones, sorted, each once. It also returns which families
// work, and the networks of these interfaces.
func (m Machine) Read() (topology.Host, error) {
	all, err := listAddrs()
	if err != nil {
		return topology.Host{}, fmt.Errorf("listing this machine's interface addresses over netlink: %w", err)
	}
	services := 0 // no link has this index
	if link, err := netlink.LinkByName(ServiceLink); err == nil {
		services = link.Attrs().Index
	} else if !errors.As(err, new(netlink.LinkNotFoundError)) {
		return topology.Host{}, fmt.Errorf("looking for link %s over netlink: %w", ServiceLink, err)
	}
	var h topology.Host
	h.IPv4, h.IPv6 = m.Families()
	for _, a := range all {
		if a.LinkIndex == services {
			continue
		}
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			h.Addrs = append(h.Addrs, ip.Unmap())
		}
		if p, ok := networkOf(a); ok {
			h.Networks = append(h.Networks, p)
		}
	}
	slices.SortFunc(h.Addrs, netip.Addr.Compare)
	h.Addrs = slices.Compact(h.Addrs)
	slices.SortFunc(h.Networks, netip.Prefix.Compare)
	h.Networks = slices.Compact(h.Networks)
	return h, nil
}

// networkOf returns the network of an interface, given one of its addresses. For a
// point-to-point link it returns the network of the other end. It returns false if the network
// has no other machines.
func networkOf(a netlink.Addr) (netip.Prefix, bool) {
	network := a.IPNet
	if a.Peer != nil {
		network = a.Peer
	}
	if network == nil {
		return netip.Prefix{}, false
	}
	ip, ok := netip.AddrFromSlice(network.IP)
	if ip = ip.Unmap(); !ok || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return netip.Prefix{}, false
	}
	bits, _ := network.Mask.Size()
	p := netip.PrefixFrom(ip, bits).Masked()
	return p, p.IsValid() && !p.IsSingleIP()
}

// listAddrs returns every address of every link. A list that changes while the kernel sends it
// may be incomplete, so it is requested again.
func listAddrs() ([]netlink.Addr, error) {
	for try := 1; ; try++ {
		all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == listTriesMax {
			return all, err
		}
	}
}

// Families reports which families the kernel has and uses. Only a kernel that was built without
// IPv4 lacks it.
func (m Machine) Families() (ipv4, ipv6 bool) {
	_, err := os.Stat(m.path("proc/sys/net/ipv4"))
	return err == nil, m.hasIPv6()
}

// hasIPv6 reports whether IPv6 works. It returns false if the kernel lacks the family or an
// administrator disabled it. The setting for all interfaces does not apply to an interface that
// has an address. The file is read by thread, because /proc/net shows the main thread's
// namespace.
func (m Machine) hasIPv6() bool {
	addrs, err := os.Open(m.path("proc/thread-self/net/if_inet6"))
	if err != nil {
		return false
	}
	defer addrs.Close()
	if n, _ := addrs.Read(make([]byte, 1)); n > 0 {
		return true
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
	b, err := regularfile.Read(m.path(name), settingMax)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}
