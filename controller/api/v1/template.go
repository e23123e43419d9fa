package v1

// Template is the spec of a Deployment or StatefulSet, as the user wrote it. Declared is only what we read.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Template struct {
	// How many Pods a unit gets. Left out, whoever scales the child decides, from 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// JSON is the whole of it.
	JSON []byte `json:"-"`
}

// ServiceTemplate is the spec of a Service, as the user wrote it.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ServiceTemplate struct {
	// JSON is the whole of it.
	JSON []byte `json:"-"`
}
