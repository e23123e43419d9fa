package explain

import (
	"fmt"
	"io"
	"strings"

	"gridproxy/cmd/table"
	"gridproxy/topology"
)

// WriteTable writes the Explanation for people.
func (e Explanation) WriteTable(w io.Writer) error {
	var t table.Table
	t.Add("Service:", e.Service)
	t.Add("Node:", e.nodeLine())
	if e.State != "" {
		t.Add("State:", e.State)
	}
	t.Add("Closure:", e.closureLine())
	if e.Malformed != "" {
		t.Add("Malformed:", e.Malformed)
	}
	for _, p := range e.Ports {
		if p.KeyInUse != "" {
			t.Add("Key in use:", fmt.Sprintf("%s for port %s", p.KeyInUse, p))
		}
	}
	e.addServers(&t)
	for _, n := range e.Notes {
		t.Add("Note:", n)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	t = table.Table{Columns: []string{"PORT", "ENDPOINT", "NODE", "UNIT", "HERE", "REASON"}}
	for _, p := range e.Ports {
		for _, ep := range p.Endpoints {
			here := "dropped"
			if ep.Kept {
				here = "kept"
			}
			t.Add(p.String(), ep.Address, ep.Node, ep.Unit, here, ep.Reason)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return t.Write(w)
}

func (e Explanation) addServers(t *table.Table) {
	for _, s := range e.Servers {
		line := fmt.Sprintf("%s, scheduler %s, endpoints: %d", s.Address, s.Scheduler, len(s.Endpoints))
		if s.Affinity != "" {
			line += ", affinity " + s.Affinity
		}
		if len(s.Endpoints) == 0 {
			line = s.Address + ", refuses"
		}
		t.Add("Virtual server:", line)
	}
	for _, c := range e.Chains {
		t.Add("In chains:", fmt.Sprintf("%s, packets: %s", c.Address, c.Packets))
	}
}

func (e Explanation) nodeLine() string {
	switch {
	case !e.NodeKnown:
		return e.Node + " (unknown to the source)"
	case e.Unit != "":
		return e.Node + " (" + e.Unit + ")"
	case len(e.Keys) > 0:
		return e.Node + " (in no unit of this Service)"
	default:
		return e.Node
	}
}

func (e Explanation) closureLine() string {
	keys := "keys " + strings.Join(e.Keys, ", ") + ", policy " + e.Policy
	switch {
	case e.OwnOnly && len(e.Keys) > 0:
		return keys + "; only this node's own endpoints, because it is in no unit"
	case e.OwnOnly:
		return topology.MalformedEffect(e.Keys)
	case e.Malformed != "":
		return topology.MalformedEffect(e.Keys) + ", policy " + e.Policy
	case e.Closed:
		return keys
	default:
		return "none: an ordinary Service"
	}
}
