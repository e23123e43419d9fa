package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gridproxy/integration/lab"
)

// member is a node or an endpoint, and the unit it is in.
type member struct {
	node, unit string
	label      string // how an endpoint is shown; a node is shown by its name
	pod        string
}

// matrix counts who answered whom.
type matrix struct {
	nodes     []member // rows: who asks
	endpoints []member // columns: who may answer
	counts    map[string]map[string]int
	failed    map[string][]error
}

func newMatrix(nodes, endpoints []member) *matrix {
	byUnit := func(a, b member) int { return strings.Compare(a.unit, b.unit) }
	nodes, endpoints = slices.Clone(nodes), slices.Clone(endpoints)
	slices.SortStableFunc(nodes, byUnit)
	slices.SortStableFunc(endpoints, byUnit)
	m := &matrix{nodes: nodes, endpoints: endpoints, counts: map[string]map[string]int{}, failed: map[string][]error{}}
	for _, n := range nodes {
		m.counts[n.node] = map[string]int{}
	}
	return m
}

func (m *matrix) add(node string, answers []lab.Answer, failed []error) {
	for _, a := range answers {
		m.counts[node][a.Pod]++
	}
	m.failed[node] = append(m.failed[node], failed...)
}

// verdict is what a matrix proves.
type verdict struct{ asked, left, failed int }

// good says that closure held.
func (v verdict) good() bool { return v.left == 0 && v.failed == 0 }

// verdict counts the requests that were answered from another unit, an endpoint that is
// not in the matrix counting as one, and those that were not answered.
func (m *matrix) verdict() verdict {
	var v verdict
	unit := map[string]string{}
	for _, e := range m.endpoints {
		unit[e.pod] = e.unit
	}
	for _, n := range m.nodes {
		for pod, count := range m.counts[n.node] {
			v.asked += count
			if unit[pod] != n.unit {
				v.left += count
			}
		}
		v.asked += len(m.failed[n.node])
		v.failed += len(m.failed[n.node])
	}
	return v
}

const (
	rowWidth  = 22
	cellWidth = 17
)

// print writes the matrix with a rule between the units, rows and columns alike.
func (m *matrix) print(w io.Writer) {
	m.printHeader(w)
	unit := ""
	for _, n := range m.nodes {
		shown := ""
		if n.unit != unit {
			if unit != "" {
				m.printRule(w)
			}
			shown, unit = n.unit, n.unit
		}
		line := &strings.Builder{}
		last := ""
		for _, e := range m.endpoints {
			if e.unit != last && last != "" {
				line.WriteString("|")
			}
			last = e.unit
			cell := "."
			if count := m.counts[n.node][e.pod]; count > 0 {
				cell = fmt.Sprint(count)
			}
			fmt.Fprintf(line, "%*s ", cellWidth-1, cell)
		}
		if failed := len(m.failed[n.node]); failed > 0 {
			fmt.Fprintf(line, " %d failed", failed)
		}
		printRow(w, fmt.Sprintf("%-12s%s", shown, n.node), line.String())
	}
}

func printRow(w io.Writer, head, cells string) {
	fmt.Fprintf(w, "  %-*s%s\n", rowWidth, head, strings.TrimRight(cells, " "))
}

func (m *matrix) printHeader(w io.Writer) {
	units, addrs, homes := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	last := ""
	for _, e := range m.endpoints {
		shown := ""
		if e.unit != last {
			for _, line := range []*strings.Builder{units, addrs, homes} {
				if last != "" {
					line.WriteString("|")
				}
			}
			shown, last = e.unit, e.unit
		}
		fmt.Fprintf(units, "%*s ", cellWidth-1, shown)
		fmt.Fprintf(addrs, "%*s ", cellWidth-1, e.label)
		fmt.Fprintf(homes, "%*s ", cellWidth-1, "on "+e.node)
	}
	for _, line := range []*strings.Builder{units, addrs, homes} {
		printRow(w, "", line.String())
	}
	m.printRule(w)
}

func (m *matrix) printRule(w io.Writer) {
	fmt.Fprintf(w, "  %s", strings.Repeat("-", rowWidth))
	last := ""
	for _, e := range m.endpoints {
		if e.unit != last && last != "" {
			fmt.Fprint(w, "+")
		}
		last = e.unit
		fmt.Fprint(w, strings.Repeat("-", cellWidth))
	}
	fmt.Fprintln(w)
}
