package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StatefulSetGrid makes one StatefulSet in every NodeUnit: one for each value that Nodes have under
// the label key spec.gridUniqKey.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ssg
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=`.spec.gridUniqKey`
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.status.unitNumber`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.readyRate`
// +kubebuilder:printcolumn:name="Offline",type=integer,JSONPath=`.status.offlineUnits`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clusterRate`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.status) || (has(self.spec) && has(self.spec.gridUniqKey) && size(self.spec.gridUniqKey) > 0)",message="spec.gridUniqKey is missing: set it to the label key whose values on Nodes form the units, for example location"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || (has(self.spec) && has(self.spec.gridUniqKey) && size(self.spec.gridUniqKey) > 0) || !(has(oldSelf.spec) && has(oldSelf.spec.gridUniqKey) && size(oldSelf.spec.gridUniqKey) > 0)",message="spec.gridUniqKey is missing: set it to the label key whose values on Nodes form the units, for example location"
// +kubebuilder:validation:XValidation:rule="has(self.status) || (has(self.spec) && (has(self.spec.defaultTemplateName) && self.spec.defaultTemplateName != 'default' && has(self.spec.templatePool) && self.spec.defaultTemplateName in self.spec.templatePool ? has(self.spec.templatePool[self.spec.defaultTemplateName].selector) && has(self.spec.templatePool[self.spec.defaultTemplateName].serviceName) && has(self.spec.templatePool[self.spec.defaultTemplateName].template) : has(self.spec.template) ? has(self.spec.template.selector) && has(self.spec.template.serviceName) && has(self.spec.template.template) : has(self.spec.templates) && size(self.spec.templates) > 0 && has(self.spec.templatePool)))",message="spec.template must be the spec of a StatefulSet, with selector, serviceName and template: write them there, or in the template of templatePool that defaultTemplateName names; a spec with ports belongs in a ServiceGrid"
type StatefulSetGrid struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec WorkloadGridSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={}
	Status StatefulSetGridStatus `json:"status,omitempty"`
}

// StatefulSetGridStatus is what is known of the StatefulSets of a StatefulSetGrid.
type StatefulSetGridStatus struct {
	WorkloadGridStatus `json:",inline"`
	// Each StatefulSet's status, by the unit's value (SuperEdge).
	// +optional
	// +mapType=atomic
	States map[string]State `json:"states,omitempty"`
}

// StatefulSetGridList is a list of StatefulSetGrid.
//
// +kubebuilder:object:root=true
type StatefulSetGridList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StatefulSetGrid `json:"items"`
}
