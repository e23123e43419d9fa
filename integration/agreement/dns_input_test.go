//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Reasons for which gridproxy leaves something of a cluster out, or reads it in another way.
const (
	orphanSlice    = "a slice of no Service, or of an alias, has no names: CoreDNS makes names of its addresses"
	fqdnSlice      = "a slice of host names has no addresses: CoreDNS makes aliases of them"
	otherSpelling  = "an address is read as the number that it is: CoreDNS compares texts"
	notAddress     = "what is not an address of its family is left out"
	badEndpoint    = "an endpoint whose first address is left out is left out"
	badHostname    = "a hostname that is not a DNS label is left out: the endpoint is named by its address"
	badPort        = "a port whose number is none is left out"
	noProtocol     = "a port without protocol is one of TCP, as the API server reads it"
	badTarget      = "an external name that is none is left out"
	anothersAddr   = "a cluster IP that two Services have belongs to the older one, then to the first by name, as in the rules"
	withoutAddress = "a Service without any cluster IP has no address"
	refused        = "an address that terminates as ready, and is there again not ready, has no names, as in the rules: CoreDNS asks each endpoint alone"
	repeated       = "an endpoint that slices repeat counts once: CoreDNS counts it in the weights of SRV records"
)

var dnsInputReasons = []string{
	orphanSlice, fqdnSlice, otherSpelling, notAddress, badEndpoint, badHostname, badPort, noProtocol, badTarget, anothersAddr, withoutAddress,
	refused, repeated,
}

// dnsReading makes of a cluster what gridproxy reads of it, and counts why.
type dnsReading struct {
	dnsCluster
	reasons map[string]int
}

// asRead is a cluster in which there is nothing to leave out.
func asRead(c dnsCluster, reasons map[string]int) dnsCluster {
	r := dnsReading{dnsCluster: c, reasons: reasons}
	r.Services, r.Slices = nil, nil
	names := map[string]bool{}
	for _, svc := range c.Services {
		svc = svc.DeepCopy()
		if svc.Spec.Type == corev1.ServiceTypeExternalName {
			if !isTarget(svc.Spec.ExternalName) {
				r.reasons[badTarget]++
				continue
			}
		} else {
			r.ports(svc)
			r.clusterIPs(svc, c.Services)
			names[svc.Namespace+"/"+svc.Name] = true
		}
		r.Services = append(r.Services, svc)
	}
	for _, slice := range c.Slices {
		switch {
		case !names[serviceOf(slice).String()]:
			r.reasons[orphanSlice]++
		case slice.AddressType == discoveryv1.AddressTypeFQDN:
			r.reasons[fqdnSlice]++
		default:
			r.Slices = append(r.Slices, r.slice(slice))
		}
	}
	return r.dnsCluster
}

var hostName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?$`)

func isTarget(name string) bool {
	_, err := netip.ParseAddr(name)
	return err != nil && hostName.MatchString(name)
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// addr is the usual text of an address, and whether it is one.
func (r dnsReading) addr(text string) (string, bool) {
	if usual, found := dnsSpellings[text]; found {
		r.reasons[otherSpelling]++
		return usual, true
	}
	addr, err := netip.ParseAddr(text)
	return text, err == nil && addr.Zone() == ""
}

func isPort(number int32) bool { return number >= 1 && number <= 65535 }

func (r dnsReading) ports(svc *corev1.Service) {
	svc.Spec.Ports = slices.DeleteFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
		if !isPort(p.Port) {
			r.reasons[badPort]++
		}
		return !isPort(p.Port)
	})
	for i := range svc.Spec.Ports {
		if svc.Spec.Ports[i].Protocol == "" {
			r.reasons[noProtocol]++
			svc.Spec.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
}

// clusterIPs keeps the addresses that a Service has before all others.
func (r dnsReading) clusterIPs(svc *corev1.Service, all []*corev1.Service) {
	if svc.Spec.ClusterIP == corev1.ClusterIPNone {
		return
	}
	var kept []string
	for _, text := range svc.Spec.ClusterIPs {
		addr, is := r.addr(text)
		switch {
		case !is && text != "":
			r.reasons[notAddress]++
		case is && r.isAnothers(addr, svc, all):
			r.reasons[anothersAddr]++
		case is:
			kept = append(kept, addr)
		}
	}
	if kept == nil {
		r.reasons[withoutAddress]++
		kept = []string{""}
	}
	svc.Spec.ClusterIP, svc.Spec.ClusterIPs = kept[0], kept
}

func (r dnsReading) isAnothers(addr string, svc *corev1.Service, all []*corev1.Service) bool {
	quiet := dnsReading{reasons: map[string]int{}}
	return slices.ContainsFunc(all, func(other *corev1.Service) bool {
		if other.Spec.Type == corev1.ServiceTypeExternalName || other.Namespace == svc.Namespace && other.Name == svc.Name || !dnsBefore(other, svc) {
			return false
		}
		return slices.ContainsFunc(other.Spec.ClusterIPs, func(text string) bool {
			theirs, is := quiet.addr(text)
			return is && theirs == addr
		})
	})
}

// dnsBefore reports whether a Service is older than another, or as old and first by name. One of
// unknown age is the youngest.
func dnsBefore(a, b *corev1.Service) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.IsZero() || !a.CreationTimestamp.IsZero() && a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.Name < b.Name
}

func (r dnsReading) slice(from *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	slice := from.DeepCopy()
	slice.Ports = slices.DeleteFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
		bad := p.Port != nil && !isPort(*p.Port)
		if bad {
			r.reasons[badPort]++
		}
		return bad
	})
	for i := range slice.Ports {
		if slice.Ports[i].Protocol == nil {
			r.reasons[noProtocol]++
			slice.Ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
	slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		_, is := r.family(slice.AddressType, e.Addresses[0])
		if !is {
			r.reasons[badEndpoint]++
		}
		return !is
	})
	for i := range slice.Endpoints {
		r.endpoint(slice.AddressType, &slice.Endpoints[i])
	}
	return slice
}

func (r dnsReading) endpoint(family discoveryv1.AddressType, e *discoveryv1.Endpoint) {
	var kept []string
	for _, text := range e.Addresses {
		if addr, is := r.family(family, text); is {
			kept = append(kept, addr)
		} else {
			r.reasons[notAddress]++
		}
	}
	e.Addresses = kept
	if e.Hostname != nil && !dnsLabel.MatchString(strings.ToLower(*e.Hostname)) {
		r.reasons[badHostname]++
		e.Hostname = nil
	}
}

// family is addr for a slice, whose addresses are of one family.
func (r dnsReading) family(family discoveryv1.AddressType, text string) (string, bool) {
	addr, is := r.addr(text)
	return addr, is && strings.Contains(addr, ":") == (family == discoveryv1.AddressTypeIPv6)
}

// withoutRefused returns a cluster without the addresses of a Service and its ports that count as
// not ready: of those that do not terminate one that is ready counts, else the last, and of others
// the first.
func withoutRefused(c dnsCluster, reasons map[string]int) dnsCluster {
	type state struct{ ready, terminating bool }
	counts := map[string]state{}
	key := func(slice *discoveryv1.EndpointSlice, addr string) string {
		return strings.Join([]string{serviceOf(slice).String(), addr, portsText(slice.Ports)}, " ")
	}
	c.Slices = slices.Clone(c.Slices)
	slices.SortFunc(c.Slices, topology.CompareObjects)
	for _, slice := range c.Slices {
		count := func(addr string, e discoveryv1.Endpoint) {
			now := state{valueOr(e.Conditions.Ready, true), valueOr(e.Conditions.Terminating, false)}
			before, found := counts[key(slice, addr)]
			stays := found && (now.terminating || before == state{ready: true} && !now.ready)
			if !stays {
				counts[key(slice, addr)] = now
			}
		}
		for _, e := range slice.Endpoints {
			count(e.Addresses[0], e)
		}
		for _, e := range slice.Endpoints {
			for _, addr := range e.Addresses[1:] {
				count(addr, e)
			}
		}
	}
	return withoutReady(c, func(slice *discoveryv1.EndpointSlice, _ discoveryv1.Endpoint, addr string) bool {
		if counts[key(slice, addr)].ready {
			return false
		}
		reasons[refused]++
		return true
	})
}

// withoutReady returns a cluster without some addresses of ready endpoints.
func withoutReady(c dnsCluster, isLeftOut func(slice *discoveryv1.EndpointSlice, e discoveryv1.Endpoint, addr string) bool) dnsCluster {
	rest := c
	rest.Slices = nil
	for _, slice := range c.Slices {
		slice = slice.DeepCopy()
		for i := range slice.Endpoints {
			if e := &slice.Endpoints[i]; valueOr(e.Conditions.Ready, true) {
				e.Addresses = slices.DeleteFunc(e.Addresses, func(addr string) bool { return isLeftOut(slice, *e, addr) })
			}
		}
		slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return len(e.Addresses) == 0 })
		rest.Slices = append(rest.Slices, slice)
	}
	return rest
}

// withoutRepeats returns a cluster in which a Service has each ready endpoint once.
func withoutRepeats(c dnsCluster, reasons map[string]int) dnsCluster {
	seen := map[string]bool{}
	return withoutReady(c, func(slice *discoveryv1.EndpointSlice, e discoveryv1.Endpoint, addr string) bool {
		hostname := strings.ToLower(valueOr(e.Hostname, dnsHostnameOf(addr)))
		key := strings.Join([]string{serviceOf(slice).String(), hostname, addr, valueOr(e.NodeName, ""), portsText(slice.Ports)}, " ")
		again := seen[key]
		if seen[key] = true; again {
			reasons[repeated]++
		}
		return again
	})
}

// portsText is what DNS says of ports: those first that rules are made of.
func portsText(ports []discoveryv1.EndpointPort) string {
	var whole, others []string
	for _, p := range ports {
		text := fmt.Sprintf("%s/%s/%d", valueOr(p.Name, ""), *p.Protocol, valueOr(p.Port, -1))
		if p.Name != nil && p.Port != nil {
			whole = append(whole, text)
		} else {
			others = append(others, text)
		}
	}
	return strings.Join(append(whole, others...), " ")
}
