package netns

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Member is a node or an endpoint, and the unit it is in.
type Member struct {
	Node, Unit string
	Label      string // how an endpoint is shown; a node is shown by its name
	Pod        string
}

// Matrix counts who answered whom.
type Matrix struct {
	nodes     []Member // rows: who asks
	endpoints []Member // columns: who may answer
	counts    map[string]map[string]int
	failed    map[string][]error
}

// NewMatrix is a Matrix of nodes that ask, and of endpoints.
func NewMatrix(nodes, endpoints []Member) *Matrix {
	byUnit := func(a, b Member) int { return strings.Compare(a.Unit, b.Unit) }
	nodes, endpoints = slices.Clone(nodes), slices.Clone(endpoints)
	slices.SortStableFunc(nodes, byUnit)
	slices.SortStableFunc(endpoints, byUnit)
	m := &Matrix{nodes: nodes, endpoints: endpoints, counts: map[string]map[string]int{}, failed: map[string][]error{}}
	for _, n := range nodes {
		m.counts[n.Node] = map[string]int{}
	}
	return m
}

// Add notes the Pods that a node was answered by, and what was not answered.
func (m *Matrix) Add(node string, pods []string, failed []error) {
	for _, pod := range pods {
		m.counts[node][pod]++
	}
	m.failed[node] = append(m.failed[node], failed...)
}

// Failed is what was not answered to a node.
func (m *Matrix) Failed(node string) []error { return m.failed[node] }

// Verdict is what a Matrix proves.
type Verdict struct{ Asked, Left, Failed int }

// Good says that closure held.
func (v Verdict) Good() bool { return v.Left == 0 && v.Failed == 0 }

// Verdict counts the requests that were answered from another unit, an endpoint that is
// not in the matrix counting as one, and those that were not answered.
func (m *Matrix) Verdict() Verdict {
	var v Verdict
	unit := map[string]string{}
	for _, e := range m.endpoints {
		unit[e.Pod] = e.Unit
	}
	for _, n := range m.nodes {
		for pod, count := range m.counts[n.Node] {
			v.Asked += count
			if unit[pod] != n.Unit {
				v.Left += count
			}
		}
		v.Asked += len(m.failed[n.Node])
		v.Failed += len(m.failed[n.Node])
	}
	return v
}

const (
	rowWidth  = 22
	cellWidth = 17
)

// Print writes the matrix with a rule between the units, rows and columns alike.
func (m *Matrix) Print(w io.Writer) {
	m.printHeader(w)
	unit := ""
	for _, n := range m.nodes {
		shown := ""
		if n.Unit != unit {
			if unit != "" {
				m.printRule(w)
			}
			shown, unit = n.Unit, n.Unit
		}
		line := &strings.Builder{}
		last := ""
		for _, e := range m.endpoints {
			if e.Unit != last && last != "" {
				line.WriteString("|")
			}
			last = e.Unit
			cell := "."
			if count := m.counts[n.Node][e.Pod]; count > 0 {
				cell = fmt.Sprint(count)
			}
			fmt.Fprintf(line, "%*s ", cellWidth-1, cell)
		}
		if failed := len(m.failed[n.Node]); failed > 0 {
			fmt.Fprintf(line, " %d failed", failed)
		}
		printRow(w, fmt.Sprintf("%-12s%s", shown, n.Node), line.String())
	}
}

func printRow(w io.Writer, head, cells string) {
	fmt.Fprintf(w, "  %-*s%s\n", rowWidth, head, strings.TrimRight(cells, " "))
}

func (m *Matrix) printHeader(w io.Writer) {
	units, addrs, homes := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	last := ""
	for _, e := range m.endpoints {
		shown := ""
		if e.Unit != last {
			for _, line := range []*strings.Builder{units, addrs, homes} {
				if last != "" {
					line.WriteString("|")
				}
			}
			shown, last = e.Unit, e.Unit
		}
		fmt.Fprintf(units, "%*s ", cellWidth-1, shown)
		fmt.Fprintf(addrs, "%*s ", cellWidth-1, e.Label)
		fmt.Fprintf(homes, "%*s ", cellWidth-1, "on "+e.Node)
	}
	for _, line := range []*strings.Builder{units, addrs, homes} {
		printRow(w, "", line.String())
	}
	m.printRule(w)
}

func (m *Matrix) printRule(w io.Writer) {
	fmt.Fprintf(w, "  %s", strings.Repeat("-", rowWidth))
	last := ""
	for _, e := range m.endpoints {
		if e.Unit != last && last != "" {
			fmt.Fprint(w, "+")
		}
		last = e.Unit
		fmt.Fprint(w, strings.Repeat("-", cellWidth))
	}
	fmt.Fprintln(w)
}
