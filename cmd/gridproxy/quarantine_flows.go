package main

import (
	"context"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
)

// quarantineFlows ends the UDP flows of Services that the kernel refuses, also those to endpoints
// of the unit: a flow that is tracked is translated before any REJECT sees it.
type quarantineFlows struct {
	syncer.Flows
	refused func() []iptables.Quarantined

	closed map[*rules.Service]closedFlows // those of the last Clean, so that equal Services stay equal pointers
}

// closedFlows is a Service without the endpoints of the families in which it is refused.
type closedFlows struct {
	ipv4, ipv6 bool
	service    *rules.Service
}

// Clean is as Flows has it, of what is in force.
func (f *quarantineFlows) Clean(
	ctx context.Context, want rules.Ruleset, view topology.View, synced rules.FamilySet, force bool,
) (deleted, outlived int, err error) {
	return f.Flows.Clean(ctx, f.enforced(want), view, synced, force)
}

// enforced is want without the endpoints that the kernel does not lead to.
func (f *quarantineFlows) enforced(want rules.Ruleset) rules.Ruleset {
	families := map[topology.ServicePortName]closedFlows{}
	for _, q := range f.refused() {
		if !q.Kept {
			c := families[q.Service]
			c.ipv4, c.ipv6 = c.ipv4 || q.Family == netfilter.IPv4, c.ipv6 || q.Family == netfilter.IPv6
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
