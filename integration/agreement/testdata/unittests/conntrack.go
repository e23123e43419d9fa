// This file is compiled into kube-proxy's package conntrack while its unit tests run on gridproxy's
// code: it replaces the decision which flows are stale.

package conntrack

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules"
	gridconntrack "gridproxy/rules/conntrack"
	"gridproxy/topology"

	"github.com/vishvananda/netlink"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/kubernetes/pkg/proxy/metrics"
)

// gridproxyNode is the node's own address. The tests leave the destination of a NodePort flow open.
const gridproxyNode = "192.168.0.2"

// CleanStaleEntries deletes the flows that a Sweep of gridproxy calls stale.
func CleanStaleEntries(ct Interface, ipFamily v1.IPFamily, svcPortMap proxy.ServicePortMap, endpointsMap proxy.EndpointsMap) {
	snapshot := topology.Snapshot{
		Node: "test-worker", Services: gridproxyServices(svcPortMap), Slices: gridproxySlices(endpointsMap),
		Host: topology.Host{IPv4: true, IPv6: true, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr(gridproxyNode)}},
	}
	view := topology.Resolve(snapshot, topology.Config{})
	sweep := gridconntrack.NewSweep(nil, rules.Compile(view, rules.Config{}), view, true, rules.FamilySet{true, true})
	entries, err := ct.ListEntries(ipFamilyMap[ipFamily])
	if err != nil {
		return
	}
	var stale []*netlink.ConntrackFlow
	for _, e := range entries {
		if sweep.Judge(gridproxyFlow(e)) == gridconntrack.Stale {
			stale = append(stale, e)
		}
	}
	n, _ := ct.DeleteEntries(ipFamilyMap[ipFamily], stale)
	metrics.ReconcileConntrackFlowsDeletedEntriesTotal.WithLabelValues(string(ipFamily)).Add(float64(n))
}

func gridproxyFlow(e *netlink.ConntrackFlow) gridconntrack.Flow {
	at := func(ip net.IP, port uint16) netip.AddrPort {
		addr, ok := netip.AddrFromSlice(ip)
		if !ok {
			addr = netip.MustParseAddr(gridproxyNode)
		}
		return netip.AddrPortFrom(addr.Unmap(), port)
	}
	return gridconntrack.Flow{
		Proto: gridconntrack.Protocol(e.Forward.Protocol),
		Src:   at(e.Forward.SrcIP, e.Forward.SrcPort), Dst: at(e.Forward.DstIP, e.Forward.DstPort),
		ReplySrc: at(e.Reverse.SrcIP, e.Reverse.SrcPort), ReplyDst: at(e.Reverse.DstIP, e.Reverse.DstPort),
	}
}

// gridproxyServices are the Services that a map of ports was made of.
func gridproxyServices(ports proxy.ServicePortMap) []*v1.Service {
	byName := map[types.NamespacedName]*v1.Service{}
	for name, info := range ports {
		svc := byName[name.NamespacedName]
		if svc == nil {
			svc = &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
			svc.Spec.Type, svc.Spec.ClusterIP = v1.ServiceTypeLoadBalancer, info.ClusterIP().String()
			for _, ip := range info.ExternalIPs() {
				svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, ip.String())
			}
			for _, ip := range info.LoadBalancerVIPs() {
				svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: ip.String()})
			}
			byName[name.NamespacedName] = svc
		}
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{
			Name: name.Port, Protocol: name.Protocol, Port: int32(info.Port()), NodePort: int32(info.NodePort()),
		})
	}
	var all []*v1.Service
	for _, svc := range byName {
		all = append(all, svc)
	}
	slices.SortFunc(all, func(a, b *v1.Service) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return all
}

// gridproxySlices has an EndpointSlice for each endpoint of each port.
func gridproxySlices(endpoints proxy.EndpointsMap) []*topology.Slice {
	var all []*topology.Slice
	for name, list := range endpoints {
		for i, e := range list {
			port, ready, serving, terminating := int32(e.Port()), e.IsReady(), e.IsServing(), e.IsTerminating()
			slice := &discovery.EndpointSlice{AddressType: discovery.AddressTypeIPv4}
			slice.Namespace, slice.Name = name.Namespace, fmt.Sprintf("%s-%s-%s-%04d", name.Name, name.Port, name.Protocol, i)
			slice.Labels = map[string]string{discovery.LabelServiceName: name.Name}
			slice.Ports = []discovery.EndpointPort{{Name: &name.Port, Port: &port, Protocol: &name.Protocol}}
			slice.Endpoints = []discovery.Endpoint{{
				Addresses:  []string{e.IP()},
				Conditions: discovery.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
			}}
			all = append(all, topology.NewSlice(slice))
		}
	}
	slices.SortFunc(all, func(a, b *topology.Slice) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}
