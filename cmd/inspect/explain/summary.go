package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gridproxy/cmd/table"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Summary is how one node serves one Service, in one line. Endpoints count once for each port.
type Summary struct {
	Subject
	Endpoints  int      `json:"endpoints"` // all of them
	Kept       int      `json:"kept"`      // those that the node uses
	Answer     Answer   `json:"answer"`
	AnsweredBy []string `json:"answeredBy"` // the nodes of the endpoints to which the cluster IP leads
	Notes      []string `json:"notes,omitempty"`
}

// Answer is what a client gets that connects to the cluster IP of a Service.
type Answer string

// The answers.
const (
	Answered Answer = "answered"
	Refused  Answer = "refused" // no endpoint is usable: a reject
	Dropped  Answer = "dropped" // internalTrafficPolicy is Local, and no endpoint is on the node
	ByPort   Answer = "differs by port"
	NoRules  Answer = "no rules" // the Service is headless, for example
)

// ByClusterIP returns the endpoints to which the cluster IP of a Service port leads, and what a
// client gets. Both address families count together.
func ByClusterIP(sp *topology.ServicePort) ([]topology.Endpoint, Answer) {
	reached := sp.Cluster
	if InternalLocal(sp.Service) {
		reached = sp.Local
	}
	switch {
	case len(reached) > 0:
		return reached, Answered
	case len(sp.Cluster) > 0:
		return nil, Dropped
	default:
		return nil, Refused
	}
}

// Summaries returns one Summary for each Service of the Snapshot, sorted as the Services are.
func Summaries(s topology.Snapshot, c topology.Config) []Summary {
	all := make([]Summary, 0, len(s.Services))
	for one := range EachService(s) {
		all = append(all, summarize(one, c))
	}
	return all
}

// OnNodes returns the Summaries of one Service on each Node of the Snapshot, sorted by Node.
func OnNodes(s topology.Snapshot, c topology.Config, name types.NamespacedName) ([]Summary, error) {
	svc, err := Find(s, name)
	if err != nil {
		return nil, err
	}
	one := only(s, svc, SlicesOf(s)[name])
	all := make([]Summary, 0, len(s.Nodes))
	for _, node := range slices.Sorted(maps.Keys(s.Nodes)) {
		one.Node, one.Self = node, nil
		all = append(all, summarize(one, c))
	}
	return all, nil
}

// summarize makes the Summary of the only Service of a Snapshot.
func summarize(one topology.Snapshot, c topology.Config) Summary {
	view := topology.Resolve(one, c)
	e := explained(one, c, view, one.Services[0])
	sum := Summary{Subject: e.Subject, Notes: e.Notes, Answer: NoRules, AnsweredBy: []string{}}
	for _, p := range e.Ports {
		sum.Endpoints += len(p.Endpoints)
		for _, ep := range p.Endpoints {
			if ep.Kept {
				sum.Kept++
			}
		}
	}
	nodes := map[string]bool{}
	for i, sp := range view.Ports {
		reached, answer := ByClusterIP(sp)
		if i > 0 && answer != sum.Answer {
			answer = ByPort
		}
		sum.Answer = answer
		for _, ep := range reached {
			nodes[ep.Node] = true
		}
	}
	sum.AnsweredBy = append(sum.AnsweredBy, slices.Sorted(maps.Keys(nodes))...)
	return sum
}

// ClosedBy returns what closes a Service that has rules, for a table. If nothing does, it
// returns "open".
func ClosedBy(c topology.Closure) string {
	switch {
	case !c.Closed():
		return "open"
	case len(c.Keys) == 0:
		return "own node"
	case c.Policy == topology.PolicyOrdered:
		return table.List(c.Keys) + " (Ordered)"
	default:
		return table.List(c.Keys)
	}
}

func (s Summary) closedBy() string {
	if s.Answer == NoRules {
		return ""
	}
	return ClosedBy(topology.Closure{Keys: s.Keys, Policy: topology.Policy(s.Policy), OwnOnly: s.OwnOnly})
}

// note returns what a table says about a Service besides its endpoints.
func (s Summary) note() string {
	var notes []string
	switch s.Answer {
	case NoRules:
		notes = s.Notes
	case Dropped:
		notes = append(notes, "dropped: "+reasonInternalLocal)
	case Refused, ByPort:
		notes = append(notes, string(s.Answer))
	}
	if s.Malformed != "" {
		notes = append(notes, "malformed annotation")
	} else if s.OwnOnly {
		notes = append(notes, "in no unit: own endpoints only")
	}
	return strings.Join(notes, "; ")
}

// cells returns the last cells of a row: endpoints, Nodes and note.
func (s Summary) cells() []string {
	nodes := slices.Clone(s.AnsweredBy)
	for i, node := range nodes {
		if node == "" {
			nodes[i] = "(no nodeName)"
		}
	}
	return []string{fmt.Sprintf("%d of %d", s.Kept, s.Endpoints), table.List(nodes), s.note()}
}

// WriteServices writes the Summaries of one node for people.
func WriteServices(w io.Writer, all []Summary) error {
	t := table.Table{Columns: []string{"SERVICE", "CLOSED BY", "ENDPOINTS", "ANSWERED BY", "NOTE"}}
	for _, s := range all {
		t.Add(append([]string{s.Service, s.closedBy()}, s.cells()...)...)
	}
	return t.Write(w)
}

// WriteNodes writes the Summaries of one Service for people.
func WriteNodes(w io.Writer, all []Summary) error {
	t := table.Table{Columns: []string{"NODE", "UNIT", "ENDPOINTS", "ANSWERED BY", "NOTE"}}
	for _, s := range all {
		t.Add(append([]string{s.Node, s.Unit}, s.cells()...)...)
	}
	return t.Write(w)
}
