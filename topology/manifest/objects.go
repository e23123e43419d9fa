package manifest

import (
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Objects is what a set of manifests holds, with the API server's defaults. Each list is
// sorted by namespace and name and names every object once.
type Objects struct {
	Services []*corev1.Service
	Slices   []*topology.Slice
	Nodes    []*corev1.Node

	// Namespaces and Grids are those of a Snapshot, read with names alone.
	Namespaces []string
	Grids      []types.NamespacedName
}

// addNames takes in Namespaces and StatefulSetGrids, sorted. A Namespace in which there
// is an object exists too, because manifests often have Services alone.
func (o *Objects) addNames(namespaces, grids []*metav1.PartialObjectMetadata) {
	o.Namespaces = make([]string, 0, len(namespaces)) // not nil: names are enabled
	for _, n := range namespaces {
		o.Namespaces = append(o.Namespaces, n.Name)
	}
	for _, g := range grids {
		o.Grids = append(o.Grids, types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	}
	for _, svc := range o.Services {
		o.Namespaces = append(o.Namespaces, svc.Namespace)
	}
	for _, slice := range o.Slices {
		o.Namespaces = append(o.Namespaces, slice.Namespace)
	}
	for _, g := range o.Grids {
		o.Namespaces = append(o.Namespaces, g.Namespace)
	}
	slices.Sort(o.Namespaces)
	o.Namespaces = slices.Compact(o.Namespaces)
}

// Snapshot returns these objects as seen from the node of that name. LastKeys and Host are left
// to the caller. Self is nil if no Node has the name.
func (o Objects) Snapshot(node string) topology.Snapshot {
	s := topology.Snapshot{
		Node:     node,
		Nodes:    make(map[string]labels.Set, len(o.Nodes)),
		Services: o.Services,
		Slices:   o.Slices,

		Namespaces: o.Namespaces,
		Grids:      o.Grids,
	}
	for _, n := range o.Nodes {
		s.Nodes[n.Name] = n.Labels
		if n.Name == node {
			s.Self = n
		}
	}
	return s
}

// Reuse returns o with each object that is equal to an old one replaced by the old one, because
// a pointer identifies the content of an object. It reports whether anything differs.
func (o Objects) Reuse(old Objects) (Objects, bool) {
	sameNames := (old.Namespaces == nil) == (o.Namespaces == nil) &&
		slices.Equal(old.Namespaces, o.Namespaces) && slices.Equal(old.Grids, o.Grids)
	if sameNames {
		o.Namespaces, o.Grids = old.Namespaces, old.Grids
	}
	services, a := reuse[corev1.Service](old.Services, o.Services, sameObject)
	read, b := reuse[topology.Slice](old.Slices, o.Slices, (*topology.Slice).Equal)
	nodes, c := reuse[corev1.Node](old.Nodes, o.Nodes, sameObject)
	o.Services, o.Slices, o.Nodes = services, read, nodes
	return o, a || b || c || !sameNames
}

func sameObject[T any](old, read *T) bool { return equality.Semantic.DeepEqual(old, read) }

func reuse[T any, P object.Pointer[T]](old, read []*T, same func(old, read *T) bool) ([]*T, bool) {
	changed := len(old) != len(read)
	all := make([]*T, len(read))
	for i, o := range read {
		all[i] = o
		for len(old) > 0 && topology.CompareObjects(P(old[0]), P(o)) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && topology.CompareObjects(P(old[0]), P(o)) == 0 && (old[0] == o || same(old[0], o)) {
			all[i] = old[0]
		} else {
			changed = true
		}
	}
	return all, changed
}
