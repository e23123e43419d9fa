package need

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace moves the test's thread into a network namespace of its own until the test
// ends, and returns its loopback, which is up. A subtest is another goroutine, on another
// thread: it is not inside.
func Namespace(t testing.TB) netlink.Link {
	t.Helper()
	Root(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("a network namespace for the test: %v", err)
		}
	}
	runtime.LockOSThread()
	before, err := netns.Get()
	must(err)
	inside, err := netns.New()
	must(err)
	t.Cleanup(func() {
		must(netns.Set(before))
		must(inside.Close())
		must(before.Close())
		runtime.UnlockOSThread()
	})
	lo, err := netlink.LinkByName("lo")
	must(err)
	must(netlink.LinkSetUp(lo))
	must(Settings())
	return lo
}

// Settings sets, in the network namespace of this thread, the sysctls that tests rely on to the
// kernel's defaults: a new namespace inherits some from the machine, where another proxy may have
// set them. Those of connection tracking exist only while its module is loaded.
func Settings() error {
	for _, s := range []struct{ name, value string }{
		{"net/ipv4/conf/all/route_localnet", "0"},
		{"net/ipv4/conf/default/route_localnet", "0"},
		{"net/netfilter/nf_conntrack_tcp_be_liberal", "0"},
		{"net/netfilter/nf_conntrack_tcp_timeout_close_wait", "60"},
		{"net/netfilter/nf_conntrack_tcp_timeout_established", "432000"},
		{"net/netfilter/nf_conntrack_udp_timeout", "30"},
		{"net/netfilter/nf_conntrack_udp_timeout_stream", "120"},
	} {
		err := os.WriteFile("/proc/sys/"+s.name, []byte(s.value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("setting what tests rely on: %w", err)
		}
	}
	return nil
}
