//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"fmt"
	"strings"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// dnsCluster is what DNS depends on in a cluster.
type dnsCluster struct {
	dnsUnits
	Namespaces []*corev1.Namespace
	Services   []*corev1.Service
	Slices     []*discoveryv1.EndpointSlice
}

// dnsServer is where the CoreDNS of a cluster runs, if it has the Service kube-dns.
const (
	dnsNamespace, dnsService = "kube-system", "kube-dns"
	dnsPod4, dnsPod6         = "10.244.9.9", "fd00:10:244:9::9"
)

// What names, addresses and ports are drawn from. The pools are small, so that they meet: names of
// Services are those of Namespaces and of trees too, and endpoints have addresses of Services.
var (
	dnsNamespaces = []string{"shop", "prod", dnsNamespace, "svc"}
	dnsServices   = []string{"db", "web", "shop", "svc", "dns-version"}
	dnsHostnames  = []string{"db-0", "db-1", "DB-0", "web", "10-244-0-1", "_tcp", strings.Repeat("h", 64)}
	dnsIPv4       = []string{"10.244.0.1", "10.244.0.2", "10.244.0.3", "10.96.0.1", "192.168.0.7"}
	dnsIPv6       = []string{"fd00:10:244::1", "fd00:10:244::2", "fd00::", "::1", "fd00:10:96::1"}
	dnsCluster4   = []string{"10.96.0.1", "10.96.0.2", "10.96.0.3"}
	dnsCluster6   = []string{"fd00:10:96::1", "fd00:10:96::2"}
	dnsPortNames  = []string{"", "http", "metrics", "sip"}
	dnsProtocols  = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	dnsTargets    = []string{
		"db.example.com", "Other.Example.COM.", "192.0.2.9", "fails.example", "empty.example",
		"web.shop.svc.cluster.local", "db.prod.svc.cluster.local.", "shop.shop.svc.Cluster.local", "cluster.local",
		"a..b", "not a name",
	}
)

// dnsSpellings are other ways to write addresses, that the API server has let in at some time.
var dnsSpellings = map[string]string{
	"10.244.0.01": "10.244.0.1", "010.096.0.1": "10.96.0.1",
	"FD00:10:244:0::1": "fd00:10:244::1", "fd00:10:96:0:0:0:0:1": "fd00:10:96::1",
}

// dnsAddr draws one of some addresses, or a text that is no address of their family.
func dnsAddr(t *rapid.T, addrs []string) string {
	if !oneIn(t, 12, "unusual address") {
		return rapid.SampledFrom(addrs).Draw(t, "address")
	}
	return rapid.SampledFrom([]string{"", "x", "10.0.0.300", "fe80::1%eth0", "10.244.0.2", "fd00:10:244::2", "10.244.0.01", "010.096.0.1", "FD00:10:244:0::1", "fd00:10:96:0:0:0:0:1"}).Draw(t, "unusual")
}

func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

func drawDNS(t *rapid.T) dnsCluster {
	c := dnsCluster{dnsUnits: drawDNSUnits(t)}
	for _, name := range dnsNamespaces {
		if !oneIn(t, 4, "no Namespace") {
			c.Namespaces = append(c.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	taken := map[string]bool{}
	for range rapid.IntRange(0, 6).Draw(t, "Services") {
		namespace, name := rapid.SampledFrom(dnsNamespaces).Draw(t, "namespace"), rapid.SampledFrom(dnsServices).Draw(t, "name")
		if taken[namespace+"/"+name] {
			continue
		}
		taken[namespace+"/"+name] = true
		svc := drawDNSService(t, namespace, name)
		c.Services = append(c.Services, svc)
		c.close(t, svc)
		for range rapid.IntRange(0, 3).Draw(t, "slices") {
			c.addSlice(drawDNSSlice(t, namespace, name))
		}
	}
	if oneIn(t, 5, "slice of no Service") {
		c.addSlice(drawDNSSlice(t, "prod", "orphan"))
	}
	if rapid.Bool().Draw(t, "kube-dns") {
		c.addServer(t)
	}
	return c
}

func (c *dnsCluster) addSlice(s *discoveryv1.EndpointSlice) {
	s.Name = fmt.Sprintf("slice-%d", len(c.Slices))
	c.Slices = append(c.Slices, s)
}

func drawDNSService(t *rapid.T, namespace, name string) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	svc.Spec.Type = corev1.ServiceTypeClusterIP
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		svc.Spec.Type = corev1.ServiceTypeExternalName
		svc.Spec.ExternalName = rapid.SampledFrom(dnsTargets).Draw(t, "target")
	case 1, 2, 3:
		svc.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
	case 4:
		svc.Spec.ClusterIPs = []string{dnsAddr(t, dnsCluster6)}
	case 5:
		svc.Spec.ClusterIPs = []string{dnsAddr(t, dnsCluster4), dnsAddr(t, dnsCluster6)}
	default:
		svc.Spec.ClusterIPs = []string{dnsAddr(t, dnsCluster4)}
	}
	if age := rapid.IntRange(0, 2).Draw(t, "age"); age > 0 {
		svc.CreationTimestamp = metav1.Unix(int64(1_000_000*age), 0)
	}
	if len(svc.Spec.ClusterIPs) > 0 {
		svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
	}
	for range rapid.IntRange(0, 3).Draw(t, "ports") {
		p := corev1.ServicePort{Name: rapid.SampledFrom(dnsPortNames).Draw(t, "port name"), Port: dnsNumber(t, 80)}
		if !oneIn(t, 8, "no protocol") {
			p.Protocol = rapid.SampledFrom(dnsProtocols).Draw(t, "protocol")
		}
		svc.Spec.Ports = append(svc.Spec.Ports, p)
	}
	return svc
}

// dnsNumber draws a number for a port, which may be none of a port.
func dnsNumber(t *rapid.T, first int32) int32 {
	if oneIn(t, 12, "no port") {
		return rapid.SampledFrom([]int32{-7, 0, 65536, 1 << 20}).Draw(t, "number")
	}
	return rapid.Int32Range(first, first+3).Draw(t, "port")
}

func drawDNSSlice(t *rapid.T, namespace, service string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{labelServiceName: service}}}
	pool := dnsIPv4
	switch rapid.IntRange(0, 9).Draw(t, "type") {
	case 0:
		s.AddressType, pool = discoveryv1.AddressTypeFQDN, []string{"db.example.com", "web.shop.svc.cluster.local"}
	case 1, 2, 3:
		s.AddressType, pool = discoveryv1.AddressTypeIPv6, dnsIPv6
	default:
		s.AddressType = discoveryv1.AddressTypeIPv4
	}
	if oneIn(t, 4, "headless") {
		s.Labels[topology.LabelHeadless] = "" // what says that no proxy reads it
	}
	for range rapid.IntRange(0, 3).Draw(t, "slice ports") {
		s.Ports = append(s.Ports, drawDNSPort(t))
	}
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		e := discoveryv1.Endpoint{Addresses: []string{dnsAddr(t, pool)}}
		if oneIn(t, 3, "two addresses") {
			e.Addresses = append(e.Addresses, dnsAddr(t, pool))
		}
		if node := rapid.SampledFrom(dnsEndpointNodes).Draw(t, "node"); node != "" {
			e.NodeName = &node
		}
		e.Conditions.Ready = rapid.SampledFrom([]*bool{nil, new(true), new(true), new(false)}).Draw(t, "ready")
		e.Conditions.Terminating = rapid.SampledFrom([]*bool{nil, new(true)}).Draw(t, "terminating")
		if rapid.Bool().Draw(t, "has hostname") {
			e.Hostname = new(rapid.SampledFrom(dnsHostnames).Draw(t, "hostname"))
		}
		if oneIn(t, 4, "has Pod") {
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "pod-" + strings.ReplaceAll(e.Addresses[0], ":", "-")}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func drawDNSPort(t *rapid.T) discoveryv1.EndpointPort {
	p := discoveryv1.EndpointPort{Name: new(rapid.SampledFrom(dnsPortNames).Draw(t, "port name"))}
	if *p.Name == "" && rapid.Bool().Draw(t, "no name") {
		p.Name = nil
	}
	if !oneIn(t, 6, "no protocol") {
		p.Protocol = new(rapid.SampledFrom(dnsProtocols).Draw(t, "protocol"))
	}
	if !oneIn(t, 6, "no number") {
		p.Port = new(dnsNumber(t, 8080))
	}
	return p
}

// addServer adds the Service of CoreDNS, and the Pod that it runs in.
func (c *dnsCluster) addServer(t *rapid.T) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: dnsNamespace, Name: dnsService}}
	svc.Spec.ClusterIPs = rapid.SampledFrom([][]string{{"10.96.0.10"}, {"fd00:10:96::a"}, {"10.96.0.10", "fd00:10:96::a"}, {corev1.ClusterIPNone}}).Draw(t, "kube-dns at")
	svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
	svc.Spec.Ports = []corev1.ServicePort{{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}, {Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: 53}}
	c.Services = append(c.Services, svc)
	for i, addr := range []string{dnsPod4, dnsPod6} {
		c.addSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: dnsNamespace, Labels: map[string]string{labelServiceName: dnsService}},
			AddressType: []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}[i],
			Ports:       []discoveryv1.EndpointPort{{Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(53))}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{addr}}},
		})
	}
}
