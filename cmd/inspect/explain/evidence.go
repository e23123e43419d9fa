package explain

import (
	"fmt"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

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
