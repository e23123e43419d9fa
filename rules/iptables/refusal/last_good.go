package refusal

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// lastGood returns a Service with the endpoints that its chains in the kernel lead to; nil =
// they lead to no endpoint. Only its cluster IP leads to them.
func lastGood(s *rules.Service, nat *netfilter.SavedTable, o render.Options) *rules.Service {
	chain := nat.Chain(render.TrafficPolicyChain(o.Names, s.Name, rules.Cluster))
	if chain == nil {
		return nil
	}
	last := render.Reject(s)
	set := rules.EndpointSet{Policy: rules.Cluster}
	last.Affinity = 0
	for _, r := range chain.Rules {
		if to := destination(nat.Chain(r.Rule.Jump)); to.IsValid() {
			set.Endpoints = append(set.Endpoints, to)
		}
		if r.Rule.Recent.Op == netfilter.RecentCheck {
			last.Affinity = time.Duration(r.Rule.Recent.Seconds) * time.Second
		}
	}
	slices.SortFunc(set.Endpoints, func(a, b netip.AddrPort) int { return strings.Compare(a.String(), b.String()) })
	set.Endpoints = slices.Compact(set.Endpoints)
	if len(set.Endpoints) == 0 {
		return nil
	}
	last.Sets = []rules.EndpointSet{set}
	for i := range last.Frontends {
		f := &last.Frontends[i]
		if f.Kind == rules.ClusterIP && f.Addr.Addr().Is6() == (o.Family == netfilter.IPv6) {
			f.Routes = []rules.Route{{From: rules.Any, Masquerade: rules.OffCluster}}
		}
	}
	return last
}

// destination returns where the chain of an endpoint sends packets; zero = nowhere, or chain is
// nil.
func destination(chain *netfilter.SavedChain) netip.AddrPort {
	if chain == nil {
		return netip.AddrPort{}
	}
	for _, r := range chain.Rules {
		if r.Rule.Target == netfilter.TargetDNAT {
			return r.Rule.DNAT
		}
	}
	return netip.AddrPort{}
}
