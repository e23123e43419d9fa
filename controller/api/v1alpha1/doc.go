// Package v1alpha1 holds the types of superedge.io/v1alpha1, by which Grids are distributed to
// several clusters. A FleetCluster is one cluster, on the hub. A GridBundle is what is to be in a
// cluster. A GridReport is what a cluster says about one Grid that the hub has sent to it.
//
// Where to look: fleetcluster.go, gridbundle.go and gridreport.go, the types; constants.go, labels,
// annotations and names of conditions. What is in a bundle, and what follows from a report, is
// decided in controller/federation/hub/plan.
//
// Invariant: everything that a member can write, a GridReport and its Lease, has a bound, and says
// something about this member alone.
//
// Pure.
//
// +groupName=superedge.io
// +kubebuilder:object:generate=true
package v1alpha1
