package agreement

import (
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter/trace"
)

// The node's own addresses that its processes have as their source unless they choose
// another one.
var primaryAddrs = [2]netip.Addr{netip.MustParseAddr("192.168.0.11"), netip.MustParseAddr("fd00:192:168::11")}

const unservedPort = 9

// modeDifference is a packet for which IPVS mode does not do what iptables mode does, and
// should.
type modeDifference struct {
	What                 string
	Deviation            deviation
	IPTables, Want, IPVS string
}

func (d modeDifference) String() string {
	return fmt.Sprintf("%s\n  iptables mode:\n%s  so IPVS mode should (deviation %q):\n%s  IPVS mode:\n%s",
		d.What, indent(d.IPTables), d.Deviation, indent(d.Want), indent(d.IPVS))
}

type modeComparison struct {
	differences []modeDifference
	walked      int
	ends        map[string]int // how often a walk could end how
	deviations  map[deviation]int
}

func (r *modeComparison) add(other modeComparison) {
	if r.ends == nil {
		r.ends, r.deviations = map[string]int{}, map[deviation]int{}
	}
	r.walked += other.walked
	r.differences = append(r.differences, other.differences...)
	for kind, n := range other.ends {
		r.ends[kind] += n
	}
	for kind, n := range other.deviations {
		r.deviations[kind] += n
	}
}

// compare walks the first packet of every flow through both modes. Equal is: the same set
// of endpoints, masqueraded alike, rejected alike, dropped alike; not with the same
// probability, since a virtual server has a scheduler.
func (m *modes) compare() modeComparison {
	r := modeComparison{ends: map[string]int{}, deviations: map[deviation]int{}}
	tracer := ipvs.NewTracer(m.state)
	for family := range m.chains {
		for _, flow := range m.flows(family) {
			m.compareFlow(&r, tracer, family, flow)
		}
	}
	return r
}

func (m *modes) compareFlow(r *modeComparison, tracer *ipvs.Tracer, family int, flow Flow) {
	p := flow.Packet
	if !m.facts.comparable(p) {
		return
	}
	other := trace.Trace(m.chains[family], withSource(p))
	got := tracer.Trace(m.skeleton[family], p)
	elsewhere := withSource(p)
	elsewhere.DstPort = unservedPort
	unserved := trace.Trace(m.chains[family], elsewhere)
	want, why := m.facts.expect(p, endsOf(other), endsOf(unserved))
	if seen, ok := m.facts.rangesSource(p); ok {
		want = endsOf(trace.Trace(m.chains[family], seen))
		if why = ownSource; slices.Equal(want, endsOf(other)) {
			why = ""
		}
	}
	if !slices.Equal(want, endsOf(got)) || len(got.Problems)+len(other.Problems) > 0 {
		r.differences = append(r.differences, modeDifference{
			What: flow.String(), Deviation: why,
			IPTables: describe(other), Want: describe(trace.Outcome{Ends: want}), IPVS: describe(got),
		})
	}
	r.walked++
	if why != "" {
		r.deviations[why]++
	}
	for _, end := range want {
		r.ends[kindOf(flow, end)]++
	}
}

// withSource is a packet with the source that the kernel gives it in iptables mode, unless
// its process has chosen one.
func withSource(p trace.Packet) trace.Packet {
	if !p.Src.IsValid() {
		p.Src = primaryAddrs[0]
		if p.Dst.Is6() {
			p.Src = primaryAddrs[1]
		}
	}
	return p
}

// endsOf are the ends without their probabilities.
func endsOf(o trace.Outcome) []trace.End {
	ends := slices.Clone(o.Ends)
	for i := range ends {
		ends[i].P = ""
	}
	return ends
}

// flows are those of the Cluster, and for each address on the link one more: of a process
// of the node that leaves its source to the kernel, which takes that address.
func (m *modes) flows(family int) []Flow {
	all := flows(m.cluster, family == 1)
	unbound := map[ipvs.ServerKey]bool{}
	for _, flow := range all {
		p := flow.Packet
		key := ipvs.ServerKey{Addr: netip.AddrPortFrom(p.Dst, p.DstPort), Proto: p.Proto}
		if !m.facts.live[p.Dst] || unbound[key] {
			continue
		}
		unbound[key] = true
		all = append(all, Flow{From: "the node itself, not bound", To: flow.To, Packet: trace.Packet{
			Dst: p.Dst, DstPort: p.DstPort, Proto: p.Proto, FromNode: true, Local: p.Local,
		}})
	}
	return all
}
