package daemon

import (
	"context"
	"net/netip"
	"slices"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
)

// quarantineObserver reports Services whose rules this node's kernel refuses.
type quarantineObserver struct {
	findings driver.Findings
	reporter *event.Reporter
}

// Synced reports the Services that the kernel refuses or serves without session affinity, after
// every run that decided something: a quarantine may end.
func (o quarantineObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return
	}
	o.reporter.Quarantined(r.View, o.findings.Quarantine())
	o.reporter.WithoutAffinity(r.View, o.findings.WithoutAffinity())
}

// checksWithout returns checks in which quarantined Services have no endpoint, so that load
// balancers avoid this node, unless their last good rules stay in force.
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

// quarantineFlows also deletes the UDP flows of quarantined Services to endpoints of the unit: a
// tracked flow is translated before it meets a REJECT.
type quarantineFlows struct {
	syncer.Flows
	quarantined func() []event.Quarantined

	closed map[*rules.Service]closedFlows // of the last Clean, so that an unchanged Service keeps its pointer
}

// closedFlows is a Service without the endpoints of the families in which it is quarantined.
type closedFlows struct {
	ipv4, ipv6 bool
	service    *rules.Service
}

// Clean deletes flows as Flows does, by the rules in force instead of want.
func (f *quarantineFlows) Clean(
	ctx context.Context, want rules.Ruleset, view topology.View, synced rules.FamilySet, force bool,
) (deleted, outlived int, err error) {
	return f.Flows.Clean(ctx, f.enforced(want), view, synced, force)
}

// enforced returns want without the endpoints of quarantined Services, in the families that
// refuse them. It keeps those of a Service whose last good rules stay in force.
func (f *quarantineFlows) enforced(want rules.Ruleset) rules.Ruleset {
	families := map[topology.ServicePortName]closedFlows{}
	for _, q := range f.quarantined() {
		if !q.Kept {
			c := families[q.Service]
			c.ipv4, c.ipv6 = c.ipv4 || q.Family == rules.IPv4, c.ipv6 || q.Family == rules.IPv6
			families[q.Service] = c
		}
	}
	before := f.closed
	f.closed = map[*rules.Service]closedFlows{}
	if len(families) == 0 {
		return want
	}
	want.Services = slices.Clone(want.Services)
	for i, s := range want.Services {
		c, is := families[s.Name]
		if !is {
			continue
		}
		if last := before[s]; last.service != nil && last.ipv4 == c.ipv4 && last.ipv6 == c.ipv6 {
			c = last
		} else {
			c.service = c.without(s)
		}
		f.closed[s], want.Services[i] = c, c.service
	}
	return want
}

func (c closedFlows) without(s *rules.Service) *rules.Service {
	closed := *s
	closed.Serving = slices.DeleteFunc(slices.Clone(s.Serving), func(a netip.AddrPort) bool {
		return c.ipv4 && a.Addr().Is4() || c.ipv6 && a.Addr().Is6()
	})
	return &closed
}
