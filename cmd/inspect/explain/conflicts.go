package explain

import (
	"fmt"

	"gridproxy/rules"

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
