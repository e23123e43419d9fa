package host

import (
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// require skips a test that misses something, loudly; where everything is required, it
// fails.
func require(t *testing.T, ok bool, missing, remedy string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("GRIDPROXY_REQUIRE") == "all":
		t.Fatalf("MISSING: %s; %s", missing, remedy)
	default:
		t.Skipf("SKIPPED, MISSING: %s; %s", missing, remedy)
	}
}

// enterNamespace moves the test's thread into a network namespace of its own, whose
// loopback is up, and returns the loopback.
func enterNamespace(t *testing.T) netlink.Link {
	t.Helper()
	require(t, os.Geteuid() == 0, "root", "run the test as root")
	runtime.LockOSThread()
	before, err := netns.Get()
	must(t, err)
	inside, err := netns.New()
	must(t, err)
	t.Cleanup(func() {
		must(t, netns.Set(before))
		must(t, inside.Close())
		must(t, before.Close())
		runtime.UnlockOSThread()
	})
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.LinkSetUp(lo))
	return lo
}

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

// awaitChange fails the test unless a change is told within ten seconds.
func awaitChange(t *testing.T, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatalf("nobody tells that %s", what)
	}
}
