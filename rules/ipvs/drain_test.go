package ipvs

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
	"gridproxy/rules"

	"github.com/vishvananda/netlink"
)

// drainMachine serves 10.96.0.1:80 by two real servers that are listeners of the test's, on
// loopback.
func drainMachine(t *testing.T, c BackendConfig) *machine {
	t.Helper()
	m := newMachine(t, c)
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	for _, host := range []string{"10.180.0.1", "10.180.0.2"} {
		addr, err := netlink.ParseAddr(host + "/32")
		must(t, err)
		must(t, netlink.AddrAdd(lo, addr))
		l, err := net.Listen("tcp", host+":80")
		must(t, err)
		t.Cleanup(func() { l.Close() })
		go greet(l, host)
	}
	m.sync(both(), false)
	return m
}

// greet tells each caller which host it is, and answers everything with the same.
func greet(l net.Listener, host string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = fmt.Fprintln(c, host)
			_, _ = io.Copy(c, c)
		}()
	}
}

func both() rules.Ruleset  { return ruleset(webService(1, "10.180.0.1:80", "10.180.0.2:80")) }
func first() rules.Ruleset { return ruleset(webService(1, "10.180.0.1:80")) }

// call opens a connection to 10.96.0.1:80 that stays open, and tells who answered.
func call(t *testing.T) (net.Conn, string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", "10.96.0.1:80", 5*time.Second)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(5*time.Second)))
	host := make([]byte, len("10.180.0.1\n"))
	_, err = io.ReadFull(c, host)
	must(t, err)
	return c, strings.TrimSpace(string(host))
}

// callHost opens connections until host has one.
func callHost(t *testing.T, host string) net.Conn {
	t.Helper()
	for range 10 {
		if c, who := call(t); who == host {
			return c
		}
	}
	t.Fatalf("%s is never chosen", host)
	return nil
}

// alive fails the test unless an open connection still carries data.
func alive(t *testing.T, c net.Conn, when string) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(5*time.Second)))
	_, err := c.Write([]byte("x"))
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	if err != nil {
		t.Fatalf("%s: an open connection is cut: %v", when, err)
	}
}

// TestDrain: a real server that goes keeps its connections, gets no new one, and is deleted
// when they have ended.
func TestDrain(t *testing.T) {
	m := drainMachine(t, BackendConfig{})
	open := callHost(t, "10.180.0.2")
	changes := m.sync(first(), false)
	m.expectWeights(webServer(1), map[string]int{"10.180.0.1:80": 1, "10.180.0.2:80": 0}, "while it has a connection")
	if changes.Again <= 0 || m.Status().Draining != 1 {
		t.Errorf("%+v, %+v", changes, m.Status())
	}
	alive(t, open, "while it drains")
	for range 4 {
		if _, who := call(t); who != "10.180.0.1" {
			t.Errorf("a new connection went to %s", who)
		}
	}
	if err := open.(*net.TCPConn).SetLinger(0); err != nil { // closes by a reset: IPVS forgets in 10 s, not 120
		t.Fatal(err)
	}
	open.Close()
	wait.Until(t, "it has drained", func() error {
		return wait.Check(m.sync(first(), false).Again == 0, "weights %v", m.weights(webServer(1)))
	})
	m.expect(m.wants(first()), "after its connection ended")
}

// TestDrainRestart: a new process finds the drain by its weight and goes on with it.
func TestDrainRestart(t *testing.T) {
	m := drainMachine(t, BackendConfig{DrainTimeout: time.Minute})
	open := callHost(t, "10.180.0.2")
	m.sync(first(), false)
	m.restart()
	m.clock = m.clock.Add(time.Hour)
	m.sync(first(), true)
	m.expectWeights(webServer(1), map[string]int{"10.180.0.1:80": 1, "10.180.0.2:80": 0}, "after a restart")
	alive(t, open, "after a restart")
	m.clock = m.clock.Add(time.Minute)
	m.sync(first(), false)
	m.expect(m.wants(first()), "a drain timeout after the restart")

	m.sync(both(), false)
	callHost(t, "10.180.0.2")
	m.sync(first(), false)
	m.restart()
	m.sync(both(), true)
	m.expect(m.wants(both()), "after a restart in which it came back")
}

// TestDrainService: a Service that goes keeps its virtual server and address until its
// connections have ended, and refuses new ones.
func TestDrainService(t *testing.T) {
	m := drainMachine(t, BackendConfig{DrainTimeout: time.Minute})
	open, _ := call(t)
	m.sync(ruleset(), false)
	alive(t, open, "after the Service went")
	if c, err := net.DialTimeout("tcp", "10.96.0.1:80", time.Second); err == nil {
		c.Close()
		t.Error("a Service that went takes a new connection")
	}
	m.restart()
	m.sync(ruleset(), true)
	alive(t, open, "after a restart")
	m.clock = m.clock.Add(time.Minute)
	if again := m.sync(ruleset(), false).Again; again != 0 {
		t.Errorf("again in %s", again)
	}
	m.expect(State{}, "after the timeout")
}

// TestDrainOnRetire: switching to iptables mode cuts nothing either.
func TestDrainOnRetire(t *testing.T) {
	m := drainMachine(t, BackendConfig{DrainTimeout: time.Minute})
	open, _ := call(t)
	m.config.Retire = true
	m.restart()
	if again := m.sync(both(), true).Again; again == 0 {
		t.Error("the next sync is not asked for")
	}
	alive(t, open, "while IPVS mode is retired")
	m.clock = m.clock.Add(time.Minute)
	m.sync(both(), false)
	nothingLeft(t)
	if again := m.sync(both(), false).Again; again != 0 {
		t.Errorf("again in %s", again)
	}
}

// TestNoDrainOutOfUnit: where the kernel would give a draining real server new connections,
// one that left the unit goes at once. One that only is not ready any more drains.
func TestNoDrainOutOfUnit(t *testing.T) {
	m := drainMachine(t, BackendConfig{})
	m.degraded = true
	callHost(t, "10.180.0.2")
	stays := webService(1, "10.180.0.1:80")
	stays.Serving = both().Services[0].Serving
	m.sync(ruleset(stays), false)
	m.expectWeights(webServer(1), map[string]int{"10.180.0.1:80": 1, "10.180.0.2:80": 0}, "in the unit")
	m.sync(first(), false)
	m.expectWeights(webServer(1), map[string]int{"10.180.0.1:80": 1}, "out of the unit")
}

// TestDrainTick: looking again costs a reading of the connections, and no message.
func TestDrainTick(t *testing.T) {
	m := drainMachine(t, BackendConfig{})
	callHost(t, "10.180.0.2")
	m.sync(first(), false)
	before := m.Status().Messages
	for range 3 {
		if changes := m.sync(first(), false); changes.Again == 0 || changes.Verified {
			t.Errorf("%+v", changes)
		}
	}
	if sent := m.Status().Messages.since(before); sent != (Messages{}) {
		t.Errorf("sent %+v", sent)
	}
}

// TestCountConnections: the same whether few virtual servers are asked about or many.
func TestCountConnections(t *testing.T) {
	m := drainMachine(t, BackendConfig{})
	for range 3 {
		callHost(t, "10.180.0.2")
	}
	rs := both()
	for n := range countedMax {
		rs.Services = append(rs.Services, webService(byte(n+2), "10.180.0.1:80", "[fd00:18::7]:80"))
	}
	m.sync(rs, false)
	all := map[DestinationKey]time.Time{}
	for d := range m.holds().Destinations {
		all[d] = time.Time{}
	}
	many, err := m.kernel.countConnections(all)
	must(t, err)
	busy := DestinationKey{Server: webServer(1), Addr: netip.MustParseAddrPort("10.180.0.2:80")}
	if len(many) != len(all) || many[busy] < 3 {
		t.Fatalf("%d of %d are counted; %v has %d connections, want 3 or more", len(many), len(all), busy, many[busy])
	}
	gone := DestinationKey{Server: webServer(250), Addr: busy.Addr}
	few := map[DestinationKey]time.Time{busy: {}, gone: {}}
	for d := range all {
		if len(few) < countedMax {
			few[d] = time.Time{}
		}
	}
	counts, err := m.kernel.countConnections(few)
	must(t, err)
	delete(few, gone)
	if len(counts) != len(few) {
		t.Errorf("counted %v, want all of %v", counts, few)
	}
	for d, n := range counts {
		if n != many[d] {
			t.Errorf("%v: %d connections when few are asked about, %d when many are", d, n, many[d])
		}
	}
}
