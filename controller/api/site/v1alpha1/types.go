package v1alpha1

import (
	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeUnit is v1alpha2's.
//
// +kubebuilder:object:root=true
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
	Spec v1alpha2.NodeUnitSpec `json:"spec,omitempty"`
	// +optional
	Status v1alpha2.NodeUnitStatus `json:"status,omitempty"`
}

// NodeUnitList is a list of NodeUnit.
//
// +kubebuilder:object:root=true
type NodeUnitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeUnit `json:"items"`
}

// NodeGroup is v1alpha2's.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ng,scope=Cluster,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.status.unitNumber`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.status) || size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, since it becomes a label key of Nodes: choose a shorter name"
type NodeGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec v1alpha2.NodeGroupSpec `json:"spec,omitempty"`
	// +optional
	Status v1alpha2.NodeGroupStatus `json:"status,omitempty"`
}

// NodeGroupList is a list of NodeGroup.
//
// +kubebuilder:object:root=true
type NodeGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeGroup `json:"items"`
}
