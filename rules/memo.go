package rules

import (
	"net/netip"
	"slices"

	"gridproxy/topology"
)

// Memo remembers what each ServicePort came to. The zero value is ready for use. One
// goroutine may use it.
//
// Its Compile equals the function Compile always; a Service whose inputs did not change
// is the same pointer as before.
type Memo struct {
	services map[topology.ServicePortName]memory
}

type memory struct {
	port    *topology.ServicePort
	facts   facts
	whole   *Service // as compiled
	taken   []int    // indices of its Frontends that another Service holds
	written *Service // whole without those
}

// Compile is the function Compile, faster.
func (m *Memo) Compile(v topology.View, c Config) Ruleset {
	f := factsOf(v, c)
	old := m.services
	m.services = make(map[topology.ServicePortName]memory, len(v.Ports))
	all := make([]memory, 0, len(v.Ports))
	for _, sp := range v.Ports {
		known, found := old[sp.Name]
		if !found || known.port != sp || known.facts != f {
			s := compileService(sp, f)
			known = memory{port: sp, facts: f, whole: s, written: s}
		}
		all = append(all, known)
	}
	resolveClaims(all)
	ruleset := Ruleset{
		Services:     make([]*Service, len(all)),
		NodePorts:    nodePorts(v.Self, c),
		HostAddrs:    slices.SortedFunc(slices.Values(v.Self.HostAddrs), netip.Addr.Compare),
		HostNetworks: v.Self.HostNetworks,
		Local:        localDetector(v.Self, c.DetectLocal),
		HealthChecks: healthChecks(v),
	}
	for i, known := range all {
		m.services[known.port.Name] = known
		ruleset.Services[i] = known.written
	}
	return ruleset
}

// claim is what no two Frontends may share.
type claim struct {
	addr     netip.AddrPort
	protocol string
}

// resolveClaims gives an address that several Services name to one of them, so that the
// answer depends on the cluster's state alone and not on the order of events: a cluster
// IP before an external address (CVE-2020-8554: anybody may name an external one), then
// the Service that sorts first. all is sorted by Name.
func resolveClaims(all []memory) {
	external := func(f Frontend) bool { return f.Kind == ExternalIP || f.Kind == LoadBalancer }
	named := func(k memory) bool { return slices.ContainsFunc(k.whole.Frontends, external) }
	if !slices.ContainsFunc(all, named) {
		for i := range all {
			all[i].leaveOut(nil)
		}
		return
	}
	holder := make(map[claim]int, len(all))
	hold := func(i int, f Frontend) bool {
		c := claim{addr: f.Addr, protocol: string(all[i].whole.Name.Protocol)}
		by, taken := holder[c]
		if !taken {
			holder[c] = i
		}
		return !taken || by == i && f.Kind == ClusterIP
	}
	for i, known := range all {
		for _, f := range known.whole.Frontends {
			if f.Kind == ClusterIP {
				hold(i, f)
			}
		}
	}
	for i := range all {
		var taken []int
		for j, f := range all[i].whole.Frontends {
			if external(f) && !hold(i, f) {
				taken = append(taken, j)
			}
		}
		all[i].leaveOut(taken)
	}
}

// leaveOut makes written the Service without some Frontends, keeping its pointer while
// these stay the same.
func (k *memory) leaveOut(taken []int) {
	if slices.Equal(taken, k.taken) {
		return
	}
	k.taken = taken
	if len(taken) == 0 {
		k.written = k.whole
		return
	}
	k.written = k.whole.without(taken)
}

// without is a Service that lacks some of its Frontends, and the sets that only these
// routed to.
func (s *Service) without(frontends []int) *Service {
	trimmed := *s
	trimmed.Frontends, trimmed.Sets = nil, nil
	place := map[int]int{} // of each set that is still routed to
	for i, f := range s.Frontends {
		if slices.Contains(frontends, i) {
			continue
		}
		f.Routes = slices.Clone(f.Routes)
		for j, r := range f.Routes {
			if _, kept := place[r.Set]; !kept {
				place[r.Set] = len(trimmed.Sets)
				trimmed.Sets = append(trimmed.Sets, s.Sets[r.Set])
			}
			f.Routes[j].Set = place[r.Set]
		}
		trimmed.Frontends = append(trimmed.Frontends, f)
	}
	return &trimmed
}
