package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The Pods behind all Services run on one node of their own. Before a change the endpoints are the
// old Pods, after it the new ones. The byte that a Pod sends to each client shows which.
const (
	podsNode = "pods"
	answers  = 9000 // port of the Pods
	oldPod   = byte('A')
	newPod   = byte('B')
)

func pods(says byte) []string {
	if says == oldPod {
		return []string{"old-1", "old-2"}
	}
	return []string{"new-1", "new-2"}
}

type stage struct {
	layout  netns.Layout
	lab     *netns.Lab
	dir     string
	servers []net.Listener
}

// newLayout returns the layout of a lab with the Pods behind Services, and with one Pod on each of
// these nodes, which asks.
func newLayout(nodes ...string) (l netns.Layout) {
	for i, name := range append([]string{podsNode}, nodes...) {
		on := []string{netns.ClientOn(name)}
		if name == podsNode {
			on = append(pods(oldPod), pods(newPod)...)
		}
		l.Nodes = append(l.Nodes, netns.NodeSpec{
			Name:   name,
			Labels: map[string]string{"kubernetes.io/hostname": name, netns.UnitKey: netns.Beijing},
			Addrs:  []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 10, byte(10 + i)}), netip.MustParseAddr(fmt.Sprintf("fd00:18::%d", i+1))},
			PodCIDRs: []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24), netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/64", i)),
			},
		})
		for k, p := range on {
			l.Pods = append(l.Pods, netns.PodSpec{Name: p, Node: name, Addrs: []netip.Addr{
				netip.AddrFrom4([4]byte{10, 0, byte(i), byte(2 + k)}), netip.MustParseAddr(fmt.Sprintf("fd00:10:%d::%d", i, 2+k)),
			}})
		}
	}
	return l
}

func newStage(nodes ...string) (_ *stage, err error) {
	s := &stage{layout: newLayout(nodes...)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "gridproxy-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if s.lab, err = netns.New(s.layout); err != nil {
		return nil, fmt.Errorf("building the namespaces: %w", err)
	}
	for _, says := range []byte{oldPod, newPod} {
		for _, name := range pods(says) {
			l, err := listen(s.lab.Pod(name).Namespace, fmt.Sprintf(":%d", answers))
			if err != nil {
				return nil, err
			}
			s.servers = append(s.servers, l)
			go serve(l, says)
		}
	}
	return s, nil
}

func listen(ns *netns.Namespace, address string) (l net.Listener, err error) {
	err = ns.Do(func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening in %s: %w", ns.Name, err)
	}
	return l, nil
}

func serve(l net.Listener, says byte) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte{says}) // a client that is gone needs no answer
		_ = conn.Close()
	}
}

func (s *stage) close() error {
	var errs []error
	for _, l := range s.servers {
		errs = append(errs, l.Close())
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// closedService returns a Service in whose unit are all nodes.
func closedService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{"topologyKeys": fmt.Sprintf("[%q]", netns.UnitKey)},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(answers), Protocol: corev1.ProtocolTCP}}},
	}
}

func (s *stage) slice(service string, says byte) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(answers)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for _, pod := range pods(says) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{s.lab.Pod(pod).Addr(netns.IPv4).String()}, NodeName: new(podsNode),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
		})
	}
	return slice
}
