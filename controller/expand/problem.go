package expand

import (
	"fmt"

	v1 "gridproxy/controller/api/v1"
)

// Problem is why a unit does not have what its Grid asks for.
type Problem struct {
	Reason  string // a word for programs
	Message string // what is wrong, where, and what to do
}

// The reasons of rows and conditions.
const (
	ReasonEmpty           = "Empty"           // no gridUniqKey (SuperEdge's word)
	ReasonInvalidKey      = "InvalidKey"      // gridUniqKey is no label key
	ReasonMissingTemplate = "MissingTemplate" // the Grid has no template of the unit's name
	ReasonInvalidTemplate = "InvalidTemplate" // a template that no child can be made from
	ReasonNameCollision   = "NameCollision"   // a foreign object has the child's name
	ReasonRefused         = "Refused"         // by the API server, for good
	ReasonImmutableField  = "ImmutableField"  // refused because the child exists already
	ReasonStalled         = "Stalled"         // the rollout of the child is stuck
	ReasonTooManyUnits    = "TooManyUnits"    // more than the limit, so no child is created
	ReasonPaused          = "Paused"          // nothing is changed, because the user wants that
	ReasonContested       = "Contested"       // another client keeps changing the child
	ReasonUnitLost        = "UnitLost"        // no Node carries the value
	ReasonNodesNotReady   = "NodesNotReady"   // no Node of an offline unit is ready
	ReasonAllOffline      = "AllOffline"      // no unit has a ready Node; of a Grid
	ReasonNoUnits         = "NoUnits"         // no Node carries the key; of a Grid
)

// Immutable is the problem of a child whose change its API forbids, in the API server's words or in
// words about it.
func Immutable(words string) *Problem {
	return &Problem{ReasonImmutableField, fmt.Sprintf("the API server does not allow this change of an existing object: %s; revert the change, "+
		"delete the object, or allow its replacement with the Grid's annotation %s: Recreate", words, v1.AnnotationOnImmutableChange)}
}
