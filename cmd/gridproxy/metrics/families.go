package metrics

import (
	"gridproxy/rules"
	"gridproxy/rules/syncer"

	"github.com/prometheus/client_golang/prometheus"
)

// The states of an address family: the values of label state.
const (
	StateSynced  = "synced"
	StateFailed  = "failed"
	StateLeftOut = "left_out"
)

// StateOf returns the state of a family with this outcome.
func StateOf(o rules.Outcome) string {
	switch {
	case o.Err != nil:
		return StateFailed
	case o.LeftOut != nil:
		return StateLeftOut
	default:
		return StateSynced
	}
}

// familyMetrics are the states of the address families.
type familyMetrics struct {
	state, lastSync *prometheus.GaugeVec
	failures        *prometheus.CounterVec
}

func newFamilyMetrics(f factory) familyMetrics {
	m := familyMetrics{
		state: f.gauges("family_state",
			"1 for the state of an address family after the last run: synced, failed (tried again after a back-off), left_out (no tool or no kernel for it).", "ip_family", "state"),
		lastSync: f.gauges("family_last_sync_timestamp_seconds", "When the last run ended that wrote this address family, in seconds since 1970.", "ip_family"),
		failures: f.counters("family_sync_failures_total", "Runs that failed for this address family.", "ip_family"),
	}
	for _, family := range rules.Families() {
		m.failures.WithLabelValues(family.String())
	}
	return m
}

func (m familyMetrics) observeFamilies(r syncer.Result) {
	for f, o := range r.Changes.Families {
		family, state := rules.Family(f).String(), StateOf(o)
		switch {
		case state == StateFailed && !r.Waits:
			m.failures.WithLabelValues(family).Inc()
		case state == StateSynced:
			m.lastSync.WithLabelValues(family).Set(unix(r.End))
		}
		for _, s := range []string{StateSynced, StateFailed, StateLeftOut} {
			m.state.WithLabelValues(family, s).Set(number(s == state))
		}
	}
}
