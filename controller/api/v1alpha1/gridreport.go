package v1alpha1

import (
	"encoding/json"

	v1 "gridproxy/controller/api/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GridReport is what a cluster says about one Grid that the hub has sent to it. It is in the
// namespace fleet-<cluster> of the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=gr
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Grid",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Units",type=integer,JSONPath=`.spec.status.unitNumber`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.spec.status.readyRate`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GridReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GridReportSpec `json:"spec,omitempty"`
}

// ReportFormat is the format of reports that this version writes and reads.
const ReportFormat = 1

// GridReportSpec is a report.
type GridReportSpec struct {
	// The format of the report, 1. A hub does not read a later one.
	Format int32 `json:"format"`
	// The annotation superedge.io/from of the Grid in the cluster.
	// +kubebuilder:validation:MaxLength=128
	From string `json:"from"`
	// The annotation superedge.io/from-revision of the Grid in the cluster; empty if it is not
	// there.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision,omitempty"`
	// +kubebuilder:validation:Enum=DeploymentGrid;StatefulSetGrid;ServiceGrid
	Kind string `json:"kind"`
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The cluster's controller has seen this revision.
	// +optional
	Observed bool `json:"observed,omitempty"`
	// Why the Grid is not in the cluster as it was sent.
	// +optional
	Problem *Problem `json:"problem,omitempty"`
	// The status of the Grid in the cluster. Of a ServiceGrid it has the conditions alone.
	// +optional
	Status v1.WorkloadGridStatus `json:"status,omitempty"`
	// Units that are ready.
	// +optional
	ReadyUnits int32 `json:"readyUnits,omitempty"`
	// status.states of the Grid in the cluster.
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=10000
	States map[string]v1.State `json:"states,omitempty"`
}

// Size returns how many bytes the report has as JSON; more than MaxReport if it cannot be
// encoded.
func (r *GridReportSpec) Size() int {
	text, err := json.Marshal(r)
	if err != nil { // a state that is no JSON
		return MaxReport + 1
	}
	return len(text)
}

// GridReportList is a list of GridReport.
//
// +kubebuilder:object:root=true
type GridReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GridReport `json:"items"`
}
