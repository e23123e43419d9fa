package netfilter

import (
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
		t.word("-m comment --comment")
		t.quoted(r.Comment)
	}
	t.recent(r.Recent)
	if r.Probability != 0 {
		t.word("-m statistic --mode random --probability")
		t.word(formatProbability(r.Probability))
	}
	t.addrType(r)
	if r.Proto != AnyProto && !r.anyPort() {
		t.word("-m")
		t.word(r.Proto.String())
	}
	if r.DstPort != 0 {
		t.word("--dport")
		t.word(strconv.Itoa(int(r.DstPort)))
	}
	if r.Mark != (Mark{}) {
		t.word("-m mark")
		t.not(r.NotMark)
		t.word("--mark")
		t.mark(r.Mark)
	}
	if r.CTState != 0 && (r.CTState != CTNew || r.NotCTState) {
		t.ctState(r)
	}
	if r.MatchSet != (SetMatch{}) {
		t.word("-m set --match-set")
		t.word(r.MatchSet.Name)
		t.word(r.MatchSet.Fields)
	}
	if r.IPVS {
		t.word("-m ipvs --ipvs")
	}
	if r.NFAcct != "" {
		t.word("-m nfacct --nfacct-name")
		t.word(r.NFAcct)
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

func (t *text) word(s string) {
	if n := len(t.b); n > 0 && t.b[n-1] != ' ' && t.b[n-1] != '\n' {
		t.b = append(t.b, ' ')
	}
	t.b = append(t.b, s...)
}

func (t *text) not(n bool) {
	if n {
		t.word("!")
	}
}

// header writes what iptables itself matches.
func (t *text) header(r Rule) {
	t.prefix("-s", r.Src, r.NotSrc)
	t.prefix("-d", r.Dst, r.NotDst)
	if r.InInterface != "" {
		t.not(r.NotInInterface)
		t.word("-i")
		t.word(r.InInterface)
	}
	if r.Proto != AnyProto {
		t.word("-p")
		t.word(r.Proto.String())
	}
}

func (t *text) prefix(option string, p netip.Prefix, not bool) {
	if !p.IsValid() {
		return
	}
	t.not(not)
	t.word(option)
	t.word("")
	t.b = p.AppendTo(t.b)
}

// quoted writes a string that iptables-restore reads as one word. It cannot escape a line end. A
// comment has at most 255 bytes.
func (t *text) quoted(s string) {
	const longest = 255
	t.word(`"`)
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
		t.word("-m recent --set")
	case RecentCheck:
		t.word("-m recent --rcheck")
		if r.Seconds != 0 {
			t.word("--seconds")
			t.word(strconv.FormatUint(uint64(r.Seconds), 10))
		}
		if r.Reap {
			t.word("--reap")
		}
	default:
		return
	}
	t.word("--name")
	t.word(r.Name)
	t.word("--mask")
	t.word(t.family.wholeMask())
	t.word("--rsource")
}

// wholeMask covers a whole address.
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
		t.word("-m addrtype")
	}
	if r.SrcLocal {
		t.word("--src-type LOCAL")
	}
	if r.DstLocal {
		t.word("--dst-type LOCAL")
	}
}

func (t *text) mark(m Mark) {
	t.word("0x")
	t.b = strconv.AppendUint(t.b, uint64(m.Value), 16)
	if m.Mask != ^uint32(0) {
		t.b = append(t.b, "/0x"...)
		t.b = strconv.AppendUint(t.b, uint64(m.Mask), 16)
	}
}

// ctStateNames are in the order in which iptables prints them.
var ctStateNames = [...]struct {
	state CTState
	name  string
}{
	{CTInvalid, "INVALID"}, {CTNew, "NEW"}, {CTRelated, "RELATED"}, {CTEstablished, "ESTABLISHED"}, {CTDNAT, "DNAT"},
}

func (t *text) ctState(r Rule) {
	t.word("-m conntrack")
	t.not(r.NotCTState)
	t.word("--ctstate")
	t.word("")
	first := true
	for _, s := range ctStateNames {
		if r.CTState&s.state == 0 {
			continue
		}
		if !first {
			t.b = append(t.b, ',')
		}
		first = false
		t.b = append(t.b, s.name...)
	}
}

func (t *text) target(r Rule) {
	switch r.Target {
	case TargetNone:
	case TargetAccept:
		t.word("-j ACCEPT")
	case TargetDrop:
		t.word("-j DROP")
	case TargetReject:
		t.word("-j REJECT --reject-with")
		t.word(t.family.unreachable())
	case TargetReturn:
		t.word("-j RETURN")
	case TargetJump:
		t.word("-j")
		t.word(r.Jump)
	case TargetDNAT:
		t.word("-j DNAT --to-destination")
		t.word("")
		t.b = r.DNAT.AppendTo(t.b)
	case TargetMark:
		t.word("-j MARK --set-xmark 0x")
		t.b = strconv.AppendUint(t.b, uint64(r.Set.Value), 16)
		t.b = append(t.b, "/0x"...)
		t.b = strconv.AppendUint(t.b, uint64(r.Set.Mask), 16)
	case TargetMasquerade:
		t.word("-j MASQUERADE")
		if r.Random {
			t.word("--random-fully")
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
