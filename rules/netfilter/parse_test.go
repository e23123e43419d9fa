package netfilter

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// inNAT is text as a rule of a nat table with a chain MINE.
func inNAT(args string) string { return "*nat\n:MINE - [0:0]\n:C - [0:0]\n-A C " + args + "\nCOMMIT\n" }

func parseOne(t testing.TB, f Family, args string) SavedRule {
	t.Helper()
	s, err := Parse(strings.NewReader(inNAT(args)), f)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Tables[NAT].Chain("C")
	if c == nil || len(c.Rules) != 1 {
		t.Fatalf("%q: no rule in %+v", args, s)
	}
	return c.Rules[0]
}

// TestParseRule: each form that kube-proxy writes and the form that iptables-save prints are one
// rule.
func TestParseRule(t *testing.T) {
	mark := Mark{0x4000, 0x4000}
	for _, tc := range []struct {
		name  string
		forms []string
		want  Rule
	}{
		{"or-mark", []string{
			"-j MARK --or-mark 0x00004000", "-j MARK --set-xmark 0x4000/0x4000", "-j MARK --set-mark 0x4000/0x4000", "-j MARK --or-mark 16384",
		}, Rule{Target: TargetMark, Set: mark}},
		{"xor-mark", []string{"-j MARK --xor-mark 0x00004000", "-j MARK --set-xmark 0x4000/0x0"},
			Rule{Target: TargetMark, Set: Mark{0x4000, 0}}},
		{"and-mark", []string{"-j MARK --and-mark 0xffffbfff", "-j MARK --set-xmark 0x0/0x4000"},
			Rule{Target: TargetMark, Set: Mark{0, 0x4000}}},
		{"set-mark", []string{"-j MARK --set-mark 0x1", "-j MARK --set-xmark 0x1/0xffffffff", "-j MARK --set-xmark 0x1"},
			Rule{Target: TargetMark, Set: Mark{1, math.MaxUint32}}},
		{"set-mark under a mask", []string{"-j MARK --set-mark 0x3/0x1", "-j MARK --set-xmark 0x3/0x3"},
			Rule{Target: TargetMark, Set: Mark{3, 3}}},
		{"mark", []string{"-m mark ! --mark 0x00004000/0x00004000 -j RETURN", "-m mark ! --mark 0x4000/0x4000 -j RETURN"},
			Rule{Mark: mark, NotMark: true, Target: TargetReturn}},
		{"bare comment", []string{"-m comment --comment ns/a -j ACCEPT", `-m comment --comment "ns/a" -j ACCEPT`},
			Rule{Comment: "ns/a", Target: TargetAccept}},
		{"escapes", []string{`-m comment --comment "a \"b\" \\ c" -j ACCEPT`, `-m comment --comment a" \"b\" \\ "c -j ACCEPT`},
			Rule{Comment: `a "b" \ c`, Target: TargetAccept}},
		{"any order", []string{
			"-m comment --comment x -m tcp -p tcp -d 10.0.0.1 --dport 80 -j MINE",
			"-d 10.0.0.1/32 -p tcp -m comment --comment x -m tcp --dport 80 -j MINE",
			"-j MINE -p 6 --destination-port 80 --destination 10.0.0.1 -m comment --comment x",
		}, Rule{Dst: netip.MustParsePrefix("10.0.0.1/32"), Proto: TCP, DstPort: 80, Target: TargetJump, Jump: "MINE", Comment: "x"}},
		{"masked", []string{"-s 10.1.2.3/8 -j DROP", "-s 10.0.0.0/8 -j DROP"},
			Rule{Src: netip.MustParsePrefix("10.0.0.0/8"), Target: TargetDrop}},
		{"all of IPv4", []string{"-s 0.0.0.0/0 -j DROP", "-j DROP"}, Rule{Target: TargetDrop}},
		{"none of IPv4", []string{"! -s 0.0.0.0/0 -j DROP"},
			Rule{Src: netip.MustParsePrefix("0.0.0.0/0"), NotSrc: true, Target: TargetDrop}},
		{"recent", []string{
			"-m recent --name KUBE-SEP-A --rcheck --seconds 10800 --reap -j KUBE-SEP-A",
			"-m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-A --mask 255.255.255.255 --rsource -j KUBE-SEP-A",
		}, Rule{Recent: Recent{"KUBE-SEP-A", RecentCheck, 10800, true}, Target: TargetJump, Jump: "KUBE-SEP-A"}},
		{"DNAT", []string{
			"-m recent --name KUBE-SEP-A --set -m tcp -p tcp -j DNAT --to-destination 10.0.0.1:80",
			"-p tcp -m recent --set --name KUBE-SEP-A --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.0.0.1:80",
		}, Rule{Proto: TCP, Recent: Recent{Name: "KUBE-SEP-A", Op: RecentSet}, Target: TargetDNAT, DNAT: netip.MustParseAddrPort("10.0.0.1:80")}},
		{"conntrack", []string{"-d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
			"! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate DNAT,RELATED,ESTABLISHED -j DROP"},
			Rule{Src: netip.MustParsePrefix("127.0.0.0/8"), Dst: netip.MustParsePrefix("127.0.0.0/8"), NotSrc: true,
				CTState: CTRelated | CTEstablished | CTDNAT, NotCTState: true, Target: TargetDrop}},
		{"reject", []string{"-j REJECT", "-j REJECT --reject-with icmp-port-unreachable"}, Rule{Target: TargetReject}},
		{"masquerade", []string{"-j MASQUERADE --random-fully"}, Rule{Target: TargetMasquerade, Random: true}},
		{"addrtype", []string{"-m addrtype --dst-type LOCAL --src-type LOCAL -m sctp -p sctp --dport 1 -j MINE"},
			Rule{SrcLocal: true, DstLocal: true, Proto: SCTP, DstPort: 1, Target: TargetJump, Jump: "MINE"}},
		{"interface", []string{"! -i veth+ -j MINE"}, Rule{InInterface: "veth+", NotInInterface: true, Target: TargetJump, Jump: "MINE"}},
		{"nfacct", []string{"-m conntrack --ctstate INVALID -m nfacct --nfacct-name  n -j DROP"},
			Rule{CTState: CTInvalid, NFAcct: "n", Target: TargetDrop}},
		{"set", []string{"-m comment --comment c -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE"},
			Rule{Comment: "c", MatchSet: SetMatch{"KUBE-LOOP-BACK", "dst,dst,src"}, Target: TargetMasquerade}},
		{"ipvs", []string{"-m set --match-set A dst -m ipvs --ipvs -j ACCEPT", "-m ipvs --ipvs -m set --match-set A dst -j ACCEPT"},
			Rule{MatchSet: SetMatch{"A", "dst"}, IPVS: true, Target: TargetAccept}},
		{"counts only", []string{"-m comment --comment c"}, Rule{Comment: "c"}},
	} {
		for _, form := range tc.forms {
			if got := parseOne(t, IPv4, form); got.Foreign || got.Rule != tc.want {
				t.Errorf("%s: %s\ngot  %+v\nwant %+v", tc.name, form, got, tc.want)
			}
		}
		written := string(tc.want.Append(nil, IPv4))
		if got := parseOne(t, IPv4, written); got.Rule != tc.want {
			t.Errorf("%s is written as %s and read as\n%+v", tc.name, written, got)
		}
	}
}

// TestParseRuleIPv6 has the forms that differ in IPv6.
func TestParseRuleIPv6(t *testing.T) {
	for form, want := range map[string]Rule{
		"-p udp -m udp -j DNAT --to-destination [fd00::1]:53":           {Proto: UDP, Target: TargetDNAT, DNAT: netip.MustParseAddrPort("[fd00::1]:53")},
		"-d fd00:0:0::1 -j REJECT --reject-with icmp6-port-unreachable": {Dst: netip.MustParsePrefix("fd00::1/128"), Target: TargetReject},
		"-m recent --set --name A --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource -j ACCEPT": {
			Recent: Recent{Name: "A", Op: RecentSet}, Target: TargetAccept},
	} {
		if got := parseOne(t, IPv6, form); got.Foreign || got.Rule != want {
			t.Errorf("%s\ngot  %+v\nwant %+v", form, got, want)
		}
	}
}

// TestForeign has rules that look like ours but do something else. Taking them for ours would hide
// tampering.
func TestForeign(t *testing.T) {
	for _, args := range []string{
		"-o eth0 -j MINE", "-g MINE", "-j LOG", "-j LOG --log-prefix x", "-f -j DROP", "-p icmp -j ACCEPT", "! -p tcp -j ACCEPT",
		"-p tcp -m tcp --sport 80 -j ACCEPT", "-p tcp -m tcp --dport 80:90 -j ACCEPT", "-p tcp -m tcp ! --dport 80 -j ACCEPT",
		"-p tcp -m multiport --dports 80,81 -j ACCEPT", "-m tcp --dport 80 -j ACCEPT", "-p tcp -m tcp --dport 0 -j ACCEPT",
		"-p tcp -m tcp --dport 80 --tcp-flags SYN SYN -j ACCEPT",
		"-m set --match-set a -j ACCEPT", "-m set --match-set a both -j ACCEPT", "-m set ! --match-set a src -j ACCEPT",
		"-m set --match-set a src,dst,src,dst,src,dst,src -j ACCEPT", "-m set --match-set a src --return-nomatch -j ACCEPT",
		"-m set --match-set a src -m set --match-set b dst -j ACCEPT", "-m ipvs ! --ipvs -j ACCEPT", "-m ipvs --vaddr 10.0.0.1/32 -j ACCEPT",
		"-m mark --mark 0x0/0x0 -j ACCEPT", "-m mark --mark 1 -m mark --mark 2 -j ACCEPT", "-j MARK", "-j MARK --set-xmark 1/1 --or-mark 2",
		"-j CONNMARK --set-xmark 0x4000/0x4000", "-m connmark --mark 1 -j ACCEPT",
		"-m statistic --mode nth --every 2 -j MINE", "-m statistic --mode random --probability 0.0 -j MINE",
		"-m statistic --mode random ! --probability 0.5 -j MINE", "-m statistic --probability 0.5 -j MINE",
		"-m statistic --mode random --probability 1.5 -j MINE", "-m statistic --mode random --probability NaN -j MINE",
		"-m recent --update --name A -j MINE", "-m recent --rcheck --name A --rdest -j MINE", "-m recent --rcheck --name A --hitcount 2 -j MINE",
		"-m recent --rcheck --name A --mask 255.255.255.0 --rsource -j MINE", "-m recent ! --rcheck --name A -j MINE",
		"-m recent --rcheck -j MINE", "-m recent --name A -j MINE", "-m recent --seconds 5 -j MINE",
		"-m addrtype ! --dst-type LOCAL -j MINE", "-m addrtype --dst-type UNICAST -j MINE", "-m addrtype --dst-type LOCAL --limit-iface-in -j MINE",
		"-p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.2:80", "-p tcp -j DNAT --to-destination 10.0.0.1", "-p tcp -j DNAT --to-destination [::1]:80",
		"-p tcp -j DNAT --to-destination 10.0.0.1:80 --random", "-j DNAT --to-destination 10.0.0.1:80", "-p tcp -j DNAT",
		"-j REJECT --reject-with tcp-reset", "-j MASQUERADE --to-ports 1-2", "-j ACCEPT --random-fully",
		"-s 10.0.0.1,10.0.0.2 -j DROP", "-s fd00::1 -j DROP", "-s host.example -j DROP", "-s", "-j", "! -j DROP", "! ! -s 10.0.0.1 -j DROP", "!",
		`-m comment --comment "open -j ACCEPT`, "-m conntrack --ctstate NEW,SNAT -j ACCEPT", "-m conntrack --ctstate  -j ACCEPT",
		"-j NOT-A-CHAIN", "-i + -j MINE", "word",
	} {
		got := parseOne(t, IPv4, args)
		if !got.Foreign || got.Rule != (Rule{}) {
			t.Errorf("%s is taken for %+v", args, got.Rule)
		}
		if want := "-A C " + args; got.Text != want {
			t.Errorf("text %q, want %q", got.Text, want)
		}
	}
}

// TestProbability: what kube-proxy writes, what we write, what the kernel holds and what
// iptables-save prints are one number.
func TestProbability(t *testing.T) {
	p := newParser(IPv4)
	parse := func(text string) uint32 {
		r, ok := p.rule(NAT, "-m statistic --mode random --probability "+text)
		if !ok {
			t.Fatalf("%s is foreign", text)
		}
		return r.Probability
	}
	for n := 2; n <= 100000; n++ {
		written := strconv.FormatFloat(1/float64(n), 'f', 10, 64)
		f, err := strconv.ParseFloat(written, 64)
		if err != nil {
			t.Fatal(err)
		}
		held := uint32(math.Floor(f*(1<<31) + 0.5))
		saved := fmt.Sprintf("%.11f", float64(held)/(1<<31))
		if got := Probability(n); got != held {
			t.Fatalf("1/%d is %d, the kernel holds %d", n, got, held)
		}
		for _, text := range []string{written, saved, formatProbability(held)} {
			if got := parse(text); got != held {
				t.Fatalf("1/%d as %s is %d, the kernel holds %d", n, text, got, held)
			}
		}
	}
	if got := formatProbability(Probability(3)); got != "0.33333333349" {
		t.Errorf("a third is printed %s, iptables-save prints 0.33333333349", got)
	}
}

const savedText = "# Generated by iptables-save\n*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j NOTRACK\nCOMMIT\n\n" +
	"*nat\n:PREROUTING ACCEPT [12:34]\n:DOCKER - [0:0]\n:C - [0:0]\n:GONE - [0:0]\n[5:600] -A PREROUTING -j DOCKER\n" +
	"-A C -j RETURN\n-A DOCKER -i docker0 -j RETURN\n-A DOCKER -o docker0 -j RETURN\n-X GONE\n-I C -j DROP\nCOMMIT\n" +
	"# more\n*filter\r\n:INPUT DROP [0:0]\r\n-A INPUT -j ACCEPT\r\nCOMMIT\r\n*nat\n:C - [0:0]\n:PREROUTING - [0:0]\n-A PREROUTING -j C\nCOMMIT"

// TestScan reads every kind of line, in pieces of any size.
func TestScan(t *testing.T) {
	want := []string{
		"other table", "other chain PREROUTING policy 1", "other rule PREROUTING foreign -A PREROUTING -j NOTRACK", "other commit",
		"nat table", "nat chain PREROUTING policy 1", "nat chain DOCKER policy 0", "nat chain C policy 0", "nat chain GONE policy 0",
		"nat rule PREROUTING -A PREROUTING -j DOCKER", "nat rule C -A C -j RETURN", "nat rule DOCKER -A DOCKER -i docker0 -j RETURN",
		"nat rule DOCKER foreign -A DOCKER -o docker0 -j RETURN", "nat delete GONE", "nat other -I C -j DROP", "nat commit",
		"filter table", "filter chain INPUT policy 2", "filter rule INPUT -A INPUT -j ACCEPT", "filter commit",
		"nat table", "nat chain C policy 0", "nat chain PREROUTING policy 0", "nat rule PREROUTING -A PREROUTING -j C", "nat commit",
	}
	var got []string
	for l, err := range Scan(iotest.OneByteReader(strings.NewReader(savedText)), IPv4) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, describe(l))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func describe(l Line) string {
	text := l.Table.String() + " " + [...]string{"table", "chain", "rule", "delete", "commit", "other"}[l.Kind]
	if l.Chain != "" {
		text += " " + l.Chain
	}
	if l.Foreign {
		text += " foreign"
	}
	switch l.Kind {
	case LineChain:
		text += fmt.Sprintf(" policy %d", l.Policy)
	case LineRule, LineOther:
		text += " " + l.Text
	}
	return text
}

// TestParse: chains are as after restoring the whole text without a flush.
func TestParse(t *testing.T) {
	s, err := Parse(strings.NewReader(savedText), IPv4)
	if err != nil {
		t.Fatal(err)
	}
	nat := s.Tables[NAT]
	for chain, n := range map[string]int{"PREROUTING": 2, "DOCKER": 2, "C": 0} {
		if c := nat.Chain(chain); c == nil || c.Name != chain || len(c.Rules) != n {
			t.Errorf("nat %s is %+v, want %d rules", chain, c, n)
		}
	}
	if nat.Chain("GONE") != nil || len(nat.Chains) != 3 {
		t.Errorf("nat has chains %+v", nat.Chains)
	}
	if p := nat.Chain("PREROUTING").Policy; p != TargetAccept {
		t.Errorf("the policy of nat PREROUTING is %d", p)
	}
	if p := s.Tables[Filter].Chain("INPUT").Policy; p != TargetDrop {
		t.Errorf("the policy of filter INPUT is %d", p)
	}
}

// TestScanErrors: text that is not what iptables-save prints is not an empty ruleset.
func TestScanErrors(t *testing.T) {
	for text, want := range map[string]string{
		"iptables-save: command not found\n":     "line 1",
		"# ok\n*nat\nCOMMIT\n-A C -j DROP\n":     "line 4",
		"*nat\n*filter\n":                        "line 2: \"*filter\" is not",
		"*nat\n:C - [0:0]\n":                     "cut off",
		"*nat\n-A C -m comment --comment \"half": "cut off",
		"*nat\n" + strings.Repeat("x", 2<<20):    "longer than",
	} {
		_, err := Parse(strings.NewReader(text), IPv4)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q in it", text, err, want)
		}
	}
	if _, err := Parse(strings.NewReader(""), IPv4); err != nil {
		t.Errorf("no text at all, as of a kernel without tables: %v", err)
	}
	if _, err := Parse(iotest.ErrReader(iotest.ErrTimeout), IPv4); err == nil {
		t.Error("a reader's error is lost")
	}
	long := "*nat\n:C - [0:0]\n-A C -m comment --comment \"" + strings.Repeat("y", 200000) + "\" -j ACCEPT\nCOMMIT\n"
	if s, err := Parse(strings.NewReader(long), IPv4); err != nil || len(s.Tables[NAT].Chain("C").Rules) != 1 {
		t.Errorf("a line longer than the buffer: %v", err)
	}
}

// TestUnwritableComment: a text never contains what iptables-restore would take for the end of a
// line or refuse.
func TestUnwritableComment(t *testing.T) {
	r := Rule{Comment: "a\nb\t" + strings.Repeat("c", 300), Target: TargetAccept}
	got := parseOne(t, IPv4, string(r.Append(nil, IPv4)))
	if want := "a b " + strings.Repeat("c", 251); got.Rule.Comment != want || !got.Rule.Same(r) {
		t.Errorf("got %+v", got)
	}
}

// TestArgs: what Append writes as one word is one argument.
func TestArgs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := []string{"-j", "ACCEPT"}
		comment := rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "comment")
		if comment != "" {
			want = slices.Concat([]string{"-m", "comment", "--comment", comment}, want)
		}
		if got := (Rule{Comment: comment, Target: TargetAccept}).Args(IPv4); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// TestSame: comments and counters are no difference, everything else is.
func TestSame(t *testing.T) {
	r := Rule{Target: TargetAccept, Proto: TCP}
	other := r
	other.Comment, other.NFAcct = "c", "n"
	if !r.Same(other) || !other.Same(r) {
		t.Errorf("%+v and %+v differ", r, other)
	}
	other.DstPort = 1
	if r.Same(other) {
		t.Errorf("%+v and %+v are the same", r, other)
	}
}
