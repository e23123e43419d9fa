package main

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"gridproxy/cmd/grid-dns/clusterzone"
	"gridproxy/cmd/grid-dns/upstreams"
	"gridproxy/rules/names"
	"gridproxy/topology/dnsview"

	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
)

// How many addresses of each family the headless name has, and how many answers are counted.
const (
	spreadAddrs   = 100
	spreadAnswers = 10_000
)

// spreadZone returns a zone with the headless name db.shop. All IPv4 endpoints come before all IPv6
// ones, and only the IPv4 ones have a port, so that a start at a random endpoint would not be fair.
func spreadZone() *names.Zone {
	svc := &dnsview.Names{Service: types.NamespacedName{Namespace: "shop", Name: "db"}, Kind: dnsview.Headless}
	http, none := []dnsview.Port{{Name: "http", Protocol: "TCP", Number: 80}}, []dnsview.Port{{Name: "sql", Protocol: "TCP", Number: 5432}}
	for i := range spreadAddrs {
		svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{Hostname: fmt.Sprintf("four-%03d", i), Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Ports: http})
	}
	for i := range spreadAddrs {
		svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{Hostname: fmt.Sprintf("six-%03d", i), Addr: netip.MustParseAddr(fmt.Sprintf("fd00::%x", i+1)), Ports: none})
	}
	view := dnsview.View{Services: []*dnsview.Names{svc}, Namespaces: []string{"shop"}}
	return names.New(names.Config{Domain: "cluster.local", TTL: names.DefaultTTL}, view, 1)
}

// outsideAddrs starts a server that answers every question with four addresses in one order.
func outsideAddrs(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		answer := new(dns.Msg).SetReply(r)
		for i := range 4 {
			answer.Answer = append(answer.Answer, test.A(fmt.Sprintf("%s 300 IN A 192.0.2.%d", r.Question[0].Name, i+1)))
		}
		_ = w.WriteMsg(answer) // a client that is gone needs no answer
	})}
	go s.ActivateAndServe() //nolint:errcheck // ends with Shutdown
	t.Cleanup(func() { _ = s.Shutdown() })
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

// TestAnswersSpreadLoad: each record is equally often the first one of an answer, and no record of
// a truncated one is never named.
func TestAnswersSpreadLoad(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random, id := rand.New(rand.NewPCG(seed, 0)), dns.Id
	dns.Id = func() uint16 { return uint16(random.Uint32()) } // plugin loadbalance shuffles by it
	t.Cleanup(func() { dns.Id = id })
	zone, forwards := &clusterzone.Handler{Random: random.Uint64}, &upstreams.Handler{}
	zone.Serve(spreadZone())
	forwards.Set(upstreams.Servers{Machine: []netip.AddrPort{outsideAddrs(t)}})
	t.Cleanup(forwards.Close)
	all, err := newCoreDNS(register(zone, forwards, []netip.Addr{localAddr}), []netip.Addr{localAddr}, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.stop() })
	for _, c := range []struct {
		kind, name string
		qtype      uint16
		tcp        bool // whole; else truncated, except the cached one
		records    int
	}{
		{"A", "db.shop.svc.cluster.local.", dns.TypeA, true, spreadAddrs},
		{"AAAA", "db.shop.svc.cluster.local.", dns.TypeAAAA, true, spreadAddrs},
		{"SRV", "_http._tcp.db.shop.svc.cluster.local.", dns.TypeSRV, true, spreadAddrs},
		{"A truncated", "db.shop.svc.cluster.local.", dns.TypeA, false, spreadAddrs},
		{"AAAA truncated", "db.shop.svc.cluster.local.", dns.TypeAAAA, false, spreadAddrs},
		{"SRV truncated", "_http._tcp.db.shop.svc.cluster.local.", dns.TypeSRV, false, spreadAddrs},
		{"A cached", "www.example.org.", dns.TypeA, false, 4},
	} {
		first, named := map[string]int{}, map[string]bool{}
		for range spreadAnswers {
			w := nonwriter.New(&test.ResponseWriter{TCP: c.tcp})
			all.at[localAddr].ServeDNS(t.Context(), w, new(dns.Msg).SetQuestion(c.name, c.qtype))
			if w.Msg == nil || len(w.Msg.Answer) == 0 || w.Msg.Truncated == (c.tcp || c.records == 4) {
				t.Fatalf("%s: the answer is %v", c.kind, w.Msg)
			}
			first[w.Msg.Answer[0].String()]++
			for _, r := range w.Msg.Answer {
				named[r.String()] = true
			}
		}
		got, limit := chiSquared(first, c.records), chiSquaredLimit(c.records-1)
		t.Logf("%s: chi-squared %.1f, at most %.1f, %d of %d records named", c.kind, got, limit, len(named), c.records)
		if got > limit || len(named) != c.records {
			t.Errorf("%s: the load is not spread", c.kind)
		}
	}
}

// chiSquared returns how far counts of n equally likely results are from equal.
func chiSquared(counts map[string]int, n int) (sum float64) {
	expected := float64(spreadAnswers) / float64(n)
	for _, count := range counts {
		sum += (float64(count)-expected)*(float64(count)-expected)/expected - expected
	}
	return sum + float64(n)*expected // a result that is missing adds as much as expected
}

// chiSquaredLimit returns the value that one of a million samples exceeds (Wilson and Hilferty).
func chiSquaredLimit(freedom int) float64 {
	const deviation = 4.75
	share := 2 / (9 * float64(freedom))
	return float64(freedom) * math.Pow(1-share+deviation*math.Sqrt(share), 3)
}
