package main

import (
	"errors"
	"net/netip"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
)

// ipvsWorld is a stage with a fake API server.
type ipvsWorld struct {
	ipvsSettings
	*stage
	api *need.FakeAPI
}

func newIPVSWorld(s ipvsSettings) (_ *ipvsWorld, err error) {
	var nodes []string
	for _, c := range contenders() {
		nodes = append(nodes, c.node)
	}
	w := &ipvsWorld{ipvsSettings: s}
	if w.stage, err = newStage(nodes...); err != nil {
		return nil, err
	}
	l, err := listen(w.lab.Outside, netip.AddrPortFrom(w.lab.Outside.Addr(netns.IPv4), 0).String())
	if err != nil {
		return nil, errors.Join(err, w.stage.close())
	}
	w.api = need.ServeFakeAPI(l)
	if err := w.seed(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *ipvsWorld) seed() error {
	for _, n := range netns.NewManifests(w.dir, w.layout).Nodes {
		if err := w.api.Put(n); err != nil {
			return err
		}
	}
	for number := range w.services {
		if err := w.api.Put(serviceOf(number), w.slice(nameOf(number), oldPod)); err != nil {
			return err
		}
	}
	return nil
}

func vipOf(number int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(number >> 8), byte(number)}), 80)
}

// serviceOf returns a Service as an API server would have completed it.
func serviceOf(number int) *corev1.Service {
	s, ip := closedService(nameOf(number)), vipOf(number).Addr().String()
	s.Spec.Type, s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, ip, []string{ip}
	s.Spec.IPFamilies, s.Spec.SessionAffinity = []corev1.IPFamily{corev1.IPv4Protocol}, corev1.ServiceAffinityNone
	return s
}

func (w *ipvsWorld) close() error {
	return errors.Join(w.api.Close(), w.stage.close())
}
