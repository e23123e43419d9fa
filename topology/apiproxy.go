package topology

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The annotations with which an EndpointSlice of default/kubernetes names the node-local
// proxy of the API server.
const (
	AnnotationLocalEndpoint = "superedge.io/local-endpoint"
	AnnotationLocalPort     = "superedge.io/local-port"
)

// ProbedProxies says which node-local API proxies answer. One that is missing does not. nil = none
// was probed, and each counts as one that answers.
type ProbedProxies map[netip.AddrPort]bool

// Answers reports whether an API proxy takes the API servers' place. If p is nil, each does.
func (p ProbedProxies) Answers(addr netip.AddrPort) bool { return p == nil || p[addr] }

func (p ProbedProxies) equal(q ProbedProxies) bool {
	return (p == nil) == (q == nil) && maps.Equal(p, q)
}

// replaces reports whether the API proxy of a slice, if any, takes the place of its endpoints.
func (p ProbedProxies) replaces(s *Slice) bool { return s.apiProxy != nil && p.Answers(*s.apiProxy) }

// APIProxies returns the node-local API proxies that slices name, sorted, each once.
func APIProxies(all []*Slice) []netip.AddrPort {
	var named []netip.AddrPort
	for _, s := range all {
		if s.apiProxy != nil {
			named = append(named, *s.apiProxy)
		}
	}
	slices.SortFunc(named, netip.AddrPort.Compare)
	return slices.Compact(named)
}

// WarnOfAPIProxy returns a warning if the Endpoints object default/kubernetes names the
// node-local proxy of the API server, else "". SuperEdge reads the annotation there too; we
// read it from EndpointSlices alone. The caller has found that no EndpointSlice names a proxy.
func WarnOfAPIProxy(endpoints metav1.Object) string {
	name := types.NamespacedName{Namespace: cmp.Or(endpoints.GetNamespace(), corev1.NamespaceDefault), Name: endpoints.GetName()}
	if _, annotated := endpoints.GetAnnotations()[AnnotationLocalEndpoint]; name != APIServer() || !annotated {
		return ""
	}
	return "annotation " + AnnotationLocalEndpoint + " of Endpoints " + APIServer().String() +
		" is not read; copy it and " + AnnotationLocalPort + " to the EndpointSlice " + APIServer().String() +
		", as docs/migrate-from-superedge.md says"
}

// APIServer returns the name of the API server's Service.
func APIServer() types.NamespacedName {
	return types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: "kubernetes"}
}

// localProxyOf returns the node-local proxy of the API server that one of its slices names. It
// is nil for any other slice, and if the proxy is unreadable or of the other family.
func localProxyOf(s *discoveryv1.EndpointSlice) *netip.AddrPort {
	of := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
	if of != APIServer() {
		return nil
	}
	addr, err := ParseAddr(s.Annotations[AnnotationLocalEndpoint])
	if err != nil || !hasFamily(addr, s.AddressType) {
		return nil
	}
	port, err := strconv.ParseUint(s.Annotations[AnnotationLocalPort], 10, 16)
	if err != nil || port == 0 {
		return nil
	}
	return new(netip.AddrPortFrom(addr, uint16(port)))
}

// localAPIServer returns the node-local API proxy, in place of the API servers, as the only
// candidate of the TCP port named https, as SuperEdge does. Any other port has none.
func localAPIServer(name ServicePortName, proxy netip.AddrPort) []candidate {
	if name.Port != "https" || name.Protocol != corev1.ProtocolTCP {
		return nil
	}
	return []candidate{{Endpoint: Endpoint{Addr: proxy, Ready: true, Serving: true}, exempt: true}}
}
