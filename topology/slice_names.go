package topology

import (
	"fmt"
	"net/netip"
	"strings"

	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// sliceNames is what of an EndpointSlice only DNS reads. The name of an endpoint's Pod is not kept:
// CoreDNS reads it only with its option endpoint_pod_names.
type sliceNames struct {
	service   string           // what the label names, whatever other labels say
	hostnames []string         // of Endpoints, in lower case; "" = it has none, nil = none has any
	further   []furtherAddress // by endpoint
	ports     []dnsview.Port   // those without a name or number
	ignored   ignoredNames
}

// furtherAddress is one behind the first of an endpoint. It is of the slice's family.
type furtherAddress struct {
	endpoint int // in Endpoints
	addr     netip.Addr
}

// ignoredNames are what only DNS leaves out and warns of.
type ignoredNames struct{ hostnames, addresses, slices ignored }

// NewSliceWithNames reads what NewSlice reads, and what only DNS does, also of slices that no
// proxy uses. Slices of addressType FQDN have no addresses: nothing of their endpoints and
// ports is read.
func NewSliceWithNames(s *discoveryv1.EndpointSlice) *Slice {
	out := NewSlice(s)
	out.names = &sliceNames{service: s.Labels[discoveryv1.LabelServiceName]}
	switch {
	case out.names.service == "":
		return out
	case s.AddressType == discoveryv1.AddressTypeFQDN:
		out.Ports, out.Endpoints = []SlicePort{}, []SliceEndpoint{}
		out.names.ignored.slices.add(fmt.Errorf("%s: addressType FQDN has no addresses", excerpt.Of(s.Name)))
		return out
	case out.Service == "":
		out.readEndpoints(s)
	}
	for _, p := range s.Ports {
		if p.Name == nil || p.Port == nil {
			if port, ok := nakedPort(p); ok {
				out.names.ports = append(out.names.ports, port)
			}
		}
	}
	kept := 0
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if len(e.Addresses) == 0 {
			continue
		}
		if _, err := endpointAddr(s.AddressType, e.Addresses[0]); err == nil {
			out.names.readHostname(ptr.Deref(e.Hostname, ""), s.Name, kept, len(out.Endpoints))
			out.names.readFurther(s, e.Addresses[1:], kept)
			kept++
		}
	}
	return out
}

// nakedPort returns a port without name ("") or number (dnsview.NoPort); false = its number is
// invalid.
func nakedPort(p discoveryv1.EndpointPort) (dnsview.Port, bool) {
	port := dnsview.Port{
		Name: ptr.Deref(p.Name, ""), Protocol: string(ptr.Deref(p.Protocol, corev1.ProtocolTCP)), Number: ptr.Deref(p.Port, dnsview.NoPort),
	}
	return port, p.Port == nil || ValidPort(*p.Port)
}

func (n *sliceNames) readHostname(hostname, slice string, endpoint, endpoints int) {
	if hostname == "" {
		return
	}
	label := strings.ToLower(hostname)
	if len(validation.IsDNS1123Label(label)) > 0 {
		n.ignored.hostnames.add(fmt.Errorf("%s: %s is not a DNS label of at most %d bytes",
			excerpt.Of(slice), excerpt.Quoted(hostname), validation.DNS1123LabelMaxLength))
		return
	}
	if n.hostnames == nil {
		n.hostnames = make([]string, endpoints)
	}
	n.hostnames[endpoint] = label
}

func (n *sliceNames) readFurther(s *discoveryv1.EndpointSlice, texts []string, endpoint int) {
	for _, text := range texts {
		addr, err := endpointAddr(s.AddressType, text)
		if err != nil {
			n.ignored.addresses.add(fmt.Errorf("%s: %w", excerpt.Of(s.Name), err))
			continue
		}
		n.further = append(n.further, furtherAddress{endpoint, addr})
	}
}

// hostname returns the host name of Endpoints[endpoint]; "" = it does not have one.
func (n *sliceNames) hostname(endpoint int) string {
	if n.hostnames == nil {
		return ""
	}
	return n.hostnames[endpoint]
}

// labelledService returns the Service that the label of a slice names, as serviceOf for DNS;
// false = it names no Service, or was read without names.
func labelledService(slice *Slice) (types.NamespacedName, bool) {
	if slice == nil || slice.names == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.names.service}, slice.names.service != ""
}

// ShareNames replaces each text that only DNS reads by what share returns for it: an equal text
// that many slices share. It changes s, so it is only for the one that made the Slice.
func (s *Slice) ShareNames(share func(string) string) {
	if s.names == nil {
		return
	}
	service := s.names.service
	if s.names.service = s.Service; s.Service == "" {
		s.names.service = share(service)
	}
	for i := range s.names.hostnames {
		s.names.hostnames[i] = share(s.names.hostnames[i])
	}
	for i := range s.names.ports {
		port := &s.names.ports[i]
		port.Name, port.Protocol = share(port.Name), share(port.Protocol)
	}
}
