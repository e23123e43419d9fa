package topologytest

import (
	"gridproxy/topology"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EndpointSlice is an EndpointSlice that reads as the Slice does. It says nothing that is assumed
// where a slice says nothing.
func EndpointSlice(s *topology.Slice) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, ResourceVersion: s.ResourceVersion},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if s.Service != "" {
		out.Labels = map[string]string{discoveryv1.LabelServiceName: s.Service}
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(int32(p.Number))})
	}
	for _, e := range s.Endpoints {
		if e.Addr.Is6() {
			out.AddressType = discoveryv1.AddressTypeIPv6
		}
		out.Endpoints = append(out.Endpoints, endpoint(e))
	}
	return out
}

func endpoint(e topology.SliceEndpoint) discoveryv1.Endpoint {
	unless := func(usual, is bool) *bool {
		if is == usual {
			return nil
		}
		return &is
	}
	out := discoveryv1.Endpoint{
		Addresses:  []string{e.Addr.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: unless(true, e.Ready), Serving: unless(true, e.Serving), Terminating: unless(false, e.Terminating)},
	}
	if e.Node != "" {
		out.NodeName = &e.Node
	}
	if e.Hints == nil {
		return out
	}
	out.Hints = &discoveryv1.EndpointHints{}
	for _, z := range e.Hints.Zones {
		out.Hints.ForZones = append(out.Hints.ForZones, discoveryv1.ForZone{Name: z})
	}
	for _, n := range e.Hints.Nodes {
		out.Hints.ForNodes = append(out.Hints.ForNodes, discoveryv1.ForNode{Name: n})
	}
	return out
}
