package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ipvsWorld is the lab, the fake API server in it, and what was made there.
type ipvsWorld struct {
	ipvsSettings
	lab     *netns.Lab
	api     *need.FakeAPI
	dir     string
	servers []net.Listener
}

func ipvsLayout() netns.Layout {
	var l netns.Layout
	add := func(node string, pods ...string) {
		i := len(l.Nodes)
		l.Nodes = append(l.Nodes, netns.NodeSpec{
			Name: node, Labels: map[string]string{netns.UnitKey: netns.Beijing},
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 10, byte(10 + i)}), netip.MustParseAddr(fmt.Sprintf("fd00:18::%d", i+1))},
			PodCIDRs: []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24), netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/64", i)),
			},
		})
		for k, p := range pods {
			l.Pods = append(l.Pods, netns.PodSpec{Name: p, Node: node, Addrs: []netip.Addr{
				netip.AddrFrom4([4]byte{10, 0, byte(i), byte(2 + k)}), netip.MustParseAddr(fmt.Sprintf("fd00:10:%d::%d", i, 2+k)),
			}})
		}
	}
	add(podsNode, "old-1", "old-2", "new-1", "new-2")
	for _, c := range contenders() {
		add(c.node, netns.ClientOn(c.node))
	}
	return l
}

// pods are those that say the same.
func pods(says byte) []string {
	if says == oldPod {
		return []string{"old-1", "old-2"}
	}
	return []string{"new-1", "new-2"}
}

func newIPVSWorld(s ipvsSettings) (_ *ipvsWorld, err error) {
	w := &ipvsWorld{ipvsSettings: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "gridproxy-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if w.lab, err = netns.New(ipvsLayout()); err != nil {
		return nil, fmt.Errorf("building the namespaces: %w", err)
	}
	for _, says := range []byte{oldPod, newPod} {
		for _, name := range pods(says) {
			l, err := listen(w.lab.Pod(name).Namespace, fmt.Sprintf(":%d", answers))
			if err != nil {
				return nil, err
			}
			w.servers = append(w.servers, l)
			go serve(l, says)
		}
	}
	l, err := listen(w.lab.Outside, netip.AddrPortFrom(w.lab.Outside.Addr(netns.IPv4), 0).String())
	if err != nil {
		return nil, err
	}
	w.api = need.ServeFakeAPI(l)
	return w, w.seed()
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

// seed makes the nodes and the Services.
func (w *ipvsWorld) seed() error {
	for _, n := range netns.NewManifests(w.dir, ipvsLayout()).Nodes {
		if err := w.api.Put(n); err != nil {
			return err
		}
	}
	for number := range w.services {
		if err := w.api.Put(serviceOf(number), w.slice(number, oldPod)); err != nil {
			return err
		}
	}
	return nil
}

func vipOf(number int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(number >> 8), byte(number)}), 80)
}

func serviceOf(number int) *corev1.Service {
	ip := vipOf(number).Addr().String()
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: nameOf(number), Annotations: map[string]string{"topologyKeys": fmt.Sprintf("[%q]", netns.UnitKey)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(answers), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func (w *ipvsWorld) slice(number int, says byte) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: nameOf(number), Labels: map[string]string{discoveryv1.LabelServiceName: nameOf(number)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(answers)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for _, pod := range pods(says) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{w.lab.Pod(pod).Addr(netns.IPv4).String()}, NodeName: new(podsNode),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
		})
	}
	return s
}

func (w *ipvsWorld) close() error {
	var errs []error
	if w.api != nil {
		errs = append(errs, w.api.Close())
	}
	for _, l := range w.servers {
		errs = append(errs, l.Close())
	}
	if w.lab != nil {
		errs = append(errs, w.lab.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}
