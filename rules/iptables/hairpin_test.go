package iptables

import (
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// TestHairpin: on a kernel with IPVS, a Pod that reaches itself through a virtual server is
// masqueraded. A process that reaches itself without IPVS is not affected.
func TestHairpin(t *testing.T) {
	need.IPVS(t)
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		w := hairpinNode{family: f, node: "10.180.0.254", pod: "10.180.0.1", vip: "10.96.0.1", bits: "/24"}
		if f == netfilter.IPv6 {
			w = hairpinNode{family: f, node: "fd00:180::fe", pod: "fd00:180::1", vip: "fd00:96::1", bits: "/64"}
		}
		w.build(t)
		b, _ := newBackendOf(t, v, true, f)
		mustSync(t, b, rules.Ruleset{}, false)

		if got, want := w.peer(t, w.pod, w.podNS, w.vip, "80"), w.node; got != want {
			t.Errorf("a Pod that reaches itself sees %s, want the node's %s", got, want)
		}
		before := hairpinCount(t, v, f)
		if got := w.peer(t, w.node, here(t), w.node, "8080"); got != w.node {
			t.Errorf("a process that reaches itself directly sees %s, want %s", got, w.node)
		}
		if after := hairpinCount(t, v, f); before != "[1" || after != before {
			t.Errorf("the hairpin rule has counted %s and then %s packets, want one", before, after)
		}
	})
}

// hairpinCount is the packet count of the hairpin rule in iptables-save.
func hairpinCount(t *testing.T, v netfilter.Variant, f netfilter.Family) string {
	t.Helper()
	for line := range strings.Lines(run(t, toolName(v, f, "-save")+" -c -t nat")) {
		if strings.Contains(line, netfilter.SetName(f, netfilter.SetLoopBack)) {
			count, _, _ := strings.Cut(line, ":")
			return count
		}
	}
	t.Fatal("there is no hairpin rule")
	return ""
}

// hairpinNode is a node with one Pod and a virtual server with just this endpoint.
type hairpinNode struct {
	family               netfilter.Family
	node, pod, vip, bits string
	podNS                netns.NsHandle
}

func (w *hairpinNode) build(t *testing.T) {
	t.Helper()
	makeSets(t)
	nodeNS := here(t)
	podNS, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = podNS.Close() })
	w.podNS = podNS
	const quiet = "sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0; ip link set lo up; "
	run(t, quiet)
	enter(t, nodeNS)
	run(t, quiet+"sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "pod"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(podNS)}); err != nil {
		t.Fatal(err)
	}
	server := "ipvsadm -A -t VIP:80 -s rr; ipvsadm -a -t VIP:80 -r POD:8080 -m"
	if w.family == netfilter.IPv6 {
		server = "ipvsadm -A -t [VIP]:80 -s rr; ipvsadm -a -t [VIP]:80 -r [POD]:8080 -m"
	}
	run(t, strings.NewReplacer("VIP", w.vip, "POD", w.pod, "NODE", w.node, "BITS", w.bits, "KUBE-6-", netfilter.SetName(w.family, "KUBE-")).Replace(
		server+`; sysctl -qw net.ipv4.vs.conntrack=1; ip link set pod up; ip addr add NODEBITS dev pod
		ip link add kube-ipvs0 type dummy; ip addr add VIP dev kube-ipvs0
		ipset add KUBE-6-LOOP-BACK POD,tcp:8080,POD; ipset add KUBE-6-LOOP-BACK NODE,tcp:8080,NODE
		ipset add KUBE-6-CLUSTER-IP VIP,tcp:80`))
	enter(t, podNS)
	run(t, "ip link set eth0 up; ip addr add "+w.pod+w.bits+" dev eth0; ip route add default via "+w.node)
	enter(t, nodeNS)
}

// peer is the client address that a listener in a namespace sees for a connection from there to
// another address.
func (w *hairpinNode) peer(t *testing.T, listen string, in netns.NsHandle, to, port string) string {
	t.Helper()
	type answer struct {
		peer string
		err  error
	}
	answers := make(chan answer)
	go func() {
		runtime.LockOSThread() // for good: the thread stays in the namespace and ends
		peer, err := func() (string, error) {
			if err := netns.Set(in); err != nil {
				return "", err
			}
			l, err := net.Listen("tcp", net.JoinHostPort(listen, "8080"))
			if err != nil {
				return "", err
			}
			defer l.Close()
			c, err := (&net.Dialer{Timeout: 10 * time.Second, FallbackDelay: -1}).Dial("tcp", net.JoinHostPort(to, port))
			if err != nil {
				return "", err
			}
			defer c.Close()
			other, err := l.Accept()
			if err != nil {
				return "", err
			}
			defer other.Close()
			return netip.MustParseAddrPort(other.RemoteAddr().String()).Addr().String(), nil
		}()
		answers <- answer{peer, err}
	}()
	a := <-answers
	if a.err != nil {
		t.Fatalf("connecting to %s: %v", to, a.err)
	}
	return a.peer
}
