package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// compileService decides everything about one port of a Service: each question of policy
// is answered here and nowhere else.
func compileService(sp *topology.ServicePort, f facts) *Service {
	s := &Service{
		Name:      sp.Name,
		Created:   sp.Service.CreationTimestamp.Time,
		Affinity:  affinity(sp.Service),
		Scheduler: sp.Service.Annotations[topology.AnnotationScheduler],
		Serving:   sp.Serving,
		Closed:    sp.Closure.Closed(),
	}
	for _, family := range Families() {
		if ip := clusterIPOfFamily(sp.Service, family == IPv6); ip.IsValid() {
			c := familyCompiler{port: sp, facts: f, family: family, service: s}
			c.addFrontends(ip)
		}
	}
	return s
}

// familyCompiler adds one family's Frontends and sets to a Service.
type familyCompiler struct {
	port    *topology.ServicePort
	facts   facts
	family  Family
	service *Service

	cluster, local []netip.AddrPort
	sets           [2]int // by TrafficPolicy: index into service.Sets, plus one
}

func (c *familyCompiler) addFrontends(ip netip.Addr) {
	c.cluster = c.endpoints(c.port.Cluster)
	c.local = c.endpoints(c.port.Local)
	if !topology.ValidPort(c.port.Port) {
		return // 65616 is not 80
	}
	port := uint16(c.port.Port)

	c.add(Frontend{Kind: ClusterIP, Addr: netip.AddrPortFrom(ip, port)}, c.internalRoutes)
	for _, addr := range c.externalIPs() {
		c.add(Frontend{Kind: ExternalIP, Addr: netip.AddrPortFrom(addr, port)}, c.externalRoutes)
	}
	vips := c.parse(vips(c.port.Service))
	allow, routes := c.sourceRanges(vips)
	for _, addr := range vips {
		c.add(Frontend{Kind: LoadBalancer, Addr: netip.AddrPortFrom(addr, port), Allow: allow}, routes)
	}
	if topology.ValidPort(c.port.NodePort) {
		c.add(Frontend{Kind: NodePort, Addr: netip.AddrPortFrom(c.family.Unspecified(), uint16(c.port.NodePort))}, c.externalRoutes)
	}
}

// add appends a Frontend with its routes. It rejects one of a Service without any usable
// endpoint in the unit, whatever its policies are: closure is enforced and never widened.
func (c *familyCompiler) add(f Frontend, routes func() ([]Route, Verdict)) {
	if len(c.cluster) == 0 {
		f.Allow, f.Verdict = nil, Reject
	} else {
		f.Routes, f.Verdict = routes()
	}
	c.service.Frontends = append(c.service.Frontends, f)
}

// internalRoutes returns the Routes of the cluster IP (KEP-2086 for policy Local), and what
// happens to packets that match no Route.
func (c *familyCompiler) internalRoutes() ([]Route, Verdict) {
	policy := Cluster
	if p := c.port.Service.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
		policy = Local
	}
	if policy == Local && len(c.local) == 0 {
		return nil, Drop
	}
	masquerade := None
	switch {
	case c.facts.masqueradeAll:
		masquerade = Always
	case c.facts.detector[c.family]:
		masquerade = OffCluster
	}
	return []Route{{From: Any, Set: c.set(policy), Masquerade: masquerade}}, Pass
}

// externalRoutes returns the Routes of every other Frontend, and what happens to packets that
// match no Route. Under policy Local, clients from outside reach this node's endpoints with
// their own address. This node and its Pods may use any endpoint of the unit.
func (c *familyCompiler) externalRoutes() ([]Route, Verdict) {
	if c.port.Service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return []Route{{From: Any, Set: c.set(Cluster), Masquerade: Always}}, Pass
	}
	var routes []Route
	if c.facts.detector[c.family] {
		routes = append(routes, Route{From: Pods, Set: c.set(Cluster), Masquerade: None})
	}
	routes = append(routes, Route{From: Node, Set: c.set(Cluster), Masquerade: Always})
	if len(c.local) > 0 {
		routes = append(routes, Route{From: Any, Set: c.set(Local), Masquerade: None})
	}
	return routes, Drop
}

// set returns the index of the set for a policy. It adds the set when a Route first needs it.
func (c *familyCompiler) set(p TrafficPolicy) int {
	if c.sets[p] == 0 {
		endpoints := c.cluster
		if p == Local {
			endpoints = c.local
		}
		c.service.Sets = append(c.service.Sets, EndpointSet{Policy: p, Endpoints: endpoints})
		c.sets[p] = len(c.service.Sets)
	}
	return c.sets[p] - 1
}

// sourceRanges returns who may use the LoadBalancer Frontends, and a function that returns
// their Routes. A load balancer may send a packet back to its own address from this node, so
// the VIPs are allowed if a range contains the node's address. A range of length 0 allows all
// clients, as does the absence of ranges. If a range cannot be read and the family has no
// readable one, no client is allowed, because it is unknown which clients it was meant to
// exclude.
func (c *familyCompiler) sourceRanges(vips []netip.Addr) ([]netip.Prefix, func() ([]Route, Verdict)) {
	var allow []netip.Prefix
	node, unreadable := false, false
	for _, text := range c.port.Service.Spec.LoadBalancerSourceRanges {
		p, err := topology.ParsePrefix(text)
		unreadable = unreadable || err != nil
		if err != nil || FamilyOf(p.Addr()) != c.family {
			continue
		}
		if p.Bits() == 0 {
			return nil, c.externalRoutes
		}
		allow = append(allow, p)
		node = node || p.Contains(c.facts.nodeIP[c.family])
	}
	if unreadable && len(allow) == 0 {
		return nil, func() ([]Route, Verdict) { return nil, Drop }
	}
	if node {
		for _, vip := range vips {
			allow = append(allow, netip.PrefixFrom(vip, vip.BitLen()))
		}
	}
	return allow, c.externalRoutes
}

// endpoints returns the addresses and ports of those of the family, sorted by their text.
func (c *familyCompiler) endpoints(all []topology.Endpoint) []netip.AddrPort {
	of := func(e topology.Endpoint) bool { return FamilyOf(e.Addr.Addr()) == c.family }
	count := 0
	for _, e := range all {
		if of(e) {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	out := make([]netip.AddrPort, 0, count) // kept for as long as the Service
	for _, e := range all {
		if of(e) {
			out = append(out, e.Addr)
		}
	}
	if !slices.IsSortedFunc(out, compareText) {
		slices.SortFunc(out, compareText)
	}
	return out
}

// compareText orders endpoints as kube-proxy does, by their text.
func compareText(a, b netip.AddrPort) int { return cmp.Compare(a.String(), b.String()) }

// parse keeps the usable addresses of the family, each once, in order.
func (c *familyCompiler) parse(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		a, err := topology.ExternalAddr(text)
		if err == nil && FamilyOf(a) == c.family && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// externalIPs returns the usable addresses of the family in spec.externalIPs, each once, or nil
// if the operator disables them. Any user who can write a Service can point them at foreign
// addresses (CVE-2020-8554).
func (c *familyCompiler) externalIPs() []netip.Addr {
	if c.facts.noExternalIPs {
		return nil
	}
	return c.parse(c.port.Service.Spec.ExternalIPs)
}

// clusterIPOfFamily returns the Service's cluster IP of a family, or the zero Addr without one.
func clusterIPOfFamily(svc *corev1.Service, ipv6 bool) netip.Addr {
	for _, text := range append([]string{svc.Spec.ClusterIP}, svc.Spec.ClusterIPs...) {
		if a, err := topology.ParseAddr(text); err == nil && a.Is6() == ipv6 {
			return a
		}
	}
	return netip.Addr{}
}

// vips returns the load balancer's addresses that this node must answer on. It leaves out those
// with ipMode Proxy: there the load balancer delivers to the node's own addresses (KEP-1860).
func vips(svc *corev1.Service) []string {
	var out []string
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && (ingress.IPMode == nil || *ingress.IPMode == corev1.LoadBalancerIPModeVIP) {
			out = append(out, ingress.IP)
		}
	}
	return out
}

// affinity returns how long a client keeps its endpoint; 0 = no affinity.
func affinity(svc *corev1.Service) time.Duration {
	if svc.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := corev1.DefaultClientIPServiceAffinitySeconds
	if c := svc.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}
