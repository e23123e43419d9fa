package topologytest

import (
	"net/netip"
	"slices"
	"strconv"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

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
