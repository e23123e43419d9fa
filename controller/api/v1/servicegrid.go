package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceGrid makes one Service, whose traffic stays inside the NodeUnit of the Node that it comes
// from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sg
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=`.spec.gridUniqKey`
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.status.service`
// +kubebuilder:printcolumn:name="Cluster-IP",type=string,JSONPath=`.status.clusterIP`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clusterRate`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.status) || (has(self.spec) && has(self.spec.gridUniqKey) && size(self.spec.gridUniqKey) > 0)",message="spec.gridUniqKey is missing: set it to the label key whose values on Nodes form the units, for example location"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || (has(self.spec) && has(self.spec.gridUniqKey) && size(self.spec.gridUniqKey) > 0) || !(has(oldSelf.spec) && has(oldSelf.spec.gridUniqKey) && size(oldSelf.spec.gridUniqKey) > 0)",message="spec.gridUniqKey is missing: set it to the label key whose values on Nodes form the units, for example location"
// +kubebuilder:validation:XValidation:rule="has(self.status) || (has(self.spec) && has(self.spec.template) && ((has(self.spec.template.ports) && size(self.spec.template.ports) > 0) || (has(self.spec.template.clusterIP) && self.spec.template.clusterIP == 'None') || (has(self.spec.template.type) && self.spec.template.type == 'ExternalName')))",message="spec.template must be the spec of a Service, with ports, unless clusterIP is None or type is ExternalName: write them there; a spec with a Pod template belongs in a DeploymentGrid or StatefulSetGrid"
type ServiceGrid struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ServiceGridSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={}
	Status ServiceGridStatus `json:"status,omitempty"`
}

// ServiceGridSpec says what the Service is, and which Nodes form a unit.
type ServiceGridSpec struct {
	// The label key by which Nodes form units: Nodes with the same value of it are one unit.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || (self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && self.matches('^([^/]{1,253}/)?[^/]{1,63}$'))",message="gridUniqKey must be a label key: a name of at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, which a DNS name of at most 253 characters and '/' may precede, for example location"
	GridUniqKey string `json:"gridUniqKey,omitempty"`
	// The spec of the Service.
	// +optional
	Template *ServiceTemplate `json:"template,omitempty"`
}

// ServiceGridStatus is what is known of the Service.
type ServiceGridStatus struct {
	GridStatus `json:",inline"`
	// The name of the Service.
	// +optional
	Service string `json:"service,omitempty"`
	// The Service's clusterIP.
	// +optional
	ClusterIP string `json:"clusterIP,omitempty"`
	// The Service's status.loadBalancer (SuperEdge).
	// +optional
	LoadBalancer *State `json:"loadBalancer,omitempty"`
}

// ServiceGridList is a list of ServiceGrid.
//
// +kubebuilder:object:root=true
type ServiceGridList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceGrid `json:"items"`
}
