package delivery

import (
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
)

// Key names a Grid in the cluster.
type Key struct{ Kind, Namespace, Name string }

// Object is an object of a bundle.
type Object struct {
	Key
	// From and Revision are its annotations.
	From, Revision string
	JSON           []byte
}

// Bundle is a bundle of the hub, or what of it is applied already.
type Bundle struct {
	Objects []Object
	// Unread says why it cannot be unpacked.
	Unread string
	// Removing, of a copy: its removal has begun. Stopped: and it was stopped.
	Removing, Stopped bool
}

// Live is a Grid in the cluster.
type Live struct {
	// From and Revision are its annotations.
	From, Revision string
	// Unpruned: a user has given it an annotation or label by which Flux leaves it alone.
	Unpruned bool
	// Observed: the cluster's controller has seen this generation.
	Observed bool
	Status   v1.WorkloadGridStatus
	States   map[string]v1.State
	// JSON is the Grid as a hub would have sent it, if it is from a hub and not being deleted.
	JSON func() []byte
}

// Applied is what Flux says about the bundle of one namespace.
type Applied struct {
	// Failure is the message of its condition Ready while that is False.
	Failure string
	// Busy: it has not done yet what it was given, and does not fail.
	Busy bool
	// Idle: it has not reacted to the last change for longer than an engine needs.
	Idle bool
	// Deleting: what it was given is being deleted.
	Deleting bool
	// Suspended: it leaves everything as it is.
	Suspended bool
	// Known are the Grids that it has applied, and prunes when they leave; nil: it prunes nothing.
	Known map[Key]bool
}

// Observed is everything that a decision rests on.
type Observed struct {
	Hub string // the UID of the hub's Namespace kube-system
	// ClusterUID is that of the cluster's own.
	ClusterUID string
	// Fleet is the FleetCluster of this cluster as the hub has it; nil: the hub has none, or cannot
	// be read.
	Fleet *v1alpha1.FleetCluster
	// Bundles are the hub's, by the namespace of the Grids there; nil: they cannot be read.
	Bundles map[string]Bundle
	// Copies are what is applied, by the same names.
	Copies map[string]Bundle
	// Grids are those of the cluster.
	Grids map[Key]Live
	// Missing are the namespaces and kinds that the cluster is known not to have.
	Missing struct {
		Namespaces map[string]bool
		Kinds      map[string]bool
	}
	// Applied is by the same names as Copies.
	Applied map[string]Applied
	// Accept are the namespaces of the cluster into which Grids of a hub may be put; none: all.
	Accept []string
	// EngineMissing says why Flux cannot apply anything.
	EngineMissing string
}
