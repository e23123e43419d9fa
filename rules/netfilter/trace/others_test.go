package trace

import (
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
)

// packetOf is a TCP packet of an outside client or, from 192.168.0.2, of the node. The virtual
// server's address is also the node's own.
func packetOf(from, to string) Packet {
	dst, node := netip.MustParseAddrPort(to), netip.MustParseAddr("192.168.0.2")
	return Packet{
		Src: netip.MustParseAddr(from), Dst: dst.Addr(), DstPort: dst.Port(), Proto: netfilter.TCP, InInterface: "eth0",
		FromNode: from == node.String(), Local: []netip.Addr{node, netip.MustParseAddr("10.96.0.1")},
	}
}

// TestTraceIPVSHooks: after IPVS a packet passes OUTPUT and POSTROUTING with its endpoint as the
// destination, but not nat OUTPUT. A packet for the node itself has arrived.
func TestTraceIPVSHooks(t *testing.T) {
	server := Others{Server: func(dst netip.AddrPort, proto netfilter.Proto) ([]netip.AddrPort, bool) {
		endpoints := []netip.AddrPort{netip.MustParseAddrPort("10.180.0.1:8080"), netip.MustParseAddrPort("192.168.0.2:8080")}
		return endpoints, dst == netip.MustParseAddrPort("10.96.0.1:80") && proto == netfilter.TCP
	}}
	const drop = "-d 10.180.0.1/32 -j DROP\n"
	for _, tc := range []struct{ from, text, want string }{
		{"203.0.113.7", "*filter\n:OUTPUT ACCEPT\n-A OUTPUT " + drop + "COMMIT\n", "accept 192.168.0.2:8080 1/2; drop 10.180.0.1:8080 1/2"},
		{"203.0.113.7", "*filter\n:INPUT ACCEPT\n-A INPUT " + drop + "-A INPUT -d 192.168.0.2/32 -j DROP\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; accept 192.168.0.2:8080 1/2"},
		{"203.0.113.7", "*filter\n:INPUT ACCEPT\n-A INPUT -d 10.96.0.1/32 -j DROP\nCOMMIT\n", "drop 10.96.0.1:80 1"},
		{"203.0.113.7", "*filter\n:FORWARD ACCEPT\n-A FORWARD -j DROP\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; accept 192.168.0.2:8080 1/2"},
		{"203.0.113.7", "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -m ipvs --ipvs -j MASQUERADE\nCOMMIT\n", "accept 10.180.0.1:8080 m 1/2; accept 192.168.0.2:8080 1/2"},
		{"203.0.113.7", "*filter\n:OUTPUT ACCEPT\n-A OUTPUT -i eth0 -j DROP\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; accept 192.168.0.2:8080 1/2"},
		{"192.168.0.2", "*filter\n:INPUT ACCEPT\n-A INPUT -d 192.168.0.2/32 -i lo -j DROP\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; drop 192.168.0.2:8080 1/2"},
		{"192.168.0.2", "*filter\n:OUTPUT ACCEPT\n-A OUTPUT -d 10.96.0.1/32 -j DROP\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; accept 192.168.0.2:8080 1/2"},
		{"192.168.0.2", "*nat\n:OUTPUT ACCEPT\n-A OUTPUT -d 10.180.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:9\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; accept 192.168.0.2:8080 1/2"},
		{"192.168.0.2", "*nat\n:OUTPUT ACCEPT\n-A OUTPUT -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:9\nCOMMIT\n", "accept 10.9.9.9:9 1"},
		{"192.168.0.2", "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -m ipvs --ipvs -j MASQUERADE\nCOMMIT\n", "accept 10.180.0.1:8080 m 1/2; accept 192.168.0.2:8080 m 1/2"},
	} {
		out := With(parsed(t, tc.text), server, packetOf(tc.from, "10.96.0.1:80"))
		if got := endsText(out, "; "); got != tc.want || len(out.Problems) > 0 {
			t.Errorf("from %s with\n%sgot %s\nwant %s\nproblems %v", tc.from, tc.text, got, tc.want, out.Problems)
		}
	}
}

// A walk without sets reports that, like every rule that it does not understand.
func TestTraceUnknownSet(t *testing.T) {
	s := parsed(t, "*nat\n:PREROUTING ACCEPT\n-A PREROUTING -m set --match-set A dst -j MASQUERADE\nCOMMIT\n")
	out := Trace(s, packetOf("203.0.113.7", "10.96.0.9:80"))
	if got := endsText(out, "; "); got != "accept 10.96.0.9:80 1" || len(out.Problems) != 1 || !strings.Contains(out.Problems[0], "set A is not known") {
		t.Errorf("%s, problems %q", got, out.Problems)
	}
}
