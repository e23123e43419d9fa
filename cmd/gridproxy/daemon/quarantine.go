package daemon

import (
	"slices"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// quarantineObserver reports Services whose rules this node's kernel refuses.
type quarantineObserver struct {
	findings driver.Findings
	reporter *event.Reporter
}

// Synced asks after every run that wrote: a quarantine may end.
func (o quarantineObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return
	}
	o.reporter.Quarantined(r.View, o.findings.Quarantine())
	o.reporter.WithoutAffinity(r.View, o.findings.WithoutAffinity())
}

// checksWithout makes load balancers avoid this node for quarantined Services: their health-check
// node ports report no endpoint.
func checksWithout(checks []rules.HealthCheck, quarantined []event.Quarantined) []rules.HealthCheck {
	checks = slices.Clone(checks)
	for i, c := range checks {
		for _, q := range quarantined {
			if !q.Kept && q.Service.NamespacedName == c.Service && (q.Family == rules.IPv6) == c.IPv6 {
				checks[i].LocalReady = 0
			}
		}
	}
	return checks
}
