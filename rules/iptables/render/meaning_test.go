package render

import (
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
	"gridproxy/rules/rulestest"

	"pgregory.net/rapid"
)

func parsed(t interface{ Fatal(...any) }, text string, f netfilter.Family) netfilter.Saved {
	s, err := netfilter.Parse(strings.NewReader(text), f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTraceMeansTheRuleset: for every Frontend and every kind of source, a packet that walks the
// written rules ends where the Ruleset says.
func TestTraceMeansTheRuleset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rulestest.Ruleset(t)
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family")))
		o.IPVS = false // a whole Ruleset is for iptables mode
		s := parsed(t, rendered(t, Ruleset(rs, o)), o.Family)
		checkMeaning(t, rs, s)
	})
}

// checkMeaning walks packets to every Frontend of the Ruleset in the family of s.
func checkMeaning(t *rapid.T, rs rules.Ruleset, s netfilter.Saved) {
	for _, svc := range rs.Services {
		for _, f := range svc.Frontends {
			if f.Addr.Addr().Is6() != (s.Family == netfilter.IPv6) {
				continue
			}
			for _, p := range packetsTo(rs, svc, f) {
				want := meaning(rs, svc, f, p)
				out := trace.Trace(s, p)
				if got := summary(out); got != want || len(out.Problems) > 0 {
					t.Fatalf("%s %v\nfrontend %+v\npacket %+v\ngot  %s\nwant %s\nproblems %v\npaths %v",
						svc.Name, svc.Sets, f, p, got, want, out.Problems, out.Paths)
				}
				checkFairness(t, out)
			}
		}
	}
}

// packetsTo are packets to a Frontend from a Pod here and elsewhere, from outside, from the node,
// and from each of its endpoints.
func packetsTo(rs rules.Ruleset, s *rules.Service, f rules.Frontend) []trace.Packet {
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
	sources := []trace.Packet{
		{Src: pick("10.180.0.200", "fd00:180:0:0::200"), InInterface: pods},
		{Src: pick("10.180.1.200", "fd00:180:0:1::200"), InInterface: "eth0"},
		{Src: pick("203.0.113.7", "fd00:203::7"), InInterface: "eth0"},
		{Src: pick("192.0.2.250", "fd00:192::250"), InInterface: "eth0"},
		{Src: node, FromNode: true},
	}
	for _, set := range s.Sets {
		for _, e := range set.Endpoints {
			if e.Addr().Is6() == v6 {
				sources = append(sources, trace.Packet{Src: e.Addr(), InInterface: pods})
			}
		}
	}
	if len(f.Allow) > 0 {
		sources = append(sources, trace.Packet{Src: f.Addr.Addr(), InInterface: "eth0"})
	}
	destinations := []netip.Addr{f.Addr.Addr()}
	if f.Kind == rules.NodePort {
		destinations = nodePortAddrs(rs, v6)
		sources = append(sources, trace.Packet{Src: pick("127.0.0.1", "::1"), FromNode: true})
	}
	var all []trace.Packet
	for _, p := range sources {
		for _, dst := range destinations {
			p.Dst, p.DstPort, p.Proto, p.Local = dst, f.Addr.Port(), netfilter.Proto(s.Name.IPProtocol()), rulestest.HostAddrs()
			if !dst.IsLoopback() || p.Src.IsLoopback() {
				all = append(all, p)
			}
		}
	}
	return all
}

// nodePortAddrs are the machine's addresses on which NodePorts answer.
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

// meaning is where a packet to a Frontend ends according to package rules alone.
func meaning(rs rules.Ruleset, s *rules.Service, f rules.Frontend, p trace.Packet) string {
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
	// As in kube-proxy, packets of the node to an address that is not its own are not rejected, unless
	// the Service is closed.
	if p.FromNode && !f.AdmitsNobody() && !(s.Closed && f.Verdict == rules.Reject) && f.Kind != rules.ClusterIP && f.Kind != rules.NodePort {
		return "untouched"
	}
	if f.Verdict == rules.Reject {
		return "reject"
	}
	return "drop"
}

func isPod(d rules.LocalDetector, p trace.Packet) bool {
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
func summary(o trace.Outcome) string {
	var ends []string
	for i, e := range o.Ends {
		text := e.Dst.String()
		switch {
		case e.Verdict == trace.Rejected:
			text = "reject"
		case e.Verdict == trace.Dropped:
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

func translated(path []trace.Step) bool {
	return slices.ContainsFunc(path, func(s trace.Step) bool { return strings.Contains(s.Text, "-j DNAT") })
}

// checkFairness: probabilities add up to one, and endpoints have equal shares up to ten decimals.
func checkFairness(t *rapid.T, o trace.Outcome) {
	sum := 0.0
	for _, e := range o.Ends {
		exact, _ := new(big.Rat).SetString(string(e.P))
		p, _ := exact.Float64()
		sum += p
		if math.Abs(p-1/float64(len(o.Ends))) > 1e-8 {
			t.Fatalf("an end of %d has probability %s = %v", len(o.Ends), e.P, p)
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Fatalf("the probabilities add up to %v: %+v", sum, o.Ends)
	}
}
