package rules

import (
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/changes"

	"k8s.io/apimachinery/pkg/types"
)

// Memo remembers the last Ruleset and what each ServicePort came to. The zero value is ready for
// use. One goroutine may use it.
//
// Its Compile equals the function Compile always; a Service whose inputs did not change is the same
// pointer as before. Only ServicePorts that are other pointers than before are compiled, and only
// claims to the addresses that these name or named are decided again.
type Memo struct {
	facts    facts // that all of them were compiled with
	ports    []*topology.ServicePort
	memories map[*topology.ServicePort]*memory
	claims   *claimIndex

	services  []*Service // as granted
	checks    []HealthCheck
	conflicts []AddressConflict
	changed   map[types.NamespacedName]struct{} // in the run in progress: Services for which one of these changed
}

// memory is what one ServicePort came to.
type memory struct {
	port      *topology.ServicePort
	whole     *Service // as compiled
	lost      []int    // indices of its Frontends that it does not get, ascending
	granted   *Service // whole without those
	conflicts []AddressConflict
}

// Compile returns what the function Compile returns, but faster.
func (m *Memo) Compile(v topology.View, c Config) Ruleset { return compileView(v, c, m) }

// compileServices makes services, checks, conflicts and claims those of the View's ports.
func (m *Memo) compileServices(ports []*topology.ServicePort, f facts, reserved reserved) {
	if m.memories == nil || m.facts != f {
		*m = Memo{facts: f, memories: make(map[*topology.ServicePort]*memory, len(ports)), claims: newClaimIndex(reserved)}
	}
	m.changed = map[types.NamespacedName]struct{}{}
	if !m.claims.reserved.equal(reserved) {
		m.claims = newClaimIndex(reserved)
		for _, known := range m.memories {
			m.claims.add(known)
		}
	}
	for old, now := range changes.Between(m.ports, ports, comparePorts) {
		m.take(old, now)
	}
	for known := range m.claims.settle() {
		m.grant(known)
	}
	m.ports = ports
	m.list()
}

func comparePorts(a, b *topology.ServicePort) int { return topology.CompareNames(a.Name, b.Name) }

// take compiles a port that took the place of another one; nil = there is or was none.
func (m *Memo) take(old, now *topology.ServicePort) {
	known := m.memories[old]
	delete(m.memories, old)
	switch {
	case now == nil:
		m.claims.remove(known)
		m.changed[old.Name.NamespacedName] = struct{}{}
		return
	case known == nil:
		known = &memory{}
	}
	m.memories[now] = known
	m.changed[now.Name.NamespacedName] = struct{}{}
	s := compileService(now, m.facts)
	same := known.whole != nil && sameClaims(known.whole, s)
	if !same && known.whole != nil {
		m.claims.remove(known)
	}
	known.port, known.whole, known.granted = now, s, s.without(known.lost)
	if !same {
		m.claims.add(known)
	}
}

// grant leaves to a Service the Frontends that it gets, and keeps its pointer while these stay the
// same.
func (m *Memo) grant(known *memory) {
	lost, conflicts := m.claims.lostBy(known)
	if slices.Equal(lost, known.lost) && slices.Equal(conflicts, known.conflicts) {
		return
	}
	if !slices.Equal(lost, known.lost) {
		known.granted = known.whole.without(lost)
	}
	known.lost, known.conflicts = lost, conflicts
	m.changed[known.port.Name.NamespacedName] = struct{}{}
}

// list brings the lists up to date with the Services that changed.
func (m *Memo) list() {
	if len(m.changed) == 0 {
		return
	}
	names := make([]types.NamespacedName, 0, len(m.changed))
	for name := range m.changed {
		names = append(names, name)
	}
	slices.SortFunc(names, topology.CompareServices)
	m.services = changes.Replace(m.services, names, func(s *Service, name types.NamespacedName) int {
		return topology.CompareServices(s.Name.NamespacedName, name)
	}, func(name types.NamespacedName) (all []*Service) {
		for _, sp := range topology.PortsOf(m.ports, name) {
			all = append(all, m.memories[sp].granted)
		}
		return all
	})
	m.checks = changes.Replace(m.checks, names, func(c HealthCheck, name types.NamespacedName) int {
		return topology.CompareServices(c.Service, name)
	}, func(name types.NamespacedName) []HealthCheck { return healthChecks(topology.PortsOf(m.ports, name)) })
	m.conflicts = changes.Replace(m.conflicts, names, func(c AddressConflict, name types.NamespacedName) int {
		return topology.CompareServices(c.Service.NamespacedName, name)
	}, func(name types.NamespacedName) (all []AddressConflict) {
		for _, sp := range topology.PortsOf(m.ports, name) {
			all = append(all, m.memories[sp].conflicts...)
		}
		return all
	})
}
