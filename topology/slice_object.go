package topology

import (
	"net/netip"
	"strconv"
	"time"

	"gridproxy/topology/dnsview"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object returns an EndpointSlice from which NewSlice makes an equal Slice, except for what was
// left out and warned of: that is not kept. Conditions with the assumed values are not set.
func (s *Slice) Object() *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, ResourceVersion: s.ResourceVersion},
		AddressType: s.addressType(),
	}
	if s.Service != "" || s.names != nil {
		out.Labels = map[string]string{discoveryv1.LabelServiceName: s.Service}
	}
	annotations := map[string]string{}
	if !s.Triggered.IsZero() {
		annotations[corev1.EndpointsLastChangeTriggerTime] = s.Triggered.Format(time.RFC3339Nano)
	}
	if s.apiProxy != nil {
		annotations[AnnotationLocalEndpoint] = s.apiProxy.Addr().String()
		annotations[AnnotationLocalPort] = strconv.Itoa(int(s.apiProxy.Port()))
	}
	if len(annotations) > 0 {
		out.Annotations = annotations
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(int32(p.Number))})
	}
	yes, no := new(true), new(false)
	out.Endpoints = make([]discoveryv1.Endpoint, len(s.Endpoints))
	for i := range s.Endpoints {
		out.Endpoints[i] = s.Endpoints[i].object(yes, no)
	}
	if s.names != nil {
		s.names.addTo(out)
	}
	return out
}

// addTo adds what only DNS reads. A slice of host names becomes one without endpoints.
func (n *sliceNames) addTo(out *discoveryv1.EndpointSlice) {
	if out.Labels[discoveryv1.LabelServiceName] == "" {
		out.Labels[LabelHeadless] = ""
	}
	out.Labels[discoveryv1.LabelServiceName] = n.service
	for i := range n.hostnames {
		if n.hostnames[i] != "" {
			out.Endpoints[i].Hostname = &n.hostnames[i]
		}
	}
	for _, f := range n.further {
		e := &out.Endpoints[f.endpoint]
		e.Addresses = append(e.Addresses, f.addr.String())
	}
	for i := range n.ports {
		port := discoveryv1.EndpointPort{Protocol: new(corev1.Protocol(n.ports[i].Protocol))}
		if n.ports[i].Number != dnsview.NoPort {
			port.Port = &n.ports[i].Number // then it has no name, not an empty one
		} else if n.ports[i].Name != "" {
			port.Name = &n.ports[i].Name
		}
		out.Ports = append(out.Ports, port)
	}
}

// addressType returns the family of the addresses, and IPv4 for a slice without any: it may be
// of either.
func (s *Slice) addressType() discoveryv1.AddressType {
	var addr netip.Addr
	switch {
	case len(s.Endpoints) > 0:
		addr = s.Endpoints[0].Addr
	case s.apiProxy != nil:
		addr = s.apiProxy.Addr()
	}
	if addr.Is6() {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// object returns e as part of an API object, which shares yes (true) and no (false) with
// others.
func (e *SliceEndpoint) object(yes, no *bool) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{Addresses: []string{e.Addr.String()}}
	if !e.Ready {
		out.Conditions.Ready = no
	}
	if !e.Serving {
		out.Conditions.Serving = no
	}
	if e.Terminating {
		out.Conditions.Terminating = yes
	}
	if e.Node != "" {
		out.NodeName = &e.Node
	}
	if e.Hints == nil {
		return out
	}
	out.Hints = &discoveryv1.EndpointHints{}
	for _, zone := range e.Hints.Zones {
		out.Hints.ForZones = append(out.Hints.ForZones, discoveryv1.ForZone{Name: zone})
	}
	for _, node := range e.Hints.Nodes {
		out.Hints.ForNodes = append(out.Hints.ForNodes, discoveryv1.ForNode{Name: node})
	}
	return out
}
