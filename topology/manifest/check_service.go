package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkService sets the API server's defaults in a Service, and adds to f what is wrong with
// it. It returns false for a Service that cannot be reached because it has no cluster IP.
func checkService(f *findings, s *corev1.Service) bool {
	spec := &s.Spec
	checkMeta(f, s, true, validation.IsDNS1123Label)
	oneOf(f, specPath.Child("type"), &spec.Type, corev1.ServiceTypeClusterIP,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	if spec.Type == corev1.ServiceTypeExternalName {
		return true
	}
	checkClusterIPs(f, spec)
	checkServicePorts(f, spec)
	for i := range spec.ExternalIPs {
		f.addr(specPath.Child("externalIPs").Index(i), &spec.ExternalIPs[i])
	}
	checkLoadBalancer(f, s)
	checkAffinity(f, spec)
	checkPolicies(f, spec)
	if spec.ClusterIP == "" && len(f.errs) == 0 {
		f.warn(specPath.Child("clusterIP"), "is missing, and no API server allocates one here; the Service is left out, write one or None")
		return false
	}
	return true
}

// checkClusterIPs completes and checks clusterIP, clusterIPs and ipFamilies.
func checkClusterIPs(f *findings, spec *corev1.ServiceSpec) {
	path := specPath.Child("clusterIPs")
	switch {
	case len(spec.ClusterIPs) == 0 && spec.ClusterIP != "":
		spec.ClusterIPs = []string{spec.ClusterIP}
		path = nil // clusterIP is what is written
	case len(spec.ClusterIPs) > 0 && spec.ClusterIP == "":
		spec.ClusterIP = spec.ClusterIPs[0]
	case len(spec.ClusterIPs) > 0 && spec.ClusterIP != spec.ClusterIPs[0]:
		f.wrong(specPath.Child("clusterIP"), "is %s, but spec.clusterIPs[0] is %s; make them equal",
			excerpt.Quoted(spec.ClusterIP), excerpt.Quoted(spec.ClusterIPs[0]))
	}
	for i := range spec.IPFamilies {
		oneOf(f, specPath.Child("ipFamilies").Index(i), &spec.IPFamilies[i], "", corev1.IPv4Protocol, corev1.IPv6Protocol)
	}
	if len(spec.ClusterIPs) == 0 || slices.Equal(spec.ClusterIPs, []string{corev1.ClusterIPNone}) {
		return
	}
	if len(spec.ClusterIPs) > 2 {
		f.wrong(path, "has %d addresses; write at most one of each family", len(spec.ClusterIPs))
		return
	}
	var families []corev1.IPFamily
	for i := range spec.ClusterIPs {
		at := specPath.Child("clusterIP")
		if path != nil {
			at = path.Index(i)
		}
		addr, ok := f.addr(at, &spec.ClusterIPs[i])
		if !ok {
			continue
		}
		family := familyOf(addr)
		switch {
		case slices.Contains(families, family):
			f.wrong(at, "%s is a second %s address; write at most one of each family", addr, family)
		case i < len(spec.IPFamilies) && spec.IPFamilies[i] != family:
			f.wrong(at, "%s is an %s address, but spec.ipFamilies[%d] is %s; make them agree", addr, family, i, spec.IPFamilies[i])
		}
		families = append(families, family)
	}
	spec.ClusterIP = spec.ClusterIPs[0]
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = families
	}
}

func checkServicePorts(f *findings, spec *corev1.ServiceSpec) {
	ports := specPath.Child("ports")
	if len(spec.Ports) == 0 && spec.ClusterIP != corev1.ClusterIPNone {
		f.wrong(ports, "is missing, the Service is perhaps half written; write at least one port")
	}
	var names, numbers, nodePorts []string
	var nodePortPaths []*field.Path
	for i := range spec.Ports {
		at, port := ports.Index(i), &spec.Ports[i]
		f.protocol(at.Child("protocol"), &port.Protocol)
		f.port(at.Child("port"), port.Port, false)
		checkTargetPort(f, at.Child("targetPort"), port)
		checkNodePort(f, at.Child("nodePort"), spec.Type, port)
		if port.Name != "" {
			f.valid(at.Child("name"), port.Name, validation.IsDNS1123Label)
		} else if len(spec.Ports) > 1 {
			f.wrong(at.Child("name"), "is missing; write one, since the Service has several ports")
			port.Name = fmt.Sprintf("(unnamed %d)", i) // only until the error is returned
		}
		names = append(names, port.Name)
		numbers = append(numbers, fmt.Sprintf("%d/%s", port.Port, port.Protocol))
		if port.NodePort != 0 {
			nodePorts = append(nodePorts, nodePort(port.NodePort, port.Protocol))
			nodePortPaths = append(nodePortPaths, at.Child("nodePort"))
		}
	}
	unique(f, func(i int) *field.Path { return ports.Index(i).Child("name") }, names, "%q")
	unique(f, func(i int) *field.Path { return ports.Index(i).Child("port") }, numbers, "%s")
	unique(f, func(i int) *field.Path { return nodePortPaths[i] }, nodePorts, "%s")
}

func checkTargetPort(f *findings, path *field.Path, port *corev1.ServicePort) {
	switch target := &port.TargetPort; {
	case *target == intstr.IntOrString{} || target.Type == intstr.String && target.StrVal == "":
		*target = intstr.FromInt32(port.Port)
	case target.Type == intstr.Int:
		f.port(path, target.IntVal, false)
	default:
		f.valid(path, target.StrVal, validation.IsValidPortName)
	}
}

func checkNodePort(f *findings, path *field.Path, t corev1.ServiceType, port *corev1.ServicePort) {
	f.port(path, port.NodePort, true)
	switch {
	case t == corev1.ServiceTypeClusterIP && port.NodePort != 0:
		f.wrong(path, "is %d in a Service of type ClusterIP; remove it or write type NodePort", port.NodePort)
	case t == corev1.ServiceTypeNodePort && port.NodePort == 0:
		f.warn(path, "is missing, and no API server allocates one here; the port has no node port")
	}
}

func checkLoadBalancer(f *findings, s *corev1.Service) {
	for i := range s.Spec.LoadBalancerSourceRanges {
		f.prefix(specPath.Child("loadBalancerSourceRanges").Index(i), &s.Spec.LoadBalancerSourceRanges[i])
	}
	for i := range s.Status.LoadBalancer.Ingress {
		ingress := &s.Status.LoadBalancer.Ingress[i]
		at := field.NewPath("status", "loadBalancer", "ingress").Index(i)
		if ingress.IP == "" {
			continue
		}
		f.addr(at.Child("ip"), &ingress.IP)
		if ingress.IPMode == nil {
			ingress.IPMode = new(corev1.LoadBalancerIPModeVIP)
		}
		oneOf(f, at.Child("ipMode"), ingress.IPMode, "", corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy)
	}
}

// affinitySecondsMax is the longest ClientIP affinity that the API server takes: a day.
const affinitySecondsMax = 86400

func checkAffinity(f *findings, spec *corev1.ServiceSpec) {
	oneOf(f, specPath.Child("sessionAffinity"), &spec.SessionAffinity, corev1.ServiceAffinityNone,
		corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		spec.SessionAffinityConfig = nil
		return
	}
	if spec.SessionAffinityConfig == nil {
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{}
	}
	client := cmp.Or(spec.SessionAffinityConfig.ClientIP, &corev1.ClientIPConfig{})
	client.TimeoutSeconds = cmp.Or(client.TimeoutSeconds, new(corev1.DefaultClientIPServiceAffinitySeconds))
	spec.SessionAffinityConfig.ClientIP = client
	if s := *client.TimeoutSeconds; s < 1 || s > affinitySecondsMax {
		f.wrong(specPath.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), "is %d; write 1 to %d", s, affinitySecondsMax)
	}
}

func checkPolicies(f *findings, spec *corev1.ServiceSpec) {
	external := spec.Type != corev1.ServiceTypeClusterIP || len(spec.ExternalIPs) > 0
	if external || spec.ExternalTrafficPolicy != "" {
		oneOf(f, specPath.Child("externalTrafficPolicy"), &spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	}
	if spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	oneOf(f, specPath.Child("internalTrafficPolicy"), spec.InternalTrafficPolicy, "",
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	healthCheck := specPath.Child("healthCheckNodePort")
	f.port(healthCheck, spec.HealthCheckNodePort, true)
	if spec.HealthCheckNodePort == 0 && spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		f.warn(healthCheck, "is missing, and no API server allocates one here; no health check is answered for the Service")
	}
}
