package ipvs

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
)

// walked is a State and tables of few words: what is under test is the State's part in a
// walk, not the skeleton.
func walked(t *testing.T) (State, netfilter.Saved) {
	t.Helper()
	vip := netip.MustParseAddrPort("10.96.0.10:80")
	key := ServerKey{Addr: vip, Proto: netfilter.TCP}
	s := State{
		Servers: map[ServerKey]Server{key: {}, {Addr: netip.MustParseAddrPort("10.96.0.11:80"), Proto: netfilter.TCP}: {}},
		Destinations: map[DestinationKey]Destination{
			{Server: key, Addr: netip.MustParseAddrPort("10.244.1.5:8080")}: {Weight: 1},
			{Server: key, Addr: netip.MustParseAddrPort("10.244.2.6:8080")}: {Weight: 1},
			{Server: key, Addr: netip.MustParseAddrPort("10.244.2.7:8080")}: {Weight: 0},
			// Of a server that is not there.
			{Server: ServerKey{Addr: vip, Proto: netfilter.UDP}, Addr: netip.MustParseAddrPort("10.244.2.8:8080")}: {Weight: 1},
		},
		Addresses: map[netip.Addr]struct{}{vip.Addr(): {}, netip.MustParseAddr("10.96.0.11"): {}},
		Entries: map[Entry]struct{}{
			{Set: netfilter.SetClusterIP, Net: netip.MustParsePrefix("10.96.0.10/32"), Proto: netfilter.TCP, Port: 80}:                                           {},
			{Set: netfilter.SetIPVSIPs, Net: netip.MustParsePrefix("10.96.0.10/32")}:                                                                             {},
			{Set: netfilter.SetChains, Net: netip.MustParsePrefix("127.0.0.0/8"), Proto: netfilter.TCP, Port: 30000}:                                             {},
			{Set: netfilter.SetChains, Net: netip.MustParsePrefix("192.0.2.1/32"), Proto: netfilter.TCP, Port: 30000}:                                            {},
			{Set: netfilter.SetLoopBack, Net: netip.MustParsePrefix("10.244.1.5/32"), Proto: netfilter.TCP, Port: 8080, Peer: netip.MustParseAddr("10.244.1.5")}: {},
		},
	}
	tables, err := netfilter.Parse(strings.NewReader(strings.Join([]string{
		"*filter", ":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]",
		"-A INPUT -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN",
		"-A INPUT -m set --match-set KUBE-IPVS-IPS dst -j REJECT --reject-with icmp-port-unreachable",
		"-A INPUT -m set --match-set KUBE-IPVS-CHAINS dst,dst -j DROP", "COMMIT",
		"*nat", ":PREROUTING ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]",
		"-A POSTROUTING -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE",
		"-A POSTROUTING -s 10.96.0.10/32 -j MASQUERADE", "COMMIT", "",
	}, "\n")), netfilter.IPv4)
	must(t, err)
	return s, tables
}

// TestTrace: what a State adds to a walk.
func TestTrace(t *testing.T) {
	state, tables := walked(t)
	for _, tc := range []struct {
		name, src, dst string
		fromNode       bool
		want           []string
	}{
		{"a draining real server takes nothing", "192.0.2.9", "10.96.0.10:80", false, []string{"accept 10.244.1.5:8080", "accept 10.244.2.6:8080"}},
		{"only the hairpin of this very endpoint is masqueraded", "10.244.1.5", "10.96.0.10:80", false,
			[]string{"accept 10.244.1.5:8080 masqueraded", "accept 10.244.2.6:8080"}},
		{"the node's own source is the address of the link", "", "10.96.0.10:80", true,
			[]string{"accept 10.244.1.5:8080 masqueraded", "accept 10.244.2.6:8080 masqueraded"}},
		{"a process that is bound keeps its source", "192.0.2.1", "10.96.0.10:80", true, []string{"accept 10.244.1.5:8080", "accept 10.244.2.6:8080"}},
		{"a server without real servers", "192.0.2.9", "10.96.0.11:80", false, []string{"reject 10.96.0.11:80"}},
		{"another port of an address of the link", "192.0.2.9", "10.96.0.10:81", false, []string{"reject 10.96.0.10:81"}},
		{"in a set by a shorter network", "127.0.0.1", "127.9.9.9:30000", true, []string{"drop 127.9.9.9:30000"}},
		{"in a set by itself", "192.0.2.1", "192.0.2.1:30000", true, []string{"drop 192.0.2.1:30000"}},
		{"in no set", "192.0.2.1", "192.0.2.1:30001", true, []string{"accept 192.0.2.1:30001"}},
		{"not the node's own", "192.0.2.9", "10.96.0.12:80", false, []string{"accept 10.96.0.12:80"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dst := netip.MustParseAddrPort(tc.dst)
			p := trace.Packet{Dst: dst.Addr(), DstPort: dst.Port(), Proto: netfilter.TCP, FromNode: tc.fromNode, Local: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
			if tc.src != "" {
				p.Src = netip.MustParseAddr(tc.src)
			}
			out := NewTracer(state).Trace(tables, p)
			var got []string
			for _, end := range out.Ends {
				text := string(end.Verdict) + " " + end.Dst.String()
				if end.Masquerade {
					text += " masqueraded"
				}
				got = append(got, text)
			}
			if !slices.Equal(got, tc.want) || len(out.Problems) > 0 {
				t.Errorf("got %q, want %q; problems: %q", got, tc.want, out.Problems)
			}
		})
	}
	if len(state.Addresses) != 2 || len(state.Entries) != 5 {
		t.Error("a walk changed the state")
	}
}
