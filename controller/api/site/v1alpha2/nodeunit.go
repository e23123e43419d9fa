package v1alpha2

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeUnit is a site: the Nodes that it lists and those that it selects. They get the label <name>:
// nodeunits.superedge.io and what setNode says.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=nu,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.readyRate`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.status) || size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, since it becomes a label key of Nodes: choose a shorter name"
type NodeUnit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NodeUnitSpec `json:"spec,omitempty"`
	// +optional
	Status NodeUnitStatus `json:"status,omitempty"`
}

// NodeUnitSpec says which Nodes a unit has and what they get.
//
// +kubebuilder:validation:XValidation:rule="!has(self.setNode) || !has(self.setnode) || !(has(self.setNode.labels) || has(self.setNode.annotations) || has(self.setNode.taints)) || !(has(self.setnode.labels) || has(self.setnode.annotations) || has(self.setnode.taints))",message="setNode and setnode are two spellings of one field: keep setNode and remove setnode"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.setNode) || has(self.setNode) || !(has(oldSelf.setNode.labels) && size(oldSelf.setNode.labels) > 0 || has(oldSelf.setNode.annotations) && size(oldSelf.setNode.annotations) > 0 || has(oldSelf.setNode.taints) && size(oldSelf.setNode.taints) > 0)",message="setNode would be lost: it is missing from what is written, as from a typed client of v1alpha1, which does not know it. Write setNode: {} to remove what it says, or use v1alpha2"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.setnode) || has(self.setnode) || !(has(oldSelf.setnode.labels) && size(oldSelf.setnode.labels) > 0 || has(oldSelf.setnode.annotations) && size(oldSelf.setnode.annotations) > 0 || has(oldSelf.setnode.taints) && size(oldSelf.setnode.taints) > 0) || has(self.setNode) && (has(self.setNode.labels) && size(self.setNode.labels) > 0 || has(self.setNode.annotations) && size(self.setNode.annotations) > 0 || has(self.setNode.taints) && size(self.setNode.taints) > 0)",message="setnode would be lost: it is missing from what is written, as from a typed client of v1alpha2, which does not know it. Write setnode: {} to remove what it says, or move it to setNode"
type NodeUnitSpec struct {
	// What sort of site it is: edge, cloud, master, other or any word; nothing depends on it.
	// +optional
	// +kubebuilder:default=edge
	Type string `json:"type,omitempty"`
	// New Pods are kept off its Nodes, by the taint site.superedge.io/unschedulable:NoSchedule.
	// +optional
	// +kubebuilder:default=false
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Names of Nodes that belong to it.
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Nodes that belong to it besides. An empty selector selects none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(r, r.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="the operator must be In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(r, (r.operator in ['In', 'NotIn']) == (has(r.values) && size(r.values) > 0))",message="In and NotIn need values, for example values: [east]; Exists and DoesNotExist have none"
	Selector *Selector `json:"selector,omitempty"`
	// What its Nodes get.
	// +optional
	SetNode *SetNode `json:"setNode,omitempty"`
	// setNode in the spelling of v1alpha1.
	// +optional
	SetNodeOld *SetNode `json:"setnode,omitempty"`
	// More taints (v1alpha1).
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Taints []Taint `json:"taints,omitempty"`

	// Whether the unit has a control plane of its own: L3, none. L4 and L5 are stored and have no
	// effect.
	// +optional
	AutonomyLevel string `json:"autonomyLevel,omitempty"`
	// For L4 and L5.
	// +optional
	UnitCredentialConfigMapRef *corev1.ObjectReference `json:"unitCredentialConfigMapRef,omitempty"`
	// For L4 and L5.
	// +optional
	UnitClusterInfo *UnitClusterInfo `json:"unitClusterInfo,omitempty"`
}

// SetNode is what a unit's Nodes get. A different value that another unit (first by name) or
// another program has set is kept, and reported.
type SetNode struct {
	// Labels of the Nodes. An entry whose key is the unit's own name or a group that holds the unit
	// is not a wish: it only says again what follows from the unit and the group.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key of setNode.labels must be a label key: a name of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, which a DNS name and '/' may precede, for example example.com/rack"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",message="a value of setNode.labels must be a label value: empty, or at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// Annotations of the Nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && k.matches('^([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key of setNode.annotations must be a name of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, which a DNS name and '/' may precede"
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints of the Nodes.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Taints []Taint `json:"taints,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// Taint keeps Pods without a fitting toleration off a Node.
type Taint struct {
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="the key of a taint must be a label key: a name of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, which a DNS name and '/' may precede"
	Key string `json:"key"`
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')",message="the value of a taint must be empty, or at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Value string `json:"value,omitempty"`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self in ['NoSchedule', 'PreferNoSchedule', 'NoExecute']",message="the effect of a taint must be NoSchedule, PreferNoSchedule or NoExecute"
	Effect string `json:"effect"`
	// Stored, not used: the API server keeps this time for each Node.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// UnitClusterInfo is for units with a control plane of their own.
type UnitClusterInfo struct {
	// +optional
	StorageType string `json:"storageType,omitempty"`
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// NodeUnitStatus is what is known of a unit's Nodes.
type NodeUnitStatus struct {
	// Ready Nodes of all Nodes, "r/n".
	// +optional
	ReadyRate string `json:"readyRate,omitempty"`
	// Nodes whose condition Ready is True, the first ones by name: at most 500, and 30,000 bytes.
	// +optional
	ReadyNodes []string `json:"readyNodes,omitempty"`
	// How many ready Nodes readyNodes leaves out.
	// +optional
	MoreReadyNodes int `json:"moreReadyNodes,omitempty"`
	// The other Nodes, within the same limits.
	// +optional
	NotReadyNodes []string `json:"notReadyNodes,omitempty"`
	// How many of the other Nodes notReadyNodes leaves out.
	// +optional
	MoreNotReadyNodes int `json:"moreNotReadyNodes,omitempty"`
	// What is wrong; a condition is there only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Whether what the unit had set on Nodes before there were records has its record.
	// +optional
	RestrictedRecorded bool `json:"restrictedRecorded,omitempty"`
	// The last generation of the spec for which no Node waits for labels to be removed.
	// +optional
	SettledGeneration int64 `json:"settledGeneration,omitempty"`
	// The generation of the spec whose edit takes most of the unit's Nodes out of it, until it is
	// settled.
	// +optional
	MostTaken int64 `json:"mostTaken,omitempty"`
	// For L4 and L5; kept as it is.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	UnitClusterStatus *runtime.RawExtension `json:"unitClusterStatus,omitempty"`

	// What SuperEdge's v1alpha1 wrote; removed with the first status that is written here.

	// +optional
	ReadyRateOld string `json:"readyrate,omitempty"`
	// +optional
	ReadyNodesOld []string `json:"readynodes,omitempty"`
	// +optional
	NotReadyNodesOld []string `json:"notreadynodes,omitempty"`
}

// NodeUnitList is a list of NodeUnit.
//
// +kubebuilder:object:root=true
type NodeUnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeUnit `json:"items"`
}

// Set returns what the unit's Nodes get, in either spelling, with v1alpha1's spec.taints. It
// shares its maps with the spec.
func (s *NodeUnitSpec) Set() SetNode {
	var set SetNode
	switch {
	case s.SetNode != nil && !s.SetNode.empty():
		set = *s.SetNode
	case s.SetNodeOld != nil:
		set = *s.SetNodeOld
	}
	set.Taints = slices.Concat(set.Taints, s.Taints)
	return set
}

func (s *SetNode) empty() bool { return len(s.Labels)+len(s.Annotations)+len(s.Taints) == 0 }
