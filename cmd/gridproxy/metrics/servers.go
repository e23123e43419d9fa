package metrics

import "github.com/prometheus/client_golang/prometheus"

// Servers is what there is of virtual servers of ours.
type Servers struct {
	Servers      int // virtual servers
	Destinations int // their real servers
	Draining     int // of Destinations: no new connections, but some that are open
	Conflicts    int // wanted, but somebody else has a virtual server there
	Refused      int // wanted, but the kernel did not take them: chains take their place
	Degraded     bool
	// Messages are those sent so far to change something, by what they were about.
	Messages map[string]int
}

type serverMetrics struct {
	servers, destinations, draining, conflicts, refused, degraded prometheus.Gauge
	messages                                                      *prometheus.CounterVec
	sent                                                          map[string]int // what messages has counted
}

func newServerMetrics(f factory) *serverMetrics {
	return &serverMetrics{
		servers:      f.gauge("ipvs_virtual_servers", "Virtual servers of ours in the kernel."),
		destinations: f.gauge("ipvs_real_servers", "Real servers of these virtual servers."),
		draining:     f.gauge("ipvs_draining_real_servers", "Those of them that get no new connections and wait for the end of the open ones."),
		conflicts:    f.gauge("ipvs_conflicts", "Virtual servers that are wanted and not made, because somebody else has one there."),
		refused:      f.gauge("ipvs_refused", "Virtual servers that are wanted and that the kernel did not take, so that chains of iptables take their place."),
		degraded:     f.gauge("ipvs_degraded", "1 if the kernel would go on sending sticky clients to a draining real server, so that those outside of the unit are deleted at once."),
		messages:     f.counters("ipvs_netlink_messages_total", "Netlink messages sent to change virtual servers, real servers, addresses, sets and their entries.", "object"),
		sent:         map[string]int{},
	}
}

func (m *serverMetrics) observe(now Servers) {
	m.servers.Set(float64(now.Servers))
	m.destinations.Set(float64(now.Destinations))
	m.draining.Set(float64(now.Draining))
	m.conflicts.Set(float64(now.Conflicts))
	m.refused.Set(float64(now.Refused))
	m.degraded.Set(0)
	if now.Degraded {
		m.degraded.Set(1)
	}
	for object, n := range now.Messages {
		m.messages.WithLabelValues(object).Add(float64(n - m.sent[object]))
		m.sent[object] = n
	}
}
