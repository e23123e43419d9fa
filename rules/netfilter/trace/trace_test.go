package trace

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
)

func parsed(t testing.TB, text string) netfilter.Saved {
	t.Helper()
	s, err := netfilter.Parse(strings.NewReader(text), netfilter.IPv4)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// walkText walks 203.0.113.9 -> 10.0.0.1:80 through a text.
func walkText(t *testing.T, text string) Outcome {
	t.Helper()
	return Trace(parsed(t, text), Packet{
		Src: netip.MustParseAddr("203.0.113.9"), Dst: netip.MustParseAddr("10.0.0.1"), Proto: netfilter.TCP, DstPort: 80, InInterface: "eth0",
		Local: []netip.Addr{netip.MustParseAddr("192.168.0.2")},
	})
}

func endsText(out Outcome, between string) string {
	var all []string
	for _, e := range out.Ends {
		m := ""
		if e.Masquerade {
			m = " m"
		}
		all = append(all, fmt.Sprintf("%s %s%s %s", e.Verdict, e.Dst, m, e.P))
	}
	return strings.Join(all, between)
}

// doublingTree has depth chains. Each jumps to the next one twice.
func doublingTree(depth int) string {
	chains, list := "", "-A PREROUTING -j C0\n"
	for i := range depth {
		chains += fmt.Sprintf(":C%d - [0:0]\n", i)
		if i > 0 {
			list += strings.Repeat(fmt.Sprintf("-A C%d -j C%d\n", i-1, i), 2)
		}
	}
	return "*nat\n:PREROUTING ACCEPT [0:0]\n" + chains + list + "COMMIT\n"
}

// TestTraceModel has cases that random Rulesets do not reach.
func TestTraceModel(t *testing.T) {
	const dnat = "-p tcp -j DNAT --to-destination "
	nat := func(rules string) string {
		return "*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n:POSTROUTING ACCEPT [0:0]\n" + rules + "COMMIT\n"
	}
	for _, tc := range []struct{ name, text, want, problem string }{
		{"nothing there", "", "accept 10.0.0.1:80 1", ""},
		{"RETURN goes back to the caller", nat("-A PREROUTING -j A\n-A PREROUTING " + dnat + "10.9.9.9:9\n-A A -j RETURN\n-A A " + dnat + "10.8.8.8:8\n"),
			"accept 10.9.9.9:9 1", ""},
		{"a branch that returns", nat("-A PREROUTING -j A\n-A PREROUTING " + dnat + "10.9.9.9:9\n" +
			"-A A -m statistic --mode random --probability 0.25 -j RETURN\n-A A " + dnat + "10.8.8.8:8\n"),
			"accept 10.8.8.8:8 3/4\naccept 10.9.9.9:9 1/4", ""},
		{"equal ends are merged", nat("-A PREROUTING -m statistic --mode random --probability 0.5 -j A\n-A PREROUTING " + dnat + "10.9.9.9:9\n" +
			"-A A " + dnat + "10.9.9.9:9\n"), "accept 10.9.9.9:9 1", ""},
		{"ends of unlike depth are merged", nat("-A PREROUTING -p tcp -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.9.9.9:9\n" +
			"-A PREROUTING -p tcp -m statistic --mode random --probability 0.25 -j DNAT --to-destination 10.8.8.8:8\n-A PREROUTING " + dnat + "10.9.9.9:9\n"),
			"accept 10.8.8.8:8 1/8\naccept 10.9.9.9:9 7/8", ""},
		{"addrtype", nat("-A PREROUTING -p tcp -m addrtype --dst-type LOCAL -j DNAT --to-destination 10.9.9.9:9\n"), "accept 10.0.0.1:80 1", ""},
		{"ACCEPT ends nat", nat("-A PREROUTING -j ACCEPT\n-A PREROUTING " + dnat + "10.9.9.9:9\n"), "accept 10.0.0.1:80 1", ""},
		{"marks", nat("-A PREROUTING -j MARK --or-mark 0x4000\n-A PREROUTING -j MARK --xor-mark 0x1\n" +
			"-A POSTROUTING -m mark ! --mark 0x4001/0x4001 -j RETURN\n-A POSTROUTING -j MASQUERADE\n"),
			"accept 10.0.0.1:80 m 1", ""},
		{"a mark that was cleared", nat("-A PREROUTING -j MARK --or-mark 0x4000\n-A PREROUTING -j MARK --xor-mark 0x4000\n" +
			"-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE\n"),
			"accept 10.0.0.1:80 1", ""},
		{"no list has the source", nat("-A PREROUTING -m recent --rcheck --seconds 9 --reap --name B -j A\n-A PREROUTING -m recent --set --name B -j B\n" +
			"-A A " + dnat + "10.8.8.8:8\n-A B " + dnat + "10.9.9.9:9\n"), "accept 10.9.9.9:9 1", ""},
		{"others' rules", nat("-A PREROUTING -o eth0 -j ACCEPT\n"), "accept 10.0.0.1:80 1",
			"nat PREROUTING rule 1 is not understood and taken as not matching: -A PREROUTING -o eth0 -j ACCEPT"},
		{"others' rules off the path", nat("-A A -o eth0 -j ACCEPT\n-A PREROUTING -i eth1 -j A\n"), "accept 10.0.0.1:80 1", ""},
		{"a chain that is not there", "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n", "accept 10.0.0.1:80 1",
			"nat KUBE-SERVICES is jumped to but is not there"},
		{"a loop", nat("-A PREROUTING -j A\n-A A -j B\n-A B -j A\n"), "", "is reached by more than 64 jumps"},
		{"a tree without a loop", doublingTree(40), "", "looked at more than"},
		{"policy", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate INVALID,RELATED,ESTABLISHED -j ACCEPT\nCOMMIT\n", "drop 10.0.0.1:80 1", ""},
		{"ctstate NEW", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n", "accept 10.0.0.1:80 1", ""},
		{"ctstate DNAT without", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT\nCOMMIT\n", "drop 10.0.0.1:80 1", ""},
		{"ctstate DNAT with", nat("-A PREROUTING "+dnat+"10.9.9.9:9\n") +
			"*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT\nCOMMIT\n",
			"accept 10.9.9.9:9 1", ""},
		{"routed after nat", nat("-A PREROUTING "+dnat+"192.168.0.2:9\n-A POSTROUTING -j MASQUERADE\n") +
			"*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -d 192.168.0.2 -p tcp -m tcp --dport 9 -i eth0 -j ACCEPT\nCOMMIT\n",
			"accept 192.168.0.2:9 1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := walkText(t, tc.text)
			if got := endsText(out, "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if got := strings.Join(out.Problems, "\n"); tc.problem == "" && got != "" || !strings.Contains(got, tc.problem) {
				t.Errorf("problems %q, want %q", got, tc.problem)
			}
		})
	}
}

// TestTraceToOneself: what the node sends to its own address passes OUTPUT, POSTROUTING and,
// through lo, INPUT.
func TestTraceToOneself(t *testing.T) {
	text := "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -i lo -j DROP\n-A INPUT -i lo -p tcp -m tcp --dport 80 -j REJECT\nCOMMIT\n"
	self := netip.MustParseAddr("192.168.0.2")
	out := Trace(parsed(t, text), Packet{Src: self, Dst: self, Proto: netfilter.TCP, DstPort: 80, InInterface: "lo", FromNode: true, Local: []netip.Addr{self}})
	if len(out.Ends) != 1 || out.Ends[0].Verdict != Rejected {
		t.Errorf("ends %+v", out.Ends)
	}
	want := Step{netfilter.Filter, "INPUT", 0, "-A INPUT -i lo -p tcp -m tcp --dport 80 -j REJECT"}
	if len(out.Paths) != 1 || len(out.Paths[0]) != 1 || out.Paths[0][0] != want {
		t.Errorf("paths %+v", out.Paths)
	}
}

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
	const client, node, drop = "203.0.113.7", "192.168.0.2", "-d 10.180.0.1/32 -j DROP\n"
	const both = "accept 10.180.0.1:8080 1/2; accept 192.168.0.2:8080 1/2"
	for _, tc := range []struct{ from, text, want string }{
		{client, "*filter\n:OUTPUT ACCEPT\n-A OUTPUT " + drop + "COMMIT\n", "accept 192.168.0.2:8080 1/2; drop 10.180.0.1:8080 1/2"},
		{client, "*filter\n:INPUT ACCEPT\n-A INPUT " + drop + "-A INPUT -d 192.168.0.2/32 -j DROP\nCOMMIT\n", both},
		{client, "*filter\n:INPUT ACCEPT\n-A INPUT -d 10.96.0.1/32 -j DROP\nCOMMIT\n", "drop 10.96.0.1:80 1"},
		{client, "*filter\n:FORWARD ACCEPT\n-A FORWARD -j DROP\nCOMMIT\n", both},
		{client, "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -m ipvs --ipvs -j MASQUERADE\nCOMMIT\n", "accept 10.180.0.1:8080 m 1/2; accept 192.168.0.2:8080 1/2"},
		{client, "*filter\n:OUTPUT ACCEPT\n-A OUTPUT -i eth0 -j DROP\nCOMMIT\n", both},
		{node, "*filter\n:INPUT ACCEPT\n-A INPUT -d 192.168.0.2/32 -i lo -j DROP\nCOMMIT\n", "accept 10.180.0.1:8080 1/2; drop 192.168.0.2:8080 1/2"},
		{node, "*filter\n:OUTPUT ACCEPT\n-A OUTPUT -d 10.96.0.1/32 -j DROP\nCOMMIT\n", both},
		{node, "*nat\n:OUTPUT ACCEPT\n-A OUTPUT -d 10.180.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:9\nCOMMIT\n", both},
		{node, "*nat\n:OUTPUT ACCEPT\n-A OUTPUT -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:9\nCOMMIT\n", "accept 10.9.9.9:9 1"},
		{node, "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -m ipvs --ipvs -j MASQUERADE\nCOMMIT\n", "accept 10.180.0.1:8080 m 1/2; accept 192.168.0.2:8080 m 1/2"},
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

// Probabilities of chains and of virtual servers add up exactly, whatever the numbers.
func TestWeights(t *testing.T) {
	half, third := certain().times(1<<30), certain().among(3)
	for _, tc := range []struct {
		got  weight
		want Probability
	}{
		{half, "1/2"},
		{third.plus(third).plus(third), "1"},
		{half.plus(third), "5/6"},
		{half.among(6), "1/12"},
		{half.among(4).plus(half.among(4)), "1/4"},
		{third.among(4), "1/12"},
	} {
		if got := tc.got.probability(); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
