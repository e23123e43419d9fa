package manifest

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSlice gives an EndpointSlice the API server's defaults and checks what a proxy
// reads of it. It returns false for one that belongs to no Service.
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
	f.valid(path, service, validation.IsDNS1123Label)
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
		f.protocol(at.Child("protocol"), port.Protocol)
		if port.Port != nil {
			f.port(at.Child("port"), *port.Port, false)
		}
		if *port.Name != "" {
			f.valid(at.Child("name"), *port.Name, validation.IsDNS1123Label)
		}
		names[i] = *port.Name
	}
	unique(f, func(i int) *field.Path { return ports.Index(i).Child("name") }, names, "%q")
}
