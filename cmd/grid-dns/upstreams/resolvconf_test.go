package upstreams

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadConfig: the servers of a resolv.conf, in its order.
func TestReadConfig(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"two, and what is of no use here", "# by hand\nsearch example.org\nnameserver 192.0.2.9\noptions ndots:5\nnameserver 192.0.2.1\n", "192.0.2.9:53 192.0.2.1:53"},
		{"IPv6, with a zone", "nameserver 2001:db8::1\nnameserver fe80::1%eth0\n", "[2001:db8::1]:53 [fe80::1%eth0]:53"},
		{"no address", "nameserver dns.example.org\nnameserver 192.0.2.1\nnameserver\n", "192.0.2.1:53"},
		{"no line feed at the end", "nameserver 192.0.2.1", "192.0.2.1:53"},
		{"nothing", "", ""},
	} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadConfig(file)
		if text := join(got); err != nil || text != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, text, err, c.want)
		}
	}
}

func join(all []netip.AddrPort) string {
	var words []string
	for _, a := range all {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

// TestConfigCannotBeRead: the error names the file.
func TestConfigCannotBeRead(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, make([]byte, resolvConfMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir(), long} {
		if got, err := ReadConfig(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, %v", file, got, err)
		}
	}
}

// TestWithout: own addresses are left out at every port, and with a zone.
func TestWithout(t *testing.T) {
	all := []netip.AddrPort{netip.MustParseAddrPort("169.254.20.12:53"), netip.MustParseAddrPort("169.254.20.12:5353"), netip.MustParseAddrPort("[fe80::1%lo]:53"), netip.MustParseAddrPort("192.0.2.1:53")}
	before := slices.Clone(all)
	own := []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fe80::1")}
	if got := join(Without(all, own)); got != "192.0.2.1:53" {
		t.Error(got)
	}
	if !slices.Equal(all, before) {
		t.Error("what was given has changed")
	}
}
