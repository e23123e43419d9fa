package host

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func addAddr(t *testing.T, link netlink.Link, prefix string) *netlink.Addr {
	t.Helper()
	addr, err := netlink.ParseAddr(prefix)
	must(t, err)
	addr.Flags = unix.IFA_F_NODAD
	must(t, netlink.AddrAdd(link, addr))
	return addr
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}
