// This file is compiled into kube-proxy's package proxy while its unit tests run on gridproxy's
// code: it replaces what the maps of Services and endpoints hold. What kube-proxy's own code says
// of a change (the results of Update) stays.

package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/topology"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// gridproxyServices and gridproxySlices are the objects that a tracker was told of, by namespace
// and name. They are fields of the trackers.
type (
	gridproxyServices map[string]*v1.Service
	gridproxySlices   map[string]*discovery.EndpointSlice
)

// Update takes note of a Service.
func (sct *ServiceChangeTracker) Update(previous, current *v1.Service) bool {
	if sct.gridproxy == nil {
		sct.gridproxy = gridproxyServices{}
	}
	if previous != nil {
		delete(sct.gridproxy, previous.Namespace+"/"+previous.Name)
	}
	if current != nil {
		sct.gridproxy[current.Namespace+"/"+current.Name] = current
	}
	return sct.kubeProxyUpdate(previous, current)
}

// Update leaves exactly the ports that topology.Resolve serves.
func (sm ServicePortMap) Update(sct *ServiceChangeTracker) UpdateServiceMapResult {
	result := sm.kubeProxyUpdate(sct)
	served := sets.New[ServicePortName]()
	for _, port := range topology.Resolve(topology.Snapshot{Services: sorted(sct.gridproxy)}, topology.Config{}).Ports {
		name := ServicePortName{NamespacedName: port.Name.NamespacedName, Port: port.Name.Port, Protocol: port.Name.Protocol}
		served.Insert(name)
		if sm[name] == nil {
			sm[name] = &BaseServicePortInfo{port: int(port.Port), protocol: name.Protocol}
		}
	}
	for name := range sm {
		if !served.Has(name) {
			delete(sm, name)
		}
	}
	return result
}

// HealthCheckNodePorts are the health checks of rules.Compile.
func (sm ServicePortMap) HealthCheckNodePorts() map[types.NamespacedName]uint16 {
	services := gridproxyServices{}
	for name, info := range sm {
		svc := gridproxyService(info)
		svc.Namespace, svc.Name, svc.Spec.Ports[0].Name = name.Namespace, name.Name, name.Port
		svc.Spec.HealthCheckNodePort = int32(info.HealthCheckNodePort())
		if info.ExternalPolicyLocal() {
			svc.Spec.Type = v1.ServiceTypeLoadBalancer
		}
		services[name.NamespacedName.String()] = svc
	}
	ports := map[types.NamespacedName]uint16{}
	view := topology.Resolve(topology.Snapshot{Services: sorted(services)}, topology.Config{})
	for _, check := range rules.Compile(view, rules.Config{}).HealthChecks {
		ports[check.Service] = check.Port
	}
	return ports
}

// EndpointSliceUpdate takes note of an EndpointSlice.
func (ect *EndpointsChangeTracker) EndpointSliceUpdate(slice *discovery.EndpointSlice, remove bool) bool {
	if ect.gridproxy == nil {
		ect.gridproxy = gridproxySlices{}
	}
	name := slice.Namespace + "/" + slice.Name
	if delete(ect.gridproxy, name); !remove && slice.AddressType == ect.addressType {
		ect.gridproxy[name] = slice
	}
	return ect.kubeProxyEndpointSliceUpdate(slice, remove)
}

// Update leaves exactly the endpoints that gridproxy finds in the slices.
func (em EndpointsMap) Update(ect *EndpointsChangeTracker) UpdateEndpointsMapResult {
	result := em.kubeProxyUpdate(ect)
	if ect == nil {
		return result
	}
	clear(em)
	cache := ect.endpointSliceCache
	snapshot := topology.Snapshot{Node: cache.nodeName, Slices: gridproxyRead(ect.gridproxy)}
	for _, slice := range sorted(ect.gridproxy) {
		for _, port := range slice.Ports {
			name := ServicePortName{
				NamespacedName: types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discovery.LabelServiceName]},
				Port:           value(port.Name), Protocol: cmp.Or(value(port.Protocol), v1.ProtocolTCP),
			}
			ours := topology.ServicePortName{NamespacedName: name.NamespacedName, Port: name.Port, Protocol: name.Protocol}
			if found := topology.Endpoints(snapshot, ours); len(found) > 0 {
				em[name] = gridproxyEndpoints(found, func(e topology.Endpoint) Endpoint {
					base := newBaseEndpointInfo(e.Addr.Addr().String(), int(e.Addr.Port()), e.Local, e.Ready, e.Serving, e.Terminating, nil, nil)
					return cache.makeEndpointInfo(base, &name)
				})
			}
		}
	}
	return result
}

// gridproxyEndpoints are sorted as kube-proxy sorts them, each address once.
func gridproxyEndpoints(found []topology.Endpoint, convert func(topology.Endpoint) Endpoint) []Endpoint {
	var all []Endpoint
	for _, e := range found {
		all = append(all, convert(e))
	}
	slices.SortStableFunc(all, func(a, b Endpoint) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(all, func(a, b Endpoint) bool { return a.String() == b.String() })
}

// LocalReadyEndpoints are what the health checks of rules.Compile answer.
func (em EndpointsMap) LocalReadyEndpoints() map[types.NamespacedName]int {
	const node = "this-node"
	services, all := gridproxyServices{}, gridproxySlices{}
	for name, endpoints := range em {
		key := name.NamespacedName.String()
		if services[key] == nil {
			services[key] = &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Spec: v1.ServiceSpec{
				Type: v1.ServiceTypeLoadBalancer, ClusterIP: "172.30.0.1", ClusterIPs: []string{"172.30.0.1", "fd00::1"}, HealthCheckNodePort: 30000,
				ExternalTrafficPolicy: v1.ServiceExternalTrafficPolicyLocal,
			}}
		}
		ports := &services[key].Spec.Ports
		*ports = append(*ports, v1.ServicePort{Name: name.Port, Port: int32(len(*ports) + 1), Protocol: name.Protocol})
		for i, e := range endpoints {
			slice := gridproxySlice(i, e, node)
			slice.Namespace, slice.Name = name.Namespace, fmt.Sprint(name.Name, name.Port, name.Protocol, slice.Name)
			slice.Labels = map[string]string{discovery.LabelServiceName: name.Name}
			slice.Ports[0].Name, slice.Ports[0].Protocol = &name.Port, &name.Protocol
			if net.ParseIP(e.IP()).To4() == nil {
				slice.AddressType = discovery.AddressTypeIPv6
			}
			all[slice.Namespace+"/"+slice.Name] = slice
		}
	}
	view := topology.Resolve(topology.Snapshot{Node: node, Services: sorted(services), Slices: gridproxyRead(all)}, topology.Config{})
	counts := map[types.NamespacedName]int{}
	for _, check := range rules.Compile(view, rules.Config{}).HealthChecks {
		if check.LocalReady > 0 {
			counts[check.Service] += check.LocalReady
		}
	}
	return counts
}

func gridproxyRead(all gridproxySlices) (read []*topology.Slice) {
	for _, slice := range sorted(all) {
		read = append(read, topology.NewSlice(slice))
	}
	return read
}

// sorted are the objects in the order of a Snapshot.
func sorted[T any](objects map[string]T) []T {
	var all []T
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all = append(all, objects[name])
	}
	return all
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
