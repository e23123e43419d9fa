package metrics

import "github.com/prometheus/client_golang/prometheus"

// Servers is the state of our virtual servers.
type Servers struct {
	Servers      int // virtual servers
	Destinations int // their real servers
	Draining     int // of Destinations, those that get no new connections but have open ones
	Conflicts    int // desired, but another program has a virtual server at the address
	Refused      int // desired, but refused by the kernel, so that chains take their place
	Degraded     bool
	// Messages are the numbers of netlink messages that changed something, by kind of object.
	Messages map[string]int
}

type serverMetrics struct {
	servers, destinations, draining, conflicts, refused, degraded prometheus.Gauge
	messages                                                      *prometheus.CounterVec
	sent                                                          map[string]int // already counted in messages
}

func newServerMetrics(f factory) *serverMetrics {
	return &serverMetrics{
		servers:      f.gauge("ipvs_virtual_servers", "Virtual servers of ours in the kernel."),
		destinations: f.gauge("ipvs_real_servers", "Real servers of these virtual servers."),
		draining:     f.gauge("ipvs_draining_real_servers", "Real servers that get no new connections and wait for the end of the open ones."),
		conflicts:    f.gauge("ipvs_conflicts", "Virtual servers that are desired and not made, because another program has one at the same address."),
		refused:      f.gauge("ipvs_refused", "Virtual servers that the kernel refused, so that chains of iptables take their place."),
		degraded:     f.gauge("ipvs_degraded", "1 if the kernel would keep sending some clients to a draining real server, so that real servers outside of the unit are deleted at once."),
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
