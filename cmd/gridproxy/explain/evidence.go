package explain

import (
	"fmt"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Evidence is what the rules in a kernel say of Service ports that it does not take as they should
// be. The keys are topology.ServicePortName.String.
type Evidence struct {
	Quarantined     map[string]bool
	WithoutAffinity map[string]bool
}

// AddEvidence says which ports of the Service the kernel of this machine refuses.
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
