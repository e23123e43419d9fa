package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeGroup joins NodeUnits under one label key, its own name: the Nodes of each of its units get
// the label <group>: <unit>. A Grid whose gridUniqKey is the group's name makes one child for each
// of these units.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=ng,scope=Cluster,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.status.unitNumber`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.status) || size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, since it becomes a label key of Nodes: choose a shorter name"
type NodeGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NodeGroupSpec `json:"spec,omitempty"`
	// +optional
	Status NodeGroupStatus `json:"status,omitempty"`
}

// NodeGroupSpec says which units a group has.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.nodeUnits) && has(self.nodeunits) && size(self.nodeUnits) > 0 && size(self.nodeunits) > 0)",message="nodeUnits and nodeunits are two spellings of one field: keep nodeUnits and remove nodeunits"
// +kubebuilder:validation:XValidation:rule="!(has(self.autoFindNodeKeys) && has(self.autofindnodekeys) && size(self.autoFindNodeKeys) > 0 && size(self.autofindnodekeys) > 0)",message="autoFindNodeKeys and autofindnodekeys are two spellings of one field: keep autoFindNodeKeys and remove autofindnodekeys"
type NodeGroupSpec struct {
	// Names of NodeUnits that belong to it.
	// +optional
	NodeUnits []string `json:"nodeUnits,omitempty"`
	// nodeUnits in the spelling of v1alpha1.
	// +optional
	NodeUnitsOld []string `json:"nodeunits,omitempty"`
	// NodeUnits that belong to it besides, by their labels and annotations. An empty selector
	// selects none.
	// +optional
	Selector *Selector `json:"selector,omitempty"`
	// Label keys of Nodes: for each combination of their values that a Node has, a NodeUnit is made
	// that selects these Nodes, and belongs to the group.
	// +optional
	AutoFindNodeKeys FindKeys `json:"autoFindNodeKeys,omitempty"`
	// autoFindNodeKeys in the spelling of v1alpha1.
	// +optional
	AutoFindNodeKeysOld FindKeys `json:"autofindnodekeys,omitempty"`
	// Stored, and has no effect.
	// +optional
	Workload []Workload `json:"workload,omitempty"`
}

// FindKeys are label keys of Nodes.
//
// +kubebuilder:validation:MaxItems=10
// +kubebuilder:validation:items:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="autoFindNodeKeys must be label keys: names of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, which a DNS name and '/' may precede, for example topology.kubernetes.io/zone"
type FindKeys []string

// Workload is what a group was meant to be bound to.
type Workload struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Type string `json:"type,omitempty"`
	// +optional
	// +nullable
	Selector *Selector `json:"selector,omitempty"`
}

// NodeGroupStatus is what is known of a group's units.
type NodeGroupStatus struct {
	// The number of its units that exist.
	// +optional
	UnitNumber *int `json:"unitNumber,omitempty"`
	// Their names, the first ones: at most 500, and 30,000 bytes.
	// +optional
	NodeUnits []string `json:"nodeUnits,omitempty"`
	// What is wrong; a condition is there only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Lost units that are removed, or were within the last hour, and were not released by name. They
	// are counted against the removal budget.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Removals []Removal `json:"removals,omitempty"`
	// Kept as it is.
	// +optional
	WorkloadStatus []WorkloadStatus `json:"workloadStatus,omitempty"`

	// What SuperEdge's v1alpha1 wrote; removed with the first status that is written here.

	// +optional
	UnitNumberOld *int `json:"unitnumber,omitempty"`
	// +optional
	NodeUnitsOld []string `json:"nodeunits,omitempty"`
}

// Removal is a lost unit that is removed.
type Removal struct {
	// The name of the unit.
	Unit string `json:"unit"`
	// When its removal was decided.
	At metav1.Time `json:"at"`
}

// WorkloadStatus is where a workload is ready.
type WorkloadStatus struct {
	// +optional
	WorkloadName string `json:"workloadName,omitempty"`
	// +optional
	ReadyUnit []string `json:"readyUnit,omitempty"`
	// +optional
	NotReadyUnit []string `json:"notReadyUnit,omitempty"`
}

// NodeGroupList is a list of NodeGroup.
//
// +kubebuilder:object:root=true
type NodeGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeGroup `json:"items"`
}

// Units returns the names of the units that the group lists, in either spelling.
func (s *NodeGroupSpec) Units() []string {
	if len(s.NodeUnits) > 0 {
		return s.NodeUnits
	}
	return s.NodeUnitsOld
}

// FindKeys returns the label keys by which the group finds units, in either spelling.
func (s *NodeGroupSpec) FindKeys() FindKeys {
	if len(s.AutoFindNodeKeys) > 0 {
		return s.AutoFindNodeKeys
	}
	return s.AutoFindNodeKeysOld
}
