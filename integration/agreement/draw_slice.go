package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addSlices draws the EndpointSlices of Service number i: several of each family, some
// with names made by hand, one now and then that names no Service or the wrong one.
func (d *drawing) addSlices(svc *corev1.Service, i int) {
	for range oneOf(d, 0, 1, 1, 2, 2, 3, 4) {
		slice := d.newSlice(svc.Namespace, oneOf(d, svc.Name+"-%05d", svc.Name+"-manual-%d", "made-by-hand-%d", "web-1-%05d"))
		slice.Labels[labelServiceName] = svc.Name
		if d.chance(4) {
			delete(slice.Labels, labelServiceName)
		}
		if d.chance(4) {
			slice.Labels[labelHeadless] = ""
		}
		if d.chance(4) {
			slice.Labels[labelProxyName] = oneOf(d, "", "another-proxy")
		}
		if d.chance(4) {
			slice.Labels[labelServiceName] = oneOf(d, "web-1", "nobody", "")
		}
		slice.AddressType = oneOf(d, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeIPv6)
		if len(svc.Spec.IPFamilies) == 1 && d.chance(80) {
			slice.AddressType = discoveryv1.AddressType(svc.Spec.IPFamilies[0])
		}
		if d.chance(3) {
			slice.AddressType = discoveryv1.AddressTypeFQDN
		}
		d.drawSlicePorts(slice, svc)
		hints := oneOf(d, "", "", "zones", "nodes", "both", "some")
		for range d.IntN(6) {
			slice.Endpoints = append(slice.Endpoints, d.fromPool(i, slice.AddressType, hints))
		}
	}
}

// newSlice adds an EndpointSlice whose name no other has.
func (d *drawing) newSlice(namespace, format string) *discoveryv1.EndpointSlice {
	name := fmt.Sprintf(format, d.IntN(100))
	for d.taken[namespace+"/"+name] {
		name += "x"
	}
	d.taken[namespace+"/"+name] = true
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
	}
	d.Slices = append(d.Slices, slice)
	return slice
}

// drawSlicePorts writes the Service's ports as the controller would, and now and then
// one that leads nowhere. A protocol is never nil: the API server defaults it, and
// kube-proxy would crash.
func (d *drawing) drawSlicePorts(slice *discoveryv1.EndpointSlice, svc *corev1.Service) {
	target := oneOf[int32](d, 8080, 8080, 9090)
	for n, port := range svc.Spec.Ports {
		p := discoveryv1.EndpointPort{Name: new(port.Name), Port: new(target + int32(n)), Protocol: new(port.Protocol)}
		switch chance := d.IntN(100); {
		case chance < 3:
			p.Name = nil
		case chance < 6:
			p.Port = nil
		case chance < 9:
			p.Protocol = new(oneOf(d, corev1.ProtocolTCP, corev1.ProtocolUDP))
		case chance < 12:
			p.Name = new("other")
		case chance < 15:
			continue
		}
		slice.Ports = append(slice.Ports, p)
	}
}

// fromPool draws an endpoint of Service number i. An address that appears twice is twice
// the same endpoint, or once one that terminates and once its successor: with two
// successors kube-proxy's answer depends on the order of a map. Where one of them is ready,
// kube-proxy takes the last one, and gridproxy on purpose the ready one.
func (d *drawing) fromPool(i int, family discoveryv1.AddressType, hints string) discoveryv1.Endpoint {
	if family == discoveryv1.AddressTypeFQDN {
		return discoveryv1.Endpoint{Addresses: []string{"pod.example.com"}, NodeName: new("edge-1")}
	}
	ipv6 := family == discoveryv1.AddressTypeIPv6
	node := 1 + d.IntN(7) // 7 is never known; others sometimes not
	address := podAddr(node, 10*i+d.IntN(4), ipv6)
	if d.chance(10) { // on the host network
		address = fmt.Sprintf(map[bool]string{false: "192.168.0.%d", true: "fd00:192:168::%d"}[ipv6], 10+node)
	}
	both, found := d.pool[address]
	if !found {
		both = [2]discoveryv1.Endpoint{d.drawEndpoint(address, node, hints, false), d.drawEndpoint(address, node, hints, true)}
		d.pool[address] = both
	}
	if d.chance(20) {
		return both[1]
	}
	return both[0]
}

func (d *drawing) drawEndpoint(address string, node int, hints string, terminating bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, NodeName: new(fmt.Sprintf("edge-%d", node))}
	switch n := d.IntN(20); {
	case n < 2:
		e.NodeName = nil
	case n < 3:
		e.NodeName = new("ghost")
	case n < 4: // an address may tell another story than nodeName
		e.NodeName = new("edge-1")
	}
	if d.chance(3) {
		e.Addresses = append(e.Addresses, address+"9")
	}
	e.Conditions = oneOf(d,
		discoveryv1.EndpointConditions{},
		discoveryv1.EndpointConditions{Ready: new(true)},
		discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		discoveryv1.EndpointConditions{Ready: new(false)},
		discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(false)},
		discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true)},
		discoveryv1.EndpointConditions{Ready: new(true), Serving: new(false)},
	)
	if terminating {
		e.Conditions = oneOf(d,
			discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
			discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
			discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(true)},
			discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(true)},
			discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(true)}, // publishNotReadyAddresses
			discoveryv1.EndpointConditions{Terminating: new(true)},
		)
	}
	d.hint(&e, hints)
	return e
}

func (d *drawing) hint(e *discoveryv1.Endpoint, hints string) {
	if hints == "" || hints == "some" && d.chance(30) {
		return
	}
	e.Hints = &discoveryv1.EndpointHints{}
	if hints != "nodes" {
		for _, zone := range oneOf(d, []string{"z1"}, []string{"z1"}, []string{"z2"}, []string{"z1", "z2"}) {
			e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: zone})
		}
	}
	if hints == "nodes" || hints == "both" {
		e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: oneOf(d, "edge-1", "edge-1", "edge-2", "edge-3")})
	}
}

// addAPIServer adds default/kubernetes, mostly with a node-local proxy in the annotations
// of its slice, well spelt or not.
func (d *drawing) addAPIServer() {
	svc := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", UID: "uid-kubernetes", Annotations: map[string]string{}},
	}
	svc.Spec.Type = corev1.ServiceTypeClusterIP
	svc.Spec.ClusterIP, svc.Spec.ClusterIPs, svc.Spec.IPFamilies = "10.96.0.1", []string{"10.96.0.1"}, []corev1.IPFamily{corev1.IPv4Protocol}
	svc.Spec.Ports = []corev1.ServicePort{{Name: oneOf(d, "https", "https", "https", "tls"), Port: 443, Protocol: corev1.ProtocolTCP}}
	if d.chance(30) {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 8443, Protocol: corev1.ProtocolTCP})
	}
	if d.chance(30) {
		svc.Spec.ClusterIPs, svc.Spec.IPFamilies = append(svc.Spec.ClusterIPs, "fd00:10:96::1"), append(svc.Spec.IPFamilies, corev1.IPv6Protocol)
	}
	if d.chance(40) {
		d.annotate(svc)
	}
	d.Services = append(d.Services, svc)
	for n := range oneOf(d, 1, 1, 2) {
		slice := d.newSlice("default", "kubernetes%.0d")
		slice.Labels[labelServiceName] = "kubernetes"
		slice.AddressType = discoveryv1.AddressTypeIPv4
		address := fmt.Sprintf("192.168.9.%d", n+1)
		if n > 0 && d.chance(50) {
			slice.AddressType, address = discoveryv1.AddressTypeIPv6, "fd00:192:168:9::1"
		}
		d.drawSlicePorts(slice, svc)
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
		if d.chance(75) {
			slice.Annotations[annotationEndpoint] = oneOf(d, "169.254.20.11", "169.254.20.11", "169.254.20.11", "fd00:169:254::11", "localhost", "", "169.254.20.300")
		}
		if d.chance(90) {
			slice.Annotations[annotationPort] = oneOf(d, "51003", "51003", "51003", "51003", "0", "70000", "-1", "https", "")
		}
	}
}

// addStraySlices adds slices of Services that are not there.
func (d *drawing) addStraySlices() {
	if !d.chance(20) {
		return
	}
	slice := d.newSlice("shop", "stray-%05d")
	slice.Labels[labelServiceName] = "gone"
	slice.AddressType = discoveryv1.AddressTypeIPv4
	slice.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.250"}, NodeName: new("edge-1")}}
}
