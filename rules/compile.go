package rules

import (
	"cmp"
	"net/netip"
	"slices"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// Compile decides what the node must enforce.
func Compile(v topology.View, c Config) Ruleset {
	var m Memo
	return m.Compile(v, c)
}

// compileView implements Compile. m remembers what ServicePorts were compiled to.
func compileView(v topology.View, c Config, m *Memo) Ruleset {
	servers := apiServers(v, c.APIServers)
	m.compileServices(v.Ports, factsOf(v, c), reserve(servers, v.Self.HostAddrs, c.LocalDNS))
	host := slices.SortedFunc(slices.Values(v.Self.HostAddrs), netip.Addr.Compare)
	return Ruleset{
		Services:         m.services,
		NodePorts:        newNodePortScope(v.Self, c),
		HostAddrs:        host,
		HostNetworks:     v.Self.HostNetworks,
		APIServers:       servers,
		Local:            newLocalDetector(v.Self, c.DetectLocal),
		HealthChecks:     m.checks,
		LocalDNS:         newLocalDNS(v.Self, c.LocalDNS),
		AddressConflicts: m.conflicts,
		NodePortsTaken:   takenFromNodePorts(m.claims.shadows(), host),
	}
}

// facts are what the decision about a Service reads besides the ServicePort. Memo compares them, so
// the decision must not read anything else.
type facts struct {
	masqueradeAll bool
	noExternalIPs bool
	detector      FamilySet     // in which this node's Pods can be recognised
	nodeIP        [2]netip.Addr // the node's primary address, by family; loopback while unknown
}

func factsOf(v topology.View, c Config) facts {
	local := newLocalDetector(v.Self, c.DetectLocal)
	return facts{
		masqueradeAll: c.MasqueradeAll,
		noExternalIPs: c.IgnoreExternalIPs,
		detector:      FamilySet{local.Detects(false), local.Detects(true)},
		nodeIP: [2]netip.Addr{
			cmp.Or(firstOf(v.Self.IPs, false), netip.AddrFrom4([4]byte{127, 0, 0, 1})),
			cmp.Or(firstOf(v.Self.IPs, true), netip.IPv6Loopback()),
		},
	}
}

// firstOf returns the first address of a family, or the zero Addr if addrs has none.
func firstOf(addrs []netip.Addr, ipv6 bool) netip.Addr {
	for _, a := range addrs {
		if a.Is6() == ipv6 {
			return a
		}
	}
	return netip.Addr{}
}

// Detects reports whether packets from Pods of this node can be recognised in a family.
func (d LocalDetector) Detects(ipv6 bool) bool {
	return d.Bridge != "" || d.InterfacePrefix != "" || d.Prefix(ipv6).IsValid()
}

// Prefix returns the family's Pod range, or the zero Prefix if d has none.
func (d LocalDetector) Prefix(ipv6 bool) netip.Prefix {
	for _, p := range d.Prefixes {
		if p.Addr().Is6() == ipv6 {
			return p
		}
	}
	return netip.Prefix{}
}

func newLocalDNS(self topology.NodeFacts, addrs []netip.Addr) LocalDNS {
	if len(addrs) == 0 {
		return LocalDNS{}
	}
	return LocalDNS{Addrs: addrs, Clients: self.PodCIDRs}
}

func newLocalDetector(self topology.NodeFacts, d DetectLocal) LocalDetector {
	switch d.Mode {
	case DetectBridgeInterface:
		return LocalDetector{Bridge: d.Bridge}
	case DetectInterfaceNamePrefix:
		return LocalDetector{InterfacePrefix: d.InterfacePrefix}
	case DetectNodeCIDR:
		return LocalDetector{Prefixes: firstOfEach(self.PodCIDRs)}
	default:
		return LocalDetector{Prefixes: firstOfEach(d.ClusterCIDRs)}
	}
}

// firstOfEach keeps the first prefix of each family.
func firstOfEach(all []netip.Prefix) []netip.Prefix {
	var first []netip.Prefix
	for _, p := range all {
		if !slices.ContainsFunc(first, func(q netip.Prefix) bool { return p.Addr().Is6() == q.Addr().Is6() }) {
			first = append(first, p)
		}
	}
	return first
}

// healthChecks returns the health-check node ports of the Service that has these ports: one for
// each family of a LoadBalancer with external policy Local (KEP-1669), nil for other Services.
func healthChecks(ports []*topology.ServicePort) []HealthCheck {
	if len(ports) == 0 {
		return nil
	}
	svc := ports[0].Service
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal ||
		!topology.ValidPort(svc.Spec.HealthCheckNodePort) {
		return nil
	}
	var checks []HealthCheck
	for _, ipv6 := range []bool{false, true} {
		if !clusterIPOfFamily(svc, ipv6).IsValid() {
			continue
		}
		ready := ports[0].ReadyLocal.IPv4
		if ipv6 {
			ready = ports[0].ReadyLocal.IPv6
		}
		checks = append(checks, HealthCheck{
			Service: ports[0].Name.NamespacedName, IPv6: ipv6, Port: uint16(svc.Spec.HealthCheckNodePort), LocalReady: ready,
		})
	}
	return checks
}
