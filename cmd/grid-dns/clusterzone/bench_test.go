package clusterzone

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"gridproxy/rules/names"
	"gridproxy/topology/dnsview"

	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
)

// largeZone has 10,000 Services of 10 endpoints each. Every tenth is headless.
func largeZone() *names.Zone {
	view := dnsview.View{Namespaces: []string{"shop"}}
	ports := []dnsview.Port{{Name: "http", Protocol: "TCP", Number: 80}}
	for i := range 10_000 {
		svc := &dnsview.Names{Service: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("svc-%d", i)}, Kind: dnsview.ClusterIP, Ports: ports}
		if i%10 == 0 {
			svc.Kind = dnsview.Headless
		} else {
			svc.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})}
		}
		for e := range 10 {
			addr := netip.AddrFrom4([4]byte{11, byte(e), byte(i >> 8), byte(i)})
			svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{Hostname: fmt.Sprintf("pod-%d", e), Addr: addr, Ports: ports})
		}
		view.Services = append(view.Services, svc)
	}
	return names.New(names.Config{Domain: "cluster.local", TTL: names.DefaultTTL}, view, 1)
}

// BenchmarkAnswer makes answers, which are not packed.
func BenchmarkAnswer(b *testing.B) {
	h := newHandler(largeZone())
	for _, c := range []struct {
		kind, name string
		qtype      uint16
	}{
		{"A", "svc-71.shop.svc.cluster.local.", dns.TypeA},
		{"A-headless", "svc-70.shop.svc.cluster.local.", dns.TypeA},
		{"SRV", "_http._tcp.svc-71.shop.svc.cluster.local.", dns.TypeSRV},
		{"SRV-headless", "_http._tcp.svc-70.shop.svc.cluster.local.", dns.TypeSRV},
		{"PTR", "71.0.3.11.in-addr.arpa.", dns.TypePTR},
		{"NXDOMAIN", "missing.shop.svc.cluster.local.", dns.TypeA},
	} {
		b.Run(c.kind, func(b *testing.B) {
			r, w := new(dns.Msg).SetQuestion(c.name, c.qtype), nonwriter.New(&test.ResponseWriter{})
			b.ReportAllocs()
			for b.Loop() {
				if rcode, err := h.ServeDNS(context.Background(), w, r); err != nil || rcode != dns.RcodeSuccess {
					b.Fatal(rcode, err)
				}
			}
		})
	}
}
