package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version are those of SuperEdge.
const (
	Group   = "superedge.io"
	Version = "v1"
)

// GroupVersion returns superedge.io/v1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// Kinds returns the kinds of Grids.
func Kinds() []string { return []string{"DeploymentGrid", "ServiceGrid", "StatefulSetGrid"} }

// AddToScheme makes a scheme know the three Grids and their lists.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&DeploymentGrid{}, &DeploymentGridList{},
		&StatefulSetGrid{}, &StatefulSetGridList{},
		&ServiceGrid{}, &ServiceGridList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
