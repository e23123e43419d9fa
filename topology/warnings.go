package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
)

// warnings returns what is ignored of a Service and its EndpointSlices, and why: each kind
// once, with its first case. A recent API server refuses most of these fields; older ones
// stored them. An Event has the first warning alone, so annotations, which are a guess, come
// last. Endpoints at unusable addresses are in ServicePort.Ignored instead.
func warnings(svc *corev1.Service, own []*Slice) []string {
	return slices.Concat(keyWarnings(svc), portWarnings(svc), addressWarnings(svc), rangeWarnings(svc), sliceWarnings(own), misspelled(svc))
}

// keyWarnings returns at most one warning: of a key that a readable annotation repeats.
func keyWarnings(svc *corev1.Service) []string {
	if _, _, err := ParseKeys(svc.Annotations); err != nil {
		return nil
	}
	var keys []string
	if json.Unmarshal([]byte(svc.Annotations[AnnotationKeys]), &keys) != nil {
		return nil // absent
	}
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			return []string{fmt.Sprintf("annotation %s names %s more than once; it counts once", AnnotationKeys, excerpt.Quoted(key))}
		}
	}
	return nil
}

// ValidPort reports whether a number is a port from 1 to 65535.
func ValidPort(number int32) bool { return number >= 1 && number <= 65535 }

const (
	wantPort        = "is not a port from 1 to 65535"
	portWarningsMax = 3 // of one Service
)

func portWarnings(svc *corev1.Service) []string {
	var found []string
	for _, p := range svc.Spec.Ports {
		if !ValidPort(p.Port) {
			found = append(found, fmt.Sprintf("port %s: %d %s; the port is ignored", excerpt.Quoted(p.Name), p.Port, wantPort))
		} else if p.NodePort != 0 && !ValidPort(p.NodePort) {
			found = append(found, fmt.Sprintf("port %s: nodePort %d %s; it is ignored", excerpt.Quoted(p.Name), p.NodePort, wantPort))
		}
	}
	if n := svc.Spec.HealthCheckNodePort; n != 0 && !ValidPort(n) {
		found = append(found, fmt.Sprintf("healthCheckNodePort %d %s; it is ignored", n, wantPort))
	}
	if left := len(found) - portWarningsMax; left > 0 {
		return append(found[:portWarningsMax], fmt.Sprintf("%d more ports are ignored", left))
	}
	return found
}

// addressWarnings returns warnings of addresses at which clients cannot reach the Service.
func addressWarnings(svc *corev1.Service) []string {
	var external, balancer, cluster ignored
	for _, text := range svc.Spec.ExternalIPs {
		_, err := ExternalAddr(text)
		external.add(err)
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			_, err := ExternalAddr(ingress.IP)
			balancer.add(err)
		}
	}
	for _, text := range svc.Spec.ClusterIPs {
		_, err := ParseAddr(text)
		cluster.add(err)
	}
	return slices.Concat(external.warning("externalIPs"), balancer.warning("status.loadBalancer"), cluster.warning("clusterIPs"))
}

// rangeWarnings returns at most one warning: of unreadable source ranges and their effect.
func rangeWarnings(svc *corev1.Service) []string {
	var unreadable ignored
	var ipv4, ipv6 bool // a range of the family can be read
	for _, text := range svc.Spec.LoadBalancerSourceRanges {
		p, err := ParsePrefix(text)
		unreadable.add(err)
		ipv4, ipv6 = ipv4 || err == nil && p.Addr().Is4(), ipv6 || err == nil && p.Addr().Is6()
	}
	found := unreadable.warning("loadBalancerSourceRanges")
	switch {
	case len(found) == 0 || ipv4 && ipv6:
	case ipv4:
		found[0] += ", so an IPv6 load balancer drops all clients"
	case ipv6:
		found[0] += ", so an IPv4 load balancer drops all clients"
	default:
		found[0] += ", so the load balancer drops all clients"
	}
	return found
}

// sliceWarnings returns warnings of ports and addresses in EndpointSlices that are not valid.
func sliceWarnings(own []*Slice) []string {
	var all ignoredParts
	for _, slice := range own {
		if slice.ignored != nil {
			all.ports.merge(slice.ignored.ports)
			all.addresses.merge(slice.ignored.addresses)
		}
	}
	return slices.Concat(all.ports.warning("ports of EndpointSlice"), all.addresses.warning("addresses of EndpointSlice"))
}

// ignored counts what is wrong with one field.
type ignored struct {
	first error
	count int
}

func (n *ignored) add(err error) {
	if err != nil {
		n.merge(ignored{err, 1})
	}
}

func (n *ignored) merge(m ignored) {
	n.first, n.count = cmp.Or(n.first, m.first), n.count+m.count
}

// warning returns at most one warning: the first error of a field, and how many more there are.
func (n *ignored) warning(field string) []string {
	switch n.count {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("%s %v; it is ignored", field, n.first)}
	default:
		return []string{fmt.Sprintf("%s %v; it and %d more are ignored", field, n.first, n.count-1)}
	}
}
