package metrics

import (
	"slices"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/changes"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"
)

type closureMetrics struct {
	closed, empty, malformed prometheus.Gauge
	conflicts                prometheus.Gauge
	leftOut                  *prometheus.GaugeVec

	counted closureCounts
	ports   []*topology.ServicePort // that were counted
	self    labels.Set              // this node's when they were
}

// closureCounts are sums over the Services of a View.
type closureCounts struct {
	ServiceCounts
	empty   int
	leftOut map[topology.Reason]int
}

// ServiceCounts are numbers of Services.
type ServiceCounts struct {
	All       int
	Closed    int // confined to a unit
	Refused   int // closed, and this node may use none of its endpoints, for whatever reason
	Malformed int // its topology annotations cannot be read
}

// Services returns the counts of the last run. They belong to the syncing goroutine.
func (m *Metrics) Services() ServiceCounts { return m.counted.ServiceCounts }

func newClosureMetrics(f factory) closureMetrics {
	m := closureMetrics{
		counted:   closureCounts{leftOut: map[topology.Reason]int{}},
		closed:    f.gauge("closed_services", "Services that are confined to a unit."),
		empty:     f.gauge("closed_services_without_endpoints", "Closed Services without a usable endpoint in this node's unit, where it has one."),
		malformed: f.gauge("malformed_annotations", "Services whose topology annotations cannot be read."),
		conflicts: f.gauge("address_conflicts", "Addresses that a Service names and does not get, because another Service, an API server or the DNS server of this Node has them."),
		leftOut:   f.gauges("endpoints_left_out", "Endpoints of Service ports that closure leaves out here, by reason.", "reason"),
	}
	return m
}

// Reasons returns the values of the label reason.
func Reasons() []topology.Reason {
	return []topology.Reason{
		topology.ReasonOtherUnit, topology.ReasonEndpointNoUnit, topology.ReasonNoNodeName, topology.ReasonUnknownEndpoint,
		topology.ReasonSelfUnknown, topology.ReasonSelfNoUnit, topology.ReasonNotOwn, topology.ReasonPreferredKey,
		topology.ReasonNotWatched,
	}
}

// observeClosure sets the metrics, and counts again only the Services that changed. A change of
// this node's labels that counts for a Service changes its ports too.
func (m *closureMetrics) observeClosure(s topology.Snapshot, v topology.View) {
	self, known := s.Nodes[s.Node]
	if known && self == nil {
		self = labels.Set{}
	}
	for before, after := range explain.ChangedServices(m.ports, v.Ports) {
		m.counted.add(before, m.self, -1)
		m.counted.add(after, self, 1)
	}
	m.ports, m.self = v.Ports, self
	m.closed.Set(float64(m.counted.Closed))
	m.empty.Set(float64(m.counted.empty))
	m.malformed.Set(float64(m.counted.Malformed))
	for _, reason := range Reasons() {
		m.leftOut.WithLabelValues(string(reason)).Set(float64(m.counted.leftOut[reason]))
	}
}

// add counts a Service n times; -1 takes it out. self are this node's labels; nil = unknown.
func (c *closureCounts) add(ports []*topology.ServicePort, self labels.Set, n int) {
	if len(ports) == 0 {
		return
	}
	c.All += n
	closure := ports[0].Closure // only KeyInUse and LeftOut differ between the ports
	if closure.Malformed != "" {
		c.Malformed += n
	}
	if !closure.Closed() {
		return
	}
	c.Closed += n
	if explain.IsRefused(ports) {
		c.Refused += n
		// A node in none of the Service's units has no unit that could lack endpoints.
		if self == nil || len(closure.Keys) == 0 || explain.Unit(closure.Keys, self) != "" {
			c.empty += n
		}
	}
	for _, sp := range ports {
		for _, r := range sp.Closure.LeftOut {
			c.leftOut[r.Reason] += n * r.Count
		}
	}
}

// noLocalMetric counts the Service ports with a Frontend that drops packets because its traffic
// policy allows none of the endpoints.
type noLocalMetric struct {
	gauges   *prometheus.GaugeVec
	counts   map[noLocal]int
	services []*rules.Service // that were counted
}

// noLocal is one kind of such Frontends.
type noLocal struct{ policy, family string }

func newNoLocalMetric(f factory) *noLocalMetric {
	return &noLocalMetric{
		gauges: f.gauges("sync_proxy_rules_no_local_endpoints_total",
			"Service ports with traffic policy Local and endpoints, but none on this node and in its unit.", "traffic_policy", "ip_family"),
		counts: map[noLocal]int{
			{"internal", "IPv4"}: 0, {"internal", "IPv6"}: 0, {"external", "IPv4"}: 0, {"external", "IPv6"}: 0,
		},
	}
}

func (m *noLocalMetric) observe(r rules.Ruleset) {
	compare := func(a, b *rules.Service) int { return topology.CompareNames(a.Name, b.Name) }
	for before, after := range changes.Between(m.services, r.Services, compare) {
		m.add(before, -1)
		m.add(after, 1)
	}
	m.services = r.Services
	for k, n := range m.counts {
		m.gauges.WithLabelValues(k.policy, k.family).Set(float64(n))
	}
}

// add counts a Service n times; -1 takes it out.
func (m *noLocalMetric) add(svc *rules.Service, n int) {
	if svc == nil {
		return
	}
	var found []noLocal
	for _, f := range svc.Frontends {
		k := noLocal{"external", "IPv4"}
		if f.Kind == rules.ClusterIP {
			k.policy = "internal"
		}
		if f.Addr.Addr().Is6() {
			k.family = "IPv6"
		}
		if f.Verdict == rules.Drop && !f.AdmitsNobody() && !slices.ContainsFunc(f.Routes, fromAnywhere) && !slices.Contains(found, k) {
			found = append(found, k)
			m.counts[k] += n
		}
	}
}

func fromAnywhere(r rules.Route) bool { return r.From == rules.Any }
