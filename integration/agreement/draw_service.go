package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The annotations and labels, spelt here once more and on purpose: gridproxy's own
// constants must not be able to change both sides.
const (
	annotationKeys     = "topologyKeys"
	annotationPolicy   = "superedge.io/topology-policy"
	annotationEndpoint = "superedge.io/local-endpoint"
	annotationPort     = "superedge.io/local-port"

	labelServiceName = "kubernetes.io/service-name"
	labelProxyName   = "service.kubernetes.io/service-proxy-name"
	labelHeadless    = "service.kubernetes.io/headless"
)

// malformed are topologyKeys of every kind that must not be taken for a list.
var malformed = []string{
	``, `null`, `true`, `location`, `"location"`, `{"location":true}`, `["location"`, `["location"],`, `[location]`,
	`[1]`, `[null]`, `["location",null]`, `[["location"]]`, `["location","location"]`, `[""]`, `["location",""]`,
	`["not a key"]`, `["a/b/c"]`, `["-location"]`, `["location "]`, `["*"]`, `["location","*"]`, `["*","location"]`,
	`["location","*","zone1"]`, `["*","*"]`,
}

// addService draws Service number i with its slices. What the API server would refuse is
// never drawn: one cluster IP, or one node port and protocol, for two; policies and ports
// that do not fit the type.
func (d *drawing) addService(i int) {
	svc := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: oneOf(d, "default", "default", "shop"), Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)),
			Annotations: map[string]string{}, Labels: map[string]string{},
		},
	}
	d.annotate(svc)
	d.drawPorts(svc)
	switch kind := d.IntN(20); {
	case kind < 6:
		svc.Spec.Type = corev1.ServiceTypeClusterIP
	case kind < 11:
		svc.Spec.Type = corev1.ServiceTypeNodePort
	case kind < 18:
		svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	case kind < 19:
		svc.Spec.Type = corev1.ServiceTypeExternalName
		svc.Spec.ExternalName = "example.com"
	default:
		svc.Spec.Type = corev1.ServiceTypeClusterIP
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
		if d.chance(50) {
			svc.Labels[labelHeadless] = ""
		}
	}
	if d.chance(5) {
		svc.Labels[oneOf(d, labelProxyName, labelHeadless)] = oneOf(d, "", "another-proxy")
	}
	if svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.ClusterIP == "" {
		d.giveClusterIPs(svc, i)
		d.drawInternal(svc)
		d.drawExternal(svc, i)
	}
	d.Services = append(d.Services, svc)
	d.addSlices(svc, i)
}

func (d *drawing) annotate(svc *corev1.Service) {
	if d.chance(30) {
		d.LastKeys[svc.UID] = oneOf(d, []string{"location"}, []string{"zone1"}, []string{"location", "zone1"}, []string{"zone1", "*"}, []string{"*"})
	}
	if d.chance(25) {
		if d.chance(20) {
			svc.Annotations[annotationPolicy] = "Ordered" // means nothing alone
		}
		return
	}
	svc.Annotations[annotationKeys] = oneOf(d,
		`["location"]`, `["location"]`, `["zone1"]`, ` [ "location" ] `, `["location","zone1"]`, `["zone1","location","example.com/rack"]`,
		`["topology.kubernetes.io/zone"]`, `["nobody/has-it"]`, `["nobody/has-it","location"]`, `[]`,
	)
	if d.chance(25) {
		svc.Annotations[annotationKeys] = oneOf(d, malformed...)
	}
	switch n := d.IntN(10); {
	case n < 4:
		svc.Annotations[annotationPolicy] = "Ordered"
		if d.chance(70) {
			svc.Annotations[annotationKeys] = oneOf(d, `["location","*"]`, `["zone1","location","*"]`, `["*"]`,
				`["example.com/rack","zone1","location"]`, `["nobody/has-it","*"]`, `["location","zone1"]`)
		}
	case n < 5:
		svc.Annotations[annotationPolicy] = "Any"
	case n < 6:
		svc.Annotations[annotationPolicy] = oneOf(d, "ordered", "", "any", "Strict", "Ordered ")
	}
}

func (d *drawing) drawPorts(svc *corev1.Service) {
	n := oneOf(d, 1, 1, 2, 3)
	used := map[string]bool{}
	base := oneOf[int32](d, 80, 443)
	for p := range n {
		port := corev1.ServicePort{Name: fmt.Sprintf("p%d", p), Port: base + int32(p), Protocol: oneOf(d, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)}
		if n == 1 && d.chance(50) {
			port.Name = ""
		}
		if p > 0 && d.chance(30) {
			port.Port = base // perhaps one number for two protocols
		}
		if key := fmt.Sprint(port.Port, port.Protocol); !used[key] {
			used[key] = true
			svc.Spec.Ports = append(svc.Spec.Ports, port)
		}
	}
}

func (d *drawing) giveClusterIPs(svc *corev1.Service, i int) {
	ip4, ip6 := fmt.Sprintf("10.96.0.%d", 10+i), fmt.Sprintf("fd00:10:96::%d", 10+i)
	switch d.IntN(6) {
	case 0:
		svc.Spec.ClusterIPs, svc.Spec.IPFamilies = []string{ip6}, []corev1.IPFamily{corev1.IPv6Protocol}
	case 1:
		svc.Spec.ClusterIPs, svc.Spec.IPFamilies = []string{ip6, ip4}, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	case 2, 3:
		svc.Spec.ClusterIPs, svc.Spec.IPFamilies = []string{ip4, ip6}, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	default:
		svc.Spec.ClusterIPs, svc.Spec.IPFamilies = []string{ip4}, []corev1.IPFamily{corev1.IPv4Protocol}
	}
	svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
}

// drawInternal draws what every Service with a cluster IP may have.
func (d *drawing) drawInternal(svc *corev1.Service) {
	if d.chance(30) {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(oneOf[int32](d, 10800, 5, 86400))}}
	}
	if d.chance(85) {
		svc.Spec.InternalTrafficPolicy = new(oneOf(d, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal))
	}
	if d.chance(10) {
		svc.Spec.PublishNotReadyAddresses = true
	}
}

// drawExternal draws what makes a Service reachable from outside.
func (d *drawing) drawExternal(svc *corev1.Service, i int) {
	spec := &svc.Spec
	if d.chance(40) {
		spec.ExternalIPs = someOf(d, fmt.Sprintf("203.0.113.%d", 100+i), fmt.Sprintf("2001:db8:e::%d", i), fmt.Sprintf("203.0.113.0%d", 70+i))
		if i == 1 && d.chance(30) {
			spec.ExternalIPs = append(spec.ExternalIPs, "172.20.7.7") // sometimes this machine's own
		}
	}
	if spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) == 0 {
		return
	}
	spec.ExternalTrafficPolicy = oneOf(d, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	if spec.Type == corev1.ServiceTypeClusterIP {
		return
	}
	if spec.Type == corev1.ServiceTypeNodePort || d.chance(75) {
		for p := range spec.Ports {
			port := &spec.Ports[p]
			port.NodePort = int32(30000 + 10*i + p)
			if p > 0 && d.chance(40) && !d.taken[fmt.Sprint(spec.Ports[0].NodePort, port.Protocol)] {
				port.NodePort = spec.Ports[0].NodePort // one number for two protocols
			}
			d.taken[fmt.Sprint(port.NodePort, port.Protocol)] = true
		}
	} else {
		spec.AllocateLoadBalancerNodePorts = new(false)
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	if spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		spec.HealthCheckNodePort = int32(32000 + i)
	}
	d.drawLoadBalancer(svc, i)
}

func (d *drawing) drawLoadBalancer(svc *corev1.Service, i int) {
	vip, proxy := new(corev1.LoadBalancerIPModeVIP), new(corev1.LoadBalancerIPModeProxy)
	svc.Status.LoadBalancer.Ingress = someOf(d,
		corev1.LoadBalancerIngress{IP: fmt.Sprintf("198.51.100.%d", i)},
		corev1.LoadBalancerIngress{IP: fmt.Sprintf("198.51.100.%d", 20+i), IPMode: vip},
		corev1.LoadBalancerIngress{IP: fmt.Sprintf("198.51.100.%d", 40+i), IPMode: proxy},
		corev1.LoadBalancerIngress{IP: fmt.Sprintf("2001:db8:1b::%d", i), IPMode: vip},
		corev1.LoadBalancerIngress{Hostname: "lb.example.com"},
	)
	if i == 2 && d.chance(30) {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: "198.18.0.1"})
	}
	svc.Spec.LoadBalancerSourceRanges = oneOf(d, nil, nil,
		someOf(d, "203.0.113.0/25", " 2001:db8:c::/64", "10.244.2.0/24"),
		[]string{"192.168.0.0/24", "fd00:192:168::/64"}, // holds this node's address
		[]string{"203.0.113.0/24 ", " 192.168.0.11/32"},
		[]string{"203.0.113.0/25", "0.0.0.0/0"},
		[]string{"2001:db8:c::/64", "::/0", "198.51.100.77/32"},
		[]string{"203.0.113.77/25", "10.244.0.0/16"},
		[]string{"192.0.2.0/24", "2001:db8:dead::/48"},
		[]string{"0.0.0.0/1"},
		[]string{"203.0.113.000/025", "2001:0db8:000c::/064"}, // as older API servers stored them
		[]string{"::ffff:10.244.0.0/112", "::ffff:203.0.113.0/0120"},
	)
}
