// This file is compiled into kube-proxy's package proxy while its unit tests run on gridproxy's
// code: it replaces the choice of endpoints.

package proxy

import (
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/topology"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// CategorizeEndpoints asks topology.Resolve and rules.Compile which endpoints of a Service port a
// node uses under each traffic policy.
func CategorizeEndpoints(endpoints []Endpoint, info ServicePort, nodeName string, topologyLabels map[string]string) (cluster, local, all []Endpoint, any bool) {
	if nodeName == "" {
		nodeName = "a-node-without-hints"
	}
	self := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: topologyLabels}}
	snapshot := topology.Snapshot{
		Node: nodeName, Self: self, Nodes: map[string]labels.Set{nodeName: topologyLabels},
		Services: []*v1.Service{gridproxyService(info)},
		Host:     topology.Host{IPv4: true, IPv6: true},
	}
	for i, e := range endpoints {
		snapshot.Slices = append(snapshot.Slices, topology.NewSlice(gridproxySlice(i, e, nodeName)))
	}
	ruleset := rules.Compile(topology.Resolve(snapshot, topology.Config{}), rules.Config{})
	for _, service := range ruleset.Services {
		for _, set := range service.Sets {
			chosen := gridproxyChosen(endpoints, set.Endpoints)
			if set.Policy == rules.Local {
				local = chosen
			} else {
				cluster = chosen
			}
		}
		// Rejected is what has no endpoint anywhere. Without frontends there is nothing to reject.
		any = !slices.ContainsFunc(service.Frontends, func(f rules.Frontend) bool { return f.Verdict == rules.Reject })
	}
	all = slices.Concat(cluster, local)
	slices.SortFunc(all, func(a, b Endpoint) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	return cluster, local, slices.CompactFunc(all, func(a, b Endpoint) bool { return a.String() == b.String() }), any
}

// gridproxyService is a Service with one port that has the properties of info.
func gridproxyService(info ServicePort) *v1.Service {
	svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	svc.Spec.ClusterIP = "172.30.0.1"
	svc.Spec.Ports = []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP, NodePort: int32(info.NodePort())}}
	if info.NodePort() != 0 {
		svc.Spec.Type = v1.ServiceTypeNodePort
	}
	if info.ExternalPolicyLocal() {
		svc.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
	}
	if info.InternalPolicyLocal() {
		policy := v1.ServiceInternalTrafficPolicyLocal
		svc.Spec.InternalTrafficPolicy = &policy
	}
	return svc
}

// gridproxySlice is an EndpointSlice with this one endpoint.
func gridproxySlice(number int, e Endpoint, nodeName string) *discovery.EndpointSlice {
	at := netip.MustParseAddrPort(e.String())
	port, protocol, name := int32(at.Port()), v1.ProtocolTCP, ""
	ready, serving, terminating := e.IsReady(), e.IsServing() || e.IsReady(), e.IsTerminating()
	node := "another-node"
	if e.IsLocal() {
		node = nodeName
	}
	hints := &discovery.EndpointHints{}
	for _, zone := range sets.List(e.ZoneHints()) {
		hints.ForZones = append(hints.ForZones, discovery.ForZone{Name: zone})
	}
	for _, node := range sets.List(e.NodeHints()) {
		hints.ForNodes = append(hints.ForNodes, discovery.ForNode{Name: node})
	}
	slice := &discovery.EndpointSlice{AddressType: discovery.AddressTypeIPv4}
	slice.Namespace, slice.Name = "default", fmt.Sprintf("web-%04d", number)
	slice.Labels = map[string]string{discovery.LabelServiceName: "web"}
	slice.Ports = []discovery.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	slice.Endpoints = []discovery.Endpoint{{
		Addresses: []string{at.Addr().String()}, NodeName: &node, Hints: hints,
		Conditions: discovery.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}}
	return slice
}

// gridproxyChosen are those of the endpoints that have one of the addresses.
func gridproxyChosen(endpoints []Endpoint, addrs []netip.AddrPort) []Endpoint {
	var chosen []Endpoint
	for _, e := range endpoints {
		if slices.Contains(addrs, netip.MustParseAddrPort(e.String())) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}
