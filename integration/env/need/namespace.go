package need

import (
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
