package watch

import (
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Objects is what a set of manifests holds, with the API server's defaults. Each list is
// sorted by namespace and name and names every object once.
type Objects struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Nodes    []*corev1.Node
}

// Snapshot is these objects as seen from the node of that name. LastKeys and Host are left
// to the caller; Self is nil where no Node has the name.
func (o Objects) Snapshot(node string) topology.Snapshot {
	s := topology.Snapshot{
		Node:     node,
		Nodes:    make(map[string]labels.Set, len(o.Nodes)),
		Services: o.Services,
		Slices:   o.Slices,
	}
	for _, n := range o.Nodes {
		s.Nodes[n.Name] = n.Labels
		if n.Name == node {
			s.Self = n
		}
	}
	return s
}
