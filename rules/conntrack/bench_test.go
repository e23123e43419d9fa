package conntrack

import (
	"net"
	"testing"

	"gridproxy/rules"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
)

// BenchmarkClean sweeps a table of 50,000 UDP flows to a Frontend that are not stale, beside as
// many TCP flows.
func BenchmarkClean(b *testing.B) {
	const flows = 50000
	p := places[0]
	enterNamespace(b, p.vip, p.in)
	restore(b, false, p.dnat(p.in))
	for i := range flows {
		for _, proto := range []Protocol{UDP, TCP} {
			create(b, proto, net.IPv4(10, 2, byte(i>>8), byte(i)), p)
		}
	}
	want := ruleset(service("dns", corev1.ProtocolUDP, []string{p.at(p.in, "5353")}, p.at(p.vip, "53")))
	var c Cleaner
	b.ReportAllocs()
	for b.Loop() {
		if deleted, _, err := c.Clean(b.Context(), want, viewOf(), rules.FamilySet{true, true}, true); err != nil || deleted != 0 {
			b.Fatal(deleted, err)
		}
	}
}

// create makes a flow from client to the Frontend of p, answered by the endpoint inside.
func create(t testing.TB, proto Protocol, client net.IP, p place) {
	t.Helper()
	vip, in := net.ParseIP(p.vip).To4(), net.ParseIP(p.in).To4()
	flow := netlink.ConntrackFlow{
		FamilyType: netlink.FAMILY_V4, TimeOut: 600,
		Forward: netlink.IPTuple{Protocol: uint8(proto), SrcIP: client.To4(), DstIP: vip, SrcPort: 4000, DstPort: 53},
		Reverse: netlink.IPTuple{Protocol: uint8(proto), SrcIP: in, DstIP: client.To4(), SrcPort: 5353, DstPort: 4000},
	}
	if proto == TCP {
		flow.ProtoInfo = &netlink.ProtoInfoTCP{State: 3}
	}
	must(t, netlink.ConntrackCreate(netlink.ConntrackTable, netlink.InetFamily(netlink.FAMILY_V4), &flow))
}
