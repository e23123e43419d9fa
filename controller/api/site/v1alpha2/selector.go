package v1alpha2

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selector selects objects by labels and annotations; all that it says must hold. An empty one
// selects nothing.
type Selector struct {
	// Labels that must have these values.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// What must hold of the labels.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
	// Annotations that must have these values.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Empty reports whether the selector selects nothing. A nil selector is empty too.
func (s *Selector) Empty() bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions)+len(s.Annotations) == 0
}

// RequiresPrivileged reports whether the selector requires a label of PrivilegedKey, which a Node
// cannot give itself.
func (s *Selector) RequiresPrivileged() bool {
	if s == nil {
		return false
	}
	for key := range s.MatchLabels {
		if PrivilegedKey(key) {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return PrivilegedKey(r.Key) && (r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists)
	})
}
