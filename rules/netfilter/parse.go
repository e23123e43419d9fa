package netfilter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Line is one line of iptables-save, or of input for iptables-restore. Its strings may share memory
// with a larger text: clone those that are kept for long.
type Line struct {
	Table   Table
	Kind    LineKind
	Chain   string // of LineChain, LineRule and LineDelete
	Policy  Target // LineChain: TargetAccept or TargetDrop; TargetNone for "-", as of user-defined chains
	Rule    Rule   // LineRule, unless Foreign
	Foreign bool   // LineRule: no Rule can express it
	Text    string // the whole line, without leading counters
}

// LineKind is what a Line is. Empty lines and comments are skipped, except the comment of
// iptables-nft-save about a table that it does not print.
type LineKind uint8

// The kinds of Line.
const (
	LineTable  LineKind = iota // *nat
	LineChain                  // :KUBE-SERVICES - [0:0]
	LineRule                   // -A KUBE-SERVICES ...
	LineDelete                 // -X KUBE-SVC-...
	LineCommit                 // COMMIT
	LineOther                  // anything else, such as -I and -D in input for iptables-restore

	// LineIncompatible is "# Table `nat' is incompatible, use 'nft' tool.": the Table has rules
	// that the text does not contain.
	LineIncompatible
)

// longestLine is far above the limit of iptables itself.
const longestLine = 1 << 20

// Scan reads lines as a stream. It holds about 64 KiB, whatever the length of the text. A rule that
// no Rule can express is Foreign. Text that iptables-save would not print, or that ends inside a
// table, is an error, which is the last thing yielded.
func Scan(r io.Reader, f Family) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		s := scanner{parser: newParser(f)}
		number := 0
		for text, err := range splitLines(r) {
			number++
			if err != nil {
				yield(Line{}, fmt.Errorf("line %d: %w", number, err))
				return
			}
			line, ok, err := s.line(text)
			if err != nil {
				yield(Line{}, fmt.Errorf("line %d: %w", number, err))
				return
			}
			if ok && !yield(line, nil) {
				return
			}
		}
		if s.inside {
			yield(Line{}, fmt.Errorf("the text ends after line %d inside table %s, without COMMIT: it was cut off", number, s.table))
		}
	}
}

// splitLines yields the lines of r without line ends. The lines of one read share memory.
func splitLines(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		buffer := make([]byte, 64<<10)
		held := 0
		for {
			n, err := r.Read(buffer[held:])
			held += n
			whole := held
			if err == nil {
				whole = bytes.LastIndexByte(buffer[:held], '\n') + 1
			}
			for text := string(buffer[:whole]); text != ""; {
				line, rest, _ := strings.Cut(text, "\n")
				if !yield(line, nil) {
					return
				}
				text = rest
			}
			held = copy(buffer, buffer[whole:held])
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield("", fmt.Errorf("reading rules: %w", err))
				return
			case held == len(buffer) && held >= longestLine:
				yield("", fmt.Errorf("longer than %d bytes: this is not what iptables-save prints", longestLine))
				return
			case held == len(buffer):
				buffer = append(buffer, make([]byte, len(buffer))...)
			}
		}
	}
}

// scanner knows the current table.
type scanner struct {
	parser *parser
	table  Table
	inside bool
}

// line parses one line; ok = false for a line without content.
func (s *scanner) line(text string) (l Line, ok bool, err error) {
	text = strings.Trim(text, " \t\r")
	if text == "" {
		return Line{}, false, nil
	}
	if text[0] == '#' {
		t, incompatible := incompatibleTable(text)
		return Line{Table: t, Kind: LineIncompatible, Text: text}, incompatible, nil
	}
	if text[0] == '*' && !s.inside {
		s.table, s.inside = tableOf(text[1:]), true
		return Line{Table: s.table, Kind: LineTable, Text: text}, true, nil
	}
	if !s.inside || text[0] == '*' {
		return Line{}, false, fmt.Errorf("%.60q is not what iptables-save prints there: want *TABLE first and COMMIT before the next", text)
	}
	if text[0] == '[' {
		_, behind, _ := strings.Cut(text, "]")
		text = strings.TrimLeft(behind, " \t")
	}
	l = s.command(text)
	s.inside = l.Kind != LineCommit
	return l, true, nil
}

func (s *scanner) command(text string) Line {
	l := Line{Table: s.table, Kind: LineOther, Text: text}
	switch {
	case text == "COMMIT":
		l.Kind = LineCommit
	case strings.HasPrefix(text, ":"):
		name, rest, _ := strings.Cut(text[1:], " ")
		policy, _, _ := strings.Cut(rest, " ")
		l.Kind, l.Chain, l.Policy = LineChain, s.parser.declare(s.table, name), policyOf(policy)
	case strings.HasPrefix(text, "-X "):
		l.Kind, l.Chain = LineDelete, s.parser.intern(strings.TrimSpace(text[3:]))
	case strings.HasPrefix(text, "-A "):
		name, args, _ := strings.Cut(strings.TrimLeft(text[3:], " "), " ")
		l.Kind, l.Chain = LineRule, s.parser.intern(name)
		rule, ok := s.parser.rule(s.table, args)
		l.Rule, l.Foreign = rule, !ok
	}
	return l
}

// incompatibleTable returns the table that a comment of iptables-nft-save reports as not
// printed. It returns false for any other comment.
func incompatibleTable(comment string) (t Table, is bool) {
	rest, is := strings.CutPrefix(comment, "# Table `")
	if !is {
		return Other, false
	}
	name, rest, _ := strings.Cut(rest, "'")
	return tableOf(name), strings.HasPrefix(rest, " is incompatible")
}

func tableOf(name string) Table {
	for _, t := range []Table{Filter, NAT, Mangle} {
		if name == t.String() {
			return t
		}
	}
	return Other
}

func policyOf(word string) Target {
	switch word {
	case "ACCEPT":
		return TargetAccept
	case "DROP":
		return TargetDrop
	default:
		return TargetNone
	}
}
