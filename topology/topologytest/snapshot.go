package topologytest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// nodeNames are the names that a drawn Snapshot may know; the last one it never does.
var nodeNames = []string{"a", "b", "c", "d", "ghost"}

var annotationTexts = []string{
	`["zone"]`, `["zone"]`, `["zone"]`, `["rack","zone"]`, `["zone","*"]`, `["*"]`, `[]`,
	`null`, ``, `"zone"`, `["zone","zone"]`, `["not a key"]`, `["zone"`, `{}`, `[1]`,
}

// services is how many Services a drawn Snapshot has at the most.
const services = 4

// Snapshot draws a small cluster: up to four nodes in few units, up to four Services of
// every kind, and EndpointSlices of both families with every condition.
func Snapshot(t *rapid.T) topology.Snapshot {
	s := topology.Snapshot{
		Node:     rapid.SampledFrom(append([]string{"a", "b", "c", "d"}, nodeNames...)).Draw(t, "node"),
		Nodes:    map[string]labels.Set{},
		LastKeys: map[types.UID][]string{},
		Host:     topology.Host{IPv4: true, IPv6: true},
	}
	for _, name := range nodeNames[:len(nodeNames)-1] {
		s = WithNode(t, s, name)
	}
	for i := range rapid.IntRange(1, services).Draw(t, "services") {
		s = WithService(t, s, i)
		for n := range rapid.IntRange(1, 2).Draw(t, "slices") {
			s = WithSlice(t, s, i, n)
		}
	}
	return s
}

// kinds are what Change may do, by name.
var kinds = map[string]func(*rapid.T, topology.Snapshot) topology.Snapshot{
	"node": func(t *rapid.T, s topology.Snapshot) topology.Snapshot {
		return WithNode(t, s, rapid.SampledFrom(nodeNames[:4]).Draw(t, "name"))
	},
	"own node": func(t *rapid.T, s topology.Snapshot) topology.Snapshot { return WithNode(t, s, s.Node) },
	"other label": func(t *rapid.T, s topology.Snapshot) topology.Snapshot {
		s.Nodes = maps.Clone(s.Nodes)
		for name, set := range s.Nodes {
			s.Nodes[name] = labels.Merge(set, labels.Set{"colour": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "colour")})
		}
		return s
	},
	"service": func(t *rapid.T, s topology.Snapshot) topology.Snapshot { return WithService(t, s, drawNumber(t)) },
	"slice": func(t *rapid.T, s topology.Snapshot) topology.Snapshot {
		return WithSlice(t, s, drawNumber(t), rapid.IntRange(0, 1).Draw(t, "slice"))
	},
	"last keys": withLastKeys,
	"remove service": func(t *rapid.T, s topology.Snapshot) topology.Snapshot {
		s.Services = without(s.Services, serviceName(drawNumber(t)))
		return s
	},
	"remove slice": func(t *rapid.T, s topology.Snapshot) topology.Snapshot {
		s.Slices = without(s.Slices, sliceName(drawNumber(t), rapid.IntRange(0, 1).Draw(t, "slice")))
		return s
	},
	"labels of service": withServiceLabels,
	"labels of slice":   withSliceLabels,
	"watched":           withWatched,
	"API proxy":         withAPIProxy,
}

// Change draws one change of a Snapshot and returns the changed copy.
func Change(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	what := rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "change")
	return kinds[what](t, s)
}

// Relabel draws a change of a Snapshot's Nodes.
func Relabel(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	what := rapid.SampledFrom([]string{"node", "node", "own node", "own node", "other label", "watched", "watched"}).Draw(t, "change of nodes")
	return kinds[what](t, s)
}

func drawNumber(t *rapid.T) int { return rapid.IntRange(0, services-1).Draw(t, "service") }

func withLastKeys(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	s.LastKeys = maps.Clone(s.LastKeys)
	if s.LastKeys == nil {
		s.LastKeys = map[types.UID][]string{}
	}
	keys := rapid.SampledFrom([][]string{nil, {"zone"}, {"rack"}}).Draw(t, "keys")
	s.LastKeys[drawUID(t, drawNumber(t))] = keys
	return s
}

// withWatched draws by which keys Nodes is chosen. It leaves Nodes as they are: more may be known.
func withWatched(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	s.Watched = rapid.SampledFrom([]map[string]bool{nil, {}, {"zone": true}, {"rack": true}, {"zone": true, "rack": true}}).Draw(t, "watched")
	return s
}

// withServiceLabels hands a Service to another proxy or back, or makes it headless or not.
func withServiceLabels(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	if len(s.Services) == 0 {
		return s
	}
	s.Services = slices.Clone(s.Services)
	i := rapid.IntRange(0, len(s.Services)-1).Draw(t, "object")
	svc := s.Services[i].DeepCopy()
	s.Services[i] = svc
	key := rapid.SampledFrom([]string{topology.LabelServiceProxyName, topology.LabelHeadless}).Draw(t, "label")
	delete(svc.Labels, key)
	if value := rapid.SampledFrom([]string{"", "other"}).Draw(t, "value"); value != "" {
		metav1.SetMetaDataLabel(&svc.ObjectMeta, key, value)
	}
	return s
}

// withSliceLabels moves a slice to another Service, or hides it.
func withSliceLabels(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	if len(s.Slices) == 0 {
		return s
	}
	s.Slices = slices.Clone(s.Slices)
	i := rapid.IntRange(0, len(s.Slices)-1).Draw(t, "object")
	other := *s.Slices[i]
	other.Service = rapid.SampledFrom([]string{"", "other", serviceName(0), serviceName(1)}).Draw(t, "value")
	s.Slices[i] = &other
	return s
}

// WithNode draws a node's labels, or that it is gone.
func WithNode(t *rapid.T, s topology.Snapshot, name string) topology.Snapshot {
	s.Nodes = maps.Clone(s.Nodes)
	delete(s.Nodes, name)
	if rapid.IntRange(0, 9).Draw(t, "known") == 0 {
		return s
	}
	set := labels.Set{}
	for _, key := range []string{"zone", "rack", corev1.LabelTopologyZone} {
		if value := rapid.SampledFrom([]string{"x", "x", "y", "y", "", "absent"}).Draw(t, key); value != "absent" {
			set[key] = value
		}
	}
	s.Nodes[name] = set
	return s
}

// WithService draws Service number i.
func WithService(t *rapid.T, s topology.Snapshot, i int) topology.Snapshot {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: serviceName(i), UID: drawUID(t, i), Annotations: map[string]string{},
	}}
	if minute := rapid.IntRange(0, 2).Draw(t, "created"); minute > 0 {
		svc.CreationTimestamp = metav1.Unix(int64(60*minute), 0)
	}
	if rapid.IntRange(0, 3).Draw(t, "closed") > 0 {
		svc.Annotations[topology.AnnotationKeys] = rapid.SampledFrom(annotationTexts).Draw(t, "keys")
	}
	if policy := rapid.SampledFrom([]string{"", "", "Any", "Ordered", "Ordered", "bogus"}).Draw(t, "policy"); policy != "" {
		svc.Annotations[topology.AnnotationPolicy] = policy
	}
	if name := rapid.SampledFrom([]string{"", "", "", "topologykeys", "openyurt.io/topologyKeys", "topology_policy"}).Draw(t, "misnamed"); name != "" {
		svc.Annotations[name] = "zone"
	}
	spec := &svc.Spec
	spec.Type = rapid.SampledFrom([]corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer"}).Draw(t, "type")
	spec.ClusterIP = fmt.Sprintf("10.96.0.%d", i+1)
	spec.ClusterIPs = []string{spec.ClusterIP}
	if rapid.Bool().Draw(t, "dual") {
		spec.ClusterIPs = append(spec.ClusterIPs, fmt.Sprintf("fd00:96::%d", i+1))
	}
	for n := range rapid.IntRange(1, 2).Draw(t, "ports") {
		port := corev1.ServicePort{Name: fmt.Sprintf("p%d", n), Port: int32(80 + n)}
		port.Protocol = rapid.SampledFrom([]corev1.Protocol{"TCP", "UDP", "SCTP"}).Draw(t, "protocol")
		if spec.Type != corev1.ServiceTypeClusterIP {
			port.NodePort = int32(30000 + 10*i + n)
		}
		spec.Ports = append(spec.Ports, port)
	}
	internal := rapid.SampledFrom([]corev1.ServiceInternalTrafficPolicy{"Cluster", "Local"}).Draw(t, "internal")
	spec.InternalTrafficPolicy = &internal
	drawExternal(t, svc, i)
	s.Services = append(without(s.Services, svc.Name), svc)
	slices.SortFunc(s.Services, func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func drawExternal(t *rapid.T, svc *corev1.Service, i int) {
	spec := &svc.Spec
	if rapid.Bool().Draw(t, "external IPs") {
		spec.ExternalIPs = []string{"203.0.113.7", fmt.Sprintf("2001:db8::%d", i+1)}
	}
	if spec.Type == corev1.ServiceTypeClusterIP {
		return
	}
	spec.ExternalTrafficPolicy = rapid.SampledFrom([]corev1.ServiceExternalTrafficPolicy{"Cluster", "Local"}).Draw(t, "external")
	if rapid.Bool().Draw(t, "affinity") {
		spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("198.51.100.%d", i+1)}, {Hostname: "lb"}}
	spec.LoadBalancerSourceRanges = rapid.SampledFrom([][]string{nil, {"10.0.0.0/8", "fd00::/8"}, {"0.0.0.0/0"}}).Draw(t, "ranges")
	if spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		spec.HealthCheckNodePort = int32(32000 + i)
	}
}

// WithSlice draws EndpointSlice number n of Service number i.
func WithSlice(t *rapid.T, s topology.Snapshot, i, n int) topology.Snapshot {
	slice := drawSlice(t, i, n)
	s.Slices = append(without(s.Slices, slice.Name), topology.NewSlice(slice))
	slices.SortFunc(s.Slices, func(a, b *topology.Slice) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func drawSlice(t *rapid.T, i, n int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: sliceName(i, n),
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName(i)},
		},
		AddressType: rapid.SampledFrom([]discoveryv1.AddressType{"IPv4", "IPv4", "IPv6"}).Draw(t, "address type"),
	}
	for p := range 2 {
		name, port, protocol := fmt.Sprintf("p%d", p), int32(8080+p), rapid.SampledFrom([]corev1.Protocol{"TCP", "UDP", "SCTP"}).Draw(t, "slice protocol")
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: &protocol})
	}
	for range rapid.IntRange(0, 5).Draw(t, "endpoints") {
		slice.Endpoints = append(slice.Endpoints, drawEndpoint(t, slice.AddressType, i))
	}
	return slice
}

func drawEndpoint(t *rapid.T, family discoveryv1.AddressType, i int) discoveryv1.Endpoint {
	number := rapid.IntRange(1, 6).Draw(t, "address")
	address := fmt.Sprintf("10.0.%d.%d", i, number)
	unusable := []string{"127.0.0.1", "169.254.0.9"}
	if family == discoveryv1.AddressTypeIPv6 {
		address = fmt.Sprintf("fd00:10::%d:%d", i, number)
		unusable = []string{"::1", "fe80::9"}
	}
	if rapid.IntRange(0, 15).Draw(t, "unusable") == 0 {
		address = rapid.SampledFrom(unusable).Draw(t, "unusable address")
	}
	condition := func(name string) *bool {
		return rapid.SampledFrom([]*bool{nil, nil, new(true), new(false)}).Draw(t, name)
	}
	e := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: condition("ready"), Serving: condition("serving"), Terminating: condition("terminating")},
	}
	if node := rapid.SampledFrom(append([]string{"", "a", "b", "c", "d"}, nodeNames...)).Draw(t, "endpoint node"); node != "" {
		e.NodeName = &node
	}
	switch rapid.IntRange(0, 3).Draw(t, "hints") {
	case 0:
		e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "hint")}}}
	case 1:
		e.Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: rapid.SampledFrom(nodeNames).Draw(t, "hint")}}}
	}
	return e
}

func serviceName(i int) string { return fmt.Sprintf("svc%d", i) }

func sliceName(i, n int) string { return fmt.Sprintf("%s-%d", serviceName(i), n) }

// drawUID draws the UID of a Service; another one is that of a Service that was deleted and created
// again.
func drawUID(t *rapid.T, i int) types.UID {
	return types.UID(serviceName(i) + rapid.SampledFrom([]string{"", "", "", "-again"}).Draw(t, "UID"))
}

func without[T topology.Object](all []T, name string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(o T) bool { return o.GetName() == name })
}

// withAPIProxy draws the EndpointSlice of default/kubernetes, which may name a node-local API
// proxy, and which of these answer. The Service is there from then on.
func withAPIProxy(t *rapid.T, s topology.Snapshot) topology.Snapshot {
	proxies := []netip.AddrPort{netip.MustParseAddrPort("169.254.20.11:51003"), netip.MustParseAddrPort("127.0.0.1:51003")}
	s.APIProxies = rapid.SampledFrom([]topology.ProbedProxies{
		nil, {}, {proxies[0]: false}, {proxies[0]: true}, {proxies[0]: false, proxies[1]: true},
	}).Draw(t, "proxies that answer")
	if slices.ContainsFunc(s.Services, func(svc *corev1.Service) bool { return svc.Name == "kubernetes" }) && rapid.Bool().Draw(t, "same slice") {
		return s
	}
	meta := metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "kubernetes"}
	s.Services = append([]*corev1.Service{{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.100", ClusterIPs: []string{"10.96.0.100"},
		InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		Ports:                 []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP}},
	}}}, without(s.Services, "kubernetes")...)
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: "kubernetes"}
	if i := rapid.IntRange(0, len(proxies)).Draw(t, "API proxy"); i < len(proxies) {
		meta.Annotations = map[string]string{
			topology.AnnotationLocalEndpoint: proxies[i].Addr().String(),
			topology.AnnotationLocalPort:     strconv.Itoa(int(proxies[i].Port())),
		}
	}
	s.Slices = append([]*topology.Slice{topology.NewSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(6443))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.10"}}},
	})}, without(s.Slices, "kubernetes")...)
	return s
}
