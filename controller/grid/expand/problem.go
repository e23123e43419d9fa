package expand

import (
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"
)

// Problem is why a unit does not have what its Grid asks for.
type Problem struct {
	Reason  string // a word for programs
	Message string // what is wrong, where, and what to do
}

// problemOf returns a mistake as a unit's or Grid's problem; nil for nil.
func problemOf(m *gridspec.Mistake) *Problem {
	if m == nil {
		return nil
	}
	return &Problem{m.Reason, m.Wrong + ": " + m.Remedy}
}

// The reasons of rows and conditions.
const (
	ReasonEmpty           = gridspec.ReasonEmpty
	ReasonInvalidKey      = gridspec.ReasonInvalidKey
	ReasonMissingTemplate = gridspec.ReasonMissingTemplate
	ReasonInvalidTemplate = gridspec.ReasonInvalidTemplate
	ReasonNameCollision   = "NameCollision"  // a foreign object has the child's name
	ReasonRefused         = "Refused"        // by the API server
	ReasonImmutableField  = "ImmutableField" // refused because the child exists already
	ReasonStalled         = "Stalled"        // the rollout of the child is stuck
	ReasonTooManyUnits    = "TooManyUnits"   // more than the limit, so no child is created
	ReasonPaused          = "Paused"         // nothing is changed, because the user wants that
	ReasonChildPaused     = "ChildPaused"    // a user has paused the rollout of the child
	ReasonContested       = "Contested"      // another client keeps changing the child
	ReasonUnitLost        = "UnitLost"       // no Node carries the value
	ReasonNodesNotReady   = "NodesNotReady"  // no Node of an offline unit is ready
	ReasonAllOffline      = "AllOffline"     // no unit has a ready Node; of a Grid
	ReasonClusterSilent   = "ClusterSilent"  // the unit's cluster has not reported for a time
	ReasonUnknownPhase    = "UnknownPhase"   // the unit's cluster reports an unknown phase
	ReasonOther           = "Other"          // the unit's cluster reports another reason
	ReasonNoUnits         = gridspec.ReasonNoUnits
)

// Immutable returns the problem of a child whose change its API forbids. words are the API
// server's, or describe what it would answer.
func Immutable(words string) *Problem {
	return &Problem{ReasonImmutableField, fmt.Sprintf("the API server does not allow this change of an existing object: %s; revert the change, "+
		"delete the object with --cascade=orphan, which leaves its Pods, or allow its replacement with the Grid's annotation %s: Recreate", words, v1.AnnotationOnImmutableChange)}
}
