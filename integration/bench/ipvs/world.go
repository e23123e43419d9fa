package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"gridproxy/integration/fakeapi"
	"gridproxy/integration/lab"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The Pods behind all Services are on a node of their own. Before a change the endpoints are the old
// Pods, after it the new ones; what a Pod sends to everybody who connects tells which.
const (
	podsNode = "pods"
	port     = 9000
	oldPod   = byte('A')
	newPod   = byte('B')
)

// world is the lab, the fake API server in it, and what was made there.
type world struct {
	settings
	lab     *lab.Lab
	api     *fakeapi.Server
	dir     string
	servers []net.Listener
}

func layout() lab.Layout {
	var l lab.Layout
	add := func(node string, pods ...string) {
		i := len(l.Nodes)
		l.Nodes = append(l.Nodes, lab.NodeSpec{
			Name: node, Labels: map[string]string{lab.UnitKey: lab.Beijing},
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 10, byte(10 + i)}), netip.MustParseAddr(fmt.Sprintf("fd00:18::%d", i+1))},
			PodCIDRs: []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24), netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/64", i)),
			},
		})
		for k, p := range pods {
			l.Pods = append(l.Pods, lab.PodSpec{Name: p, Node: node, Addrs: []netip.Addr{
				netip.AddrFrom4([4]byte{10, 0, byte(i), byte(2 + k)}), netip.MustParseAddr(fmt.Sprintf("fd00:10:%d::%d", i, 2+k)),
			}})
		}
	}
	add(podsNode, "old-1", "old-2", "new-1", "new-2")
	for _, c := range contenders() {
		add(c.node, lab.ClientOn(c.node))
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

func newWorld(s settings) (_ *world, err error) {
	w := &world{settings: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "gridproxy-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if w.lab, err = lab.New(layout()); err != nil {
		return nil, fmt.Errorf("building the namespaces: %w", err)
	}
	for _, says := range []byte{oldPod, newPod} {
		for _, name := range pods(says) {
			l, err := listen(w.lab.Pod(name).Namespace, fmt.Sprintf(":%d", port))
			if err != nil {
				return nil, err
			}
			w.servers = append(w.servers, l)
			go serve(l, says)
		}
	}
	l, err := listen(w.lab.Outside, netip.AddrPortFrom(w.lab.Outside.Addr(lab.IPv4), 0).String())
	if err != nil {
		return nil, err
	}
	w.api = fakeapi.Serve(l)
	return w, w.seed()
}

func listen(ns *lab.Namespace, address string) (l net.Listener, err error) {
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

// seed makes the nodes and the Services.
func (w *world) seed() error {
	for _, n := range lab.NewManifests(w.dir, layout()).Nodes {
		if err := w.api.Put(n); err != nil {
			return err
		}
	}
	for number := range w.services {
		if err := w.api.Put(service(number), w.slice(number, oldPod)); err != nil {
			return err
		}
	}
	return nil
}

func name(number int) string { return fmt.Sprintf("svc-%05d", number) }

func vip(number int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(number >> 8), byte(number)}), 80)
}

func service(number int) *corev1.Service {
	ip := vip(number).Addr().String()
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name(number), Annotations: map[string]string{"topologyKeys": fmt.Sprintf("[%q]", lab.UnitKey)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func (w *world) slice(number int, says byte) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name(number), Labels: map[string]string{discoveryv1.LabelServiceName: name(number)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for _, pod := range pods(says) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{w.lab.Pod(pod).Addr(lab.IPv4).String()}, NodeName: new(podsNode),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
		})
	}
	return s
}

func (w *world) close() error {
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
