package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is SuperEdge's; the kinds of this version are not.
const (
	Group   = "superedge.io"
	Version = "v1alpha1"
)

// GroupVersion returns superedge.io/v1alpha1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme makes a scheme know the three kinds and their lists.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&FleetCluster{}, &FleetClusterList{},
		&GridBundle{}, &GridBundleList{},
		&GridReport{}, &GridReportList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
