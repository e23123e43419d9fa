package ipvs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// manyServices has n Services of ten endpoints, each with a cluster IP and a NodePort on two
// addresses: three virtual servers.
func manyServices(n int) rules.Ruleset {
	hosts := []netip.Addr{netip.MustParseAddr("192.168.0.2"), netip.MustParseAddr("192.168.1.2")}
	rs := rules.Ruleset{NodePorts: rules.NodePortScope{IPv4: rules.ListenAddrs{All: true, Addrs: hosts}}, HostAddrs: hosts}
	for i := range n {
		rs.Services = append(rs.Services, numberedService(i, 10))
	}
	return rs
}

func numberedService(i, endpoints int) *rules.Service {
	s := &rules.Service{Name: topology.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("svc-%05d", i)}, Protocol: "TCP",
	}}
	high, low := byte(i>>8), byte(i)
	for e := range endpoints {
		s.Serving = append(s.Serving, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 128 + byte(e), high, low}), 80))
	}
	s.Sets = []rules.EndpointSet{{Endpoints: s.Serving}}
	routes := []rules.Route{{From: rules.Any, Masquerade: rules.Always}}
	s.Frontends = []rules.Frontend{
		{Kind: rules.ClusterIP, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, high, low}), 80), Routes: routes},
		{Kind: rules.NodePort, Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(30000+i)), Routes: routes},
	}
	return s
}

// obedient is a kernel that does everything and counts nothing.
type obedient struct {
	fakeRun
	each func([]operation)
}

func (o *obedient) do(ops []operation, _ bool) {
	for _, op := range ops {
		o.planner.done(op)
	}
	o.each(ops)
}

func (*obedient) writeChains() error             { return nil }
func (*obedient) countConnections() error        { return nil }
func (*obedient) limits() limits                 { return limits{now: time.Unix(0, 0)} }
func (*obedient) chainsWritten() rules.FamilySet { return rules.FamilySet{true, true} }

// planAll is one sync without a kernel; each sees the operations of every phase.
func planAll(p *planner, c *Compiler, rs rules.Ruleset, each func([]operation)) {
	o := &obedient{fakeRun: fakeRun{planner: p, compiled: c.Compile(rs, Config{})}, each: each}
	_ = runPhases(p, o) // no call fails
}

// planCount is planAll; it returns how many operations there were.
func planCount(p *planner, c *Compiler, rs rules.Ruleset) (count int) {
	planAll(p, c, rs, func(ops []operation) { count += len(ops) })
	return count
}

// What one change costs is the same, however many Services there are; the operations are equal.
func TestOneChangeCostsWhatItChanges(t *testing.T) {
	var first string
	for _, n := range []int{100, 1000} {
		var p planner
		var c Compiler
		rs := manyServices(n)
		planCount(&p, &c, rs)
		rs.Services = slices.Clone(rs.Services)
		rs.Services[50] = numberedService(50, 9)
		var ops []string
		planAll(&p, &c, rs, func(planned []operation) {
			for _, op := range planned {
				ops = append(ops, fmt.Sprintf("%+v", op))
			}
		})
		got := strings.Join(ops, "\n")
		if first == "" {
			first = got
		}
		// Of three virtual servers, one destination: its weight, it, and its entry for hairpins.
		if len(ops) != 7 || got != first {
			t.Errorf("%d Services: %d operations:\n%s", n, len(ops), got)
		}
	}
}

func BenchmarkOneChange(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var p planner
			var c Compiler
			rs := manyServices(n)
			planCount(&p, &c, rs)
			b.ReportAllocs()
			ops := 0
			for i := 0; b.Loop(); i++ {
				rs.Services = slices.Clone(rs.Services)
				rs.Services[n/2] = numberedService(n/2, 9+i%2)
				ops = planCount(&p, &c, rs)
			}
			b.ReportMetric(float64(ops), "operations/op")
		})
	}
}

func BenchmarkColdPlan(b *testing.B) {
	rs := manyServices(5000)
	b.ReportAllocs()
	for b.Loop() {
		var p planner
		var c Compiler
		b.ReportMetric(float64(planCount(&p, &c, rs)), "operations/op")
	}
}

func BenchmarkWholePlan(b *testing.B) {
	var p planner
	var c Compiler
	rs := manyServices(5000)
	planCount(&p, &c, rs)
	b.ReportAllocs()
	for b.Loop() {
		p.setObserved(p.observed)
		if planCount(&p, &c, rs) != 0 {
			b.Fatal("there is nothing to do")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var c Compiler
	text := printProc(kernelState{State: c.Compile(manyServices(5000), Config{}).State()}, nil)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseProc(strings.NewReader(text), tick250); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseConnections(b *testing.B) {
	var c Compiler
	state := c.Compile(manyServices(5000), Config{}).State()
	text := printProc(kernelState{State: state}, nil)
	asked := map[DestinationKey]bool{}
	for d := range state.Destinations {
		if len(asked) < 10 {
			asked[d] = true
		}
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseProcConnections(strings.NewReader(text), asked); err != nil {
			b.Fatal(err)
		}
	}
}
