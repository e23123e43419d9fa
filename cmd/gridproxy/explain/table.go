package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gridproxy/topology"
)

// WriteTable writes the Explanation for people.
func (e Explanation) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "Service:\t%s\n", e.Service)
	fmt.Fprintf(t, "Node:\t%s\n", e.nodeLine())
	fmt.Fprintf(t, "Closure:\t%s\n", e.closureLine())
	if e.Malformed != "" {
		fmt.Fprintf(t, "Malformed:\t%s\n", e.Malformed)
	}
	for _, p := range e.Ports {
		if p.KeyInUse != "" {
			fmt.Fprintf(t, "Key in use:\t%s for port %s\n", p.KeyInUse, p)
		}
	}
	e.writeServers(t)
	for _, n := range e.Notes {
		fmt.Fprintf(t, "Note:\t%s\n", n)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if e.endpoints() == 0 {
		return nil
	}
	fmt.Fprintf(t, "\nPORT\tENDPOINT\tNODE\tUNIT\tHERE\tREASON\n")
	for _, p := range e.Ports {
		for _, ep := range p.Endpoints {
			here := "dropped"
			if ep.Kept {
				here = "kept"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", p, ep.Address, cmp.Or(ep.Node, "-"), cmp.Or(ep.Unit, "-"), here, cmp.Or(ep.Reason, "-"))
		}
	}
	return t.Flush()
}

func (e Explanation) writeServers(w io.Writer) {
	for _, s := range e.Servers {
		line := fmt.Sprintf("%s, scheduler %s, endpoints: %d", s.Address, s.Scheduler, len(s.Endpoints))
		if s.Affinity != "" {
			line += ", affinity " + s.Affinity
		}
		if len(s.Endpoints) == 0 {
			line = s.Address + ", refuses"
		}
		fmt.Fprintf(w, "Virtual server:\t%s\n", line)
	}
	for _, c := range e.Chains {
		fmt.Fprintf(w, "In chains:\t%s, packets: %s\n", c.Address, c.Packets)
	}
}

func (e Explanation) endpoints() int {
	n := 0
	for _, p := range e.Ports {
		n += len(p.Endpoints)
	}
	return n
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
