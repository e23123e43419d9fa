package plan

import (
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"
)

// Ref names a Grid of the hub.
type Ref struct {
	Kind, Namespace, Name string
	UID                   string
}

// String returns the kind, and namespace/name.
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Grid is a Grid of the hub. The Content of one that has neither the label superedge.io/fed: "yes"
// nor the finalizer is not read.
type Grid struct {
	Ref
	Deleting  bool // it has a deletionTimestamp, DeletedAt
	DeletedAt time.Time
	Finalizer bool // it has v1alpha1.Finalizer
	Content   Content
}

// Report is a GridReport, reduced.
type Report struct {
	Object string // its name
	// From, Revision, Kind, Namespace, Name, Observed and Problem are those of the
	// GridReportSpec.
	From, Revision        string
	Kind, Namespace, Name string
	Observed              bool
	Problem               *v1alpha1.Problem
	// Units are the values of the units that it has rows for.
	Units []string
	// Unread says why the report cannot be read: it is too large, or of a later format.
	Unread string
}

// Cluster is what is observed of a cluster.
type Cluster struct {
	// Object is its FleetCluster with the last status; it is not changed.
	Object *v1alpha1.FleetCluster
	// Namespace is whether fleet-<cluster> exists.
	Namespace bool
	// Bundles are the revisions of its bundles, by their names: see Bundle.Revision.
	Bundles map[string]string
	// Sent is when this process has last written its bundles, by their names; what is older than
	// BundleDelayMax may be left out.
	Sent map[string]time.Time
	// Told is when this process has last written the status of Object; zero: long ago.
	Told time.Time
	// Reports are those in its namespace.
	Reports []Report
	// Heartbeat is the last of its Lease; nil: it has none that can be read.
	Heartbeat *Heartbeat
	// Detached: what applies Grids there has dropped them, so that the bundles can vanish. It
	// is always so of a cluster with pull: true, which works on its own copies.
	Detached bool
}

// Heartbeat is a Lease of a member.
type Heartbeat struct {
	v1alpha1.Heartbeat
	Renewal string // the renewTime, as it is written; "": it says only why it has no renewTime
	// Heard is when this process has seen this renewTime first, by its own clock; the member's
	// clock plays no part.
	Heard time.Time
}

// Observed is everything that a decision rests on. All lists have synced.
type Observed struct {
	Hub      string // the UID of the hub's Namespace kube-system
	Grids    []Grid
	Clusters []Cluster
	Now      time.Time
	// PodSecurity are the labels of archive.PodSecurity of the hub's Namespaces, by name.
	PodSecurity map[string]map[string]string
	// Watched is since when this process has watched the hub itself.
	Watched time.Time
	Grace   time.Duration  // --unit-removal-grace; negative: never
	Budget  removal.Budget // --unit-removal-budget
}
