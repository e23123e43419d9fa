package iptables

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/rulestest"

	"pgregory.net/rapid"
)

func parsed(t interface{ Fatal(...any) }, text string, f Family) Saved {
	s, err := Parse(strings.NewReader(text), f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTraceMeansTheRuleset: a packet that walks the written rules ends where the Ruleset
// says in so many words, for every Frontend and every kind of source.
func TestTraceMeansTheRuleset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rulestest.Ruleset(t)
		o := drawOptions(t, Family(rapid.IntRange(0, 1).Draw(t, "family")))
		o.IPVS = false // a whole Ruleset is for iptables mode
		s := parsed(t, rendered(t, Render(rs, o)), o.Family)
		for _, svc := range rs.Services {
			for _, f := range svc.Frontends {
				if f.Addr.Addr().Is6() != (o.Family == IPv6) {
					continue
				}
				for _, p := range packetsTo(rs, svc, f) {
					want := meaning(rs, svc, f, p)
					out := Trace(s, p)
					if got := summary(out); got != want || len(out.Problems) > 0 {
						t.Fatalf("%s %v\nfrontend %+v\npacket %+v\ngot  %s\nwant %s\nproblems %v\npaths %v", svc.Name, svc.Sets, f, p, got, want, out.Problems, out.Paths)
					}
					checkFairness(t, out)
				}
			}
		}
	})
}

// packetsTo are packets to a Frontend from a Pod here and elsewhere, from outside, from the
// node, and from each of its endpoints.
func packetsTo(rs rules.Ruleset, s *rules.Service, f rules.Frontend) []Packet {
	v6 := f.Addr.Addr().Is6()
	pick := func(four, six string) netip.Addr {
		if v6 {
			return netip.MustParseAddr(six)
		}
		return netip.MustParseAddr(four)
	}
	pods := "veth7"
	if rs.Local.Bridge != "" {
		pods = rs.Local.Bridge
	}
	node := pick("192.168.0.2", "fd00:168::2")
	sources := []Packet{
		{Src: pick("10.180.0.200", "fd00:180:0:0::200"), InInterface: pods},
		{Src: pick("10.180.1.200", "fd00:180:0:1::200"), InInterface: "eth0"},
		{Src: pick("203.0.113.7", "fd00:203::7"), InInterface: "eth0"},
		{Src: pick("192.0.2.250", "fd00:192::250"), InInterface: "eth0"},
		{Src: node, FromNode: true},
	}
	for _, set := range s.Sets {
		for _, e := range set.Endpoints {
			if e.Addr().Is6() == v6 {
				sources = append(sources, Packet{Src: e.Addr(), InInterface: pods})
			}
		}
	}
	if len(f.Allow) > 0 {
		sources = append(sources, Packet{Src: f.Addr.Addr(), InInterface: "eth0"})
	}
	destinations := []netip.Addr{f.Addr.Addr()}
	if f.Kind == rules.NodePort {
		destinations = nodePortAddrs(rs, v6)
		sources = append(sources, Packet{Src: pick("127.0.0.1", "::1"), FromNode: true})
	}
	var all []Packet
	for _, p := range sources {
		for _, dst := range destinations {
			p.Dst, p.DstPort, p.Proto, p.Local = dst, f.Addr.Port(), Proto(s.Name.IPProtocol()), rulestest.HostAddrs()
			if !dst.IsLoopback() || p.Src.IsLoopback() {
				all = append(all, p)
			}
		}
	}
	return all
}

// nodePortAddrs are the machine's addresses that NodePorts answer on.
func nodePortAddrs(rs rules.Ruleset, v6 bool) []netip.Addr {
	on := rs.NodePorts.IPv4
	if v6 {
		on = rs.NodePorts.IPv6
	}
	if !on.All {
		return on.Addrs
	}
	var all []netip.Addr
	for _, a := range rulestest.HostAddrs() {
		if a.Is6() == v6 && (!a.IsLoopback() || rs.NodePorts.Localhost && !v6) {
			all = append(all, a)
		}
	}
	return all
}

// meaning is where a packet to a Frontend ends by the words of package rules alone.
func meaning(rs rules.Ruleset, s *rules.Service, f rules.Frontend, p Packet) string {
	outside := !slices.ContainsFunc(f.Allow, func(a netip.Prefix) bool { return a.Contains(p.Src) })
	if len(f.Allow) > 0 && outside {
		return "drop"
	}
	for _, r := range f.Routes {
		pod := isPod(rs.Local, p)
		local := p.Src.IsLoopback() || slices.Contains(p.Local, p.Src)
		if r.From == rules.Pods && !pod || r.From == rules.Node && !local {
			continue
		}
		var ends []string
		for _, e := range s.Sets[r.Set].Endpoints {
			end := e.String()
			if r.Masquerade == rules.Always || r.Masquerade == rules.OffCluster && !pod || p.Src == e.Addr() {
				end += " m"
			}
			ends = append(ends, end)
		}
		return strings.Join(sortEnds(ends), ", ")
	}
	// As kube-proxy, what the node itself sends to an address that is not its own is not refused,
	// unless the Service is closed.
	if p.FromNode && !f.AdmitsNobody() && !(s.Closed && f.Verdict == rules.Reject) && f.Kind != rules.ClusterIP && f.Kind != rules.NodePort {
		return "untouched"
	}
	if f.Verdict == rules.Reject {
		return "reject"
	}
	return "drop"
}

func isPod(d rules.LocalDetector, p Packet) bool {
	switch {
	case d.Bridge != "":
		return p.InInterface == d.Bridge
	case d.InterfacePrefix != "":
		return strings.HasPrefix(p.InInterface, d.InterfacePrefix)
	default:
		prefix := d.Prefix(p.Src.Is6())
		return prefix.IsValid() && prefix.Contains(p.Src)
	}
}

func sortEnds(ends []string) []string {
	slices.Sort(ends)
	return ends
}

// summary is an Outcome without probabilities.
func summary(o Outcome) string {
	var ends []string
	for i, e := range o.Ends {
		text := e.Dst.String()
		switch {
		case e.Verdict == Rejected:
			text = "reject"
		case e.Verdict == Dropped:
			text = "drop"
		case !translated(o.Paths[i]):
			text = "untouched"
		}
		if e.Masquerade {
			text += " m"
		}
		ends = append(ends, text)
	}
	return strings.Join(sortEnds(ends), ", ")
}

func translated(path []Step) bool {
	return slices.ContainsFunc(path, func(s Step) bool { return strings.Contains(s.Text, "-j DNAT") })
}

// checkFairness: probabilities add up to one, and endpoints share alike but for what ten
// decimals leave out.
func checkFairness(t *rapid.T, o Outcome) {
	sum := 0.0
	for _, e := range o.Ends {
		p := e.P.Float()
		sum += p
		if math.Abs(p-1/float64(len(o.Ends))) > 1e-8 {
			t.Fatalf("an end of %d has probability %s = %v", len(o.Ends), e.P, p)
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Fatalf("the probabilities add up to %v: %+v", sum, o.Ends)
	}
}

// walkText walks 203.0.113.9 -> 10.0.0.1:80 through a text.
func walkText(t *testing.T, text string) Outcome {
	t.Helper()
	return Trace(parsed(t, text, IPv4), Packet{
		Src: netip.MustParseAddr("203.0.113.9"), Dst: netip.MustParseAddr("10.0.0.1"), Proto: TCP, DstPort: 80, InInterface: "eth0",
		Local: []netip.Addr{netip.MustParseAddr("192.168.0.2")},
	})
}

// doublingTree is depth chains, each of which jumps to the next one twice.
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

// TestTraceModel has what random Rulesets do not lead through.
func TestTraceModel(t *testing.T) {
	nat := func(rules string) string {
		return "*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n:POSTROUTING ACCEPT [0:0]\n" + rules + "COMMIT\n"
	}
	for _, tc := range []struct{ name, text, want, problem string }{
		{"nothing there", "", "accept 10.0.0.1:80 1", ""},
		{"RETURN goes back to the caller", nat("-A PREROUTING -j A\n-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:9\n-A A -j RETURN\n-A A -p tcp -j DNAT --to-destination 10.8.8.8:8\n"),
			"accept 10.9.9.9:9 1", ""},
		{"a branch that returns", nat("-A PREROUTING -j A\n-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:9\n" +
			"-A A -m statistic --mode random --probability 0.25 -j RETURN\n-A A -p tcp -j DNAT --to-destination 10.8.8.8:8\n"),
			"accept 10.8.8.8:8 3/4\naccept 10.9.9.9:9 1/4", ""},
		{"equal ends are merged", nat("-A PREROUTING -m statistic --mode random --probability 0.5 -j A\n-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:9\n" +
			"-A A -p tcp -j DNAT --to-destination 10.9.9.9:9\n"), "accept 10.9.9.9:9 1", ""},
		{"ends of unlike depth are merged", nat("-A PREROUTING -p tcp -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.9.9.9:9\n" +
			"-A PREROUTING -p tcp -m statistic --mode random --probability 0.25 -j DNAT --to-destination 10.8.8.8:8\n-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:9\n"),
			"accept 10.8.8.8:8 1/8\naccept 10.9.9.9:9 7/8", ""},
		{"addrtype", nat("-A PREROUTING -p tcp -m addrtype --dst-type LOCAL -j DNAT --to-destination 10.9.9.9:9\n"), "accept 10.0.0.1:80 1", ""},
		{"ACCEPT ends nat", nat("-A PREROUTING -j ACCEPT\n-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:9\n"), "accept 10.0.0.1:80 1", ""},
		{"marks", nat("-A PREROUTING -j MARK --or-mark 0x4000\n-A PREROUTING -j MARK --xor-mark 0x1\n-A POSTROUTING -m mark ! --mark 0x4001/0x4001 -j RETURN\n-A POSTROUTING -j MASQUERADE\n"),
			"accept 10.0.0.1:80 m 1", ""},
		{"a mark that was cleared", nat("-A PREROUTING -j MARK --or-mark 0x4000\n-A PREROUTING -j MARK --xor-mark 0x4000\n-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE\n"),
			"accept 10.0.0.1:80 1", ""},
		{"no list has the source", nat("-A PREROUTING -m recent --rcheck --seconds 9 --reap --name B -j A\n-A PREROUTING -m recent --set --name B -j B\n" +
			"-A A -p tcp -j DNAT --to-destination 10.8.8.8:8\n-A B -p tcp -j DNAT --to-destination 10.9.9.9:9\n"), "accept 10.9.9.9:9 1", ""},
		{"others' rules", nat("-A PREROUTING -o eth0 -j ACCEPT\n"), "accept 10.0.0.1:80 1", "nat PREROUTING rule 1 is not understood and taken as not matching: -A PREROUTING -o eth0 -j ACCEPT"},
		{"others' rules off the path", nat("-A A -o eth0 -j ACCEPT\n-A PREROUTING -i eth1 -j A\n"), "accept 10.0.0.1:80 1", ""},
		{"a chain that is not there", "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n", "accept 10.0.0.1:80 1", "nat KUBE-SERVICES is jumped to but is not there"},
		{"a loop", nat("-A PREROUTING -j A\n-A A -j B\n-A B -j A\n"), "", "is reached by more than 64 jumps"},
		{"a tree without a loop", doublingTree(40), "", "looked at more than"},
		{"policy", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate INVALID,RELATED,ESTABLISHED -j ACCEPT\nCOMMIT\n", "drop 10.0.0.1:80 1", ""},
		{"ctstate NEW", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n", "accept 10.0.0.1:80 1", ""},
		{"ctstate DNAT without", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT\nCOMMIT\n", "drop 10.0.0.1:80 1", ""},
		{"ctstate DNAT with", nat("-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:9\n") + "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT\nCOMMIT\n",
			"accept 10.9.9.9:9 1", ""},
		{"routed after nat", nat("-A PREROUTING -p tcp -j DNAT --to-destination 192.168.0.2:9\n-A POSTROUTING -j MASQUERADE\n") + "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -d 192.168.0.2 -p tcp -m tcp --dport 9 -i eth0 -j ACCEPT\nCOMMIT\n",
			"accept 192.168.0.2:9 1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := walkText(t, tc.text)
			var lines []string
			for _, e := range out.Ends {
				m := ""
				if e.Masquerade {
					m = " m"
				}
				lines = append(lines, fmt.Sprintf("%s %s%s %s", e.Verdict, e.Dst, m, e.P))
			}
			if got := strings.Join(lines, "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if got := strings.Join(out.Problems, "\n"); tc.problem == "" && got != "" || !strings.Contains(got, tc.problem) {
				t.Errorf("problems %q, want %q", got, tc.problem)
			}
		})
	}
}

// TestTraceToOneself: what the node sends to its own address passes OUTPUT, POSTROUTING and,
// from lo, INPUT.
func TestTraceToOneself(t *testing.T) {
	text := "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -i lo -j DROP\n-A INPUT -i lo -p tcp -m tcp --dport 80 -j REJECT\nCOMMIT\n"
	self := netip.MustParseAddr("192.168.0.2")
	out := Trace(parsed(t, text, IPv4), Packet{Src: self, Dst: self, Proto: TCP, DstPort: 80, InInterface: "lo", FromNode: true, Local: []netip.Addr{self}})
	if len(out.Ends) != 1 || out.Ends[0].Verdict != Rejected {
		t.Errorf("ends %+v", out.Ends)
	}
	if len(out.Paths) != 1 || len(out.Paths[0]) != 1 || out.Paths[0][0] != (Step{Filter, "INPUT", 0, "-A INPUT -i lo -p tcp -m tcp --dport 80 -j REJECT"}) {
		t.Errorf("paths %+v", out.Paths)
	}
}
