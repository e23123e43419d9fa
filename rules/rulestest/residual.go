package rulestest

import (
	"slices"

	"gridproxy/rules"
)

// Residual makes Rulesets smaller as IPVS mode does: it removes what a virtual server can express.
// It remembers Services by their pointers.
type Residual map[*rules.Service]*rules.Service

// Of returns rs without what virtual servers express.
func (m Residual) Of(rs rules.Ruleset) rules.Ruleset {
	rs.Services = slices.Clone(rs.Services)
	for i, s := range rs.Services {
		if m[s] == nil {
			m[s] = withoutServers(s, rs.NodePorts.Localhost)
		}
		rs.Services[i] = m[s]
	}
	return rs
}

func withoutServers(s *rules.Service, localhost bool) *rules.Service {
	small := *s
	small.Frontends = nil
	for _, f := range s.Frontends {
		serves := func(r rules.Route) bool { return r.From == rules.Any }
		at := slices.IndexFunc(f.Routes, serves)
		switch {
		case len(f.Allow) > 0 || at < 0 && f.Verdict == rules.Drop:
		case f.Kind == rules.NodePort && localhost && f.Addr.Addr().Is4():
		case at > 0:
			f.Routes, f.Verdict = f.Routes[:at], rules.Pass
		default:
			continue
		}
		small.Frontends = append(small.Frontends, f)
	}
	return &small
}
