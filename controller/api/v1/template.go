package v1

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Template is the spec of a Deployment or StatefulSet, as the user wrote it. Declared is only what
// we read, and what the rules of the definitions ask for.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas >= 0",message="replicas must be 0 or more; leave it out so that the children can be scaled, starting at 1"
type Template struct {
	// How many Pods a unit gets. If it is left out, the child starts with 1 and can be scaled.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Which Pods are the child's.
	// +optional
	Selector *Part `json:"selector,omitempty"`
	// The Pods.
	// +optional
	Template *Part `json:"template,omitempty"`
	// The name of the Service in which the Pods of a StatefulSet have names.
	// +optional
	ServiceName *string `json:"serviceName,omitempty"`

	// JSON is the whole of it. Of the fields above only Replicas is read from it; nil means null.
	JSON []byte `json:"-"`
}

// ServiceTemplate is the spec of a Service, as the user wrote it. Declared is only what the rules
// of the definitions ask for.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ServiceTemplate struct {
	// The ports. A headless Service, or one of type ExternalName, needs none.
	// +optional
	// +listType=atomic
	Ports []Part `json:"ports,omitempty"`
	// None for a headless Service.
	// +optional
	ClusterIP *string `json:"clusterIP,omitempty"`
	// The type of the Service.
	// +optional
	Type *string `json:"type,omitempty"`

	// JSON is the whole of it. None of the fields above is read from it; nil means null.
	JSON []byte `json:"-"`
}

// Part is a part of a template, with any fields.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Part struct{}

// State is a status, or a part of one, as a child shows it.
//
// +kubebuilder:pruning:PreserveUnknownFields
type State struct {
	// JSON is the whole of it; nil means null.
	JSON []byte `json:"-"`
}

// MarshalJSON writes the template as it was read.
func (t Template) MarshalJSON() ([]byte, error) { return json.RawMessage(t.JSON).MarshalJSON() }

// UnmarshalJSON keeps the template. A replicas that is no number is left to Validate: an error here
// would keep a client from reading any Grid at all for the sake of one.
func (t *Template) UnmarshalJSON(text []byte) error {
	*t = Template{JSON: keep(text)}
	var declared struct {
		Replicas *int32 `json:"replicas"`
	}
	if json.Unmarshal(text, &declared) == nil {
		t.Replicas = declared.Replicas
	}
	return nil
}

// MarshalJSON writes the template as it was read.
func (t ServiceTemplate) MarshalJSON() ([]byte, error) { return json.RawMessage(t.JSON).MarshalJSON() }

// UnmarshalJSON keeps the template.
func (t *ServiceTemplate) UnmarshalJSON(text []byte) error {
	*t = ServiceTemplate{JSON: keep(text)}
	return nil
}

// MarshalJSON writes the state as it was read.
func (s State) MarshalJSON() ([]byte, error) { return json.RawMessage(s.JSON).MarshalJSON() }

// UnmarshalJSON keeps the state.
func (s *State) UnmarshalJSON(text []byte) error {
	*s = State{JSON: keep(text)}
	return nil
}

// keep returns a copy of text, which the decoder reuses; nil for null.
func keep(text []byte) []byte {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	return slices.Clone(text)
}
