package event

import (
	"cmp"
	"slices"

	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/topology"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// speaker is which node sends an Event that several nodes see alike.
type speaker int

const (
	thisNode speaker = iota
	anotherNode
	notYetKnown // no node sends it before that is known
)

// speakerOf finds the node that sends the Events of a unit which all of the unit's nodes see alike:
// the first by name. A node without a unit of these keys sends none. If no keys were ever read, all
// Nodes are one unit. A Snapshot may lack Nodes: then it is the first node, by name, that has an
// endpoint of the Service.
func speakerOf(s topology.Snapshot, node string, service types.NamespacedName, keys []string) speaker {
	self := s.Nodes[node]
	unit := explain.Unit(keys, self)
	switch {
	case unit == "" && len(keys) > 0:
		return anotherNode
	case s.Watched != nil && len(keys) == 0:
		return firstWithEndpoint(s, node, service)
	case s.Watched != nil && slices.ContainsFunc(keys, func(key string) bool { return self[key] != "" && !s.Watched[key] }):
		return notYetKnown
	}
	for name, other := range s.Nodes {
		if name < node && explain.Unit(keys, other) == unit {
			return anotherNode
		}
	}
	return thisNode
}

func firstWithEndpoint(s topology.Snapshot, node string, service types.NamespacedName) speaker {
	at, _ := slices.BinarySearchFunc(s.Slices, service.Namespace, func(slice *discoveryv1.EndpointSlice, namespace string) int {
		return cmp.Compare(slice.Namespace, namespace)
	})
	first := ""
	for _, slice := range s.Slices[at:] {
		if slice.Namespace != service.Namespace {
			break
		}
		if slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for i := range slice.Endpoints {
			if name := slice.Endpoints[i].NodeName; name != nil && *name != "" && (first == "" || *name < first) {
				first = *name
			}
		}
	}
	switch first {
	case "":
		return notYetKnown
	case node:
		return thisNode
	default:
		return anotherNode
	}
}
