package expand

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/flips"
	"gridproxy/controller/removal"
)

// Live is an object of the child's kind as it exists in the API server, reduced to what decisions
// need.
type Live struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Deleting        bool
	// Created is metadata.creationTimestamp.
	Created time.Time
	// Labels and Annotations are those of SuperEdge's domain, without the label grid-fingerprint.
	Labels, Annotations Pairs
	// Fingerprint is that label: which desired child was last applied.
	Fingerprint string
	// Owner is the UID of its controller, "" without one.
	Owner types.UID
	// OwnerName is that controller as "Kind/name", for messages.
	OwnerName string
	// NodeSelector is its Pods' nodeSelector. Together with the annotation grid-value it identifies
	// the unit.
	NodeSelector Pairs
	// Selects is its spec.selector.matchLabels.
	Selects Pairs
	// Volumes: it is a StatefulSet with volumeClaimTemplates.
	Volumes bool
	// Owned is the fieldsV1 of our field manager's Apply; "" if we own nothing.
	Owned string
	// Predecessors are the field managers from before this controller.
	Predecessors []Predecessor
	// TemplateHash is SuperEdge's label in its Pod template, "" without it.
	TemplateHash string
	// Replicas is spec.replicas; nil for a Service.
	Replicas *int32

	// What its own controller says of it; zero for a Service.
	Generation, ObservedGeneration                            int64
	StatusReplicas, ReadyReplicas, UpdatedReplicas, Available int32
	// Stalled is the message of its own controller if the rollout is stuck: of a Deployment's
	// condition Progressing with reason ProgressDeadlineExceeded, or of ReplicaFailure. "" if it is
	// not stuck.
	Stalled string
	// Paused is a Deployment's spec.paused.
	Paused bool
	// Completed reports whether a rollout of the Deployment was complete once, as its own conditions
	// say.
	Completed bool
	// StalledAt is when a Deployment's progress deadline was exceeded; zero for anything else.
	StalledAt time.Time
	// State is its status as status.states shows it, JSON; of a Service, status.loadBalancer.
	State []byte
	// ClusterIP is a Service's spec.clusterIP.
	ClusterIP string
}

// Pod is a Pod of a child that runs on a Node outside the child's unit.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Node            string
	Child           string
	// Since when it is known there; zero while the grace does not run: see Observed.WithGraces.
	Since time.Time
}

// Observed is the observed state: everything that a decision about one Grid rests on.
type Observed struct {
	Grid Grid
	// Status is the Grid's last written status: times of transitions come from it.
	Status v1.WorkloadGridStatus
	// Reported has the rows of the last status that this process has made, written or not. nil: it
	// has made none. While no process has watched a child, it may have had ready Pods.
	Reported *v1.WorkloadGridStatus
	// Units holds, for each non-empty value of the Grid's key, the Nodes that carry it. Nodes have
	// synced.
	Units map[string][]string
	// ReadyNodes is how many of these Nodes are ready, by value. nil: that is not known, and no
	// unit counts as offline.
	ReadyNodes map[string]int
	// ReadySince is when the first of these Nodes that are ready has become ready, by value.
	ReadySince map[string]time.Time
	// NodeKeys are the label keys that Nodes carry with a value, sorted, where there are neither Units
	// nor Children.
	NodeKeys []string
	// Others is the same as Units for each of OtherKeys.
	Others map[string]map[string][]string
	// Children are the objects in the Grid's namespace that are controlled by the Grid or, without
	// any controller, carry its selector label.
	Children []Live
	// Occupants are the objects that live reads found at wanted names and that are not in Children.
	// A name that was read and is free maps to nil. A wanted name in neither was not read yet:
	// Decide asks for it in Plan.Look.
	Occupants map[string]*Live
	Applied   map[string]Applied // by the child's name
	Repairs   map[string]Repairs // by the child's name
	// Kept are, by name, the replicas of children that were replaced and are not created again yet;
	// nil: the template has its own. See Replace.
	Kept      map[string]*int32
	Misplaced []Pod
	// Fleet are the clusters that the Grid is distributed to. nil: it is not distributed.
	Fleet []Member
	// FederationOff reports whether the Grid asks to be distributed and this controller does not
	// distribute Grids.
	FederationOff bool
	// Pruned are the templates that a Prune has removed since Status was written.
	Pruned []string
	// Memo is the same one for all observed states of a Grid, or nil.
	Memo *Memo
	// Decided: Decide was asked last about exactly this observed state, and nothing was done since.
	// Then Report need not assess it again.
	Decided bool
	Now     time.Time
	// Watched is since when this controller has watched the cluster itself.
	Watched time.Time
	Grace   time.Duration  // --unit-removal-grace; negative: never
	Budget  removal.Budget // --unit-removal-budget
	// MaxUnits is --max-units: above it no child is created; 0: no limit.
	MaxUnits int
	// Flips are the new values that Nodes have brought; NewUnits is --new-units-per-node.
	Flips    flips.Log
	NewUnits int
}
