package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"
)

func build(t *testing.T, layout Layout) *Lab {
	t.Helper()
	need.Root(t)
	return ForTest(t, layout)
}

// Every Pod, node and the client outside reach every Pod by its own address, on the first
// packet, and are seen under their own address.
func TestEverybodyReachesEveryPod(t *testing.T) {
	l := build(t, Manual())
	ctx := wait.Usual.Context(t)
	for _, from := range l.namespaces() {
		if from == l.fabric {
			continue
		}
		for _, to := range l.Pods() {
			for _, f := range Families() {
				addr := netip.AddrPortFrom(to.Addr(f), EchoPort)
				for network, ask := range map[string]func(context.Context, netip.AddrPort) (Answer, error){"tcp": from.Fetch, "udp": from.AskUDP} {
					a, err := ask(ctx, addr)
					if err != nil {
						t.Fatalf("%s, %s: %v", network, from.Name, err)
					}
					if a.Pod != to.Name || a.Node != to.Spec.Node || a.Client.Addr() != from.Addr(f) {
						t.Errorf("%s from %s (%s) to %s@%s: answered %q", network, from.Name, from.Addr(f), to.Name, to.Spec.Node, a)
					}
				}
			}
		}
	}
}

// A Pod that reaches itself through its node's NAT is answered: hairpin works, provided
// that it is masqueraded.
func TestHairpin(t *testing.T) {
	for _, tools := range []string{"iptables-nft", "iptables-legacy"} {
		t.Run(tools, func(t *testing.T) {
			l := build(t, Manual().Only("bj-1"))
			ctx := wait.Usual.Context(t)
			pod, node := l.Pod("beijing-wrx7r"), l.Node("bj-1")
			vip := netip.MustParseAddrPort("172.16.33.231:80")
			nat := fmt.Sprintf("*nat\n-A PREROUTING -d %s -p tcp --dport 80 -j DNAT --to-destination %s:8080\n"+
				"-A POSTROUTING -s %[2]s -d %[2]s -j MASQUERADE\nCOMMIT\n", vip.Addr(), pod.Addr(IPv4))
			if _, err := node.Run(ctx, strings.NewReader(nat), tools+"-restore", "-w", "5"); err != nil {
				t.Fatal(err)
			}
			a, err := pod.Fetch(ctx, vip)
			if err != nil {
				t.Fatal(err)
			}
			if a.Pod != pod.Name || a.Client.Addr() != node.Addr(IPv4) {
				t.Errorf("the Pod asked itself and heard %q, want itself seeing %s", a, node.Addr(IPv4))
			}
		})
	}
}

// The network refuses a packet to an unused address; the packet does not get lost.
func TestNobodysAddress(t *testing.T) {
	l := build(t, Manual().Only("bj-1"))
	for _, to := range []string{"172.16.33.231:80", "[fd00:99::231]:80"} {
		_, err := l.Client("bj-1").Fetch(wait.Usual.Context(t), netip.MustParseAddrPort(to))
		if !errors.Is(err, syscall.EHOSTUNREACH) && !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("asking %s: %v, want unreachable", to, err)
		}
	}
}

// A program runs in the namespace that it is started in, its output is kept, and it does
// not outlive the lab.
func TestNothingOutlivesTheLab(t *testing.T) {
	need.Root(t)
	l, err := New(Manual().Only("gz-2"))
	if err != nil {
		t.Fatal(err)
	}
	node := l.Node("gz-2")
	p, err := node.Start("sh", "-c", "readlink /proc/self/ns/net; exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	var want string
	if err := node.Do(func() (err error) { want, err = os.Readlink("/proc/thread-self/ns/net"); return err }); err != nil {
		t.Fatal(err)
	}
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if want == home {
		t.Fatalf("the node is in the namespace of the test, %s", home)
	}
	wait.Until(t, "the program has written where it is", func() error {
		got := strings.TrimSpace(p.Log().String())
		return wait.Check(got == want, "the program is in %q, want %q", got, want)
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d outlived its lab: %v", p.PID(), err)
	}
	if named, _ := filepath.Glob("/run/netns/*"); len(named) > 0 {
		t.Errorf("named namespaces exist: %q", named)
	}
}

// A program that exits, on request or not, reports how.
func TestProcessEnds(t *testing.T) {
	l := build(t, Manual().Only("gz-1"))
	ctx := wait.Usual.Context(t)
	for script, want := range map[string]int{
		"trap '' TERM; echo up; exit 3":                                         3, // on a busy machine the request to end comes before it has
		"trap 'exit 0' TERM; echo up; while :; do read -t 1 x </dev/zero; done": 0,
	} {
		p, err := l.Node("gz-1").Start("bash", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the program is up", func() error { return wait.Check(p.Log().Contains("up"), "the program wrote nothing") })
		err = p.Stop(ctx)
		if p.ExitCode() != want || (err == nil) != (want == 0) {
			t.Errorf("%q ended with %d (%v), want %d", script, p.ExitCode(), err, want)
		}
	}
}

// Two nodes do not wait for each other's iptables-legacy: one holds its lock while the other
// writes.
func TestLocksAreApart(t *testing.T) {
	l := build(t, Manual().Only("bj-1", "bj-2"))
	ctx := wait.Usual.Context(t)
	holder, err := l.Node("bj-1").Start("sh", "-c", `flock "$XTABLES_LOCKFILE" sh -c 'echo held; exec sleep 600'`)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the lock is held", func() error { return wait.Check(holder.Log().Contains("held"), "it wrote %q", holder.Log()) })
	if _, err := l.Node("bj-2").Run(ctx, nil, "iptables-legacy", "-w", "1", "-N", "MINE"); err != nil {
		t.Error(err)
	}
	if _, err := l.Node("bj-1").Run(ctx, nil, "iptables-legacy", "-w", "1", "-N", "MINE"); err == nil {
		t.Error("the node of the lock wrote in spite of it")
	}
}

const someSave = `*nat
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 172.16.33.231/32 -p tcp -m comment --comment "default/web cluster IP" -m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SERVICES -d 172.16.33.232/32 -p tcp -m comment --comment "default/web2 cluster IP" -m tcp --dport 80 -j KUBE-SVC-B
-A KUBE-SVC-A -m comment --comment "default/web -> 10.0.1.72:8080" -j KUBE-SEP-A
-A KUBE-SEP-A -p tcp -m comment --comment "default/web" -m tcp -j DNAT --to-destination 10.0.1.72:8080
-A KUBE-SEP-B -p tcp -m comment --comment "default/web" -m tcp -j DNAT --to-destination [fd00:10:1::70]:8080
-A KUBE-SEP-C -p tcp -m comment --comment "default/web2" -m tcp -j DNAT --to-destination 10.0.1.99:8080
COMMIT
`

func TestRulesOf(t *testing.T) {
	rules := RulesOf(someSave, "default/web")
	if len(rules) != 4 {
		t.Errorf("rules of default/web: %q", rules)
	}
	got, err := Endpoints(rules)
	want := []netip.AddrPort{netip.MustParseAddrPort("10.0.1.72:8080"), netip.MustParseAddrPort("[fd00:10:1::70]:8080")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("endpoints of default/web: %v (%v), want %v", got, err, want)
	}
	if _, err := Endpoints([]string{"-j DNAT --to-destination nowhere"}); err == nil {
		t.Error("an endpoint that is none is no error")
	}
}
