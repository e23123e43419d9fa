package plan

import (
	"time"

	"gridproxy/controller/api/v1alpha1"
)

// Bundle is a GridBundle to write.
type Bundle struct {
	// Revision is over the content. It is kept in the annotation superedge.io/from-revision of
	// the GridBundle, so that an equal one is not packed again.
	Revision string
	Grids    int32
	// Objects are JSON, sorted: a Namespace, if there is one, and Grids.
	Objects [][]byte
}

// ClusterPlan is what to do for one cluster.
type ClusterPlan struct {
	Name string
	// Write are the bundles that differ from the existing ones, by their names, which are those
	// of the Grids' namespaces.
	Write map[string]Bundle
	// Remove are the names of bundles that are to be deleted.
	Remove []string
	// Status is the status of its FleetCluster. It is the same value as before if nothing
	// changed.
	Status v1alpha1.FleetClusterStatus
	// AddFinalizer and RemoveFinalizer are about the FleetCluster.
	AddFinalizer, RemoveFinalizer bool
}

// Plan is what to do, in this order: AddFinalizer, bundles, statuses, and only then
// RemoveFinalizer. What failed is left out, and with it what follows for the same cluster. The next
// decision must rest on a state that has everything that was written.
type Plan struct {
	// AddFinalizer and RemoveFinalizer are about Grids.
	AddFinalizer, RemoveFinalizer []Ref
	Clusters                      []ClusterPlan
	// Faults are what is wrong with single Grids, such as a selector that cannot be read, by
	// UID.
	Faults map[string]v1alpha1.Problem
	// Recheck is after how long the time alone changes the plan; 0: never.
	Recheck time.Duration
}
