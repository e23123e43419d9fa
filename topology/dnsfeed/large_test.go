package dnsfeed

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"gridproxy/topology/dnsview"
)

// hostile returns a Service of 16 EndpointSlices with 1,000 endpoints each. The endpoints of a
// slice share a list of ports, and all lists are equal. The first endpoint is on a node of its own.
func hostile(ports int, node string) *dnsview.Names {
	var sets [][]dnsview.Port
	for range 16 {
		sets = append(sets, manyPorts(ports))
	}
	svc := headless("hostile")
	addMembers(svc, 16_000, 0, sets...)
	svc.Endpoints[0].Node = node
	return svc
}

func manyPorts(n int) (all []dnsview.Port) {
	for i := range n {
		all = append(all, dnsview.Port{Name: fmt.Sprintf("port-%d", i), Protocol: "TCP", Number: int32(8000 + i)})
	}
	return all
}

// TestPortsAreReadOnce: endpoints that share a list of ports cost the same with any number of
// ports, and equal lists are sent once.
func TestPortsAreReadOnce(t *testing.T) {
	allocations := func(svc *dnsview.Names) float64 {
		return testing.AllocsPerRun(2, func() { _ = NewWriter(io.Discard).Update(Update{Services: []*dnsview.Names{svc}}) })
	}
	many, one := hostile(100, ""), hostile(1, "")
	if a, b := allocations(many), allocations(one); a > b*1.1 {
		t.Errorf("%.0f allocations with 100 ports, %.0f with one", a, b)
	}
	shared := headless("hostile")
	shared.Endpoints = slices.Clone(many.Endpoints)
	for i := range shared.Endpoints {
		shared.Endpoints[i].Ports = many.Endpoints[0].Ports
	}
	if a, b := writtenService(t, many), writtenService(t, shared); !bytes.Equal(a, b) {
		t.Errorf("%d bytes with 16 equal lists of ports, %d with one", len(a), len(b))
	}
	part := headless("part")
	addMembers(part, 6, 0, many.Endpoints[0].Ports, many.Endpoints[0].Ports[:7])
	checkRoundTrip(t, dnsview.View{Node: "bj-3"}, dnsview.View{Node: "bj-3", Services: []*dnsview.Names{part}})
}

func writtenService(t *testing.T, svc *dnsview.Names) []byte {
	return written(t, func(w *Writer) error { return w.Update(Update{Services: []*dnsview.Names{svc}}) })
}

// BenchmarkFeed is an update about one changed endpoint of a hostile Service.
func BenchmarkFeed(b *testing.B) {
	views := []dnsview.View{{Services: []*dnsview.Names{hostile(100, "bj-1")}}, {Services: []*dnsview.Names{hostile(100, "bj-2")}}}
	w, n := NewWriter(io.Discard), 0
	began := processorTime(b)
	for b.Loop() {
		if err := w.Update(Between(views[n%2], views[(n+1)%2])); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
