package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version are those of SuperEdge.
const (
	Group   = "site.superedge.io"
	Version = "v1alpha2"
)

// GroupVersion returns site.superedge.io/v1alpha2.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme makes a scheme know NodeUnit, NodeGroup and their lists.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &NodeUnit{}, &NodeUnitList{}, &NodeGroup{}, &NodeGroupList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
