package ipvs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestSetsThatCannotBeListedAreNotNone: only a kernel that has no ipsets has an empty list of them.
func TestSetsThatCannotBeListedAreNotNone(t *testing.T) {
	need.Namespace(t)
	k := open(t)
	run(t, "", "ipset", "create", "KUBE-CLUSTER-IP", "hash:ip,port")
	if o, err := k.observe(t.Context(), nil); err != nil || len(o.Sets) != 1 {
		t.Fatalf("sets %v, %v, want one", o.Sets, err)
	}
	withoutNetAdmin(t, func() {
		if o, err := k.observe(t.Context(), nil); !errors.Is(err, unix.EPERM) {
			t.Errorf("sets %v, error %v: want an error, not an empty list", o.Sets, err)
		}
	})
}

// withoutNetAdmin runs f while this thread lacks the capability by which the kernel answers
// about sets.
func withoutNetAdmin(t *testing.T, f func()) {
	t.Helper()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var whole [2]unix.CapUserData
	must(t, unix.Capget(&head, &whole[0]))
	less := whole
	less[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	must(t, unix.Capset(&head, &less[0]))
	defer func() { must(t, unix.Capset(&head, &whole[0])) }()
	f()
}

// TestCleanupReadsBack: what another process makes again at once is an error, and all is well
// after it has ended.
func TestCleanupReadsBack(t *testing.T) {
	need.Namespace(t)
	m := newMachineHere(t, BackendConfig{Config: Config{Retire: true}})
	links, err := netlink.NewHandle(unix.NETLINK_ROUTE) // of this namespace, whichever thread uses it
	must(t, err)
	t.Cleanup(links.Close)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				// Mostly it is there. Any type will do: not every kernel has dummies.
				_ = links.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: Link}, PeerName: "peer"})
			}
		}
	}()
	end := time.Now().Add(time.Minute)
	for err = nil; err == nil && time.Now().Before(end); {
		err = m.Cleanup(t.Context())
	}
	close(stop)
	<-stopped
	if err == nil || !strings.Contains(err.Error(), "there still is link "+Link) || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("the link came back, and cleaning up says: %v", err)
	}
	must(t, m.Cleanup(t.Context()))
	nothingLeft(t)
}
