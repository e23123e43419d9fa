package render

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ipvsState is what a packet meets in IPVS mode: sets by the text of their entries, and servers.
type ipvsState struct {
	sets    map[string]string // entries as "ADDR:PORT", "ADDR:PORT,ADDR" or "ADDR", with spaces between
	servers map[string]string // endpoints with spaces between
}

func (w ipvsState) others(t *testing.T) trace.Others {
	return trace.Others{
		InSet: func(m netfilter.SetMatch, src, dst netip.AddrPort, proto netfilter.Proto) bool {
			entry := map[string]string{
				"dst,dst": dst.String(), "dst,dst,src": dst.String() + "," + src.Addr().String(), "dst": dst.Addr().String(),
			}[m.Fields]
			if entry == "" {
				t.Errorf("set %s is asked by %q", m.Name, m.Fields)
			}
			if m.Fields != "dst" && proto != netfilter.TCP {
				return false
			}
			return strings.Contains(" "+w.sets[m.Name]+" ", " "+entry+" ")
		},
		Server: func(dst netip.AddrPort, proto netfilter.Proto) ([]netip.AddrPort, bool) {
			text, found := w.servers[dst.String()]
			var all []netip.AddrPort
			for _, e := range strings.Fields(text) {
				all = append(all, netip.MustParseAddrPort(e))
			}
			return all, found && proto == netfilter.TCP
		},
	}
}

// sampleState has a Service of each kind: 10.96.0.1:80 with three endpoints, :81 with none;
// 10.96.0.2:80 that chains drop, beside a live port 90; 192.0.2.1:80 of external policy
// Local; 10.96.0.3:80 with the node itself as an endpoint; NodePort 30080 refused.
func sampleState() (ipvsState, rules.Ruleset) {
	w := ipvsState{
		sets: map[string]string{
			netfilter.SetClusterIP:       "10.96.0.1:80 10.96.0.1:81 10.96.0.2:90 10.96.0.3:80",
			netfilter.SetExternalIP:      "192.0.2.2:80",
			netfilter.SetExternalIPLocal: "192.0.2.1:80",
			netfilter.SetLoopBack:        "10.180.0.1:8080,10.180.0.1 10.180.0.2:8080,10.180.0.2 10.180.1.1:8080,10.180.1.1",
			netfilter.SetIPVSIPs:         "10.96.0.1 10.96.0.2 10.96.0.3 192.0.2.1 192.0.2.2",
			netfilter.SetChains:          "192.0.2.1:80 192.168.0.2:30080",
		},
		servers: map[string]string{
			"10.96.0.1:80": "10.180.0.1:8080 10.180.0.2:8080 10.180.1.1:8080",
			"10.96.0.1:81": "",
			"10.96.0.2:90": "10.180.0.1:90",
			"10.96.0.3:80": "192.168.0.2:8080",
			"192.0.2.1:80": "10.180.0.1:8080",
			"192.0.2.2:80": "10.180.1.1:8080 10.180.0.1:8080",
		},
	}
	svc := func(name string, endpoints []string, f ...rules.Frontend) *rules.Service {
		s := &rules.Service{Frontends: f, Name: topology.ServicePortName{
			NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, Protocol: corev1.ProtocolTCP,
		}}
		if len(endpoints) > 0 {
			s.Sets = []rules.EndpointSet{{}}
		}
		for _, e := range endpoints {
			s.Sets[0].Endpoints = append(s.Sets[0].Endpoints, netip.MustParseAddrPort(e))
		}
		return s
	}
	rs := rules.Ruleset{Services: []*rules.Service{
		svc("dropped", nil, rules.Frontend{Addr: netip.MustParseAddrPort("10.96.0.2:80"), Verdict: rules.Drop}),
		svc("local", []string{"10.180.1.1:8080"}, rules.Frontend{
			Addr: netip.MustParseAddrPort("192.0.2.1:80"), Kind: rules.ExternalIP,
			Routes: []rules.Route{{From: rules.Pods}, {From: rules.Node, Masquerade: rules.Always}},
		}),
		svc("refused", nil, rules.Frontend{Addr: netip.MustParseAddrPort("0.0.0.0:30080"), Kind: rules.NodePort, Verdict: rules.Reject}),
	}}
	rs.NodePorts = rules.NodePortScope{IPv4: rules.ListenAddrs{All: true}, IPv6: rules.ListenAddrs{All: true}, Localhost: true}
	rs.Local.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.180.0.0/24")}
	return w, rs
}

// TestTraceIPVS walks past virtual servers: what is marked, what is refused, which server is
// chosen.
func TestTraceIPVS(t *testing.T) {
	w, rs := sampleState()
	const pod, outside, node = "10.180.0.9", "203.0.113.7", "192.168.0.2"
	third := func(m string, at ...string) string {
		var all []string
		for _, a := range at {
			all = append(all, "accept "+a+":8080"+m+" 1/3")
		}
		return strings.Join(all, "; ")
	}
	for _, tc := range []struct{ name, from, to, want string }{
		{"pod to cluster IP", pod, "10.96.0.1:80", third("", "10.180.0.1", "10.180.0.2", "10.180.1.1")},
		{"outside to cluster IP", outside, "10.96.0.1:80", third(" m", "10.180.0.1", "10.180.0.2", "10.180.1.1")},
		{"node to cluster IP", node, "10.96.0.1:80", third(" m", "10.180.0.1", "10.180.0.2", "10.180.1.1")},
		{"the server itself, as the node's source", "10.96.0.1", "10.96.0.1:80", third(" m", "10.180.0.1", "10.180.0.2", "10.180.1.1")},
		{"hairpin", "10.180.0.1", "10.96.0.1:80", "accept 10.180.0.1:8080 m 1/3; " + third("", "10.180.0.2", "10.180.1.1")},
		{"no endpoint", pod, "10.96.0.1:81", "reject 10.96.0.1:81 1"},
		{"no endpoint, from the node", node, "10.96.0.1:81", "reject 10.96.0.1:81 1"},
		{"unknown port", pod, "10.96.0.1:22", "reject 10.96.0.1:22 1"},
		{"unknown port, from the node", node, "10.96.0.1:22", "reject 10.96.0.1:22 1"},
		{"a verdict beside a server", pod, "10.96.0.2:80", "drop 10.96.0.2:80 1"},
		{"a verdict beside a server, from the node", node, "10.96.0.2:80", "drop 10.96.0.2:80 1"},
		{"beside a verdict", pod, "10.96.0.2:90", "accept 10.180.0.1:90 1"},
		{"an endpoint on the node", outside, "10.96.0.3:80", "accept 192.168.0.2:8080 1"},
		{"policy Local, pod", pod, "192.0.2.1:80", "accept 10.180.1.1:8080 1"},
		{"policy Local, node", node, "192.0.2.1:80", "accept 10.180.1.1:8080 m 1"},
		{"policy Local, outside", outside, "192.0.2.1:80", "accept 10.180.0.1:8080 1"},
		{"policy Cluster, pod", pod, "192.0.2.2:80", "accept 10.180.0.1:8080 m 1/2; accept 10.180.1.1:8080 m 1/2"},
		{"refused NodePort", outside, "192.168.0.2:30080", "reject 192.168.0.2:30080 1"},
		{"refused NodePort on another address", outside, "192.168.1.2:30080", "accept 192.168.1.2:30080 1"},
		{"what is no Service", outside, "192.168.0.2:22", "accept 192.168.0.2:22 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parsed(t, rendered(t, Ruleset(rs, Options{MasqueradeBit: 14, IPVS: true})), netfilter.IPv4)
			out := trace.With(s, w.others(t), packetOf(tc.from, tc.to))
			if got := endsText(out); got != tc.want || len(out.Problems) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nproblems %v\npaths %v", got, tc.want, out.Problems, out.Paths)
			}
		})
	}
}

// packetOf is a TCP packet; the node sends what has one of its addresses.
func packetOf(from, to string) trace.Packet {
	dst := netip.MustParseAddrPort(to)
	p := trace.Packet{Src: netip.MustParseAddr(from), Dst: dst.Addr(), DstPort: dst.Port(), Proto: netfilter.TCP, InInterface: "eth0"}
	for _, a := range []string{"192.168.0.2", "192.168.1.2", "10.96.0.1", "10.96.0.2", "10.96.0.3", "192.0.2.1", "192.0.2.2"} {
		p.Local = append(p.Local, netip.MustParseAddr(a))
		p.FromNode = p.FromNode || a == from
	}
	return p
}

func endsText(out trace.Outcome) string {
	var all []string
	for _, e := range out.Ends {
		m := ""
		if e.Masquerade {
			m = " m"
		}
		all = append(all, fmt.Sprintf("%s %s%s %s", e.Verdict, e.Dst, m, e.P))
	}
	return strings.Join(all, "; ")
}

// A packet without a port goes to no virtual server, whatever the kernel would read as one.
func TestTraceIPVSWithoutPort(t *testing.T) {
	w, rs := sampleState()
	s := parsed(t, rendered(t, Ruleset(rs, Options{MasqueradeBit: 14, IPVS: true})), netfilter.IPv4)
	p := packetOf("203.0.113.7", "10.96.0.1:80")
	p.Proto = netfilter.AnyProto
	if got := endsText(trace.With(s, w.others(t), p)); got != "reject 10.96.0.1:80 1" {
		t.Errorf("got %s", got)
	}
}
