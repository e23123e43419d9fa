package netfilter

import (
	"net/netip"
	"strconv"
	"strings"
)

// parser reads the rules of one text. It keeps each name once.
type parser struct {
	family Family
	names  map[string]knownName
	words  []string // of the current line; reused
}

type knownName struct {
	text     string
	declared uint8 // bit by Table: the table has a chain of that name
}

func newParser(f Family) *parser {
	return &parser{family: f, names: map[string]knownName{}}
}

// intern returns a copy of s that shares memory with all equal ones.
func (p *parser) intern(s string) string {
	if k, ok := p.names[s]; ok {
		return k.text
	}
	s = strings.Clone(s)
	p.names[s] = knownName{text: s}
	return s
}

func (p *parser) declare(t Table, chain string) string {
	k := knownName{text: p.intern(chain), declared: p.names[chain].declared | 1<<t}
	p.names[k.text] = k
	return k.text
}

// chain returns the chain that a target names, and whether it names one. A word that is neither
// a declared chain nor a name of ours, under any Naming, is a target extension such as LOG.
func (p *parser) chain(t Table, word string) (string, bool) {
	known := p.names[word].declared&(1<<t) != 0
	return p.intern(word), plain(word) && (known || isAnybodys(t, word) || word == ChainFirewall)
}

// rule parses the arguments after "-A CHAIN", in any order that iptables-restore accepts. ok =
// false: no Rule can express them.
func (p *parser) rule(t Table, args string) (Rule, bool) {
	var ok bool
	if p.words, ok = split(p.words[:0], args); !ok {
		return Rule{}, false
	}
	a := arguments{parser: p, table: t, words: p.words}
	for len(a.words) > 0 {
		if !a.option() {
			return Rule{}, false
		}
	}
	if a.not || !a.whole() {
		return Rule{}, false
	}
	return a.rule, true
}

// split appends the words of a line to words, cut as iptables-restore does. Within double
// quotes a backslash escapes the next byte. It returns false if a quote is not closed.
func split(words []string, s string) ([]string, bool) {
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			return words, true
		}
		end := strings.IndexAny(s, " \t\"")
		if end < 0 {
			end = len(s)
		}
		if end < len(s) && s[end] == '"' {
			word, rest, ok := quotedWord(s)
			if !ok {
				return words, false
			}
			words, s = append(words, word), rest
			continue
		}
		words, s = append(words, s[:end]), s[end:]
	}
}

// quotedWord reads a word with quotes; ok = false: a quote is not closed. A word that is one
// pair of quotes without a backslash shares memory with s.
func quotedWord(s string) (word, rest string, ok bool) {
	if s[0] == '"' {
		end := strings.IndexAny(s[1:], `"\`) + 1
		after := end + 1
		if end > 0 && s[end] == '"' && (after == len(s) || s[after] == ' ') {
			return s[1:end], s[after:], true
		}
	}
	var b strings.Builder
	open, escaped := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case escaped:
			b.WriteByte(c)
			escaped = false
		case open && c == '\\':
			escaped = true
		case c == '"':
			open = !open
		case !open && (c == ' ' || c == '\t'):
			return b.String(), s[i:], true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", !open
}

// plain reports whether iptables-save prints a name as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '"' || c == '\'' || c == '\\' || c == 0x7f {
			return false
		}
	}
	return s != ""
}

// arguments are the unread words of one rule.
type arguments struct {
	parser *parser
	table  Table
	words  []string
	not    bool   // "!" precedes the next option
	seen   uint64 // bit by option
	rule   Rule
}

func (a *arguments) option() bool {
	word := a.next()
	switch word {
	case "!":
		again := a.not
		a.not = true
		return !again
	case "-m", "--match":
		return !a.not && knownMatch(a.next())
	}
	o := options[word]
	if o == optNone || a.seen&(1<<o) != 0 || a.not && !o.negatable() {
		return false
	}
	a.seen |= 1 << o
	not := a.not
	a.not = false
	switch {
	case o <= lastHeaderOption:
		return a.header(o, not)
	case o <= lastMatchOption:
		return a.match(o, not)
	default:
		return a.target(o)
	}
}

// next removes and returns the next word; "" = no word remains.
func (a *arguments) next() string {
	if len(a.words) == 0 {
		return ""
	}
	word := a.words[0]
	a.words = a.words[1:]
	return word
}

func (a *arguments) has(o option) bool { return a.seen&(1<<o) != 0 }

func (a *arguments) header(o option, not bool) (ok bool) {
	r := &a.rule
	switch o {
	case optSrc:
		r.Src, ok = a.parser.prefix(a.next(), not)
		r.NotSrc = not
	case optDst:
		r.Dst, ok = a.parser.prefix(a.next(), not)
		r.NotDst = not
	case optInInterface:
		word := a.next()
		r.InInterface, r.NotInInterface = a.parser.intern(word), not
		ok = plain(word) && word != "+"
	case optProto:
		r.Proto, ok = protoByName(a.next())
	}
	return ok
}

// prefix parses an address of the family, with or without a length; false = word is none. A
// prefix of all addresses is no match at all: unless negated, it becomes the zero Prefix.
func (p *parser) prefix(word string, not bool) (netip.Prefix, bool) {
	var prefix netip.Prefix
	if strings.IndexByte(word, '/') < 0 {
		addr, err := netip.ParseAddr(word)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	} else {
		parsed, err := netip.ParsePrefix(word)
		if err != nil {
			return netip.Prefix{}, false
		}
		prefix = parsed.Masked()
	}
	if prefix.Addr().Is6() != (p.family == IPv6) {
		return netip.Prefix{}, false
	}
	if prefix.Bits() == 0 && !not {
		return netip.Prefix{}, true
	}
	return prefix, true
}

func protoByName(word string) (Proto, bool) {
	switch word {
	case "tcp", "6":
		return TCP, true
	case "udp", "17":
		return UDP, true
	case "sctp", "132":
		return SCTP, true
	case "all", "0":
		return AnyProto, true
	default:
		return AnyProto, false
	}
}

// number parses a number of so many bits, as iptables does; false = word is none.
func number(word string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(word, 0, bits)
	return n, err == nil && strings.IndexByte(word, '_') < 0
}

// markOf parses VALUE or VALUE/MASK; without MASK all bits count. It returns false for other
// words.
func markOf(word string) (Mark, bool) {
	value, mask, masked := strings.Cut(word, "/")
	v, ok := number(value, 32)
	m, okMask := uint64(^uint32(0)), true
	if masked {
		m, okMask = number(mask, 32)
	}
	return Mark{Value: uint32(v), Mask: uint32(m)}, ok && okMask
}
