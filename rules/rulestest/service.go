package rulestest

import (
	"fmt"
	"net/netip"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// serviceName returns the name of Service number i. The names are not in the order of i, and
// one is the beginning of another.
func serviceName(i int) types.NamespacedName {
	return types.NamespacedName{
		Namespace: []string{"ns", "default"}[i%2],
		Name:      []string{"svc", "svc-b", "a", "web", "svc2", "x"}[i],
	}
}

func drawService(t *rapid.T, i int) []*topology.ServicePort {
	v4, v6 := true, true
	switch rapid.IntRange(0, 3).Draw(t, "families") {
	case 0:
		v4 = false
	case 1:
		v6 = false
	}
	svc := drawSpec(t, i, v4, v6)
	var closure topology.Closure
	if rapid.Bool().Draw(t, "closed") {
		closure.Keys = []string{"zone"}
	}
	ports := make([]*topology.ServicePort, len(svc.Spec.Ports))
	for n, port := range svc.Spec.Ports {
		sp := &topology.ServicePort{Service: svc, Port: port.Port, NodePort: port.NodePort, Closure: closure, Name: topology.ServicePortName{
			NamespacedName: serviceName(i), Port: port.Name, Protocol: port.Protocol,
		}}
		if v4 {
			drawEndpoints(t, sp, "10.180.%d.%d")
		}
		if v6 {
			drawEndpoints(t, sp, "fd00:180:0:%d::%d")
		}
		ports[n] = sp
	}
	return ports
}

func drawSpec(t *rapid.T, i int, v4, v6 bool) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: serviceName(i).Namespace, Name: serviceName(i).Name}}
	add := func(list *[]string, format4, format6 string) {
		if v4 {
			*list = append(*list, fmt.Sprintf(format4, i+1))
		}
		if v6 {
			*list = append(*list, fmt.Sprintf(format6, i+1))
		}
	}
	add(&svc.Spec.ClusterIPs, "10.96.0.%d", "fd00:96::%d")
	svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
	svc.Spec.Ports = drawPorts(t)
	if rapid.Bool().Draw(t, "internal local") {
		svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	}
	if rapid.Bool().Draw(t, "external local") {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if rapid.IntRange(0, 2).Draw(t, "affinity") == 0 {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if rapid.Bool().Draw(t, "external IPs") {
		add(&svc.Spec.ExternalIPs, "192.0.2.%d", "fd00:192::%d")
	}
	if rapid.Bool().Draw(t, "node ports") {
		for n := range svc.Spec.Ports {
			svc.Spec.Ports[n].NodePort = int32(30000 + 10*i + n)
		}
	}
	if rapid.Bool().Draw(t, "load balancer") {
		drawLoadBalancer(t, svc, i, add)
	}
	return svc
}

func drawLoadBalancer(t *rapid.T, svc *corev1.Service, i int, add func(*[]string, string, string)) {
	var vips []string
	add(&vips, "198.51.100.%d", "fd00:198::%d")
	if rapid.Bool().Draw(t, "second address") {
		add(&vips, "198.51.100.10%d", "fd00:198::10%d")
	}
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	for _, ip := range vips {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	svc.Spec.LoadBalancerSourceRanges = rapid.SampledFrom([][]string{
		nil, nil, {"203.0.113.0/24", "fd00:203::/64"}, {"203.0.113.7/32"}, {"192.168.0.0/16", "fd00:168::/32"}, {"203.0.113.0/24", "0.0.0.0/0"},
		{"203.0.113.0/99"}, {"fd00:203::/64", "office"}, // cannot be read
	}).Draw(t, "source ranges")
	if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		svc.Spec.HealthCheckNodePort = int32(31000 + i)
	}
}

func drawPorts(t *rapid.T) []corev1.ServicePort {
	if rapid.IntRange(0, 2).Draw(t, "one port") > 0 {
		return []corev1.ServicePort{{
			Name:     rapid.SampledFrom([]string{"", "http"}).Draw(t, "port name"),
			Port:     80,
			Protocol: rapid.SampledFrom([]corev1.Protocol{"TCP", "UDP", "SCTP"}).Draw(t, "protocol"),
		}}
	}
	return []corev1.ServicePort{
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolTCP},
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
	}
}

// drawEndpoints draws those of one family. Those of node 0 are on this node; where none of
// them is ready, a terminating one may still serve policy Local.
func drawEndpoints(t *rapid.T, sp *topology.ServicePort, format string) {
	port := rapid.SampledFrom([]uint16{80, 8080}).Draw(t, "target port")
	count := rapid.SampledFrom([]int{0, 0, 1, 2, 3, 12}).Draw(t, "endpoints")
	for k := range count {
		node := rapid.IntRange(0, 2).Draw(t, "node of endpoint")
		e := topology.Endpoint{
			Addr:  netip.AddrPortFrom(addr(fmt.Sprintf(format, node, k+1)), port),
			Local: node == 0, Ready: true, Serving: true,
		}
		sp.Serving = append(sp.Serving, e.Addr)
		terminating := e.Local && rapid.IntRange(0, 3).Draw(t, "terminating") == 0
		if !terminating {
			sp.Cluster = append(sp.Cluster, e)
		}
		if e.Local {
			sp.Local = append(sp.Local, e)
		}
	}
	if len(sp.Cluster) == 0 {
		sp.Local = nil
	}
}
