package node

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
)

// nodeLocal are the addresses of NodeLocal DNSCache, which kubelets give to Pods as the only ones.
var nodeLocal = []netip.Addr{netip.MustParseAddr("169.254.20.10"), netip.MustParseAddr("fd00:6772:6964::10")}

// nodeLocalQueries is how many queries each of the faults below has at least.
const (
	nodeLocalQueries = 20_000
	nodeLocalRate    = 2000 // per second
)

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
			d.pass(1)
			d.serveNodeLocal(path)
		}},
	}
}

// BenchmarkDNSBesideNodeLocal measures what clients notice of the same faults, with grid-dns and
// with the real CoreDNS that is configured as NodeLocal DNSCache.
func BenchmarkDNSBesideNodeLocal(b *testing.B) {
	programs := buildDNSPrograms(b)
	path, err := apiserver.EnsureCoreDNS(b.Context(), os.Stderr)
	must(b, err)
	for _, theirs := range nodeLocalFaults() {
		ours := dnsFaults()[slices.IndexFunc(dnsFaults(), func(f dnsFault) bool { return f.name == theirs.name })]
		b.Run(theirs.name+"/grid-dns", func(b *testing.B) {
			d := newDNSNode(b, programs)
			d.run(ours.flags...)
			server := d.serve()
			d.answeredBy(dnsOfNode)
			d.measureFault(b, d.ways(), func() { ours.strike(d, []*netns.Process{server}) })
		})
		b.Run(theirs.name+"/NodeLocal", func(b *testing.B) {
			d := newDNSNode(b, programs)
			d.runWithout()
			for _, a := range nodeLocal {
				_, err := d.node.Run(d.ctx, nil, "ip", "addr", "add", fmt.Sprintf("%s/%d", a, a.BitLen()), "dev", "lo", "nodad")
				must(d.t, err)
			}
			server := d.serveNodeLocal(path)
			d.measureFault(b, d.nodeLocalWays(), func() { theirs.strike(d, path, server) })
		})
	}
}

// measureFault does something while clients ask, and reports what became of their queries.
func (d *dnsNode) measureFault(b *testing.B, ways []traffic.Way, strike func()) {
	b.Helper()
	d.startLoad(nodeLocalRate, false, ways)
	d.await(nodeLocalQueries / 4)
	struck := time.Now()
	strike()
	d.pass(1)
	d.await(nodeLocalQueries)
	tally := d.stopLoad(struck)
	must(d.t, tally.NotMeasured(0))
	b.ReportMetric(0, "ns/op") // a fault lasts as long as its steps
	b.ReportMetric(float64(len(tally.Failed)), "failed")
	b.ReportMetric(float64(tally.Sends), "queries")
	b.ReportMetric(float64(d.overflows()), "overflows")
}

// nodeLocalWays returns those of ways, to the addresses of NodeLocal DNSCache.
func (d *dnsNode) nodeLocalWays() []traffic.Way {
	var all []traffic.Way
	for _, w := range d.ways() {
		to := nodeLocal[0]
		if w.To.Addr().Is6() {
			to = nodeLocal[1]
		}
		all = append(all, traffic.Way{From: w.From, To: netip.AddrPortFrom(to, portDNS)})
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
	must(d.t, os.WriteFile(file, fmt.Appendf(nil, corefile, nodeLocal[0], nodeLocal[1], clusterDNS[0]), 0o600))
	server, err := d.node.Start(path, "-conf", file)
	must(d.t, err)
	d.t.Cleanup(func() { d.log("NodeLocal DNSCache", server) })
	d.answered(d.nodeLocalWays(), dnsOfCluster)
	return server
}
