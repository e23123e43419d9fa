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
	shadowing []ClaimKey // see resolveClaims
}

// memory is what one ServicePort came to.
type memory struct {
	port    *topology.ServicePort
	whole   *Service // as compiled
	lost    []int    // indices of its Frontends that it does not get, ascending
	granted *Service // whole without those
}

// Compile is the function Compile, faster.
func (m *Memo) Compile(v topology.View, c Config) Ruleset { return compileView(v, c, m) }

// compileServices gives what compileService gives for each port: a port that is the same pointer as
// before is not compiled again. same reports whether all Services claim what they claimed before.
func (m *Memo) compileServices(ports []*topology.ServicePort, f facts) (all []memory, same bool) {
	if m.facts != f {
		m.services, m.facts = nil, f
	}
	all = make([]memory, 0, len(ports))
	same = m.services != nil && len(m.services) == len(ports)
	for _, sp := range ports {
		known, found := m.services[sp.Name]
		if !found || known.port != sp {
			s := compileService(sp, f)
			next := memory{port: sp, whole: s, granted: s}
			if found && sameClaims(known.whole, s) {
				next.lost, next.granted = known.lost, s.without(known.lost)
			} else {
				same = false
			}
			known = next
		}
		all = append(all, known)
	}
	return all, same
}

// grantClaims leaves to each Service the Frontends that resolveClaims leaves to it. If the claims
// and the reserved addresses are the same, so is the result.
func (m *Memo) grantClaims(all []memory, same bool, reserved []netip.AddrPort) []*Service {
	if !same || !slices.Equal(m.reserved, reserved) {
		services := make([]*Service, len(all))
		for i, known := range all {
			services[i] = known.whole
		}
		lost, conflicts, shadowing := resolveClaims(services, reserved)
		for i := range all {
			all[i].leaveOut(lost[i])
		}
		m.reserved, m.conflicts, m.shadowing = reserved, conflicts, shadowing
	}
	m.services = make(map[topology.ServicePortName]memory, len(all))
	granted := make([]*Service, len(all))
	for i, known := range all {
		m.services[known.port.Name], granted[i] = known, known.granted
	}
	return granted
}

// leaveOut makes granted the Service without some Frontends, and keeps its pointer while
// these stay the same.
func (k *memory) leaveOut(lost []int) {
	if slices.Equal(lost, k.lost) {
		return
	}
	k.lost = lost
	k.granted = k.whole.without(lost)
}
