package names

import (
	"fmt"
	"net/netip"
	"testing"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

const (
	benchServices  = 10_000
	benchEndpoints = 10 // of each
)

// benchService is Service i of a large cluster. Every tenth is headless.
func benchService(i, generation int) *dnsview.Names {
	svc := &dnsview.Names{Service: types.NamespacedName{Namespace: fmt.Sprintf("ns-%d", i%100), Name: fmt.Sprintf("svc-%d", i)}, Kind: dnsview.ClusterIP}
	svc.Ports = []dnsview.Port{{Name: "http", Protocol: "TCP", Number: 80}}
	if i%10 == 0 {
		svc.Kind = dnsview.Headless
	} else {
		svc.ClusterIPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})}
	}
	for e := range benchEndpoints {
		n := i*benchEndpoints + e + generation
		svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{
			Hostname: fmt.Sprintf("pod-%d", e), Addr: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), Ports: svc.Ports,
		})
	}
	return svc
}

func benchZone() (*Zone, dnsview.View) {
	var view dnsview.View
	for i := range 100 {
		view.Namespaces = append(view.Namespaces, fmt.Sprintf("ns-%d", i))
	}
	for i := range benchServices {
		view.Services = append(view.Services, benchService(i, 0))
	}
	return New(config, view, 0), view
}

// BenchmarkUpdate: one Service changes all of its endpoints.
func BenchmarkUpdate(b *testing.B) {
	z, _ := benchZone()
	changes := [2]Change{{Services: []*dnsview.Names{benchService(70, 3)}}, {Services: []*dnsview.Names{benchService(70, 0)}}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		z = z.Update(changes[i%2])
	}
}

// BenchmarkNew makes the whole Zone.
func BenchmarkNew(b *testing.B) {
	_, view := benchZone()
	b.ReportAllocs()
	for b.Loop() {
		New(config, view, 0)
	}
}

func BenchmarkLookup(b *testing.B) {
	z, _ := benchZone()
	for _, c := range []struct {
		kind, name string
		want       Want
	}{
		{"A", "svc-71.ns-71.svc", WantIPv4},
		{"A-headless", "svc-70.ns-70.svc", WantIPv4},
		{"A-endpoint", "pod-7.svc-70.ns-70.svc", WantIPv4},
		{"SRV", "_http._tcp.svc-71.ns-71.svc", WantServices},
		{"SRV-headless", "_http._tcp.svc-70.ns-70.svc", WantServices},
		{"NXDOMAIN", "missing.ns-70.svc", WantIPv4},
	} {
		b.Run(c.kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				z.Lookup(c.name, c.want, recordsMax, 0)
			}
		})
	}
	b.Run("PTR", func(b *testing.B) {
		addr := benchService(71, 0).Endpoints[3].Addr
		b.ReportAllocs()
		for b.Loop() {
			z.Reverse(addr)
		}
	})
}
