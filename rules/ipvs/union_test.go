package ipvs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// drawCrowded draws Services that name the same few addresses.
func drawCrowded(t *rapid.T, before map[string]*rules.Service) rules.Ruleset {
	rs := rules.Ruleset{
		NodePorts: rules.NodePorts{IPv4: rules.NodePortAddrs{All: true, Addrs: []netip.Addr{netip.MustParseAddr("192.168.0.2")}}},
		HostAddrs: []netip.Addr{netip.MustParseAddr("192.168.0.2")},
	}
	for _, name := range []string{"a", "b", "c"} {
		switch rapid.IntRange(0, 3).Draw(t, "service "+name) {
		case 0:
			delete(before, name)
		case 1:
			before[name] = drawCrowdedService(t, name)
		}
		if s := before[name]; s != nil {
			rs.Services = append(rs.Services, s)
		}
	}
	return rs
}

func drawCrowdedService(t *rapid.T, name string) *rules.Service {
	s := &rules.Service{Name: topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}}
	s.Created = time.Unix(int64(rapid.IntRange(1, 2).Draw(t, "created")), 0)
	for i := range rapid.IntRange(1, 2).Draw(t, "endpoints") {
		s.Serving = append(s.Serving, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 180, name[0], byte(i)}), 80))
	}
	s.Sets = []rules.EndpointSet{{Endpoints: s.Serving}}
	pool := []rules.Frontend{
		{Kind: rules.ClusterIP, Addr: netip.MustParseAddrPort("10.96.0.1:80")},
		{Kind: rules.ClusterIP, Addr: netip.MustParseAddrPort("10.96.0.1:81")},
		{Kind: rules.ExternalIP, Addr: netip.MustParseAddrPort("10.96.0.1:80")},
		{Kind: rules.ExternalIP, Addr: netip.MustParseAddrPort("192.168.0.2:30080")},
		{Kind: rules.LoadBalancer, Addr: netip.MustParseAddrPort("192.168.0.2:30080")},
		{Kind: rules.NodePort, Addr: netip.MustParseAddrPort("0.0.0.0:30080")},
	}
	for _, f := range pool {
		switch rapid.IntRange(0, 3).Draw(t, fmt.Sprint(f.Kind)) {
		case 0:
			f.Routes = []rules.Route{{Masquerade: rules.Always}}
		case 1:
			f.Verdict = rules.Drop
		default:
			continue
		}
		s.Frontends = append(s.Frontends, f)
	}
	return s
}

// contested is what a crowd of Services comes to, by the rule and not by the way.
func contested(pieces []*Piece) map[ServerKey]claim {
	all := map[ServerKey][]claim{}
	for _, p := range pieces {
		for i := range p.fronts {
			key := p.fronts[i].key
			all[key] = append(all[key], claim{p, &p.fronts[i]})
		}
	}
	order := []rules.Kind{rules.ClusterIP, rules.LoadBalancer, rules.ExternalIP, rules.NodePort}
	first := map[ServerKey]claim{}
	for key, claims := range all {
		first[key] = slices.MinFunc(claims, func(a, b claim) int {
			class := func(c claim) int { return slices.Index(order, c.front.kind) }
			return cmp.Or(
				cmp.Compare(class(a), class(b)),
				a.piece.service.Created.Compare(b.piece.service.Created), // all are known
				cmp.Compare(a.piece.service.Name.Name, b.piece.service.Name.Name),
			)
		})
	}
	return first
}

// Whoever came first, and whoever went meanwhile: the same Service has an address, and what
// it needs is there as long as anybody needs it.
func TestUnionOfACrowd(t *testing.T) {
	equate := cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})
	rapid.Check(t, func(t *rapid.T) {
		var compiler Compiler
		u := newUnion()
		services := map[string]*rules.Service{}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			compiled := compiler.Compile(drawCrowded(t, services), Config{})
			u.update(compiled.Pieces, nil)
			want := State{Servers: map[ServerKey]Server{}, Destinations: map[DestinationKey]Destination{}, Addresses: map[netip.Addr]struct{}{}}
			for key, c := range contested(compiled.Pieces) {
				if c.front.set == "" {
					continue
				}
				want.Servers[key] = c.piece.server
				for _, e := range c.front.endpoints {
					want.Destinations[DestinationKey{Server: key, Addr: e}] = Destination{Weight: 1}
				}
				if key.Addr.Addr() == netip.MustParseAddr("10.96.0.1") {
					want.Addresses[key.Addr.Addr()] = struct{}{}
				}
			}
			got := u.state()
			want.Entries = got.Entries
			if diff := gocmp.Diff(want, got, equate); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			for e := range got.Entries {
				if key := serverOfEntry(e); e.Set == netfilter.SetChains && u.winners[key].front.bits == 0 {
					t.Fatalf("entry %s is of a loser", e)
				}
			}
			if diff := gocmp.Diff(compiled.State(), got, equate); diff != "" {
				t.Fatalf("(-from scratch +kept):\n%s", diff)
			}
		}
		u.update(nil, nil)
		if s := u.state(); len(u.winners)+len(u.rivals)+len(s.Servers)+len(s.Destinations)+len(s.Addresses)+len(s.Entries) > 0 {
			t.Fatalf("of nothing is left: %+v", u)
		}
	})
}
