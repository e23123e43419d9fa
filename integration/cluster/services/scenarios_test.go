package services

import (
	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// scenario is one of Kubernetes' end-to-end tests, by the name that it has there.
type scenario struct {
	name  string
	run   func(*world)
	alone bool // it disturbs the others
}

func scenarios() []scenario {
	var all []scenario
	for _, group := range [][]scenario{ofServices(), ofPolicies(), ofSlices(), ofConntrack(), ofBalancers(), ofNetworking(), ofDualStack(), disruptive()} {
		all = append(all, group...)
	}
	return all
}

// The clients of most scenarios.
func pod(w *world) *netns.Namespace  { return w.client(bj) }
func host(w *world) *netns.Namespace { return w.host(bj) }

func ofServices() []scenario {
	return []scenario{
		{name: "Services should serve a basic endpoint from pods", run: serveBasicEndpoint},
		{name: "Services should serve multiport endpoints from pods", run: serveMultiport},
		{name: "Services should be updated after adding or deleting ports", run: addAndDeletePorts},
		{name: "Services should preserve source pod IP for traffic thru service cluster IP", run: preserveSource},
		{name: "Services should allow pods to hairpin back to themselves through services", run: hairpin},
		{name: "Services should be able to up and down services", run: upAndDown},
		{name: "Services should work after the service has been recreated", run: recreated},
		{name: "Services should be able to create a functioning NodePort service", run: functioningNodePort},
		{name: "Services should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node", run: externalIP},
		{name: "Services should be able to update service type to NodePort listening on same port number but different protocols", run: nodePortOfBothProtocols},
		{name: "Services should be able to change the type from ExternalName to ClusterIP", run: externalNameTo(corev1.ServiceTypeClusterIP)},
		{name: "Services should be able to change the type from ExternalName to NodePort", run: externalNameTo(corev1.ServiceTypeNodePort)},
		{name: "Services should be able to change the type from ClusterIP to ExternalName", run: toExternalName(corev1.ServiceTypeClusterIP)},
		{name: "Services should be able to change the type from NodePort to ExternalName", run: toExternalName(corev1.ServiceTypeNodePort)},
		{name: "Services should create endpoints for unready pods", run: endpointsForUnready},
		{name: "Services should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true", run: unreadyAndTerminating(true)},
		{name: "Services should not be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is false", run: unreadyAndTerminating(false)},
		{name: "Services should have session affinity work for service with type clusterIP", run: affinity("tcp", byClusterIP())},
		{name: "Services should have session affinity timeout work for service with type clusterIP", run: affinityTimeout(byClusterIP())},
		{name: "Services should be able to switch session affinity for service with type clusterIP", run: switchAffinity(byClusterIP())},
		{name: "Services should have session affinity work for NodePort service", run: affinity("tcp", byNodePort())},
		{name: "Services should have session affinity timeout work for NodePort service", run: affinityTimeout(byNodePort())},
		{name: "Services should be able to switch session affinity for NodePort service", run: switchAffinity(byNodePort())},
		{name: "Services should implement service.kubernetes.io/service-proxy-name", run: proxyName},
		{name: "Services should implement service.kubernetes.io/headless", run: headlessSlice},
		{name: "Services should be rejected when no endpoints exist", run: rejectedWithoutEndpoints},
		{name: "Services should be rejected for evicted pods (no endpoints exist)", run: rejectedForEvicted},
		{name: "Services should serve endpoints on same port and different protocols", run: samePortBothProtocols},
		{name: "Services should allow creating a basic SCTP service with pod and endpoints", run: sctp},
		{name: "Services should connect to the ports exposed by restartable init containers", run: restartableInit(intstr.FromInt32(8080))},
		{name: "Services should connect to the named ports exposed by restartable init containers", run: restartableInit(intstr.FromString("web"))},
		{name: "Services should support named targetPorts that resolve to different ports on different endpoints", run: namedTargetPorts},
	}
}

func ofPolicies() []scenario {
	return []scenario{
		{name: "Services should respect internalTrafficPolicy=Local Pod to Pod", run: internalLocalPodToPod},
		{name: "Services should respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod", run: internalLocalHostToPod},
		{name: "Services should respect internalTrafficPolicy=Local Pod and Node, to Pod (hostNetwork: true)", run: internalLocalToHost},
		{name: "Services should support externalTrafficPolicy=Local for type=NodePort", run: externalLocalNodePort},
		{name: "Services should fail health check node port if there are only terminating endpoints", run: healthOfTerminating},
		{name: "Services should fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster", run: terminatingInternalCluster},
		{name: "Services should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local", run: terminatingInternalLocal},
		{name: "Services should fallback to terminating endpoints when there are no ready endpoints with externallTrafficPolicy=Cluster", run: terminatingExternalCluster},
		{name: "Services should fallback to local terminating endpoints when there are no ready endpoints with externalTrafficPolicy=Local", run: terminatingExternalLocal},
		{name: "Services should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes", run: healthWhenPolicyChanges},
	}
}

func ofSlices() []scenario {
	const node = corev1.ServiceTrafficDistributionPreferSameNode
	return []scenario{
		{name: "EndpointSlice should support a Service with multiple ports specified in multiple EndpointSlices", run: portsInSeveralSlices},
		{name: "EndpointSlice should support a Service with multiple endpoint IPs specified in multiple EndpointSlices", run: addressesInSeveralSlices},
		{name: "Traffic Distribution should route traffic to an endpoint in the same zone when using PreferClose", run: preferSameZone(corev1.ServiceTrafficDistributionPreferClose)},
		{name: "Traffic Distribution should route traffic to an endpoint in the same zone when using PreferSameZone", run: preferSameZone(corev1.ServiceTrafficDistributionPreferSameZone)},
		{name: "Traffic Distribution should route traffic to an endpoint on the same node or fall back to same zone when using " + node, run: preferSameNode},
		{name: "Traffic Distribution should route traffic to an endpoint on the same node when using " + node + " and fall back when the endpoint becomes unavailable", run: preferSameNodeFallsBack},
		{name: "Service CIDRs should create Services and serve on different Service CIDRs", run: otherServiceCIDR},
		{name: "Topology Hints should distribute endpoints evenly", run: topologyHints},
	}
}

func ofConntrack() []scenario {
	asIs := func(*corev1.Service) {}
	return []scenario{
		{name: "Conntrack should be able to preserve UDP traffic when server pod cycles for a NodePort service", run: cycle(nodePort, datagramNodePorts, gz, pod)},
		{name: "Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service", run: cycle(asIs, datagramVIPs, gz, pod)},
		{name: "Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service with InternalTrafficPolicy set to Local", run: cycle(internalLocal, datagramVIPs, bj, pod)},
		{name: "Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service and client is hostNetwork", run: cycle(asIs, datagramVIPs, gz, host)},
		{name: "Conntrack should be able to preserve UDP traffic when initial unready endpoints get ready", run: unreadyGetsReady},
		{name: "Conntrack proxy implementation should not be vulnerable to the invalid conntrack state bug", run: invalidState},
		{name: "Conntrack should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service", run: targetPortChanges},
	}
}

// ofBalancers are those of the LoadBalancers that need no cloud: the test writes the status itself.
func ofBalancers() []scenario {
	cluster, local := byBalancer(balanced), byBalancer(balancedLocal)
	return []scenario{
		{name: "Services should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer", run: balancedBothProtocols},
		{name: "LoadBalancers should be able to change the type and ports of a TCP service", run: typeAndPorts("tcp", tcp80)},
		{name: "LoadBalancers should be able to change the type and ports of a UDP service", run: typeAndPorts("udp", udp80)},
		{name: "LoadBalancers should only allow access from service loadbalancer source ranges", run: sourceRanges},
		{name: "LoadBalancers should have session affinity work for LoadBalancer service with Local traffic policy", run: affinity("tcp", local)},
		{name: "LoadBalancers should be able to switch session affinity for LoadBalancer service with Local traffic policy", run: switchAffinity(local)},
		{name: "LoadBalancers should have session affinity work for LoadBalancer service with Cluster traffic policy", run: affinity("tcp", cluster)},
		{name: "LoadBalancers should be able to switch session affinity for LoadBalancer service with Cluster traffic policy", run: switchAffinity(cluster)},
		{name: "LoadBalancers should be able to create LoadBalancer Service without NodePort and change it", run: withoutNodePort},
		{name: "LoadBalancers should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on the same nodes", run: cycle(balanced, balancerAddrs, bj, pod)},
		{name: "LoadBalancers should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes", run: cycle(balanced, balancerAddrs, gz, pod)},
		{name: "LoadBalancers ExternalTrafficPolicy: Local should work for type=LoadBalancer", run: balancedLocalWorks},
		{name: "LoadBalancers ExternalTrafficPolicy: Local should only target nodes with endpoints", run: onlyNodesWithEndpoints},
		{name: "LoadBalancers ExternalTrafficPolicy: Local should target all nodes with endpoints", run: allNodesWithEndpoints},
		{name: "LoadBalancers ExternalTrafficPolicy: Local should work from pods", run: balancedFromPods},
	}
}

func ofNetworking() []scenario {
	const group = "Networking Granular Checks: Services should "
	all := []scenario{
		{name: "Networking should check kube-proxy urls", run: proxyURLs},
		{name: "KubeProxy should update metric for tracking accepted packets destined for localhost nodeports", run: localhostMetric},
		{name: group + "function for multiple endpoint-Services with same selector", run: severalServices},
		{name: group + "update nodePort: http", run: updateNodePort("tcp")},
		{name: group + "support basic nodePort: udp functionality", run: basicNodePortUDP},
		{name: group + "update nodePort: udp", run: updateNodePort("udp")},
		{name: group + "function for service endpoints using hostNetwork", run: hostEndpoints(netns.IPv4)},
	}
	return append(all, granular(group, netns.IPv4)...)
}

// granular are those that are there for each family. An endpoint that is the client may meet itself.
func granular(group string, f netns.Family) []scenario {
	endpoint := func(w *world) *netns.Namespace { return w.inside(bjA) }
	var all []scenario
	for _, kind := range [][2]string{{"http", "tcp"}, {"udp", "udp"}} {
		word, network := kind[0], kind[1]
		all = append(all,
			scenario{name: group + "function for pod-Service: " + word, run: toService(network, f, pod)},
			scenario{name: group + "function for node-Service: " + word, run: toService(network, f, host)},
			scenario{name: group + "function for endpoint-Service: " + word, run: toService(network, f, endpoint)},
			scenario{name: group + "update endpoints: " + word, run: updateEndpoints(network, f)},
			scenario{name: group + "function for client IP based session affinity: " + word, run: stickyIn(f, network)},
			scenario{name: group + "be able to handle large requests: " + word, run: largeRequests(network, f)},
		)
	}
	return all
}

func ofDualStack() []scenario {
	const group = "DualStack should "
	const secondary = "DualStack Granular Checks: Services Secondary IP Family should "
	all := []scenario{
		{name: group + "create a single stack service with cluster ip from primary service range", run: clusterIPs(corev1.IPFamilyPolicySingleStack)},
		{name: group + "create service with ipv4 cluster ip", run: clusterIPs(corev1.IPFamilyPolicySingleStack, netns.IPv4)},
		{name: group + "create service with ipv6 cluster ip", run: clusterIPs(corev1.IPFamilyPolicySingleStack, netns.IPv6)},
		{name: group + "create service with ipv4,v6 cluster ip", run: clusterIPs(corev1.IPFamilyPolicyRequireDualStack, netns.IPv4, netns.IPv6)},
		{name: group + "create service with ipv6,v4 cluster ip", run: clusterIPs(corev1.IPFamilyPolicyRequireDualStack, netns.IPv6, netns.IPv4)},
		{name: secondary + "function for service endpoints using hostNetwork", run: hostEndpoints(netns.IPv6)},
	}
	return append(all, granular(secondary, netns.IPv6)...)
}

// disruptive ones disturb all others. The API server comes last: its clients take their time to return.
func disruptive() []scenario {
	return []scenario{
		{name: "Services should work after restarting kube-proxy", run: afterProxyRestart, alone: true},
		{name: "Networking should recreate its iptables rules if they are deleted", run: rulesDeleted, alone: true},
		{name: "Services should work after restarting apiserver", run: afterAPIServerRestart, alone: true},
	}
}
