package refusal

import (
	"bytes"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/topology"
)

// suspects are the Services whose rules an input of iptables-restore adds.
type suspects struct {
	services []*rules.Service
	owner    map[int]int // by line of the input, from 1: index into services
}

// suspectsOf compares an input with what w renders to.
func suspectsOf(input []byte, w render.Desired) suspects {
	added := addedLines(input)
	found := suspects{owner: map[int]int{}}
	var line []byte
	for s, b := range w.Parts() {
		if s == nil {
			continue // no Service owns it
		}
		at := len(found.services)
		for id, r := range b.Rules() {
			for _, command := range []string{"-A ", "-I "} {
				line = render.AppendRule(line[:0], command, id.Chain, r, w.Options.Family)
				if n, is := added[string(line)]; is {
					found.owner[n] = at
					if len(found.services) == at {
						found.services = append(found.services, s)
					}
				}
			}
		}
	}
	return found
}

// only returns the suspects with some names, without the owners of lines, or s if there are
// none.
func (s suspects) only(names []topology.ServicePortName) suspects {
	some := slices.DeleteFunc(slices.Clone(s.services), func(service *rules.Service) bool { return !slices.Contains(names, service.Name) })
	if len(some) == 0 {
		return s
	}
	return suspects{services: some}
}

// addedLines returns the lines that add a rule, with their numbers from 1.
func addedLines(input []byte) map[string]int {
	lines := map[string]int{}
	n := 0
	for line := range bytes.Lines(input) {
		n++
		if bytes.HasPrefix(line, []byte("-A ")) || bytes.HasPrefix(line, []byte("-I ")) {
			lines[string(line)] = n
		}
	}
	return lines
}

// hints returns the indexes of the suspects that an error points at: the owner of its line and,
// because it may be one line late, that of the line before. A COMMIT points at no Service.
func (s suspects) hints(e *Error) []int {
	var hints []int
	if e.Text == "COMMIT" {
		return nil
	}
	for _, n := range []int{e.Line, e.Line - 1} {
		if at, is := s.owner[n]; is && !slices.Contains(hints, at) {
			hints = append(hints, at)
		}
	}
	return hints
}
