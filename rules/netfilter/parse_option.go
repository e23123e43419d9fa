package netfilter

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// option is an argument that starts with a dash.
type option uint8

// The options in three groups, each closed by its last one.
const (
	optNone option = iota
	optSrc
	optDst
	optInInterface
	optProto
	lastHeaderOption = optProto
)

const (
	optComment option = iota + lastHeaderOption + 1
	optDstPort
	optSrcType
	optDstType
	optCTState
	optMark
	optMode
	optProbability
	optNFAcct
	optRecentName
	optRecentSet
	optRecentCheck
	optSeconds
	optReap
	optMask
	optSourceAddr
	optMatchSet
	optIPVS
	lastMatchOption = optIPVS
)

const (
	optTarget option = iota + lastMatchOption + 1
	optToDestination
	optRejectWith
	optRandomFully
	optSetXMark
	optSetMark
	optAndMark
	optOrMark
	optXorMark
)

// options are those that a Rule can express, by name.
var options = map[string]option{
	"-s": optSrc, "--source": optSrc, "--src": optSrc,
	"-d": optDst, "--destination": optDst, "--dst": optDst,
	"-i": optInInterface, "--in-interface": optInInterface,
	"-p": optProto, "--protocol": optProto, "--proto": optProto,

	"--comment": optComment,
	"--dport":   optDstPort, "--destination-port": optDstPort,
	"--src-type":    optSrcType,
	"--dst-type":    optDstType,
	"--ctstate":     optCTState,
	"--mark":        optMark,
	"--mode":        optMode,
	"--probability": optProbability,
	"--nfacct-name": optNFAcct,
	"--name":        optRecentName,
	"--set":         optRecentSet,
	"--rcheck":      optRecentCheck,
	"--seconds":     optSeconds,
	"--reap":        optReap,
	"--mask":        optMask,
	"--rsource":     optSourceAddr,
	"--match-set":   optMatchSet,
	"--ipvs":        optIPVS,

	"-j": optTarget, "--jump": optTarget,
	"--to-destination": optToDestination,
	"--reject-with":    optRejectWith,
	"--random-fully":   optRandomFully,
	"--set-xmark":      optSetXMark,
	"--set-mark":       optSetMark,
	"--and-mark":       optAndMark,
	"--or-mark":        optOrMark,
	"--xor-mark":       optXorMark,
}

// negatable reports whether a Rule can express "!" before the option.
func (o option) negatable() bool {
	switch o {
	case optSrc, optDst, optInInterface, optCTState, optMark:
		return true
	default:
		return false
	}
}

// knownMatch reports whether a Rule can express a match extension.
func knownMatch(name string) bool {
	switch name {
	case "comment", "tcp", "udp", "sctp", "statistic", "recent", "addrtype", "mark", "conntrack", "nfacct", "set", "ipvs":
		return true
	default:
		return false
	}
}

func (a *arguments) match(o option, not bool) (ok bool) {
	r := &a.rule
	switch o {
	case optComment:
		r.Comment, ok = a.next(), true
	case optDstPort:
		n, err := strconv.ParseUint(a.next(), 10, 16)
		r.DstPort, ok = uint16(n), err == nil && n != 0
	case optSrcType:
		r.SrcLocal, ok = true, a.next() == "LOCAL"
	case optDstType:
		r.DstLocal, ok = true, a.next() == "LOCAL"
	case optCTState:
		r.NotCTState = not
		r.CTState, ok = ctStateOf(a.next())
	case optMark:
		r.NotMark = not
		r.Mark, ok = markOf(a.next())
		ok = ok && r.Mark != Mark{}
	case optMode:
		ok = a.next() == "random"
	case optProbability:
		f, err := strconv.ParseFloat(a.next(), 64)
		if ok = err == nil && f > 0 && f <= 1; ok {
			r.Probability = roundProbability(f)
		}
		ok = ok && r.Probability != 0
	case optNFAcct:
		word := a.next()
		r.NFAcct, ok = a.parser.intern(word), plain(word)
	case optMatchSet:
		name, fields := a.next(), a.next()
		r.MatchSet = SetMatch{Name: a.parser.intern(name), Fields: a.parser.intern(fields)}
		ok = plain(name) && setFields(fields)
	case optIPVS:
		r.IPVS, ok = true, true
	default:
		ok = a.recent(o)
	}
	return ok
}

// recent reads the options of -m recent. The mask must cover the whole source address.
func (a *arguments) recent(o option) (ok bool) {
	r := &a.rule.Recent
	switch o {
	case optRecentName:
		word := a.next()
		r.Name, ok = a.parser.intern(word), plain(word)
	case optRecentSet:
		r.Op, ok = RecentSet, !a.has(optRecentCheck)
	case optRecentCheck:
		r.Op, ok = RecentCheck, !a.has(optRecentSet)
	case optSeconds:
		n, valid := number(a.next(), 32)
		r.Seconds, ok = uint32(n), valid && n != 0
	case optReap:
		r.Reap, ok = true, true
	case optMask:
		ok = a.next() == a.parser.family.wholeMask()
	case optSourceAddr:
		ok = true
	}
	return ok
}

// setFields reports whether a list names the packet's side, src or dst, for each field of a set. A
// set has at most six fields.
func setFields(list string) bool {
	const most = 6
	n := 0
	for side := range strings.SplitSeq(list, ",") {
		if n++; side != "src" && side != "dst" {
			return false
		}
	}
	return n <= most
}

func ctStateOf(list string) (CTState, bool) {
	var states CTState
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(ctStateNames[:], func(s ctStateName) bool { return s.name == name })
		if i < 0 {
			return 0, false
		}
		states |= ctStateNames[i].state
	}
	return states, true
}

func (a *arguments) target(o option) (ok bool) {
	r := &a.rule
	switch o {
	case optTarget:
		return a.jump(a.next())
	case optToDestination:
		dnat, err := netip.ParseAddrPort(a.next())
		r.DNAT = dnat
		return err == nil && dnat.Port() != 0 && dnat.Addr().Zone() == "" && dnat.Addr().Is6() == (a.parser.family == IPv6)
	case optRejectWith:
		return a.next() == a.parser.family.unreachable()
	case optRandomFully:
		r.Random = true
		return true
	default:
		return a.setMark(o)
	}
}

func (a *arguments) jump(word string) (ok bool) {
	if t := slices.Index(targetNames[:], word); word != "" && t >= 0 {
		a.rule.Target = Target(t)
		return true
	}
	a.rule.Target = TargetJump
	a.rule.Jump, ok = a.parser.chain(a.table, word)
	return ok
}

// markOptions are the forms of the target MARK; a rule has one of them.
const markOptions = 1<<optSetXMark | 1<<optSetMark | 1<<optAndMark | 1<<optOrMark | 1<<optXorMark

// setMark turns each form into what the kernel does: clear the bits of the mask, then xor the
// value. It returns false if the next word is no mark or another form came before.
func (a *arguments) setMark(o option) bool {
	if others := a.seen & markOptions &^ (1 << o); others != 0 {
		return false
	}
	m, ok := markOf(a.next())
	switch o {
	case optSetMark:
		m.Mask |= m.Value
	case optAndMark:
		m = Mark{Mask: ^m.Value}
	case optOrMark:
		m.Mask = m.Value
	case optXorMark:
		m.Mask = 0
	}
	a.rule.Set = m
	return ok
}

// whole reports whether options that belong together are all present.
func (a *arguments) whole() bool {
	r := a.rule
	recent := a.has(optSeconds) || a.has(optReap) || a.has(optMask) || a.has(optSourceAddr) || a.has(optRecentName)
	switch {
	case r.DstPort != 0 && r.Proto == AnyProto,
		a.has(optMode) != a.has(optProbability),
		r.Recent.Op == 0 && recent,
		r.Recent.Op != 0 && r.Recent.Name == "",
		r.Recent.Op == RecentSet && (a.has(optSeconds) || a.has(optReap)),
		a.has(optReap) && !a.has(optSeconds),
		a.has(optToDestination) != (r.Target == TargetDNAT),
		r.Target == TargetDNAT && r.Proto == AnyProto,
		a.has(optRejectWith) && r.Target != TargetReject,
		a.has(optRandomFully) && r.Target != TargetMasquerade,
		(a.seen&markOptions != 0) != (r.Target == TargetMark):
		return false
	}
	return true
}
