package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
)

// expectedName is what a Pod of each unit has to be told about a name.
type expectedName struct {
	name      string
	qtype     uint16
	beijing   string
	guangzhou string // "" = the same
	asked     int    // how many queries the server counts; 0 = one
}

// expectedNames are about the Services of testdata/dns_table.yaml.
func expectedNames() []expectedName {
	const a, aaaa, srv, ptr, none = dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypePTR, "NXDOMAIN"
	const shop = ".shop.svc.cluster.local"
	return []expectedName{
		// Headless, closed: db-2 is not ready, and only db-0 has an IPv6 address.
		{name: "db" + shop, qtype: a, beijing: "10.250.0.1", guangzhou: "10.250.0.2"},
		{name: "db" + shop, qtype: aaaa, beijing: "fd00:10:250::1", guangzhou: "no data"},
		{name: "_sql._tcp.db" + shop, qtype: srv, beijing: "db-0.db.shop.svc.cluster.local.:5432", guangzhou: "db-1.db.shop.svc.cluster.local.:5432"},
		{name: "_sql._udp.db" + shop, qtype: srv, beijing: none},
		// Ordinals.
		{name: "db-0.db" + shop, qtype: a, beijing: "10.250.0.1", guangzhou: none},
		{name: "db-0.db" + shop, qtype: aaaa, beijing: "fd00:10:250::1", guangzhou: none},
		{name: "db-1.db" + shop, qtype: a, beijing: none, guangzhou: "10.250.0.2"},
		{name: "db-1.db" + shop, qtype: aaaa, beijing: none, guangzhou: "no data"},
		{name: "db-1.db" + shop, qtype: srv, beijing: none, guangzhou: "db-1.db.shop.svc.cluster.local.:5432"},
		{name: "db-2.db" + shop, qtype: a, beijing: none},
		{name: "1.0.250.10.in-addr.arpa", qtype: ptr, beijing: "db-0.db.shop.svc.cluster.local.", guangzhou: none},
		{name: "2.0.250.10.in-addr.arpa", qtype: ptr, beijing: none, guangzhou: "db-1.db.shop.svc.cluster.local."},
		// A cluster IP; the names of its endpoints are closed.
		{name: "web" + shop, qtype: a, beijing: "10.96.100.1"},
		{name: "web" + shop, qtype: aaaa, beijing: "fd00:10:96::100"},
		{name: "_http._tcp.web" + shop, qtype: srv, beijing: "web.shop.svc.cluster.local.:80"},
		{name: "1.100.96.10.in-addr.arpa", qtype: ptr, beijing: "web.shop.svc.cluster.local."},
		{name: "10-250-1-1.web" + shop, qtype: a, beijing: "10.250.1.1", guangzhou: none},
		{name: "10-250-1-2.web" + shop, qtype: a, beijing: none, guangzhou: "10.250.1.2"},
		// An alias: the server asks itself for what it leads to.
		{name: "out" + shop, qtype: a, beijing: "192.0.2.1 alias of outside.example.", asked: 2},
		{name: "out" + shop, qtype: aaaa, beijing: "alias of outside.example.", asked: 2},
		{name: "out" + shop, qtype: dns.TypeCNAME, beijing: "alias of outside.example."},
		// Empty here, or everywhere, and missing.
		{name: "far" + shop, qtype: a, beijing: none, guangzhou: "10.250.2.1"},
		{name: "far" + shop, qtype: srv, beijing: none, guangzhou: "10-250-2-1.far.shop.svc.cluster.local.:80"},
		{name: "empty" + shop, qtype: a, beijing: none},
		{name: "missing" + shop, qtype: a, beijing: none},
		{name: "missing" + shop, qtype: srv, beijing: none},
		{name: "web.missing.svc.cluster.local", qtype: a, beijing: none},
		{name: "shop.svc.cluster.local", qtype: a, beijing: "no data"},
		{name: "10-1-2-3.shop.pod.cluster.local", qtype: a, beijing: "10.1.2.3"},
	}
}

func (e expectedName) at(machine string) string {
	if e.guangzhou != "" && unitOf()[machine] == "guangzhou" {
		return e.guangzhou
	}
	return e.beijing
}

// table asks for all of them from a Pod on each machine of the units.
func (w *namesCluster) table() {
	w.t.Helper()
	w.allCounted(func() {
		for _, machine := range slices.Sorted(maps.Keys(unitOf())) {
			for _, e := range expectedNames() {
				if err := w.check(machine, e); err != nil {
					w.t.Error(err)
				}
			}
			w.everyWay(machine, expectedNames()[0])
		}
	})
}

// everyWay asks for a name at both cluster IPs of kube-dns, over UDP and TCP.
func (w *namesCluster) everyWay(machine string, e expectedName) {
	w.t.Helper()
	for _, addr := range machines.DNSAddrs() {
		for _, network := range []string{"udp", "tcp"} {
			m, err := query(w.clients[machine], network, netip.AddrPortFrom(addr, 53), e.name, e.qtype)
			must(w.t, err)
			w.sent[machine]++
			if got := said(m); got != e.at(machine) {
				w.t.Errorf("on %s, %s at %s over %s: %q; want %q", machine, e.name, addr, network, got, e.at(machine))
			}
		}
	}
}

func (w *namesCluster) check(machine string, e expectedName) error {
	got, err := w.asks(machine, e.name, e.qtype)
	if err != nil {
		return fmt.Errorf("from %s: %w", machine, err)
	}
	w.sent[machine] += max(0, e.asked-1)
	want := e.at(machine)
	return wait.Check(got == want, "on %s, %s %s: %q; want %q", machine, e.name, dns.TypeToString[e.qtype], got, want)
}

// becomes waits until a name leads where it should.
func (w *namesCluster) becomes(machine, name, want string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("on %s, %s is %s", machine, name, want), func() error {
		return w.check(machine, expectedName{name: name, qtype: dns.TypeA, beijing: want})
	})
}
