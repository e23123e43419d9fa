package v1

// Template is the spec of a Deployment or StatefulSet, as the user wrote it. Declared is only what
// we read.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas >= 0",message="replicas must be 0 or more; leave it out so that the children can be scaled, starting at 1"
type Template struct {
	// How many Pods a unit gets. If it is left out, the child starts with 1 and can be scaled.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// JSON is the whole of it, Replicas included, which is only read from it; nil means null.
	JSON []byte `json:"-"`
}

// ServiceTemplate is the spec of a Service, as the user wrote it.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ServiceTemplate struct {
	// JSON is the whole of it; nil means null.
	JSON []byte `json:"-"`
}

// State is a status, or a part of one, as a child shows it.
//
// +kubebuilder:pruning:PreserveUnknownFields
type State struct {
	// JSON is the whole of it; nil means null.
	JSON []byte `json:"-"`
}
