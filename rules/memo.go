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
	services  map[topology.ServicePortName]memory
	facts     facts // that all of them were compiled with
	reserved  []netip.AddrPort
	conflicts []AddressConflict
	named     []ClaimKey // see resolveClaims
}

type memory struct {
	port    *topology.ServicePort
	whole   *Service // as compiled
	taken   []int    // indices of its Frontends that it does not get, ascending
	written *Service // whole without those
}

// Compile is the function Compile, faster.
func (m *Memo) Compile(v topology.View, c Config) Ruleset {
	servers := apiServers(v, c.APIServers)
	all := m.compileServices(v, factsOf(v, c), reserve(servers, v.Self.HostAddrs))
	ruleset := Ruleset{
		Services:         make([]*Service, len(all)),
		NodePorts:        nodePorts(v.Self, c),
		HostAddrs:        slices.SortedFunc(slices.Values(v.Self.HostAddrs), netip.Addr.Compare),
		HostNetworks:     v.Self.HostNetworks,
		APIServers:       servers,
		Local:            localDetector(v.Self, c.DetectLocal),
		HealthChecks:     healthChecks(v),
		AddressConflicts: m.conflicts,
		NodePortsTaken:   takenFromNodePorts(m.named, v.Self.HostAddrs),
	}
	for i, known := range all {
		ruleset.Services[i] = known.written
	}
	return ruleset
}

// compileServices compiles the Services that changed, and decides about addresses again if any
// Service claims another one than before, or there are other reserved ones.
func (m *Memo) compileServices(v topology.View, f facts, reserved []netip.AddrPort) []memory {
	if m.facts != f {
		m.services, m.facts = nil, f
	}
	old := m.services
	m.services = make(map[topology.ServicePortName]memory, len(v.Ports))
	all := make([]memory, 0, len(v.Ports))
	decided := old != nil && len(old) == len(v.Ports) && slices.Equal(m.reserved, reserved)
	for _, sp := range v.Ports {
		known, found := old[sp.Name]
		if !found || known.port != sp {
			s := compileService(sp, f)
			next := memory{port: sp, whole: s, written: s}
			if found && sameClaims(known.whole, s) {
				next.taken, next.written = known.taken, s.without(known.taken)
			} else {
				decided = false
			}
			known = next
		}
		all = append(all, known)
	}
	if !decided {
		m.decideClaims(all, reserved)
	}
	for _, known := range all {
		m.services[known.port.Name] = known
	}
	return all
}

func (m *Memo) decideClaims(all []memory, reserved []netip.AddrPort) {
	services := make([]*Service, len(all))
	for i, known := range all {
		services[i] = known.whole
	}
	lost, conflicts, named := resolveClaims(services, reserved)
	for i := range all {
		all[i].leaveOut(lost[i])
	}
	m.reserved, m.conflicts, m.named = reserved, conflicts, named
}

// leaveOut makes written the Service without some Frontends, keeping its pointer while
// these stay the same.
func (k *memory) leaveOut(taken []int) {
	if slices.Equal(taken, k.taken) {
		return
	}
	k.taken = taken
	k.written = k.whole.without(taken)
}

// without is a Service that lacks some of its Frontends, given by ascending index, and the sets
// that only these routed to.
func (s *Service) without(frontends []int) *Service {
	if len(frontends) == 0 {
		return s
	}
	trimmed := *s
	trimmed.Frontends, trimmed.Sets = nil, nil
	place := map[int]int{} // of each set that is still routed to
	for i, f := range s.Frontends {
		if _, lost := slices.BinarySearch(frontends, i); lost {
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
