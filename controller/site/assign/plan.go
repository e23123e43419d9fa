package assign

import (
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"
	"gridproxy/controller/retry"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Plan is what to write. Its steps do not depend on each other.
type Plan struct {
	Nodes  []NodeStep
	Create []*v1alpha2.NodeUnit
	Units  []Patch
	Groups []Patch
	Delete []Delete
	// Recheck is when to decide again though nothing has changed; 0: not needed.
	Recheck time.Duration
	// Flips is the next Observed.Flips, and Refused what is to be reported for it.
	Flips   map[types.UID]flips.Log
	Refused []Refused
	// Foreign are the Nodes whose annotation calls taints ours that no unit has set.
	Foreign []Foreign
	// Summary describes all units and groups that stay, after the Plan is executed.
	Summary Summary
}

// Summary is what metrics show of units and groups.
type Summary struct {
	Units []UnitNodes
	// Wrong are the conditions of all units and groups, which are there only while they are True.
	Wrong []Wrong
	// Kept are the labels that Nodes keep because Grids or Services name their keys, by key.
	Kept []KeptLabels
}

// KeptLabels is on how many Nodes labels of one key are kept.
type KeptLabels struct {
	Key   string
	Nodes int
}

// UnitNodes is how many Nodes a unit has.
type UnitNodes struct {
	Unit            string
	Ready, NotReady int
}

// Wrong is a condition of a NodeUnit or NodeGroup.
type Wrong struct{ Kind, Name, Condition string }

// NodeStep is what to write to one Node. There is something.
type NodeStep struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Overclaims: the Node says that we own more than labels and annotations. That entry of its
	// managedFields is removed, and nothing else is done: an apply would remove what it does not name.
	Overclaims bool
	// Apply are all labels and annotations that the Node has of units, for one forced server-side
	// apply with metadata.uid and the version that was read; nil: it has them.
	Apply *Metadata
	// Kept are the keys of labels that the Node keeps from now on because Grids or Services name
	// them, sorted.
	Kept []string
	// Drop are labels and annotations that others own too, to be removed by a patch after the
	// apply.
	Drop Metadata
	// Restricted are records to write, and restricted labels to remove (nil) with their records. Taints
	// replace the Node's list, which is atomic; nil: they are right. Both are one patch before the
	// apply, guarded by ResourceVersion.
	Restricted map[string]*string
	Taints     *[]corev1.Taint
	// TaintRecord is AnnotationTaints, to be written last, for the release before; nil: it is right. It
	// may fail: a kubelet can fill the annotations of its Node.
	TaintRecord *string
	// Converts: something gets its record that a release without records has set.
	Converts bool
}

// Refused is the Event on a NodeGroup about a Node that brings more new units than it may.
type Refused struct {
	Group string
	UID   types.UID
	Note  string
}

// recheckAt requests that the decision is repeated at a time; zero means never.
func (p *Plan) recheckAt(at, now time.Time) {
	if !at.IsZero() {
		p.Recheck = retry.Earlier(p.Recheck, max(at.Sub(now), time.Nanosecond))
	}
}

// Foreign are the taints of a Node, as key:effect, that its annotation calls ours without reason.
type Foreign struct {
	Node   string
	UID    types.UID
	Taints []string
}

// Metadata are labels and annotations.
type Metadata struct{ Labels, Annotations map[string]string }

// Patch is what to write to a NodeUnit or NodeGroup. There is something.
type Patch struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Main is a JSON merge patch of the object, to be guarded by UID and ResourceVersion; nil:
	// none.
	Main map[string]any
	// Status is a JSON merge patch of its status, to be guarded by UID.
	Status map[string]any
	// News is what that status says for the first time and deserves a Warning Event; with the
	// removal of the finalizer, what stays behind.
	News []News
}

// News is the reason and the note of an Event.
type News struct{ Reason, Note string }

// Delete removes a unit that a group has found and that has lost its Nodes: with both
// preconditions, after one live LIST of Nodes with these labels was empty.
type Delete struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          map[string]string
}
