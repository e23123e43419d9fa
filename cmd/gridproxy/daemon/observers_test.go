package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

var errFailed = errors.New("failed")

// TestLoopbackWaitsForTheGuard: before a run has succeeded KUBE-FIREWALL may be missing.
func TestLoopbackWaitsForTheGuard(t *testing.T) {
	routed := 0
	o := &loopbackObserver{log: slog.New(slog.DiscardHandler), route: func() error { routed++; return errFailed }}
	on := rules.Ruleset{NodePorts: rules.NodePortScope{Localhost: true}}
	o.Synced(syncer.Result{Changes: failed(rules.IPv4), Ruleset: on})
	o.Synced(syncer.Result{Changes: rules.Changes{Unguarded: errFailed}, Ruleset: on})
	o.Synced(syncer.Result{})
	if routed != 0 {
		t.Fatal("loopback is routed without the guard, or unasked")
	}
	o.Synced(syncer.Result{Changes: failed(rules.IPv6), Ruleset: on}) // IPv6 guards nothing
	o.Synced(syncer.Result{Ruleset: on})
	if routed != 1 {
		t.Errorf("tried %d times, want 1", routed)
	}
}

// TestLoopbackBeforeServices: whether NodePorts answer on loopback is known before the Node object
// is read. Its address, which the keyword primary stands for, is none.
func TestLoopbackBeforeServices(t *testing.T) {
	here := topology.Host{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.168.0.2")}}
	for listed, want := range map[string]bool{
		"": true, "192.168.0.0/16": false, "fd00::/8": true, "primary": false, "localhost": true, "all": true,
		"primary,localhost": true, "primary,all": true, "primary,192.168.0.0/16": false, "primary,fd00::/8": false,
	} {
		for _, on := range []bool{true, false} {
			o := options.Defaults()
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			o.AddFlags(fs)
			if err := fs.Parse([]string{"--nodeport-addresses=" + listed, fmt.Sprintf("--iptables-localhost-nodeports=%t", on)}); err != nil {
				t.Fatal(err)
			}
			if got := nodePortsOf(here, o).NodePorts.Localhost; got != (want && on) {
				t.Errorf("--nodeport-addresses=%s, localhost NodePorts %t: %t", listed, on, got)
			}
		}
	}
}

// failed is the result of a run in which one family failed.
func failed(f rules.Family) (c rules.Changes) {
	c.Families[f].Err = errFailed
	return c
}

// TestLoopbackWithoutIPv4: a left-out IPv4 is logged once, and loopback is routed when IPv4 is
// available again.
func TestLoopbackWithoutIPv4(t *testing.T) {
	routed := 0
	o := &loopbackObserver{log: slog.New(slog.DiscardHandler), route: func() error { routed++; return nil }}
	r := syncer.Result{Ruleset: rules.Ruleset{NodePorts: rules.NodePortScope{Localhost: true}}}
	r.Changes.Families[rules.IPv4].LeftOut = errFailed
	o.Synced(r)
	o.Synced(r)
	if routed != 1 {
		t.Fatalf("asked %d times while IPv4 is left out, want 1", routed)
	}
	r.Changes.Families = rules.Outcomes{}
	o.Synced(r)
	o.Synced(r)
	if routed != 2 {
		t.Errorf("asked %d times, want once more when IPv4 is there", routed)
	}
}

func TestNodeObserverTellsTransitions(t *testing.T) {
	var out bytes.Buffer
	o := &nodeObserver{log: command.NewLog(&out, "text", 0)}
	for _, known := range []bool{false, false, true, true, false} {
		s := topology.Snapshot{Node: "a", Nodes: map[string]labels.Set{}}
		if known {
			s.Nodes["a"] = nil
		}
		o.Synced(syncer.Result{Snapshot: s})
	}
	missing, appeared := strings.Count(out.String(), "there is no Node"), strings.Count(out.String(), "has appeared")
	if missing != 2 || appeared != 1 {
		t.Errorf("logged %d times missing, %d times appeared:\n%s", missing, appeared, out.String())
	}
}

func TestMemoryObserver(t *testing.T) {
	synctest.Test(t, testMemoryObserver)
}

func testMemoryObserver(t *testing.T) {
	settled, freed := 0, 0
	var heap uint64
	o := &memoryObserver{settle: func() { settled++ }, free: func() { freed++; heap = 0 }, heap: func() uint64 { return heap }}
	begin := time.Now()
	neither := rules.Changes{Families: rules.Outcomes{}.With(errFailed)}
	if o.Synced(syncer.Result{End: begin, Err: errFailed, Changes: neither}); settled != 0 {
		t.Error("settled though nothing is in force")
	}
	o.Synced(syncer.Result{End: begin, Verify: true})
	if freed > 0 {
		t.Error("freed though nothing was used")
	}
	for _, r := range []syncer.Result{
		{End: begin, Err: errFailed, Changes: neither},
		{End: begin, Verify: true, Queued: begin}, // busy: not now
		{End: begin, Verify: true},
		{End: begin.Add(freeEvery / 2), Verify: true},
		{End: begin.Add(freeEvery), Verify: true},
		{End: begin.Add(freeEvery + 1), Verify: true, Changes: rules.Changes{Verified: true}}, // much was read
	} {
		heap = freeAbove + 1
		o.Synced(r)
		synctest.Wait()
	}
	if freed != 3 {
		t.Errorf("freed %d times, want 3: once a minute, and when much was read", freed)
	}
	if settled != 1 {
		t.Errorf("settled %d times, want once", settled)
	}
}

// TestFreeingKeepsNoChangeWaiting: a run does not wait for the end of freeing, and one that ends
// meanwhile does not free a second time.
func TestFreeingKeepsNoChangeWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, end := 0, make(chan struct{})
		o := &memoryObserver{settle: func() {}, free: func() { began++; <-end }, heap: func() uint64 { return freeAbove + 1 }}
		for i := range 2 {
			o.Synced(syncer.Result{End: time.Now().Add(time.Duration(i) * freeEvery), Verify: true})
		}
		close(end)
		synctest.Wait()
		if o.freeing.Load() || began != 1 {
			t.Errorf("freed %d times at once, want once; freeing %v", began, o.freeing.Load())
		}
	})
}

// TestPortsOutliveAFailure: the ports of the rules in force stay open.
func TestPortsOutliveAFailure(t *testing.T) {
	server := healthcheck.New(func(rules.Family) bool { return true })
	defer server.Close()
	o := portObserver{server, event.NewReporter(slog.New(slog.DiscardHandler), nil), func() []event.Quarantined { return nil }}
	port := freePort(t)
	loopback := rules.ListenAddrs{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	with := rules.Ruleset{
		NodePorts:    rules.NodePortScope{IPv4: loopback},
		HealthChecks: []rules.HealthCheck{{Service: types.NamespacedName{Namespace: "ns", Name: "lb"}, Port: port, LocalReady: 1}},
	}
	without := rules.Ruleset{NodePorts: with.NodePorts}
	o.Synced(syncer.Result{Ruleset: with})
	if !answers(port) {
		t.Fatal("the port is not open")
	}
	for _, broken := range []rules.Changes{failed(rules.IPv4), {Families: rules.Outcomes{}.With(errFailed)}} {
		o.Synced(syncer.Result{Ruleset: without, Changes: broken, Err: errFailed})
		if !answers(port) {
			t.Error("a run that failed for IPv4 closed the port")
		}
	}
	o.Synced(syncer.Result{Ruleset: without, Changes: failed(rules.IPv6), Err: errFailed})
	if answers(port) {
		t.Error("the port is open without a Service")
	}
}

// freePort returns a port of 127.0.0.1 on which no process listens.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func answers(port uint16) bool {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = c.Close() // only that it opened counts
	return true
}
