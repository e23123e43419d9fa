package topology

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The labels by which objects are matched or left out.
const (
	// LabelServiceProxyName hands a Service to another proxy (KEP-2447).
	LabelServiceProxyName = "service.kubernetes.io/service-proxy-name"
	// LabelHeadless marks EndpointSlices that no proxy uses. On a Service it has no meaning: the
	// EndpointSlice controller does not copy it, and a Service is headless by its cluster IP.
	LabelHeadless = corev1.IsHeadlessService
)

// Resolve decides, for every port of every Service, which endpoints the Snapshot's node
// may use: closure first, then kube-proxy's own rules on what is left.
func Resolve(s Snapshot, c Config) View {
	view := newView(s, c)
	view.Ports = make([]*ServicePort, 0, len(s.Services))
	view.LastKeys = make(map[types.UID][]string, len(s.LastKeys))
	o := newObserver(s, c)
	byService := slicesByService(s.Slices, serviceOf)
	for _, svc := range s.Services {
		confined := confine(svc, s.LastKeys[svc.UID])
		if len(confined.keys) > 0 {
			view.LastKeys[svc.UID] = confined.keys
		}
		if c.Served(svc) {
			view.Ports = append(view.Ports, resolveService(o, svc, byService[NameOf(svc)], confined)...)
		}
	}
	slices.SortFunc(view.Ports, comparePorts)
	return view
}

// newView returns a View without Ports and LastKeys.
func newView(s Snapshot, c Config) View {
	return View{Node: s.Node, Self: factsOf(s), Drops: newObserver(s, c).drops}
}

func comparePorts(a, b *ServicePort) int { return CompareNames(a.Name, b.Name) }

// resolveService decides all ports of one Service, sorted. It is a pure function of exactly
// what tracker compares: change the one with the other. The result keeps own.
func resolveService(o observer, svc *corev1.Service, own []*Slice, confined confinement) []*ServicePort {
	zone := o.labels[corev1.LabelTopologyZone]
	counted := map[netip.Addr]bool{}
	var local FamilyCount
	ports := make([]*ServicePort, 0, len(svc.Spec.Ports))
	found := warnings(svc, own)
	for _, port := range svc.Spec.Ports {
		name := ServicePortName{
			NamespacedName: NameOf(svc),
			Port:           port.Name,
			Protocol:       cmp.Or(port.Protocol, corev1.ProtocolTCP),
		}
		usableAddr, ignored := splitUsable(candidates(o.node, o.probed, name, own))
		inUnit, closure := o.close(confined, usableAddr)
		inUnit = merge(inUnit)
		sp := &ServicePort{
			Name: name, Service: svc, Port: port.Port, NodePort: port.NodePort, Closure: closure, Ignored: ignored, Warnings: found, Slices: own,
		}
		cluster4, local4 := usable(o.node, zone, keep(inUnit, func(e candidate) bool { return e.Addr.Addr().Is4() }))
		cluster6, local6 := usable(o.node, zone, keep(inUnit, func(e candidate) bool { return e.Addr.Addr().Is6() }))
		sp.Cluster, sp.Local = toEndpoints(cluster4, cluster6), toEndpoints(local4, local6)
		sp.Serving = serving(inUnit)
		for _, e := range inUnit {
			if addr := e.Addr.Addr(); e.Ready && e.Local && !counted[addr] {
				counted[addr] = true
				local.add(addr)
			}
		}
		ports = append(ports, sp)
	}
	slices.SortFunc(ports, comparePorts)
	for _, sp := range ports {
		sp.ReadyLocal = local
	}
	return ports
}

func (n *FamilyCount) add(addr netip.Addr) {
	if addr.Is4() {
		n.IPv4++
	} else {
		n.IPv6++
	}
}

// toEndpoints returns the Endpoints in a list without spare memory, because it is kept; or nil.
func toEndpoints(families ...[]candidate) []Endpoint {
	all := slices.Concat(families...)
	if len(all) == 0 {
		return nil
	}
	out := make([]Endpoint, len(all))
	for i, e := range all {
		out[i] = e.Endpoint
	}
	return out
}

// serving returns the addresses of the endpoints that still serve, for ServicePort.Serving.
func serving(inUnit []candidate) []netip.AddrPort {
	all := keep(inUnit, func(e candidate) bool { return e.Serving })
	if len(all) == 0 {
		return nil
	}
	out := make([]netip.AddrPort, len(all))
	for i, e := range all {
		out[i] = e.Addr
	}
	return out
}

// CompareNames orders Service ports by namespace, name, port name, protocol.
func CompareNames(a, b ServicePortName) int {
	return cmp.Or(
		CompareServices(a.NamespacedName, b.NamespacedName),
		cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.Protocol, b.Protocol),
	)
}

// CompareServices orders Services by namespace and name.
func CompareServices(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Served reports whether a node's proxy has anything to do for a Service: it has a
// cluster IP and is not handed to another proxy.
func (c Config) Served(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName &&
		svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone && c.HandedToUs(svc)
}

// HandedToUs reports whether the label of a Service leaves it to this proxy.
func (c Config) HandedToUs(svc *corev1.Service) bool {
	name, labelled := svc.Labels[LabelServiceProxyName]
	return labelled == (c.ServiceProxyName != "") && name == c.ServiceProxyName
}

// serviceOf returns the Service of a slice; false = it is nil, or no proxy uses it.
func serviceOf(slice *Slice) (types.NamespacedName, bool) {
	if slice == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Service}, slice.Service != ""
}

// slicesByService groups the slices by the Service that of returns. False leaves a slice out.
func slicesByService(all []*Slice, of func(*Slice) (types.NamespacedName, bool)) map[types.NamespacedName][]*Slice {
	byService := make(map[types.NamespacedName][]*Slice, len(all))
	for i, slice := range all {
		key, counts := of(slice)
		if !counts {
			continue
		}
		if first, found := byService[key]; found {
			byService[key] = append(first, slice)
		} else {
			byService[key] = all[i : i+1 : i+1] // most Services have one slice: no memory of its own
		}
	}
	return byService
}

func factsOf(s Snapshot) NodeFacts {
	facts := NodeFacts{HostAddrs: s.Host.Addrs, HostNetworks: s.Host.Networks}
	if s.Self == nil {
		return facts
	}
	facts.IPs = nodeIPs(s.Self)
	for _, text := range s.Self.Spec.PodCIDRs {
		if p, err := ParsePrefix(text); err == nil {
			facts.PodCIDRs = append(facts.PodCIDRs, p)
		}
	}
	return facts
}

// nodeIPs returns a Node's readable addresses, internal ones before external ones, each once.
func nodeIPs(node *corev1.Node) []netip.Addr {
	var ips []netip.Addr
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range node.Status.Addresses {
			if addr, err := ParseAddr(a.Address); a.Type == kind && err == nil && !slices.Contains(ips, addr) {
				ips = append(ips, addr)
			}
		}
	}
	return ips
}

// HostOfNode returns the state of a machine as its Node describes it, for commands that must
// not read the machine itself: the addresses in the status, both families, and the loopback
// addresses that every machine has (nil Node: no others). A Node does not list networks.
func HostOfNode(node *corev1.Node) Host {
	host := Host{IPv4: true, IPv6: true, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}}
	if node != nil {
		host.Addrs = append(host.Addrs, nodeIPs(node)...)
	}
	slices.SortFunc(host.Addrs, netip.Addr.Compare)
	host.Addrs = slices.Compact(host.Addrs)
	return host
}
