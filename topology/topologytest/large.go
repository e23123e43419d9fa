package topologytest

import (
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Large is the size of a cluster for benchmarks. All of its Services are closed by the key zone.
// Every tenth is a NodePort Service. Zones have 50 Nodes each.
type Large struct {
	Services, Endpoints int // Endpoints of each Service
	Nodes               int
	Names               bool // slices are read with names
}

// slicesOf is how many endpoints the EndpointSlice controller puts into a slice.
const slicesOf = 100

// Snapshot returns the cluster as seen from its first Node.
func (l Large) Snapshot() topology.Snapshot {
	s := topology.Snapshot{
		Node:  largeNode(0),
		Nodes: make(map[string]labels.Set, l.Nodes),
		Host:  topology.Host{IPv4: true, IPv6: true, Addrs: []netip.Addr{netip.MustParseAddr("192.168.10.1")}},
	}
	s.Self = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node}}
	for i := range l.Nodes {
		s.Nodes[largeNode(i)] = labels.Set{
			"zone": fmt.Sprintf("zone-%d", i/50), "kubernetes.io/hostname": largeNode(i),
			"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}
	}
	for i := range l.Services {
		s.Services = append(s.Services, l.Service(i))
		for first := 0; first < l.Endpoints; first += slicesOf {
			s.Slices = append(s.Slices, l.slice(i, first, 0))
		}
	}
	return s
}

func largeNode(i int) string { return fmt.Sprintf("node-%05d", i) }

func largeName(i int) string { return fmt.Sprintf("svc-%06d", i) }

// Service returns Service number i, another object each time.
func (l Large) Service(i int) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: largeName(i), UID: types.UID(largeName(i)),
			Annotations: map[string]string{topology.AnnotationKeys: `["zone"]`},
		},
		Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: largeAddr(172, i), ClusterIPs: []string{largeAddr(172, i)},
			Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
	if i%10 == 0 {
		svc.Spec.Type, svc.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, int32(30000+i/10)
	}
	return svc
}

// slice returns the EndpointSlice of Service number i that begins with its endpoint number
// first. Another generation has other addresses.
func (l Large) slice(i, first, generation int) *topology.Slice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("%s-%05d", largeName(i), first),
			Labels: map[string]string{discoveryv1.LabelServiceName: largeName(i)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
	for n := first; n < min(first+slicesOf, l.Endpoints); n++ {
		number := i*l.Endpoints + n
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{largeAddr(byte(10+generation), number)},
			NodeName:   new(largeNode(number % l.Nodes)),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		})
	}
	if l.Names {
		return topology.NewSliceWithNames(slice)
	}
	return topology.NewSlice(slice)
}

func largeAddr(first byte, i int) string {
	return netip.AddrFrom4([4]byte{first, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}

// Move returns a copy of a Snapshot of this size in which the endpoints of Service number i have
// other addresses. Another generation, from 1 to 100, makes other ones.
func (l Large) Move(s topology.Snapshot, i, generation int) topology.Snapshot {
	each := (l.Endpoints + slicesOf - 1) / slicesOf
	s.Slices = slices.Clone(s.Slices)
	for n := range each {
		s.Slices[i*each+n] = l.slice(i, n*slicesOf, generation)
	}
	return s
}
