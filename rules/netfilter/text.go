package netfilter

import (
	"bytes"
	"cmp"
	"math"
	"net/netip"
	"strconv"
)

// Same reports whether two rules do the same. Comments and counters do not matter.
func (r Rule) Same(o Rule) bool { return r.Decisive() == o.Decisive() }

// Decisive returns r without comment and counter.
func (r Rule) Decisive() Rule {
	r.Comment, r.NFAcct = "", ""
	return r
}

// Append adds the rule to b as iptables-save prints it after "-A CHAIN ", without a line end. Both
// variants of iptables-restore read it.
//
// The matches have kube-proxy's order, because iptables -C and -D only find a rule with the same
// order.
func (r Rule) Append(b []byte, f Family) []byte {
	t := text{b: b, family: f}
	t.header(r)
	if r.CTState == CTNew && !r.NotCTState {
		t.ctState(r)
	}
	if r.Comment != "" {
		t.words("-m comment --comment")
		t.quoted(r.Comment)
	}
	t.recent(r.Recent)
	if r.Probability != 0 {
		t.words("-m statistic --mode random --probability", formatProbability(r.Probability))
	}
	t.addrType(r)
	if r.Proto != AnyProto && !r.anyPort() {
		t.words("-m", r.Proto.String())
	}
	if r.DstPort != 0 {
		t.words("--dport", strconv.Itoa(int(r.DstPort)))
	}
	if r.Mark != (Mark{}) {
		t.words("-m mark")
		t.not(r.NotMark)
		t.words("--mark")
		t.mark(r.Mark)
	}
	if r.CTState != 0 && (r.CTState != CTNew || r.NotCTState) {
		t.ctState(r)
	}
	if r.MatchSet != (SetMatch{}) {
		t.words("-m set --match-set", r.MatchSet.Name, r.MatchSet.Fields)
	}
	if r.IPVS {
		t.words("-m ipvs --ipvs")
	}
	if r.NFAcct != "" {
		t.words("-m nfacct --nfacct-name", r.NFAcct)
	}
	t.target(r)
	return t.b
}

// Args returns the words of Append, as arguments of iptables.
func (r Rule) Args(f Family) []string {
	args, _ := split(nil, string(r.Append(nil, f)))
	return args
}

// anyPort reports whether a rule is for a kernel without the match of SCTP ports, and so must not
// name it.
func (r Rule) anyPort() bool { return r.Proto == SCTP && r.DstPort == 0 && r.Target == TargetReject }

// text is a line under construction; words are separated by one space.
type text struct {
	b      []byte
	family Family
}

// words adds words. An empty one only adds the space before what the caller appends to b.
func (t *text) words(list ...string) {
	for _, s := range list {
		if n := len(t.b); n > 0 && t.b[n-1] != ' ' && t.b[n-1] != '\n' {
			t.b = append(t.b, ' ')
		}
		t.b = append(t.b, s...)
	}
}

func (t *text) not(n bool) {
	if n {
		t.words("!")
	}
}

// header writes what iptables itself matches.
func (t *text) header(r Rule) {
	t.prefix("-s", r.Src, r.NotSrc)
	t.prefix("-d", r.Dst, r.NotDst)
	if r.InInterface != "" {
		t.not(r.NotInInterface)
		t.words("-i", r.InInterface)
	}
	if r.Proto != AnyProto {
		t.words("-p", r.Proto.String())
	}
}

func (t *text) prefix(option string, p netip.Prefix, not bool) {
	if !p.IsValid() {
		return
	}
	t.not(not)
	t.words(option, "")
	t.b = p.AppendTo(t.b)
}

// quoted writes s in quotes, as one word for iptables-restore. It cuts s after 255 bytes, the
// limit of a comment, and writes a space for a line end, which cannot be escaped.
func (t *text) quoted(s string) {
	const longest = 255
	t.words(`"`)
	for i := 0; i < len(s) && i < longest; i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			t.b = append(t.b, '\\', c)
		case c < ' ':
			t.b = append(t.b, ' ')
		default:
			t.b = append(t.b, c)
		}
	}
	t.b = append(t.b, '"')
}

func (t *text) recent(r Recent) {
	switch r.Op {
	case RecentSet:
		t.words("-m recent --set")
	case RecentCheck:
		t.words("-m recent --rcheck")
		if r.Seconds != 0 {
			t.words("--seconds", strconv.FormatUint(uint64(r.Seconds), 10))
		}
		if r.Reap {
			t.words("--reap")
		}
	default:
		return
	}
	t.words("--name", r.Name, "--mask", t.family.wholeMask(), "--rsource")
}

// wholeMask returns the mask of a whole address, written as an address: 255.255.255.255, or the
// same in IPv6.
func (f Family) wholeMask() string {
	if f == IPv6 {
		return "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	}
	return "255.255.255.255"
}

// Probability returns 1/n in units of 2^-31, as the kernel has it after kube-proxy wrote it:
// rounded to ten decimals first, then to 31 bits.
func Probability(n int) uint32 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(1/float64(n), 'f', 10, 64), 64)
	return roundProbability(f)
}

// roundProbability rounds as libxt_statistic does.
func roundProbability(f float64) uint32 { return uint32(math.Round(f * (1 << 31))) }

// formatProbability returns p with eleven decimals, enough to tell all 31-bit fractions apart.
func formatProbability(p uint32) string {
	return strconv.FormatFloat(float64(p)/(1<<31), 'f', 11, 64)
}

func (t *text) addrType(r Rule) {
	if r.SrcLocal || r.DstLocal {
		t.words("-m addrtype")
	}
	if r.SrcLocal {
		t.words("--src-type LOCAL")
	}
	if r.DstLocal {
		t.words("--dst-type LOCAL")
	}
}

func (t *text) mark(m Mark) {
	t.words("0x")
	t.b = strconv.AppendUint(t.b, uint64(m.Value), 16)
	if m.Mask != ^uint32(0) {
		t.b = append(t.b, "/0x"...)
		t.b = strconv.AppendUint(t.b, uint64(m.Mask), 16)
	}
}

type ctStateName struct {
	state CTState
	name  string
}

// ctStateNames are in the order in which iptables prints them.
var ctStateNames = [...]ctStateName{
	{CTInvalid, "INVALID"}, {CTNew, "NEW"}, {CTRelated, "RELATED"}, {CTEstablished, "ESTABLISHED"}, {CTDNAT, "DNAT"},
}

func (t *text) ctState(r Rule) {
	t.words("-m conntrack")
	t.not(r.NotCTState)
	t.words("--ctstate", "")
	for _, s := range ctStateNames {
		if r.CTState&s.state != 0 {
			t.b = append(append(t.b, s.name...), ',')
		}
	}
	t.b = bytes.TrimSuffix(t.b, []byte(","))
}

// targetNames are the names of targets by Target. Those of TargetNone and TargetJump are empty.
var targetNames = [...]string{
	TargetAccept: "ACCEPT", TargetDrop: "DROP", TargetReject: "REJECT", TargetReturn: "RETURN",
	TargetDNAT: "DNAT", TargetMark: "MARK", TargetMasquerade: "MASQUERADE",
}

func (t *text) target(r Rule) {
	if r.Target == TargetNone {
		return
	}
	t.words("-j", cmp.Or(targetNames[r.Target], r.Jump))
	switch r.Target {
	case TargetReject:
		t.words("--reject-with", t.family.unreachable())
	case TargetDNAT:
		t.words("--to-destination", "")
		t.b = r.DNAT.AppendTo(t.b)
	case TargetMark:
		t.words("--set-xmark 0x")
		t.b = strconv.AppendUint(t.b, uint64(r.Set.Value), 16)
		t.b = append(t.b, "/0x"...)
		t.b = strconv.AppendUint(t.b, uint64(r.Set.Mask), 16)
	case TargetMasquerade:
		if r.Random {
			t.words("--random-fully")
		}
	}
}

// unreachable returns the ICMP message of REJECT.
func (f Family) unreachable() string {
	if f == IPv6 {
		return "icmp6-port-unreachable"
	}
	return "icmp-port-unreachable"
}
