package metrics

import (
	"slices"

	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/prometheus/client_golang/prometheus"
)

type closureMetrics struct {
	closed, empty, malformed prometheus.Gauge
	conflicts                prometheus.Gauge
	leftOut                  *prometheus.GaugeVec
}

func newClosureMetrics(f factory) closureMetrics {
	m := closureMetrics{
		closed:    f.gauge("closed_services", "Services that are confined to a unit."),
		empty:     f.gauge("closed_services_without_endpoints", "Closed Services without a usable endpoint in this node's unit, where it has one."),
		malformed: f.gauge("malformed_annotations", "Services whose topology annotations cannot be read."),
		conflicts: f.gauge("address_conflicts", "Addresses that a Service names and does not get, because another Service or an API server has them."),
		leftOut:   f.gauges("endpoints_left_out", "Endpoints of Service ports that closure leaves out here, by reason.", "reason"),
	}
	return m
}

// Reasons are the values of the label reason.
func Reasons() []topology.Reason {
	return []topology.Reason{
		topology.ReasonOtherUnit, topology.ReasonEndpointNoUnit, topology.ReasonNoNodeName, topology.ReasonUnknownEndpoint,
		topology.ReasonSelfUnknown, topology.ReasonSelfNoUnit, topology.ReasonNotOwn, topology.ReasonPreferredKey,
		topology.ReasonNotWatched,
	}
}

func (m closureMetrics) observeClosure(s topology.Snapshot, v topology.View) {
	closed, empty, malformed := 0, 0, 0
	self, known := s.Nodes[s.Node]
	leftOut := map[topology.Reason]int{}
	for ports := range explain.ByService(v) {
		c := ports[0].Closure // only Dropped differs between the ports
		if c.Malformed != "" {
			malformed++
		}
		if !c.Closed() {
			continue
		}
		closed++
		// A node in none of the Service's units has no unit that could lack endpoints.
		if !slices.ContainsFunc(ports, usable) && (!known || len(c.Keys) == 0 || explain.Unit(c.Keys, self) != "") {
			empty++
		}
		for _, sp := range ports {
			for _, d := range sp.Closure.Dropped {
				leftOut[d.Reason]++
			}
		}
	}
	m.closed.Set(float64(closed))
	m.empty.Set(float64(empty))
	m.malformed.Set(float64(malformed))
	for _, reason := range Reasons() {
		m.leftOut.WithLabelValues(string(reason)).Set(float64(leftOut[reason]))
	}
}

func usable(sp *topology.ServicePort) bool { return len(sp.Cluster) > 0 || len(sp.Local) > 0 }

// setNoLocal counts the Service ports with a Frontend that drops packets because its traffic policy
// allows none of the endpoints.
func (m *Metrics) setNoLocal(r rules.Ruleset) {
	type kind struct{ policy, family string }
	counts := map[kind]int{
		{"internal", "IPv4"}: 0, {"internal", "IPv6"}: 0, {"external", "IPv4"}: 0, {"external", "IPv6"}: 0,
	}
	for _, svc := range r.Services {
		var found []kind
		for _, f := range svc.Frontends {
			k := kind{"external", "IPv4"}
			if f.Kind == rules.ClusterIP {
				k.policy = "internal"
			}
			if f.Addr.Addr().Is6() {
				k.family = "IPv6"
			}
			if f.Verdict == rules.Drop && !f.AdmitsNobody() && !slices.ContainsFunc(f.Routes, fromAnywhere) && !slices.Contains(found, k) {
				found = append(found, k)
				counts[k]++
			}
		}
	}
	for k, n := range counts {
		m.noLocal.WithLabelValues(k.policy, k.family).Set(float64(n))
	}
}

func fromAnywhere(r rules.Route) bool { return r.From == rules.Any }
