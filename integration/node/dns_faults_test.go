package node

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
)

// dnsFault is something that happens to a node whose Pods ask all the time.
type dnsFault struct {
	name  string
	rate  int      // queries per second
	flags []string // of the daemon
	twins bool     // two servers answer

	// outage is for how many seconds from the first failure any number of queries may fail. Later,
	// maxStray may.
	outage int

	queries int // of the load; 0 = as many as the test wants
	lost    int // how many queries may fail at any time

	lasts bool // no server ends

	closed bool // no query is answered by the DNS of the cluster
	fresh  bool // no client keeps its port

	// strike does it, and returns when DNS is as it should be at the end.
	strike func(d *dnsNode, servers []*netns.Process)
}

// maxStray is how many queries of a fault may fail outside of its outage.
const maxStray = 10

// dnsFaults are all faults. The first ones are those of the smoke test.
func dnsFaults() []dnsFault {
	return []dnsFault{
		// How many queries an upgrade loses is a figure of make bench-dns. Here it costs no more
		// than a kill.
		{name: "upgrade", rate: 2000, outage: 1, closed: true, strike: upgradeDNS},
		{name: "daemon killed", rate: 2000, closed: true, strike: func(d *dnsNode, _ []*netns.Process) {
			kill(d.daemon.Process)
			d.run()
			d.answeredBy(dnsOfNode)
		}},
		{name: "killed", rate: 2000, outage: 1, strike: func(d *dnsNode, servers []*netns.Process) {
			kill(servers...)
			d.answeredBy(dnsOfCluster)
			d.pass(4) // clients that keep their port too
			d.serve()
			d.answeredBy(dnsOfNode)
		}},
		{name: "stopped", rate: 2000, outage: 3, strike: suspendOneDNS},
		{name: "one of two stopped", rate: 2000, twins: true, outage: 3, strike: suspendOneDNS},
		// Without any process, no one ends the flow of a client that keeps its port, or that takes one
		// which was in use half a minute ago. Flows that are new are answered after half a minute;
		// what fails later is a port that is taken again, about one query in twenty, and ever fewer.
		{name: "all killed", rate: 200, outage: 60, fresh: true, strike: func(d *dnsNode, servers []*netns.Process) {
			kill(append([]*netns.Process{d.daemon.Process}, servers...)...)
			d.answeredBy(dnsOfCluster)
		}},
		{name: "address removed", rate: 2000, outage: 6, strike: removeDNSAddresses},
		{name: "switched off", rate: 2000, strike: switchDNSOff},
		{name: "thief", rate: 2000, closed: true, strike: stealDNSAddresses},
		{name: "refused", rate: 500, flags: []string{"--dns-when-away", "refuse"}, outage: 30, closed: true, strike: refuseDNS},
	}
}

// upgradeDNS replaces the server as a DaemonSet with a surge does.
func upgradeDNS(d *dnsNode, servers []*netns.Process) {
	d.t.Helper()
	d.serve()
	d.pass(2) // as the delay of the readiness probe does
	d.end(servers...)
	d.answeredBy(dnsOfNode)
}

// suspendOneDNS stops one server for as long as it takes the daemon to lead queries elsewhere.
func suspendOneDNS(d *dnsNode, servers []*netns.Process) {
	d.t.Helper()
	d.suspend(servers[0])
	d.answeredBy(dnsOfCluster)
	d.resume(servers[0])
	d.answeredBy(dnsOfNode)
}

func removeDNSAddresses(d *dnsNode, _ []*netns.Process) {
	d.t.Helper()
	for _, a := range localDNS {
		_, err := d.node.Run(d.ctx, nil, "ip", "addr", "del", fmt.Sprintf("%s/%d", a, a.BitLen()), "dev", "lo")
		must(d.t, err)
	}
	wait.Until(d.t, "the addresses are back", func() error {
		out, err := d.node.Run(d.ctx, nil, "ip", "addr", "show", "dev", "lo")
		for _, a := range localDNS {
			if err == nil && !strings.Contains(string(out), a.String()+"/") {
				err = fmt.Errorf("no %s on\n%s", a, out)
			}
		}
		return err
	})
	d.answeredBy(dnsOfNode)
}

// switchDNSOff restarts the daemon without DNS; the server ends after it.
func switchDNSOff(d *dnsNode, servers []*netns.Process) {
	d.t.Helper()
	d.end(d.daemon.Process)
	d.runWithout()
	d.answeredBy(dnsOfCluster)
	for _, table := range []string{"nat", "filter"} {
		rules, err := d.node.Save(d.ctx, "iptables-nft-save", "-t", table)
		must(d.t, err)
		if strings.Contains(rules, "LOCAL-DNS") {
			d.t.Errorf("rules of DNS are left without --local-dns:\n%s", rules)
		}
	}
	d.end(servers...)
}

// refuseDNS ends server and daemon, and starts both again: no query is answered meanwhile.
func refuseDNS(d *dnsNode, servers []*netns.Process) {
	d.t.Helper()
	kill(append([]*netns.Process{d.daemon.Process}, servers...)...)
	d.answeredBy(dnsRefused)
	set, err := d.node.Run(d.ctx, nil, "ipset", "list", "KUBE-LOCAL-DNS")
	must(d.t, err)
	if strings.Count(string(set), "timeout 0\n") != 2 {
		d.t.Errorf("the entries end without a process:\n%s", set)
	}
	d.run("--dns-when-away", "refuse")
	d.pass(12) // a daemon leaves what another one led for ten seconds
	d.answeredBy(dnsRefused)
	d.serve()
	d.answeredBy(dnsOfNode)
}

// TestDNSAddressTaken: another process at the addresses is an error that names it.
func TestDNSAddressTaken(t *testing.T) {
	d := newDNSNode(t, buildDNSPrograms(t))
	d.run()
	server := d.serve()
	d.answeredBy(dnsOfNode)
	// Only a process of root that shares the address as grid-dns does can be beside it.
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	}}
	var other net.PacketConn
	must(d.t, d.node.Do(func() (err error) {
		other, err = sharing.ListenPacket(d.ctx, "udp", netip.AddrPortFrom(localDNS[0], portDNS).String())
		return err
	}))
	defer other.Close() //nolint:errcheck // nothing was sent
	want := fmt.Sprintf("process %d (node.test) has 169.254.20.12:53 over udp", os.Getpid())
	wait.Until(d.t, "the daemon names this process", func() error {
		return wait.Check(d.daemon.Log().Contains(want), "the daemon did not log %q", want)
	})
	if text := d.daemon.Log().String(); strings.Contains(text, fmt.Sprintf("process %d ", server.PID())) {
		t.Errorf("grid-dns is another process to the daemon:\n%s", text)
	}
}

// TestDNSFaults: whatever happens to the servers of a node, its daemon and its addresses, DNS is
// back soon, and by whom it should be.
func TestDNSFaults(t *testing.T) {
	programs := buildDNSPrograms(t)
	faults := dnsFaults()
	if !inGuest() { // a flood is about grid-dns, which is the same in each mode
		faults = append(faults, dnsFloods()...)
	}
	for _, f := range faults {
		if inGuest() {
			f.rate = min(f.rate, guestRate)
		}
		t.Run(f.name, func(t *testing.T) {
			tally := f.run(t, programs, cmp.Or(f.queries, 10_000))
			outage := time.Duration(f.outage) * time.Second
			if lost := tally.After(outage); lost > max(maxStray, f.lost) {
				t.Errorf("lost queries: %d failed later than %s after the first failure, want at most %d", lost, outage, max(maxStray, f.lost))
			}
		})
	}
}

// guestRate is what an emulated processor answers in a third of its time. Limits are those of any
// machine: the suites give the guest a clock that stands still while its host has no time for it.
const guestRate = 500

// TestDNSSmoke is the faults during which no query may reach the DNS of the cluster, with few
// queries. Other suites run beside it, so how many are lost is not judged.
func TestDNSSmoke(t *testing.T) {
	programs := buildDNSPrograms(t)
	for _, f := range dnsFaults()[:2] {
		f.rate = 1000
		t.Run(f.name, func(t *testing.T) { f.run(t, programs, 4000) })
	}
}

// run does the fault in the middle of at least so many queries, and checks who answered.
func (f dnsFault) run(t *testing.T, programs dnsPrograms, queries int) traffic.Tally {
	d := newDNSNode(t, programs)
	d.run(f.flags...)
	servers := []*netns.Process{d.serve()}
	if f.twins {
		servers = append(servers, d.serve())
	}
	d.answeredBy(dnsOfNode)
	d.noFlowElsewhere()
	d.startLoad(f.rate, f.fresh, d.ways())
	d.await(min(queries/4, 2*f.rate))
	began, struck := d.load.Sends(), time.Now()
	f.strike(d, servers)
	d.pass(1)
	d.await(max(queries, began+(f.outage+2)*f.rate)) // what fails too late is seen
	tally := d.stopLoad(struck)
	must(d.t, tally.NotMeasured(0))
	if answered := tally.Count[dnsOfCluster]; f.closed && answered > 0 {
		promise.Broken(t, promise.Closure, "%d queries were answered by the DNS of the cluster, where headless Services are open", answered)
	}
	if wrong := tally.Count[traffic.Wrong]; wrong > 0 {
		promise.Broken(t, promise.Answer, "%d answers were wrong", wrong)
	}
	for _, server := range servers {
		kib, err := peakMemory(server.PID())
		if err != nil {
			if f.lasts {
				d.t.Error(err)
			}
			continue // it has ended
		}
		d.t.Logf("grid-dns had %d MiB at most", kib>>10)
		if kib > maxDNSMemory {
			d.t.Errorf("grid-dns had %d KiB of memory, want at most %d", kib, maxDNSMemory)
		}
	}
	return tally
}
