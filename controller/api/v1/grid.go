package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadGridSpec is the spec of a DeploymentGrid and of a StatefulSetGrid: which Nodes form a
// unit, and what each unit gets.
type WorkloadGridSpec struct {
	// The label key by which Nodes form units: Nodes with the same value of it are one unit.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || (self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && self.matches('^([^/]{1,253}/)?[^/]{1,63}$'))",message="gridUniqKey must be a label key: a name of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, which a DNS name of at most 253 characters and '/' may precede, for example location"
	GridUniqKey string `json:"gridUniqKey,omitempty"`
	// What a unit gets: the spec of a Deployment or StatefulSet.
	// +optional
	Template *Template `json:"template,omitempty"`
	// More templates, by name, for units that differ.
	// +optional
	TemplatePool map[string]Template `json:"templatePool,omitempty"`
	// The name of a unit's template in templatePool, by the unit's value.
	// +optional
	Templates map[string]string `json:"templates,omitempty"`
	// The template of units that templates does not name. Empty or "default" is template.
	// +optional
	DefaultTemplateName string `json:"defaultTemplateName,omitempty"`
	// Remove entries of templatePool that no unit uses.
	// +optional
	AutoDeleteUnusedTemplate bool `json:"autoDeleteUnusedTemplate,omitempty"`
}

// UnitPhase says how far a unit's child is.
type UnitPhase string

// The phases.
const (
	UnitReady       UnitPhase = "Ready"
	UnitProgressing UnitPhase = "Progressing"
	UnitFailed      UnitPhase = "Failed"
	UnitLost        UnitPhase = "Lost"    // no Node carries the value
	UnitOffline     UnitPhase = "Offline" // none of its Nodes is ready
	UnitStale       UnitPhase = "Stale"   // its cluster is silent
)

// UnitStatus is one unit of a Grid.
type UnitStatus struct {
	// The name of the FleetCluster that the unit is in; empty: this cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// The value of the Nodes' label.
	Value string `json:"value"`
	// The name of the unit's child.
	// +optional
	Child string `json:"child,omitempty"`
	// The name of the template it is made from.
	// +optional
	Template string `json:"template,omitempty"`
	// The number of Nodes that carry the value.
	Nodes int32 `json:"nodes"`
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// Pods on Nodes that are no longer in the unit.
	// +optional
	Misplaced int32     `json:"misplaced,omitempty"`
	Phase     UnitPhase `json:"phase"`
	// The reason of the phase in one word: NameCollision, ImmutableField, MissingTemplate, and so on.
	// +optional
	Reason string `json:"reason,omitempty"`
	// What is wrong and what to do about it; at most 256 bytes, of a lost unit 512. The middle of a
	// longer message is left out.
	// +optional
	Message string `json:"message,omitempty"`
	// Since when no Node carries the value.
	// +optional
	LostAt *metav1.Time `json:"lostAt,omitempty"`
	// False if no Pod of the child has ever been ready. Such a child is deleted after the grace even
	// if deletions are held, and needs no place in the removal budget. Without it the unit has served.
	// +optional
	Served *bool `json:"served,omitempty"`
}

// Removal is how many children of lost units were deleted in one minute.
type Removal struct {
	// The end of the minute.
	At metav1.Time `json:"at"`
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// ClusterStatus is one cluster to which a Grid is distributed.
type ClusterStatus struct {
	// The name of its FleetCluster.
	Name string `json:"name"`
	// The state in one word: Current, Behind, Waiting, Stale, or the reason why the Grid is not
	// there: NameCollision, NamespaceMissing, and so on.
	State string `json:"state"`
	// Units that have Nodes.
	// +optional
	Units int32 `json:"units,omitempty"`
	// Units that are ready. Of a silent cluster none is counted.
	// +optional
	ReadyUnits int32 `json:"readyUnits,omitempty"`
	// When the cluster was last heard, if it is silent.
	// +optional
	HeardAt *metav1.Time `json:"heardAt,omitempty"`
	// What is wrong and what to do about it; at most 256 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// GridStatus is what the three Grids' statuses have in common.
type GridStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// The clusters to which the Grid is distributed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Clusters []ClusterStatus `json:"clusters,omitempty"`
	// Clusters in which the Grid is current and every unit is ready, of all to which it is
	// distributed, "r/n".
	// +optional
	ClusterRate string `json:"clusterRate,omitempty"`
}

// WorkloadGridStatus is what the statuses of DeploymentGrid and StatefulSetGrid have in common.
type WorkloadGridStatus struct {
	GridStatus `json:",inline"`
	// The number of units that have Nodes.
	// +optional
	UnitNumber int32 `json:"unitNumber,omitempty"`
	// Ready units of all units, "r/n".
	// +optional
	ReadyRate string `json:"readyRate,omitempty"`
	// The number of units that have failed.
	// +optional
	FailedUnits int32 `json:"failedUnits,omitempty"`
	// The number of units that are lost.
	// +optional
	LostUnits int32 `json:"lostUnits,omitempty"`
	// The number of units with Nodes of which none is ready.
	// +optional
	OfflineUnits int32 `json:"offlineUnits"`
	// A row for each unit: lost ones first, then those that have failed, are offline, are changing;
	// at most 1,000 rows and 180 kB.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Units []UnitStatus `json:"units,omitempty"`
	// The number of units that have no row, because there is no room for it.
	// +optional
	OmittedUnits int32 `json:"omittedUnits,omitempty"`
	// Entries of templatePool that no unit uses; as many as 5 kB hold.
	// +optional
	// +listType=set
	UnusedTemplates []string `json:"unusedTemplates,omitempty"`
	// Unused entries of templatePool that autoDeleteUnusedTemplate has removed. An entry that comes
	// back is kept, because another writer keeps it. A name is forgotten when a unit uses it.
	// +optional
	// +listType=set
	PrunedTemplates []string `json:"prunedTemplates,omitempty"`
	// The children of lost units that were deleted within the last hour and were not released by
	// name. They are counted against the removal budget.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Removals []Removal `json:"removals,omitempty"`
}

// The types of conditions.
const (
	ConditionReady        = "Ready"
	ConditionProgressing  = "Progressing"
	ConditionDegraded     = "Degraded"
	ConditionDeletionHeld = "DeletionHeld"
	// ConditionRekeyed: gridUniqKey has changed, and Nodes still carry the former key of children.
	ConditionRekeyed = "Rekeyed"
	// ConditionWithdrawing: clusters have the Grid although it is not meant for them any more. It
	// exists only while it is True.
	ConditionWithdrawing = "Withdrawing"
	// ConditionNotDistributed: the Grid asks to be distributed, and the controller does not distribute
	// Grids. It exists only while it is True.
	ConditionNotDistributed = "NotDistributed"
	// ConditionIdle: the Grid represents another cluster, so it has no children here.
	ConditionIdle = "Idle"
	// ConditionReconciling and ConditionStalled are for kstatus (sigs.k8s.io/cli-utils), by which
	// other tools judge objects: they exist only while they are True, and never both.
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)
