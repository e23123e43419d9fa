package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What the cluster of names consists of.
const (
	dnsNamespaces = 20
	farNode       = "far" // of another unit
	maxAsked      = 2000  // Services that are asked for
)

// namedService is a Service of the cluster of names. One in five is headless, with endpoints in
// this unit only, so that all servers give the same answer; every other one is closed.
type namedService struct{ number int }

func (s namedService) name() string      { return nameOf(s.number) }
func (s namedService) namespace() string { return fmt.Sprintf("team-%02d", s.number%dnsNamespaces) }
func (s namedService) headless() bool    { return s.number%5 == 0 }
func (s namedService) closed() bool      { return s.number%2 == 0 }

func (s namedService) dnsName() string {
	return s.name() + "." + s.namespace() + ".svc.cluster.local"
}

func (s namedService) endpoints() int {
	if s.headless() {
		return 4
	}
	return 2
}

// addr is that of an endpoint. A changed one has another.
func (s namedService) addr(endpoint int, changed bool) netip.Addr {
	n := s.number<<3 + endpoint
	first := byte(11)
	if changed {
		first = 12
	}
	return netip.AddrFrom4([4]byte{first, byte(n >> 16), byte(n >> 8), byte(n)})
}

// addClusterDNS makes what is there before Services: namespaces, a Node of another unit, and the
// Service of the cluster's DNS.
func (c *dnsCompare) addClusterDNS(ctx context.Context) error {
	for i := range dnsNamespaces {
		name := namedService{i}.namespace()
		if _, err := c.world.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making namespace %s: %w", name, err)
		}
	}
	far := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: farNode, Labels: map[string]string{netns.UnitKey: netns.Guangzhou}}}
	if _, err := c.world.api.CoreV1().Nodes().Create(ctx, far, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making node %s: %w", farNode, err)
	}
	kubeDNS := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP},
		}},
	}
	if _, err := c.world.api.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, kubeDNS, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making Service kube-dns: %w", err)
	}
	return nil
}

// seed makes Services until there are n. The older ones are kept.
func (c *dnsCompare) seed(ctx context.Context, n int) error {
	say("making %d Services, one in five headless, every other closed", n)
	first := c.seeded
	c.seeded = n
	return inParallel(ctx, n-first, func(i int) error {
		s := namedService{first + i}
		if _, err := c.world.api.CoreV1().Services(s.namespace()).Create(ctx, s.service(), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making Service %s: %w", s.name(), err)
		}
		if _, err := c.world.api.DiscoveryV1().EndpointSlices(s.namespace()).Create(ctx, s.slice(false), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making EndpointSlice %s: %w", s.name(), err)
		}
		return nil
	})
}

func (s namedService) service() *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.name(), Labels: map[string]string{"app": s.name()}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": s.name()},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(answers), Protocol: corev1.ProtocolTCP}},
		},
	}
	if s.headless() {
		svc.Spec.ClusterIP = corev1.ClusterIPNone
	}
	if s.closed() {
		svc.Annotations = map[string]string{"topologyKeys": fmt.Sprintf("[%q]", netns.UnitKey)}
	}
	return svc
}

// slice has the endpoints as the controller writes them. What changes is the last address.
func (s namedService) slice(changed bool) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: s.name(), Labels: map[string]string{
			discoveryv1.LabelServiceName: s.name(), discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(answers)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for i := range s.endpoints() {
		pod := fmt.Sprintf("%s-%d", s.name(), i)
		e := discoveryv1.Endpoint{
			Addresses: []string{s.addr(i, changed && i == s.endpoints()-1).String()}, NodeName: new(podsNode),
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace(), Name: pod, UID: types.UID(fmt.Sprintf("6f1d2c3b-4a59-4e68-8f77-%012d", s.number*8+i))},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		}
		if s.headless() {
			e.Hostname = &pod
		} else if i == 1 {
			e.NodeName = new(farNode)
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	return slice
}

// questions are of names that exist, in the form of dnsperf, in any order that is always the same:
// of each Service both families, as resolvers ask, of some SRV, of some who has an address.
func (c *dnsCompare) questions(services int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	var all []string
	for _, number := range random.Perm(services)[:min(services, maxAsked)] {
		s := namedService{number}
		all = append(all, s.dnsName()+" A", s.dnsName()+" AAAA")
		switch {
		case number%10 == 1:
			all = append(all, "_http._tcp."+s.dnsName()+" SRV")
		case s.headless():
			a := s.addr(0, false).As4()
			all = append(all, fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa PTR", a[3], a[2], a[1], a[0]), s.name()+"-1."+s.dnsName()+" A")
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// missingQuestions are of names that do not exist: those that a resolver makes of its search path,
// and Services that are missing.
func missingQuestions(services int) []string {
	random := rand.New(rand.NewPCG(3, 4))
	var all []string
	for _, number := range random.Perm(services)[:min(services, maxAsked)] {
		s := namedService{number}
		for _, name := range []string{
			"www.example.com." + s.namespace() + ".svc.cluster.local", "www.example.com.svc.cluster.local",
			s.name() + "." + s.namespace() + "." + s.namespace() + ".svc.cluster.local", "missing-" + s.dnsName(),
		} {
			all = append(all, name+" A", name+" AAAA")
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// in reports whether a text of addresses holds the endpoint of a change.
func (s namedService) in(addrs []string, changed bool) bool {
	return strings.Contains(" "+strings.Join(addrs, " ")+" ", " "+s.addr(s.endpoints()-1, changed).String()+" ")
}
