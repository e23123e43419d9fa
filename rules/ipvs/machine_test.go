package ipvs

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// machine is a Backend in a network namespace of the test's own, with a clock that stands
// still.
type machine struct {
	*Backend
	t       testing.TB
	config  BackendConfig
	clock   time.Time
	log     strings.Builder
	foreign State // servers of others that are expected to stay as they are
}

// newMachine starts a Backend. Unless c says otherwise it has no chains.
func newMachine(t testing.TB, c BackendConfig) *machine {
	t.Helper()
	enter(t)
	return newMachineHere(t, c)
}

// newMachineHere starts it in the namespace that the test has entered.
func newMachineHere(t testing.TB, c BackendConfig) *machine {
	t.Helper()
	m := &machine{t: t, config: c, clock: time.Now()}
	m.restart()
	t.Cleanup(func() { m.kernel.close() })
	return m
}

// restart is what a new process does.
func (m *machine) restart() {
	m.t.Helper()
	if m.Backend != nil {
		m.kernel.close()
	}
	c := m.config
	if c.Tables == nil {
		c.Tables = emptyTables{}
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 15 * time.Minute
	}
	c.Log = slog.New(slog.NewTextHandler(&m.log, nil))
	var err error
	m.Backend, err = New(m.t.Context(), c)
	must(m.t, err)
	m.now = func() time.Time { return m.clock }
}

func (m *machine) sync(rs rules.Ruleset, verify bool) rules.Changes {
	m.t.Helper()
	changes, err := m.Sync(m.t.Context(), rs, verify)
	must(m.t, err)
	return changes
}

// wants is the State of a Ruleset, worked out from scratch.
func (m *machine) wants(rs rules.Ruleset) State {
	return new(Compiler).Compile(rs, m.Backend.config.Config).State()
}

// holds is what the kernel has, read by a reader of its own, without servers of others.
func (m *machine) holds() kernelState {
	m.t.Helper()
	o, err := open(m.t).observe(m.t.Context(), nil)
	must(m.t, err)
	for key, s := range m.foreign.Servers {
		if o.Servers[key] != s {
			m.t.Errorf("another program's server %s is %+v, want %+v", key, o.Servers[key], s)
		}
		delete(o.Servers, key)
	}
	for key, d := range m.foreign.Destinations {
		if o.Destinations[key] != d {
			m.t.Errorf("another program's real server %v is %+v, want %+v", key, o.Destinations[key], d)
		}
		delete(o.Destinations, key)
	}
	return o
}

// expect fails the test unless the kernel holds exactly this.
func (m *machine) expect(want State, when string) {
	m.t.Helper()
	if diff := cmp.Diff(want, m.holds().State, equateAddrs, cmpopts.EquateEmpty()); diff != "" {
		m.t.Fatalf("%s: the kernel differs (-want +has):\n%s", when, diff)
	}
}

var equateAddrs = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

// webService is a Service with a cluster IP of each family, 10.96.0.n and fd00:96::n, on
// port 80.
func webService(n byte, endpoints ...string) *rules.Service {
	s := &rules.Service{Name: topology.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("web-%03d", n)}, Protocol: corev1.ProtocolTCP,
	}}
	vips := []netip.Addr{
		netip.AddrFrom4([4]byte{10, 96, 0, n}),
		netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x96, 15: n}),
	}
	for _, vip := range vips {
		var set []netip.AddrPort
		for _, e := range endpoints {
			if ap := netip.MustParseAddrPort(e); ap.Addr().Is4() == vip.Is4() {
				set = append(set, ap)
				s.Serving = append(s.Serving, ap)
			}
		}
		f := rules.Frontend{Addr: netip.AddrPortFrom(vip, 80), Kind: rules.ClusterIP, Verdict: rules.Reject}
		if set != nil {
			f.Verdict = rules.Pass
			f.Routes = []rules.Route{{From: rules.Any, Set: len(s.Sets)}}
			s.Sets = append(s.Sets, rules.EndpointSet{Endpoints: set})
		}
		s.Frontends = append(s.Frontends, f)
	}
	return s
}

func ruleset(services ...*rules.Service) rules.Ruleset { return rules.Ruleset{Services: services} }

// server is the virtual server of a webService.
func webServer(n byte) ServerKey {
	return ServerKey{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, 0, n}), 80), Proto: 6}
}

// since are the messages after a count.
func (m Messages) since(before Messages) Messages {
	return Messages{
		Servers: m.Servers - before.Servers, Destinations: m.Destinations - before.Destinations,
		Addresses: m.Addresses - before.Addresses, Entries: m.Entries - before.Entries,
		Sets: m.Sets - before.Sets, Links: m.Links - before.Links,
	}
}

// weights are those of a server's destinations.
func (m *machine) weights(server ServerKey) map[string]int {
	m.t.Helper()
	weights := map[string]int{}
	for key, d := range m.holds().Destinations {
		if key.Server == server {
			weights[key.Addr.String()] = d.Weight
		}
	}
	return weights
}

func (m *machine) expectWeights(server ServerKey, want map[string]int, when string) {
	m.t.Helper()
	if got := m.weights(server); !maps.Equal(got, want) {
		m.t.Fatalf("%s: weights of %s: %v, want %v", when, server, got, want)
	}
}
