package expand

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"
	"gridproxy/topology/excerpt"
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
		"delete the object with --cascade=orphan, which leaves its Pods, or allow its replacement with the Grid's annotation %s: Recreate",
		words, v1.AnnotationOnImmutableChange)}
}

// Failure is one problem, and the units that have it.
type Failure struct {
	Reason  string
	Message string   // of the first unit
	Values  []string // names of the units, in the order of their rows
}

// Failures groups rows of a status by what is wrong: those with the same reason, and with messages
// that differ only in the names of the unit and of its child, are one Failure. The Failure of most
// units comes first.
func Failures(rows []v1.UnitStatus) []Failure {
	var all []*Failure
	known := map[string]*Failure{}
	for _, r := range rows {
		key := r.Reason + " " + Pattern(r)
		f := known[key]
		if f == nil {
			f = &Failure{Reason: r.Reason, Message: r.Message}
			known[key], all = f, append(all, f)
		}
		f.Values = append(f.Values, UnitName(r))
	}
	slices.SortStableFunc(all, func(a, b *Failure) int { return cmp.Compare(len(b.Values), len(a.Values)) })
	failures := make([]Failure, len(all))
	for i, f := range all {
		failures[i] = *f
	}
	return failures
}

// How much of a message is read to compare it, and how much of that is compared.
const (
	readBytes     = 1024
	comparedBytes = 512
)

// Pattern returns the beginning of a row's message without the names of the unit and of its child.
// A ReplicaSet has the child's name and a hash.
func Pattern(r v1.UnitStatus) string {
	text := r.Message[:min(len(r.Message), readBytes)]
	if r.Child != "" {
		parts := strings.Split(text, r.Child)
		for i := range parts[1:] {
			parts[i+1] = withoutHash(parts[i+1])
		}
		text = strings.Join(parts, "\x00")
	}
	if r.Value != "" {
		text = strings.ReplaceAll(text, "="+r.Value, "=\x00")
	}
	return text[:min(len(text), comparedBytes)]
}

// withoutHash removes "-" and the digits and lower-case letters behind it from the beginning.
func withoutHash(text string) string {
	if rest, found := strings.CutPrefix(text, "-"); found {
		return strings.TrimLeft(rest, "0123456789abcdefghijklmnopqrstuvwxyz")
	}
	return text
}

// Units names the first units, and says how many more there are.
func (f Failure) Units() string { return listedUpTo(f.Values, failureUnitsMax) }

// explained returns what is wrong, for a condition: the first failures, and how many others
// there are.
func explained(failures []Failure) string {
	var text []string
	for _, f := range failures[:min(len(failures), failuresMax)] {
		text = append(text, fmt.Sprintf("%s: %s", f.Units(), excerpt.Fit(f.Message, failureBytesMax)))
	}
	if more := len(failures) - failuresMax; more > 0 {
		text = append(text, fmt.Sprintf("and %d other problems", more))
	}
	return strings.Join(text, "; ")
}
