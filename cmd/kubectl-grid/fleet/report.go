package fleet

import (
	"fmt"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
)

// Report is all daemons and Grids.
type Report struct {
	Healthy  bool     `json:"healthy"` // no problem
	Keys     []string `json:"keys"`    // label keys of the units
	Nodes    []Node   `json:"nodes"`   // not healthy first, then by unit
	Grids    []Grid   `json:"grids"`
	Problems []string `json:"problems,omitempty"` // each with what to do; at most maxProblems, and how many more
}

// maxProblems is how many problems are listed. The tables have all of them.
const maxProblems = 20

// NewReport makes a Report. There is an answer for each Node, in the same order.
func NewReport(keys []string, nodes []*corev1.Node, answers []Answer, grids []Grid) Report {
	r := Report{Keys: keys, Nodes: make([]Node, len(nodes)), Grids: grids}
	for i, node := range nodes {
		r.Nodes[i] = newNode(node, keys, answers[i])
	}
	sortNodes(r.Nodes, keys)
	sortGrids(r.Grids)
	r.Problems = r.problems()
	r.Healthy = len(r.Problems) == 0
	return r
}

func (r Report) problems() []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, excerpt.Message(fmt.Sprintf(format, args...))) }
	for _, n := range r.Nodes {
		if n.Daemon.State != Healthy {
			add("Node %s: the daemon is %s: %s", n.Name, n.Daemon.State, n.Daemon.Reason)
		}
	}
	for _, g := range r.Grids {
		if g.problem != "" {
			add("%s %s/%s: %s", g.Kind, g.Namespace, g.Name, g.problem)
		}
	}
	if more := len(all) - maxProblems; more > 0 {
		all = append(all[:maxProblems], fmt.Sprintf("and %d more, which the tables show", more))
	}
	return all
}
