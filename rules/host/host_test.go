package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"

	"github.com/vishvananda/netlink"
)

func TestReadKernel(t *testing.T) {
	lo := need.Namespace(t)
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
	must(t, netlink.LinkAdd(pair))
	for _, a := range []string{"192.168.7.1/24", "10.0.0.9/32", "fd00:7::1/64", "fe80::7/64"} {
		addAddr(t, pair, a)
	}
	addAddr(t, lo, "10.0.0.9/32") // twice on the machine
	addAddr(t, pair, "192.168.7.2/24")
	other, err := netlink.ParseIPNet("10.7.0.1/30")
	must(t, err)
	must(t, netlink.AddrAdd(pair, &netlink.Addr{IPNet: netlink.NewIPNet(net.IPv4(10, 7, 9, 9)), Peer: other}))

	h, err := Read()
	must(t, err)
	want := addrs("10.0.0.9", "10.7.9.9", "127.0.0.1", "192.168.7.1", "192.168.7.2", "::1", "fd00:7::1", "fe80::7")
	if !slices.Equal(h.Addrs, want) {
		t.Errorf("addresses %v, want %v", h.Addrs, want)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("10.7.0.0/30"), netip.MustParsePrefix("192.168.7.0/24"), netip.MustParsePrefix("fd00:7::/64")}
	if !slices.Equal(h.Networks, networks) {
		t.Errorf("networks %v, want %v", h.Networks, networks)
	}
	if !h.IPv4 || !h.IPv6 {
		t.Errorf("families: IPv4 %t, IPv6 %t, want both", h.IPv4, h.IPv6)
	}

	must(t, Machine{}.write("proc/sys/net/ipv6/conf/all/disable_ipv6", 1))
	h, err = Read()
	must(t, err)
	if want := addrs("10.0.0.9", "10.7.9.9", "127.0.0.1", "192.168.7.1", "192.168.7.2"); !slices.Equal(h.Addrs, want) || h.IPv6 {
		t.Errorf("with IPv6 disabled: addresses %v, IPv6 %t; want %v, false", h.Addrs, h.IPv6, want)
	}
}

func TestWatchKernel(t *testing.T) {
	lo := need.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, err := Watch(ctx)
	must(t, err)
	for _, prefix := range []string{"10.9.9.9/32", "fd00:9::9/128"} {
		addr := addAddr(t, lo, prefix)
		wait.Receive(t, prefix+" came", changed)
		must(t, netlink.AddrDel(lo, addr))
		wait.Receive(t, prefix+" went", changed)
	}
}

// TestServiceLink: the addresses of virtual servers are not the machine's. Any link of the
// name will do: this kernel may have no dummy links.
func TestServiceLink(t *testing.T) {
	lo := need.Namespace(t)
	services := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: ServiceLink}, PeerName: "other"}
	must(t, netlink.LinkAdd(services))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, err := Watch(ctx)
	must(t, err)

	addAddr(t, services, "10.96.0.100/24")
	addAddr(t, lo, "10.9.9.8/32")
	wait.Receive(t, "10.9.9.8/32 came", changed) // updates come in order: it now knows the link
	for i := range 40 {
		addAddr(t, services, fmt.Sprintf("10.96.0.%d/32", i+1))
		addAddr(t, services, fmt.Sprintf("fd00:96::%d/128", i+1))
	}
	h, err := Read()
	must(t, err)
	if want := addrs("10.9.9.8", "127.0.0.1", "::1"); !slices.Equal(h.Addrs, want) {
		t.Errorf("addresses %v, want %v", h.Addrs, want)
	}
	if len(h.Networks) > 0 {
		t.Errorf("networks %v are of the link of Services", h.Networks)
	}
	must(t, netlink.LinkDel(services))
	select {
	case <-changed:
		t.Error("changes of the link of Services are told")
	default:
	}
	addAddr(t, lo, "10.9.9.9/32")
	wait.Receive(t, "10.9.9.9/32 came", changed)
}

func TestServiceLinkIsRemembered(t *testing.T) {
	names, asked := map[int]string{3: "eth0", 7: ServiceLink, 9: ServiceLink}, 0
	l := serviceLinkFilter{nameOf: func(index int) (string, error) {
		asked++
		if name, known := names[index]; known {
			return name, nil
		}
		return "", errors.New("no such device")
	}}
	for _, step := range []struct {
		index int
		has   bool
		asked int
	}{{0, false, 1}, {3, false, 1}, {7, true, 1}, {7, true, 0}, {8, false, 1}, {9, true, 1}, {9, true, 0}} {
		asked = 0
		if has := l.has(netlink.AddrUpdate{LinkIndex: step.index}); has != step.has || asked != step.asked {
			t.Errorf("link %d: %t after %d questions, want %t after %d", step.index, has, asked, step.has, step.asked)
		}
	}
}

// subscriptions replaces the kernel: each try takes the next channel, or fails.
type subscriptions struct {
	tries []time.Time
	next  []chan netlink.AddrUpdate // nil = fail
	ended int
}

func (s *subscriptions) subscribe(done <-chan struct{}) (<-chan netlink.AddrUpdate, error) {
	c := s.next[len(s.tries)]
	s.tries = append(s.tries, time.Now())
	if c == nil {
		return nil, errors.New("no buffer space available")
	}
	go func() { <-done; s.ended++ }()
	return c, nil
}

func TestWatchSubscribesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := make(chan netlink.AddrUpdate), make(chan netlink.AddrUpdate)
		kernel := &subscriptions{next: []chan netlink.AddrUpdate{first, nil, nil, second}}
		ctx, cancel := context.WithCancel(t.Context())
		changed, err := watchUpdates(ctx, kernel.subscribe, func(u netlink.AddrUpdate) bool { return u.LinkIndex == 7 })
		must(t, err)
		expect := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			got := len(changed)
			if got != want {
				t.Errorf("%s: %d receives, want %d", when, got, want)
			}
			for range got {
				<-changed
			}
		}
		expect(0, "at first")
		for range 3 {
			first <- netlink.AddrUpdate{}
		}
		expect(1, "after three changes")
		first <- netlink.AddrUpdate{LinkIndex: 7}
		expect(0, "after one that is to be skipped")

		began := time.Now()
		close(first) // it broke
		expect(0, "while there is no subscription")
		time.Sleep(time.Minute)
		expect(1, "after a new subscription, before which changes may be lost")
		var after []time.Duration
		for _, try := range kernel.tries[1:] {
			after = append(after, try.Sub(began))
		}
		if want := []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}; !slices.Equal(after, want) {
			t.Errorf("it subscribed again after %v, want %v", after, want)
		}
		if kernel.ended != 1 {
			t.Errorf("%d subscriptions were ended, want the broken one", kernel.ended)
		}
		second <- netlink.AddrUpdate{}
		expect(1, "after a change told by the new subscription")
		cancel()
		synctest.Wait()
		if kernel.ended != 2 {
			t.Errorf("%d subscriptions were ended, want both", kernel.ended)
		}
		close(second) // as the kernel's end does
	})
}

func TestWatchTellsWhatIsWrong(t *testing.T) {
	kernel := &subscriptions{next: []chan netlink.AddrUpdate{nil}}
	if _, err := watchUpdates(t.Context(), kernel.subscribe, nil); err == nil {
		t.Error("a subscription that cannot be made is no error")
	}
}
