package fleet

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gridproxy/cmd/table"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
)

// Report is all daemons and Grids.
type Report struct {
	Healthy  bool     `json:"healthy"` // no problem
	Keys     []string `json:"keys"`    // label keys of the units
	Nodes    []Node   `json:"nodes"`   // not healthy first, then by unit
	Grids    []Grid   `json:"grids"`
	Problems []string `json:"problems,omitempty"` // each with what to do; at most problemsMax, and how many more
}

// problemsMax is how many problems are listed. The tables have all of them.
const problemsMax = 20

// NewReport makes a Report. answers are those of nodes, in the same order. It sorts grids.
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
	if more := len(all) - problemsMax; more > 0 {
		all = append(all[:problemsMax], fmt.Sprintf("and %d more, which the tables show", more))
	}
	return all
}

// WriteTable writes the Report for people: a table of Nodes and one of Grids.
func (r Report) WriteTable(w io.Writer) error {
	nodes := table.Table{Columns: []string{"NODE", "UNIT", "DAEMON", "AGE", "READY", "REASON"}}
	for _, n := range r.Nodes {
		nodes.Add(n.Name, n.unit(r.Keys), string(n.Daemon.State), n.Daemon.age(), n.Ready, n.Daemon.Reason)
	}
	if err := nodes.Write(w); err != nil {
		return err
	}
	if len(r.Grids) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	grids := table.Table{Columns: []string{"GRID", "KEY", "READY", "OFFLINE", "LOST", "FAILED", "CONDITIONS"}}
	for _, g := range r.Grids {
		grids.Add(fmt.Sprintf("%s %s/%s", g.Kind, g.Namespace, g.Name), g.Key, g.ReadyRate,
			strconv.Itoa(int(g.Offline)), strconv.Itoa(int(g.Lost)), strconv.Itoa(int(g.Failed)), strings.Join(g.Conditions, ", "))
	}
	return grids.Write(w)
}

func (d Daemon) age() string {
	if d.AgeSeconds == nil {
		return ""
	}
	return time.Duration(*d.AgeSeconds * float64(time.Second)).Round(time.Second).String()
}
