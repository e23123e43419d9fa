package node

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
)

// nodeLocal are the addresses of NodeLocal DNSCache, which kubelets give to Pods as the only ones.
var nodeLocal = []netip.Addr{netip.MustParseAddr("169.254.20.10"), netip.MustParseAddr("fd00:6772:6964::10")}

// nodeLocalQueries is how many queries each of the faults below has.
const nodeLocalQueries = 20_000

// nodeLocalFault is one of dnsFaults, and what it is to NodeLocal DNSCache.
type nodeLocalFault struct {
	name   string
	strike func(d *dnsNode, path string, server *netns.Process)
}

// nodeLocalFaults: the DaemonSet of NodeLocal DNSCache has no surge, so in an upgrade the new
// server starts after the old one has ended. The kubelet starts one that was killed after a second.
func nodeLocalFaults() []nodeLocalFault {
	return []nodeLocalFault{
		{"upgrade", func(d *dnsNode, path string, server *netns.Process) {
			d.end(server)
			d.serveNodeLocal(path)
		}},
		{"killed", func(d *dnsNode, path string, server *netns.Process) {
			kill(server)
			d.load.pass(d, 1)
			d.serveNodeLocal(path)
		}},
	}
}

// TestDNSBesideNodeLocal: of the same faults, clients of grid-dns notice no more than those of the
// real CoreDNS that is configured as NodeLocal DNSCache.
func TestDNSBesideNodeLocal(t *testing.T) {
	programs := buildDNSPrograms(t)
	path, err := apiserver.EnsureCoreDNS(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, theirs := range nodeLocalFaults() {
		t.Run(theirs.name, func(t *testing.T) {
			ours := measureGridDNS(t, programs, theirs.name)
			their := theirs.measure(t, programs, path)
			t.Logf("%s: with grid-dns %s", theirs.name, ours)
			t.Logf("%s: with NodeLocal DNSCache %s", theirs.name, their)
			if ours.failed() > their.failed() {
				t.Errorf("%d queries failed with grid-dns, and %d with NodeLocal DNSCache", ours.failed(), their.failed())
			}
		})
	}
}

// faultCost is what clients noticed of a fault.
type faultCost struct {
	dnsFigures
	overflows int // datagrams that came faster than programs read them, on a machine with too much to do
}

// failed is how many queries failed because of the fault.
func (c faultCost) failed() int { return max(0, len(c.failures)-c.overflows) }

func (c faultCost) String() string {
	asked := 0
	for _, n := range c.count {
		asked += n
	}
	return fmt.Sprintf("%d of %d queries failed: %s; %d datagrams came faster than programs read them", len(c.failures), asked, c.dnsFigures, c.overflows)
}

// measureGridDNS measures a fault of dnsFaults.
func measureGridDNS(t *testing.T, programs dnsPrograms, name string) faultCost {
	t.Helper()
	for _, f := range dnsFaults() {
		if f.name == name {
			d := newDNSNode(t, programs)
			d.run(f.flags...)
			server := d.serve()
			d.answeredBy(dnsOfNode)
			return d.measureFault(f.rate, d.paths(), func() { f.strike(d, []*netns.Process{server}) })
		}
	}
	t.Fatalf("there is no fault %q of grid-dns", name)
	return faultCost{}
}

// measure measures the fault of NodeLocal DNSCache: on a node like that of grid-dns, asked by the
// same clients as often.
func (f nodeLocalFault) measure(t *testing.T, programs dnsPrograms, path string) faultCost {
	t.Helper()
	d := newDNSNode(t, programs)
	d.runWithout()
	for _, a := range nodeLocal {
		_, err := d.node.Run(d.ctx, nil, "ip", "addr", "add", fmt.Sprintf("%s/%d", a, a.BitLen()), "dev", "lo", "nodad")
		d.must(err)
	}
	server := d.serveNodeLocal(path)
	return d.measureFault(dnsFaults()[0].rate, d.nodeLocalPaths(), func() { f.strike(d, path, server) })
}

// measureFault does something while clients ask, and counts what became of their queries.
func (d *dnsNode) measureFault(rate int, paths []dnsPath, strike func()) faultCost {
	d.t.Helper()
	d.load = startDNSLoad(rate, false, paths...)
	d.load.await(d, nodeLocalQueries/4)
	strike()
	d.load.pass(d, 1)
	d.load.await(d, nodeLocalQueries)
	return faultCost{d.load.stop(d.t), d.overflows()}
}

// nodeLocalPaths are as paths, at the addresses of NodeLocal DNSCache.
func (d *dnsNode) nodeLocalPaths() []dnsPath {
	var all []dnsPath
	for _, p := range d.paths() {
		to := nodeLocal[0]
		if p.to.Addr().Is6() {
			to = nodeLocal[1]
		}
		all = append(all, dnsPath{p.from, netip.AddrPortFrom(to, portDNS)})
	}
	return all
}

// serveNodeLocal starts CoreDNS as NodeLocal DNSCache has it, before the DNS of the cluster. Both
// families are answered when it returns.
func (d *dnsNode) serveNodeLocal(path string) *netns.Process {
	d.t.Helper()
	const corefile = `.:53 {
	errors
	cache 30
	bind %s %s
	forward . %s
	prometheus 127.0.0.1:9353
}
`
	file := filepath.Join(d.t.TempDir(), "Corefile")
	d.must(os.WriteFile(file, fmt.Appendf(nil, corefile, nodeLocal[0], nodeLocal[1], clusterDNS[0]), 0o600))
	server, err := d.node.Start(path, "-conf", file)
	d.must(err)
	d.t.Cleanup(func() { d.log("NodeLocal DNSCache", server) })
	d.until("NodeLocal DNSCache answers", func() error {
		for _, p := range d.nodeLocalPaths() {
			if got := d.ask(p); got != dnsOfCluster {
				return fmt.Errorf("from %s at %s: outcome %d; it logged:\n%s", p.from.Name, p.to, got, strings.TrimSpace(server.Log().String()))
			}
		}
		return nil
	})
	return server
}
