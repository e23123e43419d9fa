package assign

import (
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"
	"gridproxy/controller/removal"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Manager is the field manager of everything that is written to Nodes, units and groups.
const Manager = "grid-controller-site"

// Observed is the observed state: everything that a decision rests on. It is read, never written;
// the order of its lists does not matter.
type Observed struct {
	Nodes  []Node
	Units  []*v1alpha2.NodeUnit
	Groups []*v1alpha2.NodeGroup
	// Default is the name of the unit of all Nodes, to be made if it is absent; "" if it is there
	// or not wanted.
	Default string
	// Uses are the Grids and Services that name label keys; nil: they could not be read, so that
	// nothing counts as unused.
	Uses *Uses
	// AllowPrivileged: setNode of a unit may set what SetNode.Privileged names.
	AllowPrivileged bool
	Now             time.Time
	// Grace is how long a unit that was found by a group stays without Nodes before it is removed;
	// negative: always.
	Grace time.Duration
	// Budget is how many lost units of a group are removed within an hour.
	Budget removal.Budget
	// MaxUnits is --max-units: how many units a group may find; 0: no limit.
	MaxUnits int
	// Flips are the new units that Nodes have had groups find, by the group; NewUnits is
	// --new-units-per-node.
	Flips    map[types.UID]flips.Log
	NewUnits int
	// Watched is since when this controller has watched the cluster itself.
	Watched time.Time
}

// Node is a Node, cut down to what decisions need.
type Node struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          map[string]string
	Annotations     map[string]string
	Taints          []corev1.Taint
	Ready           bool

	// Owned are the keys that Manager has applied; Foreign are those that others have set. A key
	// can be in both.
	Owned, Foreign Keys
	// Overclaims: managedFields say that Manager has applied more than labels and annotations.
	Overclaims bool
	// Legacy are the keys of Foreign that SuperEdge's site-manager has set: they are ours to change
	// and to remove. What is restricted is ours by its record alone.
	Legacy Keys
	// Stale: the Node is older than what was last written to it. Nothing is decided about it, and
	// nothing that it might still carry counts as gone.
	Stale bool
}

// Keys are keys of labels and annotations.
type Keys struct{ Labels, Annotations sets.Set[string] }

func newKeys() Keys { return Keys{Labels: sets.New[string](), Annotations: sets.New[string]()} }
