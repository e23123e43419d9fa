package manifest

import (
	"fmt"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSlice gives an EndpointSlice the API server's defaults, and adds to f what is wrong with
// it. It returns false for one that belongs to no Service.
func checkSlice(f *findings, s *discoveryv1.EndpointSlice) bool {
	checkMeta(f, s, true, validation.IsDNS1123Subdomain)
	oneOf(f, field.NewPath("addressType"), &s.AddressType, "",
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
	for i := range s.Endpoints {
		checkEndpoint(f, field.NewPath("endpoints").Index(i), s.AddressType, &s.Endpoints[i])
	}
	checkSlicePorts(f, s)
	path := metadataPath.Child("labels").Key(discoveryv1.LabelServiceName)
	service := s.Labels[discoveryv1.LabelServiceName]
	if service == "" {
		f.warn(path, "is missing, and nothing else says which Service the EndpointSlice belongs to; it is left out, write the Service's name")
		return false
	}
	f.valid(path, service, validation.IsValidLabelValue)
	if len(validation.IsDNS1123Label(service)) > 0 && len(f.errs) == 0 {
		f.warn(path, fmt.Sprintf("is %s, which no Service can be named; no Service uses the EndpointSlice", excerpt.Quoted(service)))
	}
	return true
}

func checkEndpoint(f *findings, path *field.Path, t discoveryv1.AddressType, e *discoveryv1.Endpoint) {
	addresses := path.Child("addresses")
	if len(e.Addresses) == 0 {
		f.wrong(addresses, "is missing, the EndpointSlice is perhaps half written; write one address")
	}
	for i := range e.Addresses {
		if t == discoveryv1.AddressTypeFQDN {
			break
		}
		addr, ok := f.addr(addresses.Index(i), &e.Addresses[i])
		if family := familyOf(addr); ok && string(family) != string(t) && t != "" {
			f.wrong(addresses.Index(i), "%s is an %s address, but addressType is %s; put each family into a slice of its own", addr, family, t)
		}
	}
	if e.NodeName != nil {
		f.valid(path.Child("nodeName"), *e.NodeName, validation.IsDNS1123Subdomain)
	}
}

func checkSlicePorts(f *findings, s *discoveryv1.EndpointSlice) {
	ports := field.NewPath("ports")
	names := make([]string, len(s.Ports))
	for i := range s.Ports {
		at, port := ports.Index(i), &s.Ports[i]
		if port.Name == nil {
			port.Name = new("")
		}
		if port.Protocol == nil {
			port.Protocol = new(corev1.ProtocolTCP)
		}
		oneOf(f, at.Child("protocol"), port.Protocol, "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		if port.Port != nil && !topology.ValidPort(*port.Port) { // an API server stores any number
			f.warn(at.Child("port"), fmt.Sprintf("is %d; it is ignored, write a port from 1 to 65535", *port.Port))
		}
		if *port.Name != "" {
			f.valid(at.Child("name"), *port.Name, validation.IsDNS1123Label)
		}
		names[i] = *port.Name
	}
	unique(f, func(i int) *field.Path { return ports.Index(i).Child("name") }, names, "%q")
}
