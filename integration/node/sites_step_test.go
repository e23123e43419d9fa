package node

import (
	"fmt"
	"slices"
	"time"

	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serviceNames are the Services that may exist.
func serviceNames() []string {
	return []string{"web-0", "web-1", "web-2", "web-3", "web-4", "web-5", "web-6", "web-7"}
}

// The kinds of a step. Any other number is a change of endpoints too.
const (
	stepLink = iota
	stepReboot
	stepRestart
	stepMove
	stepService
	stepEndpoints
	stepNumbers = 9
)

// step does one thing: first each kind once, with a machine that is cut off, then random ones.
func (s *sites) step(number int) {
	s.t.Helper()
	kind, n := s.random.IntN(stepNumbers), s.nodes[s.random.IntN(len(s.nodes))]
	if number <= stepEndpoints {
		kind = number
		if i := slices.IndexFunc(s.nodes, (*siteNode).isCut); i >= 0 {
			n = s.nodes[i]
		}
	}
	name := serviceNames()[s.random.IntN(len(serviceNames()))]
	kill := s.random.IntN(2) == 0
	switch kind {
	case stepLink:
		s.changeLink(s.random.IntN(3))
	case stepRestart:
		s.note("restart", fmt.Sprintf("%s, killed %v", n.Name, kill))
		n.end(kill)
		n.start()
	case stepReboot:
		s.note("reboot", fmt.Sprintf("%s, killed %v", n.Name, kill))
		n.reboot(kill)
	case stepMove:
		key, values := netns.UnitKey, units()
		if s.random.IntN(3) == 0 {
			key, values = zoneKey, zones()
		}
		value := values[s.random.IntN(len(values))]
		s.note("move", fmt.Sprintf("%s to %s", n.Name, value))
		n.move(key, value)
	case stepService:
		s.changeService(name)
	default:
		s.note("endpoints", name)
		s.setEndpoints(name)
	}
}

// changeLink cuts the link of a site for a while, or gives it back early. Daemons that may not know
// yet what they missed in the last cut are left alone.
func (s *sites) changeLink(site int) {
	s.t.Helper()
	both := s.nodes[2*site : 2*site+2]
	if both[0].isCut() {
		both[0].back, both[1].back = time.Time{}.Add(1), time.Time{}.Add(1)
		s.returnLinks(time.Now())
		return
	}
	if slices.ContainsFunc(both, func(n *siteNode) bool { return n.follows != nil || n.returned }) {
		return
	}
	refused := s.random.IntN(2) == 0
	lasts := time.Second + time.Duration(s.random.Int64N(int64(29*time.Second)))
	for _, n := range both {
		s.setLink(n, "-I", refused)
		n.back, n.refused = time.Now().Add(lasts), refused
	}
	s.note("cut", fmt.Sprintf("site %d for %s, connections refused %v", site, lasts.Round(time.Second), refused))
}

// keys are random ones: most Services are closed by location, some by two keys, some are open.
func (s *sites) keys() map[string]string {
	switch s.random.IntN(6) {
	case 0:
		return nil
	case 1, 2:
		return map[string]string{"topologyKeys": `["zone","location"]`}
	}
	return map[string]string{"topologyKeys": `["location"]`}
}

// service is a random Service.
func (s *sites) service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: s.keys()},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80 + s.random.Int32N(3)}}},
	}
}

func (s *sites) create(name string) {
	s.t.Helper()
	_, err := s.api.CoreV1().Services("default").Create(s.ctx, s.service(name), metav1.CreateOptions{})
	must(s.t, err)
	port := int32(8080)
	_, err = s.api.DiscoveryV1().EndpointSlices("default").Create(s.ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: &port}},
		Endpoints: s.someEndpoints(name),
	}, metav1.CreateOptions{})
	must(s.t, err)
	s.exists[name] = true
}

// changeService creates a Service that does not exist, or else deletes or changes it.
func (s *sites) changeService(name string) {
	s.t.Helper()
	services := s.api.CoreV1().Services("default")
	switch {
	case !s.exists[name]:
		s.note("create", name)
		s.create(name)
		return
	case s.random.IntN(3) == 0:
		s.note("delete", name)
		must(s.t, s.api.DiscoveryV1().EndpointSlices("default").Delete(s.ctx, name, metav1.DeleteOptions{}))
		must(s.t, services.Delete(s.ctx, name, metav1.DeleteOptions{}))
		s.exists[name] = false
		return
	}
	s.note("change", name)
	o, err := services.Get(s.ctx, name, metav1.GetOptions{})
	must(s.t, err)
	next := s.service(name)
	o.Annotations, o.Spec.Ports = next.Annotations, next.Spec.Ports
	_, err = services.Update(s.ctx, o, metav1.UpdateOptions{})
	must(s.t, err)
}

// setEndpoints gives a Service other endpoints, if it exists.
func (s *sites) setEndpoints(name string) {
	s.t.Helper()
	if !s.exists[name] {
		return
	}
	client := s.api.DiscoveryV1().EndpointSlices("default")
	o, err := client.Get(s.ctx, name, metav1.GetOptions{})
	must(s.t, err)
	o.Endpoints = s.someEndpoints(name)
	_, err = client.Update(s.ctx, o, metav1.UpdateOptions{})
	must(s.t, err)
}

// someEndpoints are up to two on each Node: ready, not ready, terminating, or none.
func (s *sites) someEndpoints(name string) []discoveryv1.Endpoint {
	endpoints := []discoveryv1.Endpoint{}
	for i, n := range s.nodes {
		for k := range 2 {
			e := discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.1.%d.%d", i, 10*int(name[len(name)-1]-'0')+k)}, NodeName: &n.Name,
			}
			switch s.random.IntN(6) {
			case 0, 1:
				continue
			case 2:
				e.Conditions = discoveryv1.EndpointConditions{Ready: new(false)}
			case 3:
				e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
			}
			endpoints = append(endpoints, e)
		}
	}
	return endpoints
}
