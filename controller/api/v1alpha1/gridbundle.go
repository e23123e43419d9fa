package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GridBundle is what the Grids of one namespace of the hub are in one cluster. The hub keeps it in
// the namespace fleet-<cluster>, under the name of the Grids' namespace. Whoever applies it keeps
// its own copy, reduced to what can be applied, so that nothing is needed of the hub later.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=gb
// +kubebuilder:printcolumn:name="Grids",type=integer,JSONPath=`.spec.grids`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.spec.digest`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GridBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GridBundleSpec `json:"spec,omitempty"`
}

// GridBundleSpec is packed objects.
type GridBundleSpec struct {
	// The number of Grids in it.
	// +optional
	Grids int32 `json:"grids,omitempty"`
	// sha256: and the SHA-256 of archive in hexadecimal digits.
	Digest string `json:"digest"`
	// A gzipped tar with one JSON file for each object. Equal objects have equal archives.
	// +kubebuilder:validation:MaxLength=1200000
	Archive []byte `json:"archive"`
}

// GridBundleList is a list of GridBundle.
//
// +kubebuilder:object:root=true
type GridBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GridBundle `json:"items"`
}
