package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FleetCluster is a cluster to which this cluster, the hub, distributes Grids.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=fc,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.status.units`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Grids",type=string,JSONPath=`.status.gridSummary`
// +kubebuilder:printcolumn:name="Silent",type=date,JSONPath=`.status.silentSince`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 57",message="metadata.name must have at most 57 characters, since fleet-NAME is the namespace of the cluster: choose a shorter name"
type FleetCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec FleetClusterSpec `json:"spec"`
	// +optional
	Status FleetClusterStatus `json:"status,omitempty"`
}

// OnDelete says what becomes of a cluster's Grids when its FleetCluster is deleted.
//
// +kubebuilder:validation:Enum=Orphan;Remove
type OnDelete string

// The values of OnDelete.
const (
	Orphan OnDelete = "Orphan" // they stay
	Remove OnDelete = "Remove"
)

// FleetClusterSpec says how the cluster is reached.
//
// +kubebuilder:validation:XValidation:rule="has(self.kubeConfig) != (has(self.pull) && self.pull)",message="set either pull: true, for a cluster that fetches its Grids, or kubeConfig.secretRef.name, for one whose API server this cluster reaches"
// +kubebuilder:validation:XValidation:rule="has(self.kubeConfig) == has(oldSelf.kubeConfig)",message="pull and kubeConfig cannot take each other's place, since two would write into the cluster: run grid-controller leave, then grid-controller join"
type FleetClusterSpec struct {
	// The cluster fetches its Grids from this one: see grid-controller join.
	// +optional
	Pull bool `json:"pull,omitempty"`
	// This cluster applies the Grids to the other one.
	// +optional
	KubeConfig *KubeConfig `json:"kubeConfig,omitempty"`
	// Change nothing in the cluster.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// What becomes of its Grids when this FleetCluster is deleted: Orphan, they stay, or Remove.
	// +optional
	// +kubebuilder:default=Orphan
	OnDelete OnDelete `json:"onDelete,omitempty"`
	// Create the namespaces of Grids in the cluster. They are never deleted.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// Namespaces of the cluster into which Grids of other namespaces may be put by their annotation
	// superedge.io/target-namespace; "*" is any. Without it a Grid has the same namespace there as
	// here.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	TargetNamespaces []string `json:"targetNamespaces,omitempty"`
	// Namespaces of the cluster into which Grids may be put at all. Without it all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`
}

// KubeConfig is where a kubeconfig is kept.
type KubeConfig struct {
	SecretRef SecretRef `json:"secretRef"`
}

// SecretRef names a Secret in the namespace fleet-<name of the FleetCluster>.
type SecretRef struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The key of the kubeconfig in the Secret: value without it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// FleetClusterStatus is what is known of a cluster. It is not written at rest.
type FleetClusterStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// The state in one word: Current, Behind, Waiting, Stale, Held, Suspended, Replaced, NoEngine or
	// Unreachable.
	// +optional
	State string `json:"state,omitempty"`
	// The UID of the cluster's Namespace kube-system, as it was first heard.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`
	// When the cluster was last heard, by the hub's clock, if it is silent.
	// +optional
	SilentSince *metav1.Time `json:"silentSince,omitempty"`
	// The renewTime of the last Lease that was heard, if the cluster is silent.
	// +optional
	LastRenewal string `json:"lastRenewal,omitempty"`
	// Units of the Grids in the cluster.
	// +optional
	Units int32 `json:"units,omitempty"`
	// Nodes of the cluster.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// How many of its Grids are what the hub has: "4/4 current", "3/4, 1 behind".
	// +optional
	GridSummary string `json:"gridSummary,omitempty"`
	// The Grids that the cluster is to have.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Grids []ClusterGrid `json:"grids,omitempty"`
	// UIDs of Grids that the hub has removed from the cluster, and that it still reports.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	Withdrawn []string `json:"withdrawn,omitempty"`
	// Removals of Grids that were not meant for the cluster any more, within the last hour.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Removals []GridRemoval `json:"removals,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterGrid is a Grid that a cluster is to have.
type ClusterGrid struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Its namespace in the cluster, if that is another.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// What was sent: see the annotation superedge.io/from-revision.
	Revision string `json:"revision"`
	// Since when the Grid is not meant for the cluster any more.
	// +optional
	LeavingSince *metav1.Time `json:"leavingSince,omitempty"`
	// Why the Grid is not meant for the cluster, and when it leaves; at most 512 bytes.
	// +optional
	Leaving string `json:"leaving,omitempty"`
	// Current, Behind, Waiting (for a first report), or the reason why it is not in the cluster:
	// NameCollision, NamespaceMissing, and so on.
	// +optional
	State string `json:"state,omitempty"`
	// What is wrong and what to do about it; at most 512 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// GridRemoval is the place that one removal takes in the budget.
type GridRemoval struct {
	UID string      `json:"uid"`
	At  metav1.Time `json:"at"`
}

// FleetClusterList is a list of FleetCluster.
//
// +kubebuilder:object:root=true
type FleetClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FleetCluster `json:"items"`
}

// Heartbeat is what a member says of itself as a whole, in an annotation of its Lease.
type Heartbeat struct {
	// The UID of the member's Namespace kube-system.
	ClusterUID string `json:"clusterUID"`
	// The version of the member's grid-controller.
	Version string `json:"version,omitempty"`
	// Nodes of the member.
	Nodes int32 `json:"nodes,omitempty"`
	// What keeps Grids from being applied; at most 10.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a reason in one word, and what is wrong and what to do about it.
type Problem struct {
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// At most 512 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
