package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Selector selects objects by labels and annotations; all that it says must hold. An empty one
// selects nothing.
type Selector struct {
	// Labels that must have these values.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// What must hold of the labels.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
	// Annotations that must have these values.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Empty says that the selector selects nothing. So does one that is missing.
func (s *Selector) Empty() bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions)+len(s.Annotations) == 0
}
