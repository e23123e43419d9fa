package explain

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/similar"

	"k8s.io/apimachinery/pkg/types"
)

// mostConflicts limits the notes about one Service.
const mostConflicts = 20

// AddConflicts adds a note for each address that the Service asks for and does not get. conflicts
// are those of all Services.
func (e *Explanation) AddConflicts(name types.NamespacedName, conflicts []rules.AddressConflict) {
	n := 0
	for _, c := range conflicts {
		if c.Service.NamespacedName != name {
			continue
		}
		if n++; n <= mostConflicts {
			e.Notes = append(e.Notes, c.String())
		}
	}
	if n > mostConflicts {
		e.Notes = append(e.Notes, fmt.Sprintf("%d more of its addresses have no effect", n-mostConflicts))
	}
}

// Evidence is which Service ports a kernel refuses, by the rules that are in it. The keys are those
// of topology.ServicePortName.String.
type Evidence struct {
	Quarantined     map[string]bool
	WithoutAffinity map[string]bool
}

// AddEvidence adds a note for each port of the Service whose rules the kernel of this machine
// refuses.
func (e *Explanation) AddEvidence(service types.NamespacedName, v topology.View, found Evidence) {
	for _, sp := range v.Ports {
		switch name := sp.Name.String(); {
		case sp.Name.NamespacedName != service:
		case found.Quarantined[name]:
			e.Notes = append(e.Notes, fmt.Sprintf("%s is quarantined here and refused at all its addresses: this machine's kernel does not take its rules, "+
				"which are tried again at each verification; the log of gridproxy and the Event Quarantined have the kernel's words", name))
		case found.WithoutAffinity[name]:
			e.Notes = append(e.Notes, name+" is served here without session affinity: this machine's kernel lacks xt_recent")
		}
	}
}

// UncarriedKeys returns a note for each of a Service's keys that no Node has, with the similar keys
// that Nodes have. A source without Nodes has none.
func UncarriedKeys(s topology.Snapshot, keys []string) (notes []string) {
	carried := topology.CarriedKeys(s.Nodes)
	for _, key := range keys {
		if slices.Contains(carried, key) || key == topology.AnyEndpoint || len(s.Nodes) == 0 {
			continue
		}
		note := "no Node has a value for " + key
		if names := similar.Names(key, carried); len(names) > 0 {
			note += fmt.Sprintf("; Nodes have the similar %s", strings.Join(names, ", "))
		}
		notes = append(notes, note)
	}
	return notes
}
